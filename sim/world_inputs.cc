#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/assert.h"
#include "core/base/bounds.h"
#include "core/base/json_canonical.h"
#include "core/base/json_read.h"
#include "core/base/json_text.h"
#include "core/kube/secret.h"
#include "core/security/remote_secret.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "sim/installation.h"
#include "sim/world_site.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

// Of the time that an input names, what a world can wait for.
Duration DurationOf(const json& body, std::string_view key, Duration otherwise) {
  return std::clamp(Duration(Number(body, key, otherwise.count())), Duration::zero(), bounds::kInputDuration);
}

}  // namespace

absl::StatusOr<World::Site*> World::FindSite(const json& body, const char* key) {
  const std::string name = Text(body, key);
  for (const auto& site : sites_) {
    if (site->config().name == name) return site.get();
  }
  return absl::InvalidArgumentError(fmt::format("no cluster of this world is named '{}'", name));
}

absl::Status World::Do(const Input& input) {
  // What is due now comes first, so that inputs at one instant mean the same in a replay, where time is advanced to it
  // before each.
  kernel_.RunUntil(Now());
  const assertion::ScopedRun run(kernel_.run());
  ScopedCause scope(*host_, kernel_.causes().Of(inputs_));
  const uint64_t number = inputs_++;
  // What the world reads is what a log of it says: one value, whatever a client put into it.
  if (IsWhatItsTextSays(input.body)) {
    if (on_input) on_input(number, Now(), input);
    return Apply(input);
  }
  Input read = input;
  read.body = ParseJson(JsonText(input.body));
  if (on_input) on_input(number, Now(), read);
  return Apply(read);
}

absl::Status World::Apply(const Input& input) {
  const json& body = input.body;
  if (input.kind == "link") return ApplyLink(body);
  if (input.kind == "dns") return ApplyDns(body);
  if (input.kind == "keySet") return ApplyKeySet(body);
  if (input.kind == "remoteSecret") return ApplyRemoteSecret(body);
  if (input.kind == "xdsOpen") return outside_->Open(body, IstiodOf(Text(body, "cluster")));
  if (input.kind == "xdsRequest") return outside_->Request(body);
  if (input.kind == "xdsDeltaRequest") return outside_->DeltaRequest(body);
  if (input.kind == "xdsClose") return outside_->Close(body);
  if (input.kind == "certificateRequest") {
    return outside_->RequestCertificate(body, IstiodOf(Text(body, "cluster")));
  }
  if (input.kind == "issuer") {
    const std::string name = Text(body, "name"), uri = Text(body, "jwksUri");
    issuers_->Add(name);
    Serve(uri.empty() ? name + "/keys" : uri, name, issuers_->KeySet(name));
    return absl::OkStatus();
  }
  if (input.kind == "traffic") return StartTraffic(body);
  if (input.kind == "stopTraffic") {
    const auto it = traffic_.find(Text(body, "id"));
    if (it != traffic_.end()) it->second->Stop();
    return absl::OkStatus();
  }

  absl::StatusOr<Site*> site = FindSite(body);
  if (!site.ok()) return site.status();
  fakekube::Cluster& cluster = (*site)->cluster();
  const kube::NamespacedName name{Text(body, "namespace"), Text(body, "name")};
  if (input.kind == "install") return Install(**site);
  if (input.kind == "apply") return cluster.api().Apply(At(body, "object")).status();
  if (input.kind == "delete") return cluster.api().Delete(Text(body, "kind"), name);
  if (input.kind == "patch") {
    if (!At(body, "patch").is_object()) return absl::InvalidArgumentError("a patch is an object of fields");
    return cluster.api().Patch(Text(body, "kind"), name, At(body, "patch")).status();
  }
  if (input.kind == "kubeRequest") return ApplyKubeRequest(**site, body);
  if (input.kind == "loadBalancer") return cluster.SetLoadBalancerAddress(name, Text(body, "address"));
  if (input.kind == "cacerts") return ApplyCaCerts(**site, body);
  if (input.kind == "kill") return KillPods(**site, body);
  if (input.kind == "apiServer") return ApplyApiServerFault(**site, body);
  return absl::UnimplementedError(fmt::format("no input is of kind '{}'", input.kind));
}

absl::Status World::ApplyLink(const json& body) {
  const json& ends = Items(At(body, "between"));
  if (ends.size() != 2) return absl::InvalidArgumentError("a link has two ends");
  absl::StatusOr<Site*> a = FindSite({{"cluster", ends[0]}}), b = FindSite({{"cluster", ends[1]}});
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  Line& line = links_->Between((*a)->place().site, (*b)->place().site);
  LineQuality quality = line.quality();
  quality.cut = Flag(body, "cut", quality.cut);
  quality.latency = Duration(Number(body, "latencyNs", quality.latency.count()));
  quality.jitter = Duration(Number(body, "jitterNs", quality.jitter.count()));
  quality.loss_ppm = Number(body, "lossPpm", quality.loss_ppm);
  if (absl::Status status = CheckQuality(quality); !status.ok()) return status;
  line.set_quality(quality);
  TraceRecord record;
  record.kind = quality.cut ? TraceKind::kFaultStarted : TraceKind::kFaultEnded;
  record.subject = host_->Intern(line.name());
  host_->Emit(record);
  return absl::OkStatus();
}

