#include "record/recording.h"

#include <algorithm>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/informer.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "replay/kept_secrets.h"
#include "replay/secrets.h"

namespace wavetank::record {
namespace {

using kube::ListOptions;
using kube::ObjectRef;
using kube::ResourceKind;
using nlohmann::json;
namespace kinds = kube::kinds;

constexpr size_t kMaxInputBytes = 16 << 20;
constexpr uint64_t kSeed = 1;

// What istiod does not read, and rules of `check` judge.
constexpr ResourceKind kNetworkPolicy{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"};
constexpr ResourceKind kPodDisruptionBudget{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"};
constexpr ResourceKind kMutatingWebhooks{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
                                         "mutatingwebhookconfigurations", false};
constexpr ResourceKind kValidatingWebhooks{"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
                                           "validatingwebhookconfigurations", false};

std::string KindOf(const kube::Object& object) {
  const size_t slash = object.api_version.find('/');
  return fmt::format("{}.{}", object.kind, slash == std::string::npos ? "" : object.api_version.substr(0, slash));
}

}  // namespace

struct Recording::Reflector {
  Source source;
  std::unique_ptr<kube::Informer> informer;
  absl::Status problem;  // the last one
};

struct Recording::Cluster {
  std::string context, name;
  std::unique_ptr<RestClient> client;
  std::vector<std::unique_ptr<Reflector>> reflectors;
  // What the log says last of each object.
  std::map<ObjectKey, json> written;

  const std::string& who() const { return name.empty() ? context : name; }
};

std::vector<Recording::Source> Recording::Sources(const RecordingOptions& options) {
  const std::string system = NormaliserOptions().system_namespace;
  std::vector<std::string> namespaces = options.namespaces;
  if (!namespaces.empty() && std::find(namespaces.begin(), namespaces.end(), system) == namespaces.end()) {
    namespaces.push_back(system);
  }
  std::vector<Source> out;
  // In the order in which a world is told of them: what runs comes last, and finds what it reads.
  if (namespaces.empty()) {
    out.push_back({kinds::kNamespace, {}, true});
  } else {
    for (const std::string& ns : namespaces) {
      out.push_back({kinds::kNamespace, {"", "", "metadata.name=" + ns}, false});
    }
  }
  out.push_back({kinds::kNode, {}, false});
  out.push_back({kinds::kSecret, {system, "", "metadata.name=cacerts"}, false});
  out.push_back({kinds::kSecret, {system, "istio/multiCluster=true", ""}, false});
  out.push_back({kinds::kConfigMap, {system, "", ""}, false});
  out.push_back({kMutatingWebhooks, {}, false});
  out.push_back({kValidatingWebhooks, {}, false});
  const auto add = [&](const ResourceKind& kind, bool required) {
    if (namespaces.empty()) return out.push_back({kind, {}, required});
    for (const std::string& ns : namespaces) out.push_back({kind, {ns, "", ""}, required});
  };
  for (const ResourceKind& kind :
       {kinds::kGateway, kinds::kVirtualService, kinds::kDestinationRule, kinds::kServiceEntry, kinds::kWorkloadEntry,
        kinds::kSidecar, kinds::kEnvoyFilter, kinds::kProxyConfig, kinds::kPeerAuthentication,
        kinds::kRequestAuthentication, kinds::kAuthorizationPolicy, kinds::kTelemetry, kinds::kWasmPlugin,
        kNetworkPolicy, kPodDisruptionBudget}) {
    add(kind, false);
  }
  add(kinds::kService, true);
  add(kinds::kEndpointSlice, true);
  add(kinds::kPod, true);
  return out;
}

absl::StatusOr<std::unique_ptr<Recording>> Recording::Start(Host& host, RecordingOptions options) {
  if (options.clusters.empty()) return absl::InvalidArgumentError("a recording is of at least one cluster");
  if (absl::Status status = replay::CheckWritable(options.log); !status.ok()) return status;
  std::unique_ptr<Recording> recording(new Recording(host, std::move(options)));
  for (const auto& cluster : recording->clusters_) {
    for (const auto& reflector : cluster->reflectors) reflector->informer->Start();
  }
  return recording;
}

Recording::Recording(Host& host, RecordingOptions options)
    : host_(host), options_(std::move(options)), normaliser_{options_.keep_secrets, "istio-system"} {
  for (const RecordedCluster& recorded : options_.clusters) {
    auto cluster = std::make_unique<Cluster>();
    Cluster& here = *cluster;
    here.context = recorded.context;
    here.client = std::make_unique<RestClient>(host_, *recorded.transport,
                                               RandomStream(kSeed, "watch/" + recorded.context), options_.limits);
    here.client->on_problem = [this, &here](const ResourceKind& kind, const ListOptions& list,
                                            const absl::Status& why) { Problem(here, kind, list, why); };
    for (Source& source : Sources(options_)) {
      auto reflector = std::make_unique<Reflector>();
      const std::string key = fmt::format("{}/{}", here.context, RestClient::Target(source.kind, source.options, ""));
      reflector->informer =
          std::make_unique<kube::Informer>(host_, *here.client, source.kind, source.options, RandomStream(kSeed, key));
      reflector->informer->AddHandler(
          {[this, &here](const ObjectRef& object) { Put(here, nullptr, object); },
           [this, &here](const ObjectRef& before, const ObjectRef& now) { Put(here, before, now); },
           [this, &here](const ObjectRef& last) { Remove(here, *last); }});
      reflector->informer->OnSynced([this] {
        // Not inside the list that is being delivered.
        Later([this] {
          if (const auto [have, of] = Progress(); have == of) Begin();
        });
      });
      reflector->source = std::move(source);
      here.reflectors.push_back(std::move(reflector));
    }
    clusters_.push_back(std::move(cluster));
  }
  patience_ = host_.RunAfter(options_.patience, [this] {
    patience_ = kNoTimer;
    if (recording() || !status_.ok()) return;
    for (const auto& cluster : clusters_) {
      for (const auto& reflector : cluster->reflectors) {
        if (reflector->informer->HasSynced()) continue;
        const std::string why = reflector->problem.ok() ? "no answer" : std::string(Message(reflector->problem));
        return Fail(absl::UnavailableError(fmt::format("context {}: {} cannot be listed: {}", cluster->context,
                                                       reflector->source.kind.resource, why)));
      }
    }
  });
}

Recording::~Recording() {
  host_.Cancel(patience_);
  host_.Cancel(commit_);
  for (const auto& cluster : clusters_) {
    for (const auto& reflector : cluster->reflectors) reflector->informer->Stop();
  }
}

std::pair<size_t, size_t> Recording::Progress() const {
  size_t have = 0, of = 0;
  for (const auto& cluster : clusters_) {
    of += cluster->reflectors.size();
    for (const auto& reflector : cluster->reflectors) have += reflector->informer->HasSynced() ? 1 : 0;
  }
  return {have, of};
}

void Recording::Note(std::string note) {
  constexpr size_t kMaxNotes = 1000;
  if (notes_.size() >= kMaxNotes || !noted_.insert(note).second) return;
  notes_.push_back(std::move(note));
  if (on_note) on_note(notes_.back());
}

void Recording::Fail(absl::Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  // Not inside a watch that is telling something.
  Later([this] {
    for (const auto& cluster : clusters_) {
      for (const auto& reflector : cluster->reflectors) reflector->informer->Stop();
    }
  });
}

void Recording::Later(Callback fn) {
  host_.Post([weak = std::weak_ptr<char>(alive_), fn = std::move(fn)]() mutable {
    if (!weak.expired()) fn();
  });
}

void Recording::Problem(Cluster& cluster, const ResourceKind& kind, const ListOptions& options,
                        const absl::Status& why) {
  for (const auto& reflector : cluster.reflectors) {
    const Source& source = reflector->source;
    if (!(source.kind == kind) || source.options.ns != options.ns ||
        source.options.field_selector != options.field_selector ||
        source.options.label_selector != options.label_selector) {
      continue;
    }
    reflector->problem = why;
    const bool refused = absl::IsUnauthenticated(why) || (absl::IsPermissionDenied(why) && source.required);
    const bool absent = absl::IsNotFound(why) && source.required;
    if (!recording() && !reflector->informer->HasSynced() && (refused || absent)) {
      const absl::Status status(why.code(), fmt::format("context {}: {} cannot be listed: {}", cluster.context,
                                                        kind.resource, std::string(Message(why))));
      // Not inside the client that reports it.
      Later([this, status] { Fail(status); });
      return;
    }
  }
  // A custom resource that is not installed, a watch that ran out and a version too old to go on from are no news.
  if (absl::IsNotFound(why) || (absl::IsOutOfRange(why) && why.message().find("HTTP 410") != std::string::npos)) return;
  Note(fmt::format("context {}: {}: {}", cluster.context, kind.resource, std::string(Message(why))));
}

void Recording::Begin() {
  if (recording() || !status_.ok()) return;
  std::vector<std::vector<ObjectRef>> snapshots;  // by cluster
  std::vector<ClusterFacts> told;
  for (const auto& cluster : clusters_) {
    std::vector<ObjectRef>& objects = snapshots.emplace_back();
    ClusterFacts& facts = told.emplace_back(cluster->context, normaliser_.system_namespace);
    for (const auto& reflector : cluster->reflectors) {
      for (ObjectRef& object : reflector->informer->List()) {
        facts.Read(*object);
        objects.push_back(std::move(object));
      }
    }
  }
  facts_ = ReadMeshFacts(told);
  facts_.world.seed = kSeed;
  facts_.world.start = options_.world_start;
  for (std::string& note : facts_.notes) Note(std::move(note));

  replay::LogHeader header;
  header.seed = kSeed;
  header.program_version = options_.program_version;
  header.profile = facts_.world.profile;
  header.scenario_name = "recording";
  std::vector<std::string> contexts;
  for (const auto& cluster : clusters_) contexts.push_back(cluster->context);
  header.scenario_text =
      fmt::format("# wavetank record, {}\n# contexts: {}\n", options_.started, fmt::join(contexts, ", "));
  for (const std::string& note : notes_) header.scenario_text += fmt::format("# note: {}\n", note);
  if (replay::HoldsSecret(header.scenario_text)) header.scenario_text = "# wavetank record\n";
  header.world = facts_.world.ToJson();
  header.world[std::string(replay::kRecordingKey)] = true;
  if (options_.keep_secrets) header.world[std::string(replay::kKeepsSecretsKey)] = true;
  replay::LogWriterOptions writing;
  writing.keep_secrets = options_.keep_secrets;
  absl::StatusOr<std::unique_ptr<replay::LogWriter>> writer = replay::LogWriter::Create(options_.log, header, writing);
  if (!writer.ok()) return Fail(writer.status());
  writer_ = *std::move(writer);
  began_ = host_.Now();
  for (size_t i = 0; i < clusters_.size(); ++i) {
    clusters_[i]->name = facts_.world.clusters[i].name;
    for (const ObjectRef& object : snapshots[i]) {
      Write(*clusters_[i], *object);
      if (!status_.ok()) return;
    }
  }
  // Behind it stands the whole picture: who reads what a killed recorder left must know (replay::VerifyUsable).
  absl::Status status = writer_->AddCheckpoint("");
  if (status.ok()) status = writer_->Commit();
  if (!status.ok()) Fail(std::move(status));
}

void Recording::Put(Cluster& cluster, const ObjectRef& before, const ObjectRef& now) {
  if (!recording() || !status_.ok()) return;
  // Deleted and made again while nobody looked.
  if (before != nullptr && before->meta.uid != now->meta.uid) Remove(cluster, *before);
  Write(cluster, *now);
}

void Recording::Write(Cluster& cluster, const kube::Object& object) {
  const kube::NamespacedName name{object.meta.ns, object.meta.name};
  Normalised normalised = Normalise(object, normaliser_);
  if (normalised.kind.empty()) return;
  const ObjectKey key{KindOf(object), name};
  if (const auto it = cluster.written.find(key); it != cluster.written.end() && it->second == normalised.body) return;
  std::string text;
  try {
    text = JsonText(normalised.body);
  } catch (const json::exception&) {
    return Note(
        fmt::format("cluster {}: {} is not recorded: it holds text that is no UTF-8", cluster.who(), object.Key()));
  }
  if (text.size() > kMaxInputBytes) {
    return Note(fmt::format("cluster {}: {} is not recorded: it is larger than {} bytes", cluster.who(), object.Key(),
                            kMaxInputBytes));
  }
  if (!options_.keep_secrets && replay::HoldsSecret(text)) {
    return Note(fmt::format("cluster {}: {} is not recorded: a name in it looks like a key or a token", cluster.who(),
                            object.kind));
  }
  Append(cluster, normalised.kind, normalised.body);
  cluster.written[key] = std::move(normalised.body);
}

void Recording::Remove(Cluster& cluster, const kube::Object& last) {
  if (!recording() || !status_.ok()) return;
  const kube::NamespacedName name{last.meta.ns, last.meta.name};
  if (cluster.written.erase({KindOf(last), name}) == 0) return;
  json body = {{"kind", KindOf(last)}, {"name", name.name}};
  if (!name.ns.empty()) body["namespace"] = name.ns;
  Append(cluster, "delete", std::move(body));
}

void Recording::Append(const Cluster& cluster, std::string kind, json body) {
  body["cluster"] = cluster.name;
  const Time at = options_.world_start + (host_.Now() - began_);
  if (absl::Status status = writer_->Add({at, seq_++, std::move(kind), std::move(body)}); !status.ok()) {
    return Fail(std::move(status));
  }
  CommitLater();
}

void Recording::CommitLater() {
  if (commit_ != kNoTimer) return;
  commit_ = host_.RunAfter(options_.commit_after, [this] {
    commit_ = kNoTimer;
    if (!status_.ok()) return;
    if (absl::Status status = writer_->Commit(); !status.ok()) Fail(std::move(status));
  });
}

absl::Status Recording::Finish() {
  if (!status_.ok()) return status_;
  if (!recording()) {
    return absl::FailedPreconditionError("the clusters have not been listed once: there is nothing to record yet");
  }
  for (const auto& cluster : clusters_) {
    for (const auto& reflector : cluster->reflectors) reflector->informer->Stop();
  }
  host_.Cancel(std::exchange(commit_, kNoTimer));
  return writer_->Finish(options_.world_start + (host_.Now() - began_), "");
}

}  // namespace wavetank::record
