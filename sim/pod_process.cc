#include "sim/pod_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/types.h"
#include "core/security/namespace_controller.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/apps/ext_authz_app.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

// The kubelet's patience with volumes that cannot be mounted yet: 500 ms, doubling to about two minutes.
constexpr Duration kMaxMountBackoff = 122s;
// Of the tokens that the kubelet projects into pods for istiod.
constexpr Duration kTokenLifetime = 12h;
constexpr Duration kDnsTtl = 5s;

std::string LabelOf(const kube::Object& pod, std::string_view name) {
  const auto it = pod.meta.labels.find(name);
  return it == pod.meta.labels.end() ? std::string() : it->second;
}

}  // namespace

PodProcess::PodProcess(ClusterSite& site, kube::ObjectRef pod)
    : site_(site),
      pod_(std::move(pod)),
      random_(site.commons->seed, fmt::format("app/{}/{}/{}", site.name, pod_->meta.ns, pod_->meta.name)) {
  Commons& commons = *site_.commons;
  name_ = fmt::format("{}.{}@{}", pod_->meta.name, pod_->meta.ns, site_.name);
  app_ = LabelOf(*pod_, "app");
  Workload workload;
  workload.site = site_.site;
  workload.network = site_.network;
  workload.node = commons.network->Node(site_.site, kube::ParsePod(*pod_).node_name);
  workload.ip = IpAddress::Parse(kube::ParsePod(*pod_).ip).value_or(IpAddress());
  workload.name = commons.host->Intern(name_);
  workload_ = commons.network->Add(std::move(workload));
  server_ = commons.host->Intern(fmt::format("{}/{}/{}", site_.name, pod_->meta.ns, pod_->meta.name));
  commons.servers[server_] = {site_.name, site_.network_name,       pod_->meta.ns, pod_->meta.name,
                              app_,       LabelOf(*pod_, "version")};
}

PodProcess::~PodProcess() {
  client_ = nullptr;
  envoy_ = nullptr;
  agent_ = nullptr;
  servers_.clear();
  site_.commons->network->Remove(workload_);
}

