#include "import/istiod/istiod_log.h"

#include <algorithm>
#include <functional>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

constexpr WallNs kMs = 1'000'000;
// How long after its cause's line an event reaches the debouncer.
constexpr WallNs kSlack = 20 * kMs;

std::string_view Until(std::string_view text, std::string_view end) { return text.substr(0, text.find(end)); }

// "pod-1.alpha-17": a proxy's ID and the number of its connection. The ID is "pod.namespace", and a namespace has no
// dot.
struct Connection {
  std::string name, ns;
};
Connection ReadConnection(std::string_view id) {
  if (const size_t dash = id.rfind('-');
      dash != id.npos && dash + 1 < id.size() && id.find_first_not_of("0123456789", dash + 1) == id.npos) {
    id = id.substr(0, dash);
  }
  const size_t dot = id.rfind('.');
  if (dot == id.npos) return {std::string(id), ""};
  return {std::string(id.substr(0, dot)), std::string(id.substr(dot + 1))};
}

}  // namespace

std::string IstiodLog::ObjectKindOf(InputKind kind, const std::string& host) {
  const bool kubernetes = host.find(".svc.") != host.npos;
  if (kind == InputKind::kService) return kubernetes ? "Service" : "ServiceEntry";
  return kubernetes ? "EndpointSlice" : "WorkloadEntry";
}

IstiodLog::IstiodLog(std::string replica, Evidence& evidence) : replica_(std::move(replica)), evidence_(evidence) {}

InferredInput& IstiodLog::Emit(InputKind kind, WallNs at, const Place& place) {
  InferredInput& input = evidence_.inputs.emplace_back();
  input.kind = kind;
  input.at = input.earliest = input.latest = at;
  input.initial = !ready_;
  input.replica = replica_;
  input.place = place;
  return input;
}

Claim& IstiodLog::Say(ClaimKind kind, WallNs at, const Place& place) {
  Claim& claim = evidence_.claims.emplace_back();
  claim.kind = kind;
  claim.at = at;
  claim.replica = replica_;
  claim.place = place;
  claim.initial = !ready_;
  return claim;
}

void IstiodLog::NewRun(WallNs at, const Place& place) {
  FlushSent();
  push_.reset();
  // The first run's process may have told a line or two before this one.
  const bool restart = any_ && evidence_.runs[run_].lines > 10;
  if (restart || !any_) {
    run_ = evidence_.runs.size();
    evidence_.runs.push_back({replica_, "", "", "", at, at, 0});
    any_ = true;
  }
  facts_.clear();
  syncing_.clear();
  retries_.clear();
  had_endpoints_.clear();
  known_hosts_.clear();
  secret_.reset();
  networks_.clear();
  mesh_.clear();
  services_ = -1;
  ready_at_ = kNoTime;
  ready_ = began_ = true;
  Emit(InputKind::kIstiodStarted, at, place).initial = !restart;
  ready_ = false;
}

// "134.4ms, marking server ready": how long it waited for its caches. Before that it reads its settings.
void IstiodLog::Started(WallNs ready, std::string_view rest) {
  constexpr WallNs kReadsSettings = 5'000 * kMs;
  const int64_t waited = ParseGoDuration(Until(rest, ","));
  WallNs from = ready - std::max<int64_t>(waited, 0) - kReadsSettings;
  if (began_) from = std::max(from, evidence_.runs[run_].from);
  evidence_.starts.push_back({replica_, from, ready});
}

