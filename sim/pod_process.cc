#include "sim/pod_process.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/agent/probes.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/types.h"
#include "core/profile/changes.h"
#include "core/profile/releases.h"
#include "core/security/namespace_controller.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/apps/ext_authz_app.h"
#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/http/arrival.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tls/tls.h"
#include "fakes/kube/client/client.h"
#include "fmt/format.h"
#include "sim/agent/agent_start.h"
#include "sim/agent/image_reference.h"
#include "sim/agent/pod_agent.h"
#include "sim/agent/pod_files.h"
#include "sim/agent/pod_references.h"
#include "sim/apps/httpbin.h"
#include "sim/apps/rate_limit_service.h"
#include "sim/kernel/node_hosts.h"
#include "sim/pod_calls.h"
#include "sim/signing/istio_csr.h"
#include "sim/signing/token_reviews.h"

namespace wavetank::sim {
namespace {

// The kubelet's patience with volumes that cannot be mounted yet: 500 ms, doubling to about two minutes.
constexpr Duration kMaxMountBackoff = 122s;
// Of the tokens that the kubelet projects into pods for istiod.
constexpr Duration kTokenLifetime = 12h;
constexpr Duration kDnsTtl = 5s;

IstiodAddress AddressOf(const std::string& text) {
  IstiodAddress out;
  const size_t colon = text.rfind(':');
  out.host = text.substr(0, colon);
  if (int32_t port = 0; colon != std::string::npos && absl::SimpleAtoi(text.substr(colon + 1), &port)) {
    out.port = static_cast<uint16_t>(port);
  }
  return out;
}

}  // namespace

PodProcess::PodProcess(ClusterSite& site, kube::ObjectRef pod)
    : site_(site),
      pod_(std::move(pod)),
      host_(site.nodes->Of(kube::ParsePod(*pod_).node_name)),
      random_(site.commons->seed, fmt::format("app/{}/{}/{}", site.name, pod_->meta.ns, pod_->meta.name)) {
  Commons& commons = *site_.commons;
  name_ = fmt::format("{}.{}@{}", pod_->meta.name, pod_->meta.ns, site_.name);
  app_ = kube::AppOf(pod_->meta.labels);
  Workload workload;
  workload.site = site_.site;
  workload.network = site_.network;
  workload.node = commons.network->Node(site_.site, kube::ParsePod(*pod_).node_name);
  workload.ip = IpAddress::Parse(kube::ParsePod(*pod_).ip).value_or(IpAddress());
  for (const std::string& text : kube::ParsePod(*pod_).ips) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    if (ip.ok() && *ip != workload.ip) workload.more_ips.push_back(*ip);
  }
  workload.name = commons.host->Intern(name_);
  workload.pod = {pod_->meta.ns, pod_->meta.name};
  workload_ = commons.network->Add(std::move(workload));
  server_ = commons.host->Intern(fmt::format("{}/{}/{}", site_.name, pod_->meta.ns, pod_->meta.name));
  commons.servers[server_] = {
      site_.name, site_.network_name, pod_->meta.ns, pod_->meta.name, app_, kube::VersionOf(pod_->meta.labels)};
}

PodProcess::~PodProcess() {
  client_ = nullptr;
  calls_ = nullptr;
  envoy_ = nullptr;
  agent_ = nullptr;
  csr_ = nullptr;
  servers_.clear();
  site_.commons->network->Remove(workload_);
}

void PodProcess::Start(std::function<void(bool)> ready) {
  if (std::string invalid = site_.observed ? "" : InvalidImage(At(pod_->body, "spec")); !invalid.empty()) {
    failure_ = absl::InvalidArgumentError(std::move(invalid));
    return;
  }
  if (std::string missing = site_.observed ? "" : UnpublishedImage(At(pod_->body, "spec")); !missing.empty()) {
    failure_ = absl::NotFoundError(std::move(missing));
    return;
  }
  ready_ = std::move(ready);
  StartContainers();
}

