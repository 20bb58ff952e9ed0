#include "sim/world_site.h"

#include <algorithm>
#include <utility>

#include "core/base/json/json_read.h"
#include "core/base/status.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/profile/releases.h"
#include "core/security/namespace_controller.h"
#include "fakes/kube/client/client.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/validation/defaults.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/istiod_run.h"
#include "sim/mending/installation.h"
#include "sim/network/kube_proxy.h"
#include "sim/signing/istio_csr_settings.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

bool IsIstiodPod(const kube::Object& pod) { return IsIstiod(pod.body, pod.meta.ns); }

// By what the scheduler says of them; each sorted. Walks all pods.
std::map<std::string, std::vector<std::string>> UnschedulablePods(const fakekube::ApiServer& api) {
  std::map<std::string, std::vector<std::string>> out;
  for (const kube::ObjectRef& pod : api.List("Pod")) {
    if (!Text(At(pod->body, "spec"), "nodeName").empty()) continue;
    for (const json& condition : Items(At(pod->body, {"status", "conditions"}))) {
      if (Text(condition, "reason") == "Unschedulable")
        out[Text(condition, "message")].push_back(pod->meta.ns + "/" + pod->meta.name);
    }
  }
  return out;
}

}  // namespace

x509::CertificateAuthority ApiServerCa(uint64_t seed, std::string_view cluster) {
  return x509::MakeRootCa(seed, fmt::format("kubernetes/{}", cluster), Time{}, kCaLifetime);
}