// A process does not say the same twice within a microsecond; of lines whose times have seconds alone that cannot be
// said.
bool IstiodLog::ToldBefore(const LogRecord& record) {
  constexpr size_t kRemembered = 20'000;
  if (record.at % (1'000 * kMs) == 0) return false;
  // Of the standard library's: absl's is another one in each process.
  const std::hash<std::string_view> of_text;
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const uint64_t hash =
      (of_text(record.message) * kOdd + of_text(record.labels)) * kOdd + static_cast<uint64_t>(record.at);
  if (told_before_.contains(hash) || !told_.insert(hash).second) return true;
  if (told_.size() >= kRemembered) {
    told_before_.swap(told_);
    told_.clear();
  }
  return false;
}

void IstiodLog::Add(const LogRecord& record, const std::string& file) {
  if (ToldBefore(record)) return evidence_.refusals.Add("line that was told before", {file, record.line});
  std::string_view rest;
  const MessageKind kind = KindOfMessage(record, rest);
  if (!any_ && kind != MessageKind::kStarting) {
    any_ = true;
    run_ = evidence_.runs.size();
    evidence_.runs.push_back({replica_, "", "", "", record.at, record.at, 0});
  }
  if (last_ != kNoTime && record.at + 1'000 * kMs < last_) {
    evidence_.refusals.Add("time goes back by more than a second", {file, record.line}, FormatWall(record.at));
  }
  last_ = record.at;
  if (kind == MessageKind::kResponse) {
    ++evidence_.runs[run_].lines;
    evidence_.runs[run_].to = std::max(evidence_.runs[run_].to, last_);
    return Response(record, rest);
  }
  if (kind == MessageKind::kStarting) NewRun(record.at, {file, record.line});
  // It listens once it is ready (pilot/pkg/bootstrap/server.go, Start): so it is, though no line says so.
  if (!ready_ && (kind == MessageKind::kConnected || kind == MessageKind::kTerminated)) {
    ready_ = true;
    ready_at_ = record.at;
  }
  IstiodRun& run = evidence_.runs[run_];
  ++run.lines;
  run.to = std::max(run.to, last_);
  const Place place{file, record.line};
  switch (kind) {
    case MessageKind::kDebounced:
      return Debounced(record.at, rest, place);
    case MessageKind::kPushing:
    case MessageKind::kPushingPartly:
      return Pushing(record.at, rest, kind == MessageKind::kPushingPartly);
    case MessageKind::kConnected:
    case MessageKind::kTerminated:
    case MessageKind::kRateLimited:
    case MessageKind::kNack:
      return Proxy(record.at, kind, rest, place);
    case MessageKind::kSecretEvent:
      return Secret(record.at, rest, place);
    case MessageKind::kClusterAction:
    case MessageKind::kClusterFailed:
    case MessageKind::kClusterSame:
    case MessageKind::kClusterOwn:
    case MessageKind::kClusterTaken:
    case MessageKind::kClusterDeleted:
      return ClusterEffect(record, kind, rest);
    case MessageKind::kClusterCount: {
      int64_t count = 0;
      if (ReadInteger(rest, count)) Say(ClaimKind::kClusters, record.at, place).count = count;
      return;
    }
    case MessageKind::kRetry:
      return Retrying(record.at, rest);
    case MessageKind::kMeshNetworks:
    case MessageKind::kMeshConfig:
    case MessageKind::kMeshConfigRead:
    case MessageKind::kMeshRefused:
      return Mesh(record.at, kind, rest, place);
    case MessageKind::kPrimary:
    case MessageKind::kVersion:
    case MessageKind::kFlags:
      return Identity(kind, rest);
    case MessageKind::kReady:
      Started(record.at, rest);
      ready_ = true;
      ready_at_ = record.at;
      return;
    case MessageKind::kNone:
    case MessageKind::kStarting:
    case MessageKind::kResponse:
      return;
    default:
      return Remember(record.at, kind, rest, place);
  }
}

void IstiodLog::Finish() {
  // Their burst's line is missing; what they name happened all the same.
  if (ready_) {
    for (const Fact& fact : facts_) {
      if (syncing_.empty() && fact.kind != MessageKind::kGatewaysChanged) EmitFact(fact);
    }
  }
  facts_.clear();
  FlushSent();
  // A ServiceEntry's host tells no namespace, and a line that does may come behind the first that names it.
  for (InferredInput& input : evidence_.inputs) {
    if (input.ns.empty() && !input.host.empty()) input.ns = NamespaceOf(input.host);
  }
}

// Lines that name something whose burst is still to come.
void IstiodLog::Remember(WallNs at, MessageKind kind, std::string_view rest, const Place& place) {
  Fact fact{at, kind, {}, {}, {}, place};
  switch (kind) {
    case MessageKind::kNoEndpoints: {
      // HOST at shard PROVIDER/CLUSTER has no endpoints; without the shard until 1.9 (pilot/pkg/xds/eds.go)
      const size_t shard = rest.find(" at shard ");
      fact.host = shard == rest.npos ? Until(rest, " has no endpoints") : rest.substr(0, shard);
      fact.ns = NamespaceOf(fact.host);
      if (shard == rest.npos) break;
      const std::string_view key = Until(rest.substr(shard + 10), " has no endpoints");
      if (const size_t slash = key.find('/'); slash != key.npos) fact.cluster = key.substr(slash + 1);
      break;
    }
    case MessageKind::kNewService: {
      const size_t slash = rest.find('/');
      if (slash == rest.npos) return;
      fact.ns = rest.substr(0, slash);
      fact.host = rest.substr(slash + 1);
      namespaces_[fact.host] = fact.ns;
      had_endpoints_.insert(fact.host);
      break;
    }
    case MessageKind::kNewAccounts:
      fact.host = rest;
      fact.ns = NamespaceOf(fact.host);
      break;
    case MessageKind::kSynced: {
      const std::string cluster(Until(rest, " synced after "));
      if (const auto it = syncing_.find(cluster); it != syncing_.end()) it->second.synced = at;
      Say(ClaimKind::kClusterSynced, at, place).name = cluster;
      return;
    }
    case MessageKind::kSyncTimeout:
    case MessageKind::kClusterTimeout: {
      const std::string cluster(
          Until(rest, kind == MessageKind::kSyncTimeout ? " initial sync timed out" : " failed to sync after "));
      if (const auto it = syncing_.find(cluster); it != syncing_.end()) it->second.late = true;
      // Both lines are told of one cluster.
      for (auto it = evidence_.inputs.rbegin(); it != evidence_.inputs.rend() && it->at + 60'000 * kMs > at; ++it) {
        if (it->kind == InputKind::kClusterUnreachable && it->cluster == cluster) return;
      }
      Emit(InputKind::kClusterUnreachable, at, place).cluster = cluster;
      return;
    }
    case MessageKind::kUnresolved: {
      const std::string_view quoted = rest.starts_with('"') ? rest.substr(1) : rest;
      Emit(InputKind::kDns, at, place).host = std::string(Until(quoted, "\""));
      return;
    }
    case MessageKind::kGatewaysReload:
      Say(ClaimKind::kGatewayReload, at, place);
      break;
    case MessageKind::kGatewaysChanged:
      if (!ready_) evidence_.runs[run_].gateways_at_start = true;
      break;
    default:
      break;
  }
  facts_.push_back(std::move(fact));
}

std::string IstiodLog::NamespaceOf(const std::string& host) const {
  if (const auto it = namespaces_.find(host); it != namespaces_.end()) return it->second;
  // NAME.NAMESPACE.svc.DOMAIN
  const size_t dot = host.find('.');
  if (dot == host.npos) return {};
  const size_t end = host.find(".svc.", dot + 1);
  return end == host.npos ? std::string() : host.substr(dot + 1, end - dot - 1);
}

void IstiodLog::Identity(MessageKind kind, std::string_view rest) {
  IstiodRun& run = evidence_.runs[run_];
  if (kind == MessageKind::kPrimary) {
    run.cluster = rest;
  } else if (kind == MessageKind::kVersion) {
    run.version = rest;
  } else {
    const nlohmann::json flags = ParseJson(rest);
    run.pod = wavetank::Text(flags, "PodName");
  }
  // Known after it began.
  for (auto it = evidence_.inputs.rbegin(); it != evidence_.inputs.rend(); ++it) {
    if (it->kind != InputKind::kIstiodStarted || it->replica != replica_) continue;
    it->cluster = run.cluster;
    it->name = run.pod;
    it->detail = run.version;
    return;
  }
}

void IstiodLog::Mesh(WallNs at, MessageKind kind, std::string_view text, const Place& place) {
  if (kind == MessageKind::kMeshConfigRead) {
    mesh_ = text;
    return;
  }
  if (kind == MessageKind::kMeshRefused) {
    const bool networks = text.find("MeshNetworks") != text.npos;
    Emit(networks ? InputKind::kMeshNetworks : InputKind::kMeshConfig, at, place).change = "refused";
    return;
  }
  const bool networks = kind == MessageKind::kMeshNetworks;
  std::string& last = networks ? networks_ : mesh_;
  // One ConfigMap holds both, so a change of the one prints the other again.
  const bool same = last == text;
  const bool beside = ready_ && !networks && last.empty() && networks_at_ != kNoTime && at - networks_at_ < kSlack;
  last = text;
  if (networks) {
    networks_at_ = at;
    facts_.push_back({at, kind, {}, {}, {}, place});
  }
  if (same || beside) return;
  Emit(networks ? InputKind::kMeshNetworks : InputKind::kMeshConfig, at, place).detail = std::string(text);
}

void IstiodLog::Proxy(WallNs at, MessageKind kind, std::string_view rest, const Place& place) {
  if (kind == MessageKind::kConnected) {
    const Connection connection = ReadConnection(rest);
    InferredInput& input = Emit(InputKind::kProxyConnected, at, place);
    input.name = connection.name;
    input.ns = connection.ns;
  } else if (kind == MessageKind::kTerminated) {
    // ADDRESS" ID terminated...
    const size_t quote = rest.find("\" ");
    const size_t end = rest.find(" terminated");
    if (quote == rest.npos || end < quote + 2) return;
    const Connection connection = ReadConnection(rest.substr(quote + 2, end - quote - 2));
    if (connection.name.empty()) return;  // before it said who it is
    InferredInput& input = Emit(InputKind::kProxyDisconnected, at, place);
    input.name = connection.name;
    input.ns = connection.ns;
    input.detail = rest.substr(end + 1);
  } else if (kind == MessageKind::kRateLimited) {
    Emit(InputKind::kProxyRefused, at, place).detail = std::string(Until(rest, "\""));
  } else {
    // ID CODE:TEXT
    const size_t blank = rest.find(' ');
    const Connection connection = ReadConnection(rest.substr(0, blank));
    Claim& claim = Say(ClaimKind::kNack, at, place);
    claim.name = connection.ns.empty() ? connection.name : connection.name + "." + connection.ns;
    if (blank != rest.npos) claim.detail = rest.substr(blank + 1);
  }
}

// istiod's log goes on for every proxy of every push: nothing here may allocate, but for a proxy's first line.
void IstiodLog::Response(const LogRecord& record, std::string_view rest) {
  if (const size_t node = rest.find(" for node:"); node != rest.npos) {
    const std::string_view id = Until(rest.substr(node + 10), " ");
    if (!nodes_.contains(absl::string_view(id.data(), id.size()))) {
      nodes_.emplace(id);
      const size_t dot = id.rfind('.');
      if (dot != id.npos) evidence_.runs[run_].proxies.emplace(id.substr(dot + 1), id.substr(0, dot));
    }
  }
  if (rest.starts_with(" request")) return;  // an answer, no push
  const std::string_view type = record.message.substr(0, record.message.find(':'));
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i] == type) ++sent_[i];
  }
}