void PodProcess::StartContainers() {
  Commons& commons = *site_.commons;
  if (std::string missing = site_.observed ? "" : MissingReference(site_.cluster->api(), *pod_); !missing.empty()) {
    failure_ = absl::NotFoundError(std::move(missing));
    return TryLater([this] { StartContainers(); });
  }
  if (failure_ = StartRateLimits(); !failure_.ok()) return TryLater([this] { StartContainers(); });
  if (failure_ = StartIstioCsr(); !failure_.ok()) return TryLater([this] { StartContainers(); });
  started_ = commons.host->Now();
  TakeBehaviour();
  // Applications listen on the ports that their containers declare.
  Workload& workload = commons.network->at(workload_);
  for (const nlohmann::json& container : Items(At(pod_->body, {"spec", "containers"}))) {
    if (Text(container, "name") == "istio-proxy") continue;
    const std::string image = Text(container, "image");
    if (image.substr(image.rfind('/') + 1).starts_with("ext-authz")) authorizer_ = true;
    if (IsHttpbin(image)) httpbin_ = true;
    for (const nlohmann::json& port : Items(At(container, "ports"))) {
      if (Text(port, "protocol", "TCP") != "TCP") continue;
      const auto number = static_cast<uint16_t>(Number(port, "containerPort"));
      if (number == 0 || workload.ports.contains(number)) continue;
      if (csr_ != nullptr && number == csr_->port()) continue;  // it listens for its own pod alone
      servers_.push_back(std::make_unique<envoysim::AppServer>(commons.plane->fabric(), *commons.host, *this));
      workload.ports[number] = servers_.back().get();
    }
  }
  if (!pilot::HasProxy(pod_->body)) {
    proxy_ready_ = true;
    return TellReady();
  }
  pilot::BootstrapOptions options;
  options.version = site_.commons->proxy_version;
  options.profile = site_.commons->profile;
  if (const kube::ObjectRef node = site_.cluster->api().Get("Node", {"", Text(At(pod_->body, "spec"), "nodeName")})) {
    options.node_cpus = pilot::NodeCpus(node->body);
  }
  PodFiles files(site_.cluster->api(), pod_);
  options.read_file = [&files](const std::string& path) { return files.Read(path).value_or(std::string()); };
  absl::StatusOr<pilot::ProxyBootstrap> bootstrap = pilot::ReadProxyBootstrap(pod_->body, options);
  if (!bootstrap.ok()) {
    // The agent ends with an error, again and again: the pod never gets ready.
    failure_ = bootstrap.status();
    return;
  }
  bootstrap_ = *std::move(bootstrap);
  node_ = std::make_shared<pilot::Node>(pilot::Node{bootstrap_->node_id,
                                                    bootstrap_->node_cluster,
                                                    {bootstrap_->region, bootstrap_->zone, bootstrap_->sub_zone},
                                                    std::move(bootstrap_->metadata)});
  StartProxy();
}

absl::Status PodProcess::StartRateLimits() {
  if (site_.observed) return absl::OkStatus();  // a record lacks its files
  const std::optional<RateLimitSettings> settings = RateLimitSettings::Of(pod_->body);
  if (!settings) return absl::OkStatus();
  auto files = std::make_shared<PodFiles>(site_.cluster->api(), pod_, settings->container);
  const auto read = [files, folder = settings->folder] {
    std::map<std::string, std::string> out;
    for (const std::string& path : files->List(folder)) {
      if (absl::StatusOr<std::string> text = files->Read(path); text.ok()) out[path] = *std::move(text);
    }
    return out;
  };
  const auto redis = [this, host = settings->redis_host,
                      port = settings->redis_port]() -> absl::StatusOr<RateLimitCounts*> {
    const absl::StatusOr<std::vector<IpAddress>> found = ResolveName(host);
    if (!found.ok()) return absl::UnavailableError(fmt::format("dial tcp: lookup {}: no such host", host));
    const SocketAddress to{found->front(), port};
    // A sidecar on the way changes nothing of who is asked in the end.
    const envoysim::Origin origin{.workload = workload_, .who = envoysim::Origin::Who::kProxy};
    const envoysim::Route route = site_.commons->network->Resolve(origin, to, 0);
    if (route.outcome != envoysim::Route::Outcome::kAccepting) {
      return absl::UnavailableError(fmt::format(
          "dial tcp {}: {}", to.ToString(),
          route.outcome == envoysim::Route::Outcome::kRefused ? "connect: connection refused" : "i/o timeout"));
    }
    return &site_.commons->counts[site_.commons->network->at(route.info.acceptor).name];
  };
  if (const absl::StatusOr<RateLimitCounts*> there = redis(); !there.ok()) {
    return absl::UnavailableError(
        fmt::format("container {} ends: panic: {}", settings->container, Message(there.status())));
  }
  limits_ = std::make_unique<RateLimitService>(
      *settings, read, redis,
      [&said = site_.commons->said](const std::string& text) { return std::string_view(*said.insert(text).first); },
      site_.commons->host->Now());
  return absl::OkStatus();
}