absl::Status World::ApplyDns(const json& body) {
  std::vector<IpAddress> addresses;
  for (const json& text : Items(At(body, "addresses"))) {
    absl::StatusOr<IpAddress> ip = IpAddress::Parse(TextOf(text));
    if (!ip.ok()) return ip.status();
    addresses.push_back(*ip);
  }
  commons_.dns.Set(Text(body, "name"), std::move(addresses));
  return absl::OkStatus();
}

absl::Status World::ApplyKeySet(const json& body) {
  const std::string uri = Text(body, "uri"), issuer = Text(body, "issuer");
  const json& keys = At(body, "keys");
  Serve(uri, issuer, keys.is_null() ? std::nullopt : std::optional(TextOf(keys, JsonText(keys))));
  return absl::OkStatus();
}

void World::Serve(const std::string& uri, const std::string& issuer, std::optional<std::string> keys) {
  const auto answer = [&](const std::string& url, std::optional<std::string> text) {
    if (text) {
      commons_.web[url] = *std::move(text);
    } else {
      commons_.web.erase(url);
    }
  };
  const bool gone = !keys.has_value();
  answer(uri, std::move(keys));
  if (issuer.empty()) return;
  answer(issuer + "/.well-known/openid-configuration",
         gone ? std::nullopt : std::optional(JsonText(json{{"issuer", issuer}, {"jwks_uri", uri}})));
}

absl::Status World::StartTraffic(const json& body) {
  TrafficSpec spec;
  spec.id = Text(body, "id");
  spec.flow = Text(body, "flow");
  const json& from = At(body, "from");
  absl::StatusOr<Site*> site = FindSite(from);
  if (!site.ok()) return site.status();
  spec.cluster = Text(from, "cluster");
  spec.ns = Text(from, "namespace");
  spec.app = Text(from, "app");
  spec.host = Text(body, "host");
  spec.port = static_cast<uint16_t>(Number(body, "port", 80));
  spec.path = Text(body, "path", "/");
  spec.keep_alive = Flag(body, "keepAlive");
  spec.tcp = Flag(body, "tcp");
  spec.requests = std::clamp<int64_t>(Number(body, "requests"), 0, bounds::kRequests);
  spec.period =
      Duration(std::clamp<int64_t>(Number(body, "periodNs", 10'000'000), 1000, bounds::kInputDuration.count()));
  spec.method = Text(body, "method", "GET");
  for (const auto& [name, value] : Members(At(body, "headers"))) {
    spec.headers.emplace_back(name, TextOf(value));
  }
  Credential credential;
  if (const json& token = At(body, "token"); token.is_object()) {
    const absl::StatusOr<std::string> minted = issuers_->Mint(token, Now());
    if (!minted.ok()) return minted.status();
    credential.header = Text(token, "header");
    credential.param = Text(token, "param");
    credential.token = *minted;
  }
  auto clients = [s = *site, ns = spec.ns, app = spec.app] {
    std::vector<PodProcess*> out;
    for (const auto& [key, pod] : s->pods()) {
      if (key.ns == ns && pod->app() == app && (pod->envoy() == nullptr || pod->envoy()->live())) {
        out.push_back(pod.get());
      }
    }
    return out;
  };
  const std::string id = spec.id;
  traffic_[id] = std::make_unique<TrafficSource>(commons_, std::move(spec), credential, std::move(clients),
                                                 [this](const TrafficRecord& record) {
                                                   if (on_request) on_request(record);
                                                 });
  return absl::OkStatus();
}

absl::Status World::ApplyCaCerts(Site& site, const json& body) {
  const std::string root_name = Text(body, "root", "root");
  const x509::CertificateAuthority root = x509::MakeRootCa(options_.seed, "root/" + root_name, Time{}, kCaLifetime);
  const x509::CertificateAuthority ca = x509::MakeIntermediateCa(
      options_.seed, fmt::format("intermediate/{}/{}", root_name, site.config().name), root, Time{}, kCaLifetime);
  kube::SecretData data;
  for (auto& [key, value] : x509::CaCertsSecretData(ca)) data[key] = value;
  return site.cluster()
      .api()
      .Apply(kube::MakeSecret(kSystemNamespace, security::kPluggedCaSecret, data)->body)
      .status();
}