void IstiodLog::FlushSent() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (push_ && sent_[i] > 0) evidence_.claims[*push_].sent[std::string(kTypes[i])] += sent_[i];
  }
  sent_.fill(0);
}

void IstiodLog::Pushing(WallNs at, std::string_view rest, bool partly) {
  (void)at;
  if (!push_) return;
  Claim& claim = evidence_.claims[*push_];
  constexpr std::string_view kVersion = "Version:";
  if (const size_t at_version = rest.rfind(kVersion); at_version != rest.npos) {
    claim.version = Until(rest.substr(at_version + kVersion.size()), " ");
  }
  const auto number = [&](std::string_view key) {
    const size_t at_key = rest.find(key);
    int64_t value = -1;
    if (at_key == rest.npos) return value;
    const std::string_view text = rest.substr(at_key + key.size());
    return ReadInteger(text.substr(0, text.find(' ')), value) ? value : int64_t{-1};
  };
  claim.connected = number("ConnectedEndpoints:");
  if (partly) return;
  claim.services = number("Services:");
  // One Service in the burst: the number of services says what became of it.
  if (services_of_burst_.size() == 1 && services_ >= 0 && claim.services >= 0 && claim.events == 1) {
    InferredInput& service = evidence_.inputs[services_of_burst_.front()];
    service.change = claim.services > services_ ? "added" : claim.services < services_ ? "removed" : "changed";
  }
  // First endpoints make a push full by themselves (EDSCacheUpdate): with as many services as before, what else there
  // was of that host are endpoints, too.
  if (full_by_first_ && !twice_ && services_ >= 0 && claim.services == services_) {
    for (const size_t service : services_of_burst_) {
      InferredInput& slice = evidence_.inputs[service];
      slice.kind = InputKind::kEndpoints;
      slice.object_kind = ObjectKindOf(InputKind::kEndpoints, slice.host);
    }
  }
  ServicesOfEmptyEndpoints(claim);
  ServicesOfFirstEndpoints(claim);
  EndpointsOfHeadless(claim);
  full_by_first_ = twice_ = false;
  firsts_of_burst_.clear();
  services_of_burst_.clear();
  empty_of_burst_.clear();
  services_ = claim.services;
}

}  // namespace wavetank::importing