absl::Status PodProcess::StartIstioCsr() {
  if (site_.observed) return absl::OkStatus();  // a record lacks its Secrets
  std::optional<IstioCsrSettings> settings = IstioCsrSettings::Of(pod_->body);
  if (!settings) return absl::OkStatus();
  if (!settings->ends.empty()) return absl::InvalidArgumentError(EndsWith(settings->container, settings->ends));
  auto files = std::make_shared<PodFiles>(site_.cluster->api(), pod_, settings->container);
  const auto roots = [files, path = settings->roots_file] { return files->Read(path); };
  if (!settings->roots_file.empty() && !roots().ok()) {
    return absl::NotFoundError(fmt::format("container {} ends: open {}: no such file or directory (--root-ca-file)",
                                           settings->container, settings->roots_file));
  }
  Commons& commons = *site_.commons;
  auto rights = std::make_shared<OwnRights>(site_.cluster->api(), pod_->meta.ns,
                                            Text(At(pod_->body, "spec"), "serviceAccountName"));
  IstioCsr::Parts parts{*commons.channels, host_, workload_, name_, commons.seed, nullptr, nullptr, rights, roots};
  parts.client = fakekube::MakeClient(site_.cluster->api(), host_, "istio-csr/" + name_, commons.seed, {},
                                      [rights](const kube::AccessRequest& request) {
                                        // It follows one request at a time, and asks for that right itself.
                                        const bool follows = request.resource == "certificaterequests" &&
                                                             (request.verb == "list" || request.verb == "watch");
                                        return follows ? absl::OkStatus() : rights->Ask(request);
                                      });
  parts.reviewer = std::make_unique<TokenReviews>(*commons.host, site_.cluster->api(), *site_.tokens, [rights] {
    return rights->Ask({"", "create", "authentication.k8s.io", "tokenreviews", "", ""});
  });
  csr_ = std::make_unique<IstioCsr>(std::move(parts), *std::move(settings));
  if (csr_->acceptor() != nullptr) commons.network->at(workload_).ports[csr_->port()] = csr_->acceptor();
  csr_->Start([this] { TellReady(); });
  return absl::OkStatus();
}

absl::Status PodProcess::complaint() const {
  if (csr_ != nullptr) return csr_->complaint();
  return limits_ == nullptr ? absl::OkStatus() : limits_->trouble();
}

absl::StatusOr<std::string> PodProcess::RootCertificates() const {
  const kube::ObjectRef config_map =
      site_.cluster->api().Get("ConfigMap", {pod_->meta.ns, std::string(security::kCaRootConfigMap)});
  if (config_map == nullptr) {
    return absl::NotFoundError(fmt::format("ConfigMap {}/{} is not there", pod_->meta.ns, security::kCaRootConfigMap));
  }
  const nlohmann::json& roots = At(config_map->body, {"data", security::kCaRootConfigMapKey});
  if (!roots.is_string()) return absl::NotFoundError("the root certificates' ConfigMap has no root-cert.pem");
  return roots.get<std::string>();
}

namespace {

// What an agent finds when it probes its proxy, then the application (pilot-agent outside Kubernetes).
struct ProbedPod {
  bool proxy_ready = false, app_ready = false, listens = false;
};
absl::Status Probed(const wavetank::agent::HealthProbe& probe, const ProbedPod& pod) {
  using Kind = wavetank::agent::HealthProbe::Kind;
  if (!pod.proxy_ready) return absl::UnavailableError("config not received from XDS server (is Istiod running?)");
  // A command is the application's own business: it finds what the application says of itself.
  if (probe.kind != Kind::kExec && !pod.listens) {
    return absl::UnavailableError(fmt::format("dial tcp {}:{}: connect: connection refused", probe.host, probe.port));
  }
  if (pod.app_ready || probe.kind == Kind::kTcp) return absl::OkStatus();
  return absl::UnavailableError(probe.kind == Kind::kExec ? "exit status 1"
                                                          : "status code was not from [200,400), bad code 503");
}

}  // namespace

void PodProcess::TryLater(Callback again) {
  WAVETANK_ASSERT(mount_backoff_ > Duration::zero(), mount_backoff_, name_);
  WAVETANK_ASSERT(mount_backoff_ <= kMaxMountBackoff, mount_backoff_, name_);
  const Duration wait = mount_backoff_;
  mount_backoff_ = std::min(mount_backoff_ * 2, kMaxMountBackoff);
  site_.commons->host->RunAfter(wait, [weak = std::weak_ptr<int>(alive_), again = std::move(again)]() mutable {
    if (!weak.expired()) again();
  });
}