void PodProcess::Start(std::function<void(bool)> ready) {
  Commons& commons = *site_.commons;
  ready_ = std::move(ready);
  started_ = commons.host->Now();
  TakeBehaviour();
  // Applications listen on the ports that their containers declare.
  Workload& workload = commons.network->at(workload_);
  for (const nlohmann::json& container : Items(At(pod_->body, {"spec", "containers"}))) {
    if (Text(container, "name") == "istio-proxy") continue;
    const std::string image = Text(container, "image");
    if (image.substr(image.rfind('/') + 1).starts_with("ext-authz")) authorizer_ = true;
    for (const nlohmann::json& port : Items(At(container, "ports"))) {
      if (Text(port, "protocol", "TCP") != "TCP") continue;
      const auto number = static_cast<uint16_t>(Number(port, "containerPort"));
      if (number == 0 || workload.ports.contains(number)) continue;
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
  if (const kube::ObjectRef node = site_.cluster->api().Get("Node", {"", Text(At(pod_->body, "spec"), "nodeName")})) {
    options.node_cpus = pilot::NodeCpus(node->body);
  }
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

void PodProcess::StartProxy() {
  Commons& commons = *site_.commons;
  if (!RootCertificates().ok()) {
    // The volume cannot be mounted, so no container starts.
    const Duration wait = mount_backoff_;
    mount_backoff_ = std::min(mount_backoff_ * 2, kMaxMountBackoff);
    commons.host->RunAfter(wait, [this, weak = std::weak_ptr<int>(alive_)] {
      if (!weak.expired()) StartProxy();
    });
    return;
  }
  const pilot::ProxyBootstrap& bootstrap = *bootstrap_;
  const kube::Pod& pod = kube::ParsePod(*pod_);

  IstiodClient::Options way;
  way.workload = workload_;
  way.proxy = name_;
  way.ns = pod_->meta.ns;
  way.address = pod.ip;
  const size_t colon = bootstrap.discovery_address.rfind(':');
  way.istiod.host = bootstrap.discovery_address.substr(0, colon);
  if (int32_t port = 0;
      colon != std::string::npos && absl::SimpleAtoi(bootstrap.discovery_address.substr(colon + 1), &port)) {
    way.istiod.port = static_cast<uint16_t>(port);
  }
  way.server_name = bootstrap.discovery_san;
  way.roots_pem = [this] { return RootCertificates(); };
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
      if (!bootstrap_->token_audience.empty()) claims.audiences = {bootstrap_->token_audience};
      claims.issued = now + skew;
      claims.expires = claims.issued + lifetime;
      token = site_.tokens->Issue(claims);
      since = now;
      skewed = skew;
    }
    security::PeerCredentials peer;
    peer.bearer_token = token;
    peer.cluster_id = Text(node_->metadata, "CLUSTER_ID", site_.name);
    return peer;
  };
  istiod_ = std::make_unique<IstiodClient>(site_, std::move(way));
  ads_ = istiod_->NewAdsTransport();

  security::AgentOptions agent;
  agent.seed = commons.seed;
  agent.name = fmt::format("{}/{}", name_, pod_->meta.uid);
  agent.identity = {bootstrap.trust_domain, pod_->meta.ns, bootstrap.service_account};
  agent.secret_ttl = bootstrap.secret_ttl;
  agent.rotation_grace_ppm = bootstrap.secret_rotation_grace_ppm;
  agent.parser = commons.certificates;
  agent_ = std::make_unique<security::Agent>(*commons.host, *istiod_, std::move(agent));
  agent_->Start();

  envoysim::EnvoyOptions options;
  options.name = name_;
  options.workload = workload_;
  options.ip = commons.network->at(workload_).ip;
  options.protocol = commons.ads_protocol;
  options.xds_retry_base = commons.xds_retry_base;
  options.xds_retry_max = commons.xds_retry_max;
  options.drain_time = bootstrap.drain;
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

void PodProcess::FillNode(envoy::config::core::v3::Node* node) { pilot::ToProto(*node_, node); }

void PodProcess::OnLive() {
  proxy_ready_ = true;
  TellReady();
}

void PodProcess::TellReady() {
  const bool ready = proxy_ready_ && app_ready_;
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
  const AppBehaviour* behaviour = Behaviour();
  if (behaviour != nullptr || !app_ready_) TurnReady(behaviour == nullptr || behaviour->ready, behaviour_);
}

void PodProcess::TurnReady(bool ready, uint64_t generation) {
  if (generation != behaviour_) return;  // another rule came
  app_ready_ = ready;
  TellReady();
  const AppBehaviour* behaviour = Behaviour();
  if (behaviour == nullptr) return;
  const Duration wait = ready ? behaviour->ready_for : behaviour->unready_for;
  if (wait <= Duration::zero()) return;
  site_.commons->host->RunAfter(wait, [this, weak = std::weak_ptr<int>(alive_), ready, generation] {
    if (!weak.expired()) TurnReady(!ready, generation);
  });
}

void PodProcess::Subscribe(std::string_view name, OnSecret on_secret) {
  agent_->Subscribe(name, [on_secret = std::move(on_secret)](absl::StatusOr<security::SecretItem> item) mutable {
    if (!item.ok()) return on_secret(item.status());
    envoysim::Secret secret;
    if (item->key != nullptr) secret.certificate = envoysim::CertificateChain::Of(item->chain);
    secret.trusted_ca = item->roots;
    on_secret(std::move(secret));
  });
}

void PodProcess::Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<envoysim::DnsAnswer>)> done) {
  absl::StatusOr<std::vector<IpAddress>> addresses = site_.dns->Resolve(name, pod_->meta.ns);
  if (!addresses.ok()) return done(addresses.status());
  done(envoysim::DnsAnswer{*std::move(addresses), kDnsTtl});
}

envoysim::AppReply PodProcess::Serve(const envoysim::InboundCall& call) {
  if (authorizer_) return envoysim::AuthorizerReply(call.spec, server_);
  envoysim::AppReply reply;
  reply.server = server_;
  const Commons& commons = *site_.commons;
  if (commons.behaviours.empty()) return reply;
  if (const AppBehaviour* behaviour = Behaviour(); behaviour != nullptr)
    Behave(*behaviour, call, commons.host->Now() - started_, random_, &reply);
  return reply;
}

}  // namespace wavetank::sim