World::Site::Site(World& world, const WorldCluster& config, SiteId site)
    : world_(world),
      config_(config),
      tokens_(world.options_.seed, config.name),
      api_ca_(ApiServerCa(world.options_.seed, config.name)),
      nodes_(world.kernel_, config.name) {
  fakekube::ClusterOptions options;
  options.name = config.name;
  options.pod_cidr = config.pod_cidr;
  options.service_cidr = config.service_cidr;
  options.load_balancer_cidr = config.load_balancer_cidr;
  options.load_balancer_hostname = config.load_balancer_hostname;
  options.release = fakekube::KubernetesRelease(pilot::ReleaseOf(world.profile_).kubernetes);
  options.nodes_untold = config.nodes_untold;
  for (const WorldNode& node : config.nodes)
    options.nodes.push_back({node.name, node.region, node.zone, node.external_ip});
  options.seed = world.options_.seed;
  // Of a world that begins at the real calendar, later lives have the greater versions: a client who knows one of an
  // earlier life is told 410 instead of missing what happened.
  options.first_resource_version += (world.options_.start - Time{}) / std::chrono::milliseconds(1);
  options.create_namespaces = true;
  options.observed = config.observed;
  const Timing& t = world.timing_;
  options.schedule = t.schedule;
  options.container_start = t.container_start;
  options.readiness = t.readiness;
  options.readiness_jitter = t.readiness_jitter;
  options.termination = t.termination;
  options.endpoint_slice = t.endpoint_slice;
  options.load_balancer = t.load_balancer;
  options.ca_pem = ca_pem();
  options.issue_token = [this](const std::string& ns, const std::string& account) {
    kube::TokenClaims claims;
    claims.ns = ns;
    claims.service_account = account;
    claims.issued = claims.expires = world_.host_->Now();
    return tokens_.Issue(claims);
  };
  cluster_ = std::make_unique<fakekube::Cluster>(*world.host_, options, this, this);
  dns_ = std::make_unique<ClusterDns>(cluster_->api(), world.commons_.dns,
                                      DnsReload{world.timing_.dns_reload, HashName(config.name, options.seed)});
  foreign_webhooks_ = std::make_unique<ForeignWebhooks>(cluster_->api());

  place_.commons = &world.commons_;
  place_.name = config.name;
  place_.network_name = config.network;
  place_.site = site;
  place_.network = world.network_->underlay()->SiteOf(site);
  place_.cluster = cluster_.get();
  place_.dns = dns_.get();
  place_.tokens = &tokens_;
  place_.nodes = &nodes_;
  place_.api_server_roots = ca_pem();
  place_.observed = config.observed;
  policies_ = std::make_unique<fakekube::NetworkPolicies>(cluster_->api());
  if (config.enforces_policies)
    world.network_->SetPolicies(site, &cluster_->api(), policies_.get(), config.strict_policies);
  if (config.enforces_policies && config.strict_policies) CutWhatPoliciesRefuse();
  if (!config.observed) world.network_->SetPodRange(site, config.pod_cidr);  // a recording does not tell its ranges
  kube_proxy_ = std::make_unique<KubeProxy>(
      *cluster_, *world.network_, site, place_.network, t.kube_proxy,
      HealthChecks{t.load_balancer_check, t.load_balancer_failures, t.load_balancer_successes});

  // The first one is what istiods begin to watch for; istiods that take over another bundle write it here as well.
  const auto look = [this](const fakekube::Change&) {
    if (!Validates()) return;
    for (const auto& [name, run] : istiods_) WatchValidation(*run);
  };
  for (const char* kind : {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
    subscriptions_.Add(cluster_->api().Observe(kind, look));
  subscriptions_.Add(cluster_->api().Observe("ConfigMap", [look](const fakekube::Change& change) {
    if (change.object->meta.name == security::kCaRootConfigMap) look(change);
  }));

  // The API server as a client of webhooks. Its address is nobody's business.
  Workload api_server;
  api_server.site = site;
  api_server.network = place_.network;
  api_server.ip = ApiServerAddress(site);
  api_server.name = world.host_->Intern(config.name + "/kube-apiserver");
  api_server_ = world.network_->Add(std::move(api_server));
}

World::Site::~Site() = default;

void World::Site::CutWhatPoliciesRefuse() {
  const auto cut = [this] {
    MeshNetwork& network = *world_.network_;
    world_.commons_.plane->fabric().CutWhere(
        [&network](const envoysim::Origin& origin, const SocketAddress& dialled, const envoysim::AcceptInfo& info) {
          return !network.StillPasses(origin, dialled, info);
        });
  };
  subscriptions_.Add(
      cluster_->api().Observe("NetworkPolicy.networking.k8s.io", [cut](const fakekube::Change&) { cut(); }));
  // Those by whose labels policies select them.
  for (const char* kind : {"Pod", "Namespace"}) {
    subscriptions_.Add(cluster_->api().Observe(kind, [this, cut](const fakekube::Change& change) {
      if (change.previous == nullptr || change.previous->meta.labels == change.object->meta.labels) return;
      if (policies_->any()) cut();
    }));
  }
}

void World::Site::StopIstiods() { istiods_.clear(); }

bool World::Site::Validates() const { return !cluster_->api().List("ValidatingWebhookConfiguration").empty(); }

fakekube::http::RestApi& World::Site::rest() {
  if (rest_ == nullptr) {
    fakekube::http::RestOptions options;
    options.tokens = &tokens_;
    options.admission = this;
    options.webhooks = [this](const nlohmann::json& object) { return AskIstio(object); };
    rest_ = std::make_unique<fakekube::http::RestApi>(cluster_->api(), std::move(options));
  }
  return *rest_;
}

bool World::Site::Settled() const { return cluster_->Settled() && SettledButForPods(); }

bool World::Site::SettledButForPods() const {
  if (!cluster_->SettledButForPods() || !kube_proxy_->Settled() || !dns_->Settled() || reviews_ > 0) return false;
  return std::all_of(istiods_.begin(), istiods_.end(), [](const auto& entry) { return entry.second->Idle(); });
}

void World::Site::AtWork(std::vector<std::string>* out) const {
  if (!cluster_->Settled())
    out->push_back(fmt::format("{}: Kubernetes' controllers or kubelets are at work", config_.name));
  if (!kube_proxy_->Settled()) out->push_back(fmt::format("{}: kube-proxy has rules to write", config_.name));
  if (!dns_->Settled())
    out->push_back(fmt::format("{}: CoreDNS has not taken its changed ConfigMap yet (plugin reload)", config_.name));
  if (reviews_ > 0) out->push_back(fmt::format("{}: {} admission reviews wait for istiod", config_.name, reviews_));
  for (const auto& [name, run] : istiods_) {
    if (run->Idle()) continue;
    out->push_back(fmt::format("{}: istiod {} has pushes or events to do", config_.name, name.name));
  }
}

IstiodProcess* World::Site::Serving() const {
  IstiodProcess* any = nullptr;
  for (const auto& [name, run] : istiods_) {
    if (run->process->istiod().Ready()) return run->process.get();
    if (any == nullptr) any = run->process.get();
  }
  return any;
}

void World::Site::Istiods(std::vector<const IstiodProcess*>* out) const {
  for (const auto& [name, run] : istiods_) out->push_back(run->process.get());
}

std::string UnreadCluster::Words() const {
  return fmt::format("{}: istiod {} cannot read cluster {}: {}", at, istiod, cluster, why);
}

std::vector<UnreadCluster> World::Site::Unread() const {
  std::vector<UnreadCluster> out;
  for (const auto& [name, run] : istiods_) {
    std::string told;
    for (const auto& [request, why] : *run->refused) {
      const std::string& cluster = request.first;
      if (cluster.empty() || cluster == std::exchange(told, cluster)) continue;  // the first of each cluster
      out.push_back({config_.name, name.name, cluster, why});
    }
  }
  return out;
}

void World::Site::Complain(std::vector<std::string>* out) const {
  const std::vector<UnreadCluster> unread_clusters = Unread();
  for (const auto& [name, run] : istiods_) {
    if (!run->process->failure().ok()) {
      out->push_back(
          fmt::format("{}: istiod {} does not start: {}", config_.name, name.name, Message(run->process->failure())));
    }
    if (const absl::Status mesh = run->process->istiod().mesh_problem(); !mesh.ok())
      out->push_back(fmt::format("{}: istiod {}: {}", config_.name, name.name, Message(mesh)));
    for (const auto& [request, why] : *run->refused) {
      if (request.first.empty())  // of its own cluster's
        out->push_back(fmt::format("{}: istiod {}: {}", config_.name, name.name, why));
    }
    for (const UnreadCluster& unread : unread_clusters) {
      if (unread.istiod == name.name) out->push_back(unread.Words());
    }
  }
  for (const auto& [name, pod] : pods_) {
    if (!pod->failure().ok()) {
      out->push_back(fmt::format("{}: pod {}/{}: {}", config_.name, name.ns, name.name, Message(pod->failure())));
    }
    if (const absl::Status complaint = pod->complaint(); !complaint.ok())
      out->push_back(fmt::format("{}: pod {}/{}: {}", config_.name, name.ns, name.name, Message(complaint)));
  }
  std::map<std::string, std::vector<std::string>> unread;  // pods, by what their agents could not read
  for (const auto& [name, pod] : pods_) {
    if (!pod->bootstrap()) continue;
    for (const std::string& line : pod->bootstrap()->log) unread[line].push_back(name.ns + "/" + name.name);
  }
  for (const auto& [line, pods] : unread) {
    const std::string others = pods.size() == 1 ? "" : fmt::format(" and {} more", pods.size() - 1);
    out->push_back(fmt::format("{}: agent of pod {}{}: {}", config_.name, pods.front(), others, line));
  }
  for (const std::string& why : Refusals()) out->push_back(fmt::format("{}: {}", config_.name, why));
  for (const auto& [why, pods] : UnschedulablePods(cluster_->api())) {
    const std::string others = pods.size() == 1 ? "" : fmt::format(" and {} more", pods.size() - 1);
    out->push_back(fmt::format("{}: pod {}{}: no node takes it: {}", config_.name, pods.front(), others, why));
  }
}

absl::Status World::Site::SetNodeLost(const std::string& node, bool lost) {
  if (absl::Status status = cluster_->SetNodeLost(node, lost); !status.ok()) return status;
  kube_proxy_->SetNodeLost(node, lost);
  return absl::OkStatus();
}

void World::Site::NotStored(const json& pod, const absl::Status& why) {
  admissions_.NotStored(pod, std::string(Message(why)));
}

std::vector<std::string> World::Site::Refusals() const { return admissions_.Refusals(cluster_->api()); }

std::string World::Site::WhyLeftOut(const PodProcess& pod) const {
  if (config_.observed || pilot::HasProxy(pod.pod()->body) || IsIstiodPod(*pod.pod())) return "";
  return admissions_.WhyWithoutSidecar(*pod.pod(), cluster_->api());
}

std::vector<std::string> World::Site::LeftOut() const {
  std::map<std::string, std::vector<std::string>> pods;  // by reason
  for (const auto& [name, pod] : pods_) {
    if (std::string why = WhyLeftOut(*pod); !why.empty()) pods[why].push_back(fmt::format("{}/{}", name.ns, name.name));
  }
  std::vector<std::string> out;
  for (const auto& [why, names] : pods)
    out.push_back(fmt::format("{}: without a sidecar: {}: {}", config_.name, fmt::join(names, ", "), why));
  return out;
}

absl::Status World::Site::Apply(json object) {
  const json& meta = At(object, "metadata");
  const std::string ns = Text(meta, "namespace", "default");
  const bool new_pod = Text(object, "kind") == "Pod" && !config_.observed &&
                       cluster_->api().Get("Pod", {ns, Text(meta, "name")}) == nullptr;
  if (!new_pod) return cluster_->api().Apply(std::move(object)).status();
  json asked = object;
  if (asked["metadata"].is_object()) asked["metadata"]["namespace"] = ns;
  fakekube::SetDefaults(asked);
  const kube::ObjectRef in = cluster_->api().Get("Namespace", {"", ns});
  // What no webhook selects is stored before this ends; what one does, when istiod has answered.
  struct Outcome {
    bool returned = false;
    absl::Status status;
  };
  const auto outcome = std::make_shared<Outcome>();
  Review(asked, in == nullptr ? kube::Labels() : in->meta.labels,
         [this, outcome, asked](absl::StatusOr<json> admitted) {
           if (!admitted.ok()) return;  // in the log of admissions
           absl::Status status = cluster_->api().Apply(*std::move(admitted)).status();
           if (!outcome->returned) {
             outcome->status = std::move(status);
           } else if (!status.ok()) {
             admissions_.NotStored(asked, std::string(Message(status)));
           }
         });
  outcome->returned = true;
  return outcome->status;
}

void World::Site::Start(const kube::ObjectRef& pod, std::function<void(bool)> ready) {
  const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
  ++pods_version_;
  std::unique_ptr<PodProcess>& process = pods_[name];
  process = std::make_unique<PodProcess>(place_, pod);
  if (IsIstiodPod(*pod) && config_.primary()) {
    StartIstiodAfterIstioCsr(pod, std::move(ready), Duration::zero());
  } else {
    process->Start(std::move(ready));
  }
}

bool World::Site::AwaitsIstioCsr(const kube::Object& istiod) const {
  const fakekube::ApiServer& api = cluster_->api();
  const auto& volumes = Items(At(istiod.body, {"spec", "volumes"}));
  const bool lacks = std::any_of(volumes.begin(), volumes.end(), [&](const json& volume) {
    return Text(At(volume, "secret"), "secretName") == IstioCsrSettings::kIstiodSecret &&
           api.Get("Secret", {istiod.meta.ns, IstioCsrSettings::kIstiodSecret}) == nullptr;
  });
  if (!lacks) return false;
  const auto deployments = api.List("Deployment");
  return std::any_of(deployments.begin(), deployments.end(), [&](const kube::ObjectRef& deployment) {
    const auto csr = IstioCsrSettings::Of(At(deployment->body, {"spec", "template"}));
    return csr && csr->makes_istiod_certificate && csr->istiod_namespace == istiod.meta.ns;
  });
}

void World::Site::StartIstiodAfterIstioCsr(const kube::ObjectRef& pod, std::function<void(bool)> ready,
                                           Duration waited) {
  static constexpr Duration kPatience = 30s, kLook = 500ms;
  const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
  const auto at = pods_.find(name);
  if (at == pods_.end() || at->second->pod()->meta.uid != pod->meta.uid) return;
  if (waited >= kPatience || !AwaitsIstioCsr(*pod)) return StartIstiod(name, at->second->workload(), std::move(ready));
  world_.host_->RunAfter(kLook,
                         [this, weak = std::weak_ptr<int>(alive_), pod, ready = std::move(ready), waited]() mutable {
                           if (!weak.expired()) StartIstiodAfterIstioCsr(pod, std::move(ready), waited + kLook);
                         });
}

void World::Site::Restated(const kube::ObjectRef& pod) {
  if (const auto it = pods_.find({pod->meta.ns, pod->meta.name}); it != pods_.end()) it->second->Restated(pod);
}

void World::Site::Terminate(const kube::ObjectRef& pod) {
  const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
  const auto it = pods_.find(name);
  if (it != pods_.end()) it->second->Terminate();
  const auto run = istiods_.find(name);
  if (run == istiods_.end()) return;
  run->second->process->istiod().Terminate([this, name, weak = std::weak_ptr<int>(alive_), of = run->second.get()] {
    // Not within what it says itself.
    world_.host_->RunAfter(Duration::zero(), [this, name, weak, of] {
      if (weak.expired()) return;
      const auto ended = istiods_.find(name);
      if (ended != istiods_.end() && ended->second.get() == of) EndIstiod(ended->first);
    });
  });
}

void World::Site::Remove(const kube::ObjectRef& pod) {
  const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
  if (const auto run = istiods_.find(name); run != istiods_.end()) {
    // Killed: what it held of elections is held until the lease runs out, for those who come after it.
    for (json& record : run->second->process->istiod().UnwrittenElections()) left_behind_.push_back(std::move(record));
    istiods_.erase(run);
  }
  ++pods_version_;
  pods_.erase(name);
}

std::string World::Site::ClusterId() const {
  return istiods_.empty() ? config_.cluster_id() : istiods_.begin()->second->cluster_id;
}

}  // namespace wavetank::sim