void PodProcess::StartProxy() {
  Commons& commons = *site_.commons;
  if (!RootCertificates().ok()) {
    // The volume cannot be mounted, so no container starts.
    return TryLater([this] { StartProxy(); });
  }
  const pilot::ProxyBootstrap& bootstrap = *bootstrap_;
  const kube::Pod& pod = kube::ParsePod(*pod_);
  agent_start_ = std::make_shared<AgentStart>(
      std::make_unique<PodFiles>(site_.cluster->api(), pod_), [this] { return RootCertificates(); },
      site_.api_server_roots);
  const absl::StatusOr<pilot::ProxyEnvironment> environment = pilot::ReadProxyEnvironment(pod_->body);
  failure_ = environment.ok() ? agent_start_->Look(bootstrap, *environment) : environment.status();
  if (!failure_.ok()) return;
  if (std::string why; agent_start_->ClientCertificate(host_.WallClock(), &why).empty() && !why.empty())
    bootstrap_->log.push_back(std::move(why));

  IstiodClient::Options way;
  way.workload = workload_;
  way.host = &host_;
  way.proxy = name_;
  way.ns = pod_->meta.ns;
  way.address = pod.ip;
  way.istiod = AddressOf(bootstrap.discovery_address);
  way.server_name = bootstrap.discovery_san;
  way.xds_plaintext = bootstrap.xds_plaintext;
  const auto roots = [this, start = agent_start_](bool xds) -> absl::StatusOr<std::string> {
    if (absl::Status key = start->ClientKey(host_.WallClock()); !key.ok()) return key;
    return xds ? start->XdsRoots() : start->CaRoots();
  };
  way.roots_pem = [roots] { return roots(true); };
  way.node = node_;
  // The API server issues the token, by its own clock; the kubelet asks for another when four fifths of its life, or a
  // day, are over (kubernetes: pkg/kubelet/token/token_manager.go, requiresRefresh).
  way.credentials = [this, token = std::string(), since = Time{}, skewed = Duration{}]() mutable {
    const Time now = site_.commons->host->Now();
    const Duration skew = site_.cluster->api().faults().clock_skew;
    const Duration lifetime = bootstrap_->token_expiration_seconds > 0
                                  ? Duration(std::chrono::seconds(bootstrap_->token_expiration_seconds))
                                  : kTokenLifetime;
    if (token.empty() || skew != skewed || now - since >= std::min<Duration>(lifetime / 5 * 4, 24h)) {
      kube::TokenClaims claims;
      claims.ns = pod_->meta.ns;
      claims.service_account = bootstrap_->service_account;
      claims.pod_name = pod_->meta.name;
      claims.pod_uid = pod_->meta.uid;
      if (agent_start_->token() == AgentStart::Token::kProjected && !bootstrap_->token_audience.empty())
        claims.audiences = {bootstrap_->token_audience};
      claims.issued = now + skew;
      claims.expires = claims.issued + lifetime;
      token = site_.tokens->Issue(claims);
      since = now;
      skewed = skew;
    }
    security::PeerCredentials peer;
    if (agent_start_->token() != AgentStart::Token::kNone) peer.bearer_token = token;
    peer.cluster_id = Text(node_->metadata, "CLUSTER_ID", site_.name);
    std::string why;  // was said at the start
    peer.verified_chain = agent_start_->ClientCertificate(host_.WallClock(), &why);
    return peer;
  };
  // CA_ADDR names another server for certificates, believed by the same roots (istiod:
  // security/pkg/nodeagent/caclient).
  if (bootstrap.ca_address != bootstrap.discovery_address || !agent_start_->same_roots()) {
    IstiodClient::Options to_ca = way;
    to_ca.roots_pem = [roots] { return roots(false); };
    to_ca.istiod = AddressOf(bootstrap.ca_address);
    to_ca.server_name = bootstrap.ca_san;
    ca_ = std::make_unique<IstiodClient>(site_, std::move(to_ca));
  }
  istiod_ = std::make_unique<IstiodClient>(site_, std::move(way));
  ads_ = istiod_->NewAdsTransport();

  PodAgent::Options parts;
  wavetank::agent::SecretOptions& secrets = parts.secrets;
  secrets.seed = commons.seed;
  secrets.name = fmt::format("{}/{}", name_, pod_->meta.uid);
  secrets.identity = {bootstrap.trust_domain, pod_->meta.ns, bootstrap.service_account};
  secrets.secret_ttl = bootstrap.secret_ttl;
  secrets.rotation_grace_ppm = bootstrap.secret_rotation_grace_ppm;
  if (AgentHas(pilot::Change::kRotationJitter)) {
    constexpr int64_t kAHundredth = 10'000;
    secrets.rotation_jitter_ppm = bootstrap.secret_rotation_jitter_ppm.value_or(kAHundredth);
  }
  secrets.file_mounted_certs = bootstrap.file_mounted_certs;
  secrets.output_dir = bootstrap.output_certs;
  secrets.parser = commons.certificates;
  if (!agent_start_->key().ok()) {
    secrets.make_key = [why = agent_start_->key()](int64_t) { return absl::StatusOr<x509::KeyPairRef>(why); };
  }
  // Gateways have no DNS server (istiod: pkg/istio-agent/agent.go, initLocalDNSServer).
  if (bootstrap.dns_capture && !router()) {
    parts.dns.emplace();
    parts.dns->proxy_namespace = pod_->meta.ns;
    parts.dns->proxy_domain = bootstrap.domain;
    for (const std::string& part : {fmt::format("{}.svc.", pod_->meta.ns), std::string("svc."), std::string()}) {
      parts.dns->search.push_back(part + site_.domain);
    }
    parts.on_ready = [this] { TellReady(); };
  }
  parts.dynamic_config = bootstrap.dynamic_config;
  if (const nlohmann::json& probe = At(bootstrap.proxy_config, "readinessProbe"); probe.is_object()) {
    absl::StatusOr<wavetank::agent::HealthProbe> health = wavetank::agent::ParseHealthProbe(probe, pod.ip);
    if (!health.ok()) {
      failure_ = health.status();
      return;
    }
    parts.health = *std::move(health);
    parts.probe = [this](const wavetank::agent::HealthProbe& asked, absl::AnyInvocable<void(absl::Status)> done) {
      absl::Status found = Probed(asked, {proxy_ready_, app_ready_, Listens(asked.port)});
      site_.commons->host->Post([done = std::move(done), found]() mutable { done(std::move(found)); });
    };
  }
  agent_ =
      std::make_unique<PodAgent>(host_, ca_ == nullptr ? *istiod_ : *ca_, site_.cluster->api(), pod_, std::move(parts));
  agent_->Start();
  ads_ = agent_->Through(std::move(ads_));

  envoysim::EnvoyOptions options;
  options.name = name_;
  options.workload = workload_;
  options.ip = commons.network->at(workload_).ip;
  options.protocol = SpeaksDelta() ? envoysim::AdsTransport::Protocol::kDelta : envoysim::AdsTransport::Protocol::kSotw;
  options.xds_retry_base = commons.xds_retry_base;
  options.xds_retry_max = commons.xds_retry_max;
  options.drain_time = bootstrap.drain;
  if (bootstrap.interception) {
    options.outbound_port = bootstrap.interception->outbound_port;
    options.inbound_port = bootstrap.interception->inbound_port;
  }
  envoy_ = std::make_unique<envoysim::Envoy>(*commons.plane, *this, options);
  Workload& workload = commons.network->at(workload_);
  if (!bootstrap.interception) {
    workload.direct = &envoy_->direct();
  } else {
    workload.outbound = &envoy_->outbound();
    workload.inbound = &envoy_->inbound();
    workload.interception = &*bootstrap.interception;
  }
  envoy_->Start();
}