absl::Status World::KillPods(Site& site, const json& body) {
  const std::string app = Text(body, "app"), ns = Text(body, "namespace");
  std::vector<kube::NamespacedName> victims;
  for (const auto& [key, pod] : site.pods()) {
    if ((ns.empty() || key.ns == ns) && pod->app() == app) victims.push_back(key);
  }
  if (victims.empty()) {
    return absl::InvalidArgumentError(fmt::format("no pod of app '{}' runs in cluster '{}'", app, site.config().name));
  }
  for (const kube::NamespacedName& victim : victims) site.cluster().api().Finalize("Pod", victim).IgnoreError();
  return absl::OkStatus();
}

absl::Status World::ApplyApiServerFault(Site& site, const json& body) {
  fakekube::ApiServer& server = site.cluster().api();
  const std::string fault = Text(body, "fault");
  if (fault == "none") {
    fakekube::EndFaults(server);
  } else if (const fakekube::FaultRow* row = fakekube::FindFault(fault); row != nullptr) {
    // A clock may go behind; nothing else lies in the past.
    const bool behind = row->name == "clock-skew" && Number(body, row->parameter) < 0;
    const Duration most = bounds::kInputDuration;
    row->start(server, behind ? std::max(Duration(Number(body, row->parameter)), -most)
                              : DurationOf(body, row->parameter, row->otherwise));
  } else {
    return absl::InvalidArgumentError(fmt::format("no fault of an API server is named '{}'", fault));
  }
  TraceRecord record;
  record.kind = fault == "none" ? TraceKind::kFaultEnded : TraceKind::kFaultStarted;
  record.subject = host_->Intern(site.config().name + "/kube-apiserver");
  host_->Emit(record);
  return absl::OkStatus();
}

absl::Status World::Install(Site& site) {
  const WorldCluster& config = site.config();
  Installation what;
  what.cluster = config.name;
  what.network = config.network;
  what.control_plane = config.control_plane;
  if (config.primary()) return InstallPrimary(site.cluster().api(), what);
  if (absl::Status status = InstallRemote(site.cluster().api(), what); !status.ok()) return status;
  // The operator points the remote cluster at the primary's east-west gateway once that has an address.
  for (const auto& candidate : sites_) {
    if (candidate->config().name == config.control_plane) {
      subscriptions_.Add(ConnectRemoteWhenExposed(candidate->cluster().api(), site.cluster().api()));
    }
  }
  return absl::OkStatus();
}

absl::Status World::ApplyRemoteSecret(const json& body) {
  absl::StatusOr<Site*> of = FindSite(body, "of"), in = FindSite(body, "in");
  if (!of.ok()) return of.status();
  if (!in.ok()) return in.status();
  const std::string state = Text(body, "state", "present");
  const std::string& cluster = (*of)->config().name;
  fakekube::ApiServer& api = (*in)->cluster().api();
  if (state == "deleted") return api.Delete("Secret", {kSystemNamespace, "istio-remote-secret-" + cluster});
  int& generation = secret_generations_[{cluster, (*in)->config().name}];
  if (state == "rotated") ++generation;
  kube::TokenClaims claims;
  claims.ns = kSystemNamespace;
  claims.service_account = security::kReaderServiceAccount;
  claims.issued = claims.expires = Time{} + std::chrono::seconds(generation);
  security::RemoteSecretFields fields;
  fields.cluster = cluster;
  fields.server = ApiServerUrl(cluster);
  fields.ca_pem = (*of)->ca_pem();
  fields.token = (*of)->tokens().Issue(claims);
  json secret = security::MakeRemoteSecret(fields)->body;
  if (state == "broken") {
    secret["data"][cluster] = absl::Base64Escape("this is no kubeconfig");
  } else if (state != "present" && state != "restored" && state != "rotated") {
    return absl::InvalidArgumentError(fmt::format("a remote Secret cannot be '{}'", state));
  }
  return api.Apply(std::move(secret)).status();
}

absl::Status World::ApplyKubeRequest(Site& site, const json& body) {
  fakekube::http::Request request;
  if (kube_call_ != nullptr) request.accept = kube_call_->request->accept;
  request.method = Text(body, "method");
  request.path = Text(body, "path");
  request.query = Text(body, "query");
  request.content_type = Text(body, "contentType");
  request.parsed = std::make_shared<const json>(At(body, "body"));
  // What was read of it when it came is not read again.
  const fakekube::http::Call call =
      kube_call_ != nullptr ? kube_call_->For(std::move(request)) : site.rest().Open(std::move(request));
  if (!site.rest().Changes(call)) {
    return absl::InvalidArgumentError(fmt::format("{} {} changes nothing", call.request->method, call.request->path));
  }
  fakekube::http::Response response = site.rest().Execute(call);
  if (kube_call_ != nullptr) kube_response_ = std::make_unique<fakekube::http::Response>(std::move(response));
  return absl::OkStatus();
}

}  // namespace wavetank::sim