namespace {

std::string RpcError(const absl::Status& status) {
  // grpc-go: codes.Code's names are those of absl, but for their case.
  static constexpr std::string_view kCodes[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  return fmt::format("rpc error: code = {} desc = {}",
                     kCodes[static_cast<size_t>(status.raw_code()) % std::size(kCodes)], Message(status));
}

}  // namespace

std::string PodProcess::WhatProbeFinds() const {
  const auto updates = [this](envoysim::XdsType type, std::string_view name) {
    wavetank::agent::Updates out;
    out.accepted = envoy_ == nullptr || envoy_->accepted_version(type).empty() ? 0 : 1;
    for (const envoysim::DataPlane::Nack& nack : site_.commons->plane->nacks())
      out.rejected += nack.proxy == name_ && nack.type == name ? 1 : 0;
    return out;
  };
  const std::string_view lacks = wavetank::agent::LacksConfiguration(updates(envoysim::XdsType::kCds, "CDS"),
                                                                     updates(envoysim::XdsType::kLds, "LDS"));
  // What it has accepted waits for something: a listener for its certificate, as a rule.
  return lacks.empty() ? "server is not live, current state is: INITIALIZING" : std::string(lacks);
}

std::string PodProcess::Trouble() const {
  if (!failure_.ok()) return std::string(Message(failure_));
  if (csr_ != nullptr && !csr_->ready()) return csr_->Trouble();
  if (!bootstrap_.has_value() || proxy_ready_) return "";
  if (const absl::StatusOr<std::string> roots = RootCertificates(); !roots.ok()) {
    return fmt::format("MountVolume.SetUp failed for volume \"istiod-ca-cert\" : configmap \"{}\" not found",
                       security::kCaRootConfigMap);
  }
  if (istiod_ == nullptr) return "its containers have not started";
  std::string out;
  // istiod: security/pkg/nodeagent/cache/secretcache.go and sds/sdsservice.go, pkg/istio-agent/xds_proxy.go.
  if (!agent_start_->key().ok()) {
    out = fmt::format("failed to warm certificate: failed to generate workload certificate: {}",
                      Message(agent_start_->key()));
  }
  const absl::Status& ca_status = (ca_ == nullptr ? *istiod_ : *ca_).ca_status();
  if (out.empty() && !ca_status.ok()) {
    out = fmt::format("failed to warm certificate: failed to generate workload certificate: create certificate: {}",
                      RpcError(ca_status));
  }
  if (!istiod_->ads_status().ok()) {
    out += fmt::format("{}upstream terminated with unexpected error {}", out.empty() ? "" : "; ",
                       RpcError(istiod_->ads_status()));
  }
  if (out.empty()) out = WhatProbeFinds();
  // What the agent cannot know.
  if (const absl::Status kept = site_.MayAskDns(workload_, istiod_->options().istiod.host); !kept.ok())
    out += fmt::format(" ({})", Message(kept));
  return "Envoy proxy is NOT ready: " + out;
}

void PodProcess::Restated(const kube::ObjectRef& newer) {
  const kube::ObjectMeta &was = pod_->meta, &is = newer->meta;
  if (was.uid == is.uid && was.labels == is.labels && was.annotations == is.annotations &&
      kube::ParsePod(*pod_).ip == kube::ParsePod(*newer).ip && At(pod_->body, "spec") == At(newer->body, "spec")) {
    pod_ = newer;
  }
}

void PodProcess::Terminate() {
  if (envoy_ != nullptr && envoy_->running()) envoy_->Drain();
}

envoysim::AppClient& PodProcess::client() {
  if (client_ == nullptr) {
    client_ =
        std::make_unique<envoysim::AppClient>(site_.commons->plane->fabric(), *site_.commons->host, workload_, name_);
  }
  return *client_;
}

// An agent does as its own release, whatever istiod's is.
bool PodProcess::AgentHas(pilot::Change change) const {
  return pilot::ProxyHas(site_.commons->profile, Text(node_->metadata, "ISTIO_VERSION"), change);
}

bool PodProcess::SpeaksDelta() const {
  if (site_.commons->delta_for_all) return true;
  if (bootstrap_->delta_xds) return *bootstrap_->delta_xds;
  return AgentHas(pilot::Change::kDeltaByDefault);
}

void PodProcess::FillNode(envoy::config::core::v3::Node* node) {
  pilot::ToProto(*node_, node);
  // The proxy runs the Envoy of its image's release; where stock Envoys run, all are one.
  const bool stock = site_.commons->plane->options().release.minor == envoysim::EnvoyRelease().minor;
  const int minor = stock ? 0 : pilot::EnvoyMinorOf(Text(node_->metadata, "ISTIO_VERSION"));
  if (minor == 0) return;
  auto* version = node->mutable_user_agent_build_version()->mutable_version();
  version->set_major_number(1);
  version->set_minor_number(static_cast<uint32_t>(minor));
}

void PodProcess::OnLive() {
  // Envoy is live after the first answers, refused or not; the agent's probe asks whether one of CDS and of LDS was
  // accepted (pilot-agent: status/ready/probe.go, checkConfigStatus).
  for (const envoysim::XdsType type : {envoysim::XdsType::kCds, envoysim::XdsType::kLds}) {
    if (!envoy_->accepted_version(type).empty()) continue;
    site_.commons->host->RunAfter(bootstrap_->readiness_period, [this, weak = std::weak_ptr<int>(alive_)] {
      if (!weak.expired()) OnLive();
    });
    return;
  }
  proxy_ready_ = true;
  TellReady();
}

void PodProcess::TellReady() {
  const bool ready =
      proxy_ready_ && app_ready_ && (agent_ == nullptr || agent_->ready()) && (csr_ == nullptr || csr_->ready());
  if (ready_ == nullptr || ready == told_ready_) return;
  told_ready_ = ready;
  ready_(ready);
}

const AppBehaviour* PodProcess::Behaviour() const {
  const PodIdentity& is = site_.commons->servers.at(server_);
  return site_.commons->behaviours.Of(is.cluster, is.ns, is.app, is.version);
}

void PodProcess::TakeBehaviour() {
  ++behaviour_;
  if (calls_ != nullptr) calls_->Forget();
  const AppBehaviour* behaviour = Behaviour();
  if (behaviour != nullptr || !app_ready_) TurnReady(behaviour == nullptr || behaviour->ready, behaviour_);
}

void PodProcess::TurnReady(bool ready, uint64_t generation) {
  if (generation != behaviour_) return;  // another rule came
  app_ready_ = ready;
  TellReady();
  const AppBehaviour* behaviour = Behaviour();
  if (behaviour == nullptr) return;
  WAVETANK_ASSERT(generation == behaviour_, generation, behaviour_);  // nobody was told twice of one rule
  const Duration wait = ready ? behaviour->ready_for : behaviour->unready_for;
  if (wait <= Duration::zero()) return;
  site_.commons->host->RunAfter(wait, [this, weak = std::weak_ptr<int>(alive_), ready, generation] {
    if (!weak.expired()) TurnReady(!ready, generation);
  });
}

void PodProcess::Subscribe(std::string_view name, OnSecret on_secret) {
  agent_->Subscribe(name, [on_secret = std::move(on_secret)](absl::StatusOr<wavetank::agent::SecretItem> item) mutable {
    if (!item.ok()) return on_secret(item.status());
    envoysim::Secret secret;
    if (item->key != nullptr) secret.certificate = envoysim::CertificateChain::Of(item->chain);
    secret.trusted_ca = item->roots;
    on_secret(std::move(secret));
  });
}

void PodProcess::Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<envoysim::DnsAnswer>)> done) {
  if (absl::Status kept = site_.MayAskDns(workload_, name); !kept.ok()) return done(kept);
  absl::StatusOr<WorldDns::Answer> answer = site_.dns->Ask(name, pod_->meta.ns);
  if (!answer.ok()) return done(answer.status());
  done(envoysim::DnsAnswer{std::move(answer->addresses), answer->ttl.value_or(kDnsTtl)});
}

const wavetank::agent::SecretManager* PodProcess::agent() const {
  return agent_ == nullptr ? nullptr : &agent_->secrets();
}

absl::StatusOr<std::vector<IpAddress>> PodProcess::ResolveName(std::string_view name) const {
  const auto upstream = [this](std::string_view asked) -> absl::StatusOr<std::vector<IpAddress>> {
    if (absl::Status kept = site_.MayAskDns(workload_, asked); !kept.ok()) return kept;
    return site_.dns->Resolve(asked, pod_->meta.ns);
  };
  if (agent_ != nullptr) {
    if (auto answer = agent_->Resolve(name, upstream)) return *std::move(answer);
  }
  return upstream(name);
}

namespace {

// As gRPC's servers say it: 200, and a status. An error comes at once, with the head; OK comes behind the message.
void SayAsGrpc(envoysim::AppReply* reply) {
  static const auto* const kSaid = new std::vector<std::string>([] {
    std::vector<std::string> out;
    for (uint16_t status = 0; !envoysim::GrpcStatusName(status).empty(); ++status) {
      out.push_back((status == 0 ? "" : "content-type: application/grpc\n") + envoysim::GrpcStatusLines(status, ""));
    }
    return out;
  }());
  if (reply->code == 0 || reply->grpc_status != envoysim::kNoGrpcStatus) return;
  const bool well = reply->code >= 200 && reply->code < 300;
  reply->grpc_status = well ? uint16_t{0} : envoysim::GrpcStatusOfHttp(reply->code);
  reply->code = 200;
  (well ? reply->trailers : reply->headers) = (*kSaid)[reply->grpc_status];
}

}  // namespace

envoysim::AppReply PodProcess::Serve(const envoysim::InboundCall& call) {
  const bool grpc = envoysim::IsGrpc(call.spec);
  envoysim::AppReply reply;
  if (grpc && call.spec.protocol != envoysim::HttpProtocol::kHttp2) {
    // Servers of gRPC know HTTP/2 alone. grpc-go: http2_server.go, NewServerTransport ("bogus greeting")
    reply.unheard = true;
    return reply;
  }
  if (call.spec.protocol == envoysim::HttpProtocol::kHttp2 && !envoysim::UpgradeOf(call.spec).empty()) {
    // Few servers know CONNECT with a protocol (RFC 8441). Go: net/http/h2_bundle.go, checkPseudos
    reply.unheard = true;
    return reply;
  }
  if (authorizer_) return envoysim::AuthorizerReply(call.spec, server_);
  const Commons& commons = *site_.commons;
  if (limits_ != nullptr) reply = limits_->Serve(call.spec, commons.host->Now());
  reply.server = server_;
  if (limits_ != nullptr) return reply;
  if (httpbin_) AnswerAsHttpbin(call.spec, random_, &reply);
  if (const AppBehaviour* behaviour = commons.behaviours.empty() ? nullptr : Behaviour(); behaviour != nullptr) {
    Behave(*behaviour, call, commons.host->Now() - started_, random_, &reply);
    const bool calls = !behaviour->calls.empty() && envoysim::UpgradeOf(call.spec).empty();
    if (reply.code == 200 && calls) reply.later = CallFirst(*behaviour, call, reply);
  }
  if (grpc && !reply.later) SayAsGrpc(&reply);
  if (reply.code != 0 && !reply.later) SayTrailers(&reply);
  // What else it calls, it calls for each message.
  if (envoysim::UpgradeOf(call.spec) == "websocket" && reply.code == 200 && !reply.later) {
    reply.code = 101;
    reply.headers = "upgrade: websocket\nconnection: Upgrade\n";
    reply.trailers = {};
  }
  return reply;
}

void PodProcess::SayTrailers(envoysim::AppReply* reply) const {
  const AppBehaviour* const behaviour = site_.commons->behaviours.empty() ? nullptr : Behaviour();
  if (behaviour == nullptr || behaviour->trailers.empty()) return;
  if (reply->grpc_status != envoysim::kNoGrpcStatus && reply->grpc_status != 0) return;  // a status alone
  std::string lines(reply->trailers);
  for (const auto& [name, value] : behaviour->trailers) envoysim::AddHeaderLine(name, value, &lines);
  reply->trailers = site_.commons->plane->configs().Keep(lines);
}

bool PodProcess::SpeaksTls(const envoysim::AcceptInfo& connection) const {
  const AppBehaviour* const behaviour = site_.commons->behaviours.empty() ? nullptr : Behaviour();
  return behaviour != nullptr && behaviour->tls && behaviour->tls->Speaks(connection.destination.port);
}

envoysim::HandshakeResult PodProcess::ShakeHands(const envoysim::AcceptInfo& /*connection*/,
                                                 const envoysim::FirstFlight& hello) {
  const auto server = ServerOf(*Behaviour()->tls, pod_->meta.ns, hello.sni, site_.Secrets());
  if (server.ok() && (*server)->certificate != nullptr)
    return site_.commons->plane->tls().Handshake(hello, **server, host_.WallClock());
  // It has nothing to show: its Secret went, or nobody can have a certificate for that name.
  envoysim::HandshakeResult out;
  out.client.error = envoysim::ReceivedAlert("handshake_failure");
  out.client.counter = "connection_error";
  return out;
}

bool PodProcess::CallFirst(const AppBehaviour& behaviour, const envoysim::InboundCall& call,
                           const envoysim::AppReply& reply) {
  if (call.deferral == nullptr) return false;
  const std::vector<size_t> due = DueCalls(behaviour, call.spec, random_);
  if (due.empty()) return false;
  const auto answer = [this, weak = std::weak_ptr<int>(alive_), later = call.deferral->Later(), reply,
                       grpc = envoysim::IsGrpc(call.spec)](uint16_t code) {
    envoysim::AppReply now = reply;
    now.code = code;
    now.delay = Duration::zero();
    if (grpc) SayAsGrpc(&now);
    if (!weak.expired()) SayTrailers(&now);
    later(now);
  };
  constexpr uint16_t kLoopDetected = 508;
  const bool circle = call.spec.depth >= PodCalls::kDeepest;
  site_.commons->host->RunAfter(
      call.lead + reply.delay, [this, weak = std::weak_ptr<int>(alive_), answer, due, circle, depth = call.spec.depth] {
        if (weak.expired()) return;
        if (circle) return answer(kLoopDetected);
        const AppBehaviour* now = Behaviour();
        // Another rule came meanwhile, under which it calls nobody.
        if (now == nullptr || now->calls.size() <= due.back()) return answer(200);
        if (calls_ == nullptr) calls_ = std::make_unique<PodCalls>(*this);
        calls_->Make(*now, due, depth,
                     [answer, failed = now->call_failed](bool ok) { answer(ok ? uint16_t{200} : failed); });
      });
  return true;
}

}  // namespace wavetank::sim
