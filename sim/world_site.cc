#include "sim/world_site.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/assert.h"
#include "core/base/json/json_read.h"
#include "core/base/status.h"
#include "core/debug/pages.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/inject/webhook_configuration.h"
#include "core/istiod/files/local_files.h"
#include "core/istiod/webhooks/validation_controller.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/model/labels.h"
#include "core/profile/changes.h"
#include "core/profile/releases.h"
#include "core/registry/network_manager.h"
#include "core/security/namespace_controller.h"
#include "core/settings/istiod_settings.h"
#include "fakes/envoy/apps/app.h"
#include "fakes/kube/client/client.h"
#include "fakes/kube/control/refused_pods.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/store/rbac.h"
#include "fakes/kube/validation/defaults.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/agent/pod_files.h"
#include "sim/mending/installation.h"
#include "sim/network/go_words.h"
#include "sim/network/kube_proxy.h"
#include "sim/remote/client_bucket.h"
#include "sim/remote/own_account.h"
#include "sim/remote/remote_reader.h"
#include "sim/remote/watched_namespace.h"
#include "sim/upgrade/release_of_pod.h"
#include "sim/webhooks/istio_webhook.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

constexpr uint16_t kIstiodHttpPorts[] = {8080, 15014};
constexpr Duration kLookForBundle = 10ms;  // while there is no CA yet

bool IsIstiodPod(const kube::Object& pod) { return IsIstiod(pod.body, pod.meta.ns); }

// Whether istiod has an injector to start; without one its pod is never ready (istiod:
// pilot/pkg/bootstrap/sidecarinjector.go; server.go, initReadinessProbes). `map`: null if it is not there.
absl::Status CheckInjector(const pilot::IstiodSettings& settings, const kube::Object* map) {
  if (!settings.injects || map == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "sidecar injector is not ready: Skipping sidecar injector, {}",
        settings.injects
            ? fmt::format("template not found: ConfigMap {}/{} is not there", settings.options.system_namespace,
                          pilot::InjectorConfigMapName(settings.options.revision))
            : "injection path is missing or disabled."));
  }
  const absl::StatusOr<pilot::InjectionConfig> read = pilot::InjectionConfig::FromConfigMap(*map, {});
  // A function that this template engine lacks is no mistake of the user's: the built-in templates inject, and that is
  // noted with the manifests.
  if (read.ok() || pilot::InjectionConfig::LacksFunction(read.status())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("failed to create discovery service: error initializing sidecar injector: failed to create injection "
                  "webhook: {}",
                  Message(read.status())));
}

std::string CaBundle(const kube::Object& configuration, const std::string& webhook) {
  for (const json& candidate : Items(At(configuration.body, "webhooks"))) {
    if (Text(candidate, "name") != webhook) continue;
    std::string pem;
    if (absl::Base64Unescape(Text(At(candidate, "clientConfig"), "caBundle"), &pem)) return pem;
  }
  return {};
}

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

// The token reviews that one istiod asks of one cluster.
class World::Site::Reviewer final : public kube::TokenReviewer {
 public:
  // `permit`: whether istiod may ask; null: it is its own cluster. `bucket`: what a remote cluster's client waits for.
  Reviewer(World& world, Site& of, Line& line, WorkloadId from, fakekube::ClientPermit permit,
           std::optional<ClientBucket> bucket)
      : world_(world), of_(of), line_(line), from_(from), permit_(std::move(permit)), bucket_(std::move(bucket)) {}
  void Review(const std::string& token, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override {
    const Duration wait = bucket_ ? bucket_->Take(world_.Now()) : Duration::zero();
    if (wait == Duration::zero()) return Ask(token, audiences, std::move(done));
    world_.host_->RunAfter(wait,
                           [this, alive = std::weak_ptr(alive_), token, audiences, done = std::move(done)]() mutable {
                             if (!alive.expired()) Ask(token, audiences, std::move(done));
                           });
  }

 private:
  void Ask(const std::string& token, const std::vector<std::string>& audiences,
           absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) {
    const Time now = world_.Now();
    const std::optional<Duration> there = line_.Transit(now), back = line_.Transit(now);
    const fakekube::CallFate fate = of_.cluster_->api().FateOf(fakekube::ApiCall::kTokenReview);
    const bool reached = world_.network_->ReachesApiServer(from_, of_.place_.site, of_.place_.network);
    if (!there || !back || !reached || !fate.answered) {
      constexpr Duration kRequestTimeout = 10s;
      world_.host_->RunAfter(kRequestTimeout, [done = std::move(done)]() mutable {
        done(absl::UnavailableError("token review: i/o timeout"));
      });
      return;
    }
    // A 429 is tried again once, as long as it lasts.
    const Duration delay = *there + *back + world_.timing_.api_request + fate.delay + fate.retry_after;
    const Duration skew = of_.cluster_->api().faults().clock_skew;
    absl::StatusOr<kube::TokenClaims> claims = of_.tokens_.Verify(token, audiences, now + skew);
    if (absl::IsUnauthenticated(fate.refusal)) claims = fate.refusal;
    if (permit_ != nullptr) {
      if (absl::Status may = permit_({"", "create", "authentication.k8s.io", "tokenreviews", "", ""}); !may.ok())
        claims = may;
    }
    if (claims.ok() && !claims->pod_name.empty()) {
      const kube::ObjectRef pod = of_.cluster_->api().Get("Pod", {claims->ns, claims->pod_name});
      if (pod == nullptr || pod->meta.uid != claims->pod_uid) {
        claims = absl::UnauthenticatedError("the pod that the token was issued for is gone");
      }
    }
    world_.host_->RunAfter(delay,
                           [done = std::move(done), claims = std::move(claims)]() mutable { done(std::move(claims)); });
  }

  World& world_;
  Site& of_;
  Line& line_;
  WorkloadId from_;
  const fakekube::ClientPermit permit_;
  std::optional<ClientBucket> bucket_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

// What an istiod answers over HTTP: debug pages, readiness, metrics; of these the code is modelled, not the text.
class World::Site::IstiodPages final : public envoysim::Application {
 public:
  IstiodPages(const IstiodProcess& process, NameId name) : process_(process), name_(name) {}
  envoysim::AppReply Serve(const envoysim::InboundCall& call) override {
    envoysim::AppReply reply;
    reply.server = name_;
    const std::string path(call.spec.path);
    const pilot::Istiod& istiod = process_.istiod();
    if (path == "/metrics") return reply;
    reply.code = istiod.Ready() ? static_cast<uint16_t>(debug::Page(istiod, path).status) : 503;
    return reply;
  }

 private:
  const IstiodProcess& process_;
  const NameId name_;
};

// The access reviews that one istiod asks of one cluster. One that may not ask takes it for a no (istiod:
// pilot/pkg/credentials/kube/secrets.go, Authorize()).
class World::Site::Authorizer final : public kube::AccessReviewer {
 public:
  Authorizer(const fakekube::ApiServer& api, fakekube::ClientPermit permit) : rbac_(api), permit_(std::move(permit)) {}
  bool Allowed(const kube::AccessRequest& request) const override {
    if (permit_ != nullptr && !permit_({"", "create", "authorization.k8s.io", "subjectaccessreviews", "", ""}).ok())
      return false;
    return rbac_.Allowed(request);
  }

 private:
  const fakekube::RbacAuthorizer rbac_;
  const fakekube::ClientPermit permit_;
};

// What surrounds one istiod: its clients of API servers, its resolver, its host.
struct World::Site::IstiodRun final : kube::ClientFactory, pilot::GatewayResolver {
  IstiodRun(World& w, Site& s, std::string n, WorkloadId pod) : world(w), site(s), name(std::move(n)), workload(pod) {
    host = &world.kernel_.NewHost(name, static_cast<int>(world.timing_.istiod_cpus), world.costs_.get());
  }
  ~IstiodRun() override {
    const IstiodProcess* gone = process.get();
    validation = nullptr;
    http.clear();
    plaintext = nullptr;
    process = nullptr;
    world.outside_->IstiodGone(gone);
  }

  bool Idle() const { return process->istiod().Idle() && (validation == nullptr || validation->Idle()); }

  std::unique_ptr<kube::Client> ClientOf(Site& to, fakekube::ClientPermit permit = nullptr) {
    fakekube::ClientLatency latency;
    latency.request = world.timing_.api_request;
    latency.watch_delay = world.timing_.watch_delay;
    latency.watch_jitter = world.timing_.watch_jitter;
    Line& line = world.links_->Between(site.place_.site, to.place_.site);
    latency.transit = [&line, &w = world, &to, from = workload]() -> std::optional<Duration> {
      if (!w.network_->ReachesApiServer(from, to.place_.site, to.place_.network)) return std::nullopt;
      return line.Transit(w.Now());
    };
    auto client = fakekube::MakeClient(to.cluster_->api(), *host, fmt::format("{}->{}", name, to.config_.name),
                                       world.options_.seed, std::move(latency), std::move(permit));
    if (watches.empty()) return client;
    return std::make_unique<WatchedNamespace>(std::move(client), watches);
  }

  // What that cluster's API server lets the bearer of the kubeconfig do. What it refused last is remembered.
  fakekube::ClientPermit PermitOf(Site& to, const std::string& cluster, const kube::KubeConfig& config) {
    if (to.config_.observed) return nullptr;  // a recording holds neither accounts nor roles
    auto reader = std::make_shared<RemoteReader>(
        RemoteReader::Server{&to.cluster_->api(), &to.tokens_, to.api_ca_.certificate, config.server}, config,
        [&w = world, &to](bool bound) {
          if (!w.options_.mending.Does(Mend::kRbac, !bound)) return false;
          if (!bound) w.Mended(Mend::kRbac, to.config_.name);
          return true;
        });
    return [reader, cluster, clock = host, refused = refused](const kube::AccessRequest& request) {
      return Remember(refused, cluster, request, reader->Permit(clock->WallClock(), request));
    };
  }

  // What its own cluster's lets its pod's account do.
  fakekube::ClientPermit PermitAtHome(const std::string& account) {
    const auto role_is_given = [&w = world, &at = site] {
      if (!w.options_.mending.Does(Mend::kRbac, false)) return false;
      w.Mended(Mend::kRbac, at.config_.name);
      return true;
    };
    own = std::make_shared<OwnAccount>(site.cluster_->api(), pod_ns, account, role_is_given, !site.config_.observed);
    return [own = own, refused = refused](const kube::AccessRequest& request) {
      return Remember(refused, "", request, own->Permit(request));
    };
  }

  using Refused = std::map<std::pair<std::string, std::string>, std::string>;
  static absl::Status Remember(const std::shared_ptr<Refused>& refused, const std::string& cluster,
                               const kube::AccessRequest& request, absl::Status may) {
    const std::pair<std::string, std::string> key(
        cluster, fmt::format("{} {}.{} {}", request.verb, request.resource, request.group, request.ns));
    if (may.ok()) {
      refused->erase(key);
    } else {
      (*refused)[key] = std::string(Message(may));
    }
    return may;
  }

  // What it may do there; null: all.
  fakekube::ClientPermit PermitFor(const Site& to, std::string_view cluster) const {
    if (&to == &site) return at_home;
    const auto permit = permits.find(cluster);
    return permit == permits.end() ? fakekube::ClientPermit() : permit->second;
  }

  absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string& id, const std::string& kubeconfig) override {
    absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, "kubeconfig of " + id);
    if (!parsed.ok()) return parsed.status();
    // What is still refused there is refused again.
    std::erase_if(*refused, [](const auto& entry) { return !entry.first.first.empty(); });
    for (const auto& candidate : world.sites_) {
      if (parsed->server != ApiServerUrl(candidate->config_.name)) continue;
      registered[id] = candidate.get();
      permits[id] = PermitOf(*candidate, id, *parsed);
      return absl::StatusOr<std::unique_ptr<kube::Client>>(ClientOf(*candidate, permits[id]));
    }
    // A kubeconfig of a real mesh names a real server.
    for (const auto& candidate : world.sites_) {
      if (candidate->config_.name != id && candidate->ClusterId() != id) continue;
      if (!world.options_.mending.Does(Mend::kServers, true)) break;
      world.Mended(Mend::kServers, candidate->config_.name);
      registered[id] = candidate.get();
      return absl::StatusOr<std::unique_ptr<kube::Client>>(ClientOf(*candidate));
    }
    return absl::UnavailableError(
        fmt::format("no API server answers at {}: no cluster of this world is named '{}'", parsed->server, id));
  }

  Answer Resolve(const std::string& hostname) override {
    Answer answer;
    const absl::StatusOr<WorldDns::Answer> found = site.dns_->Ask(hostname, pod_ns);
    if (!found.ok()) return answer;
    for (const IpAddress& ip : found->addresses) answer.addresses.push_back(ip.ToString());
    answer.ttl = found->ttl.value_or(60s);
    return answer;
  }

  // By the ID that istiod knows a cluster by: its own, or its remote Secret's.
  bool IsCalled(const Site& candidate, std::string_view cluster) const {
    if (&candidate == &site) return cluster_id == cluster;
    const auto it = registered.find(cluster);
    return it == registered.end() ? candidate.config_.name == cluster : it->second == &candidate;
  }

  kube::TokenReviewer* ReviewerOf(std::string_view cluster) {
    for (const auto& candidate : world.sites_) {
      if (!IsCalled(*candidate, cluster)) continue;
      std::unique_ptr<Reviewer>& reviewer = reviewers[candidate->config_.name];
      if (reviewer == nullptr) {
        reviewer = std::make_unique<Reviewer>(
            world, *candidate, world.links_->Between(site.place_.site, candidate->place_.site), workload,
            PermitFor(*candidate, cluster), candidate.get() == &site ? std::nullopt : std::optional(ClientBucket()));
      }
      return reviewer.get();
    }
    return nullptr;
  }

  const kube::AccessReviewer* AuthorizerOf(std::string_view cluster) {
    for (const auto& candidate : world.sites_) {
      if (!IsCalled(*candidate, cluster)) continue;
      return &authorizers
                  .try_emplace(candidate->config_.name, candidate->cluster_->api(), PermitFor(*candidate, cluster))
                  .first->second;
    }
    return nullptr;
  }

  // Whether elections whose locks nobody sees can be taken for won (core/election): what may not be written is not.
  bool MayLock() const {
    if (at_home == nullptr) return true;
    for (const char* verb : {"get", "create", "update"}) {
      if (!at_home({"", verb, "", "configmaps", pod_ns, ""}).ok()) return false;
      if (!at_home({"", verb, "coordination.k8s.io", "leases", pod_ns, ""}).ok()) return false;
    }
    return true;
  }

  // Null: it knows no such cluster.
  const Site* SiteOf(std::string_view cluster) const {
    if (cluster == cluster_id) return &site;
    const auto it = registered.find(cluster);
    return it == registered.end() ? nullptr : it->second;
  }

  // How traces call the cluster of that ID.
  std::string NameOf(std::string_view cluster) const {
    if (cluster == cluster_id) return site.config_.name;
    const auto it = registered.find(cluster);
    return it == registered.end() ? std::string(cluster) : it->second->config_.name;
  }

  World& world;
  Site& site;
  std::string name;
  std::string pod_ns = kSystemNamespace;
  WorkloadId workload;
  std::string cluster_id;  // that this istiod gives its own cluster
  bool external = false;   // serves other clusters, too
  Host* host;
  std::map<std::string, Site*, std::less<>> registered;  // by cluster ID, those that remote Secrets have led to
  std::map<std::string, fakekube::ClientPermit, std::less<>> permits;  // by cluster ID
  // (cluster, request) -> what an API server said to it last; outlives requests that are on their way.
  // The cluster's name is empty of its own.
  std::shared_ptr<Refused> refused = std::make_shared<Refused>();
  std::shared_ptr<OwnAccount> own;  // whose rights at_home asks for
  fakekube::ClientPermit at_home;   // null: all is allowed
  std::map<std::string, Authorizer> authorizers;
  std::string watches;  // ISTIO_WATCH_NAMESPACE; empty: all namespaces
  std::unique_ptr<kube::Client> config_cluster;
  std::unique_ptr<PodFiles> files;  // mounted into its container
  std::map<std::string, std::unique_ptr<Reviewer>> reviewers;
  std::unique_ptr<IstiodProcess> process;
  // Its other ports: 15010 in clear text, 15014 and 8080 for people and Prometheus.
  std::unique_ptr<ChannelServer> plaintext;
  std::unique_ptr<IstiodPages> pages;
  std::vector<std::unique_ptr<envoysim::AppServer>> http;
  IstiodLog log{std::make_shared<debug::LogScopes>()};
  // Of its own cluster's ValidatingWebhookConfigurations; null until there is one.
  std::unique_ptr<pilot::ValidationController> validation;
  bool patches_validation = true, awaits_bundle = false;
  std::string bundle;  // that it has written there
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

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
  dns_ = std::make_unique<ClusterDns>(cluster_->api(), world.commons_.dns);

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
    validation_.Add(cluster_->api().Observe(kind, look));
  validation_.Add(cluster_->api().Observe("ConfigMap", [look](const fakekube::Change& change) {
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

void World::Site::StopIstiods() { istiods_.clear(); }

fakekube::http::WebhookVerdict World::Site::AskIstio(const nlohmann::json& object) const {
  // What a recording shows was taken already; what a world begins with is its state, as a dump of a mesh is, of which
  // no istiod can have been asked.
  if (config_.observed || world_.Now() <= world_.options_.start) return {};
  const IstiodProcess* const process = world_.IstiodOf(config_.name);
  return JudgeByIstio(
      cluster_->api(), object, [this](const json& webhook) { return ReachIstio(webhook); },
      process != nullptr && process->istiod().Ready());
}

// As kube-apiserver dials a webhook (apiserver: pkg/util/webhook, pkg/util/proxy/proxy.go), but at once: its answers
// are those of a moment.
absl::Status World::Site::ReachIstio(const json& webhook) const {
  const json& config = At(webhook, "clientConfig");
  const json& service = At(config, "service");
  const kube::NamespacedName name{Text(service, "namespace"), Text(service, "name")};
  std::string host = fmt::format("{}.{}.svc", name.name, name.ns), url = Text(config, "url");
  if (url.empty()) {
    url = fmt::format("https://{}:{}{}?timeout={}s", host, Number(service, "port", 443), Text(service, "path"),
                      Number(webhook, "timeoutSeconds", 10));
  } else {
    host = url.substr(std::min(url.size(), url.find("://") + 3));
    host = host.substr(0, host.find_first_of(":/?"));
  }
  const auto refuse = [&](std::string_view why) {
    return absl::UnavailableError(fmt::format("Post \"{}\": {}", url, why));
  };
  const IstiodProcess* process = world_.IstiodOf(config_.name);
  if (!name.name.empty()) {
    if (cluster_->api().Get("Service", name) == nullptr)
      return refuse(fmt::format("service \"{}\" not found", name.name));
    bool endpoint = false;
    for (const kube::ObjectRef& slice : cluster_->api().List("EndpointSlice", name.ns)) {
      const auto of = slice->meta.labels.find(pilot::kServiceNameLabel);
      if (of == slice->meta.labels.end() || of->second != name.name) continue;
      for (const json& each : Items(At(slice->body, "endpoints"))) {
        if (At(each, {"conditions", "ready"}) == false) continue;
        endpoint = true;
        const auto run = istiods_.find({name.ns, Text(At(each, "targetRef"), "name")});
        if (run != istiods_.end()) process = run->second->process.get();
      }
    }
    if (const kube::ObjectRef written = cluster_->api().Get("Endpoints", name); written != nullptr && !endpoint) {
      for (const json& subset : Items(At(written->body, "subsets")))
        endpoint = endpoint || !Items(At(subset, "addresses")).empty();
    }
    if (!endpoint) return refuse(fmt::format("no endpoints available for service \"{}\"", name.name));
  }
  const security::ServingCertificate* const serving =
      process == nullptr || !process->istiod().Ready() ? nullptr : process->istiod().serving_certificate();
  if (serving == nullptr || serving->chain.empty()) return refuse("connect: connection refused");
  // Without a bundle the system's roots count, which know no mesh's.
  std::string pem;
  absl::Base64Unescape(Text(config, "caBundle"), &pem);
  const Time now = world_.host_->Now();
  bool trusted = false;
  if (!pem.empty()) {
    const absl::StatusOr<x509::TrustBundleRef> roots = place_.commons->certificates->ParseBundle(pem, "caBundle");
    if (!roots.ok())
      return absl::UnavailableError("unable to load root certificates: unable to parse bytes as PEM block");
    trusted = x509::Verify(serving->chain, **roots, now, x509::Purpose::kServerAuth).ok();
  }
  const std::vector<std::string>& names = serving->chain.front()->sans().dns_names;
  if (trusted && std::find(names.begin(), names.end(), host) != names.end()) return absl::OkStatus();
  envoysim::TlsServer shown;
  shown.certificate = envoysim::CertificateChain::Of(serving->chain);
  return refuse(GoTlsRefusal(shown, host, false, now));
}

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

bool World::Site::Settled() const {
  if (!cluster_->Settled() || !kube_proxy_->Settled() || reviews_ > 0) return false;
  return std::all_of(istiods_.begin(), istiods_.end(), [](const auto& entry) { return entry.second->Idle(); });
}

void World::Site::AtWork(std::vector<std::string>* out) const {
  if (!cluster_->Settled())
    out->push_back(fmt::format("{}: Kubernetes' controllers or kubelets are at work", config_.name));
  if (!kube_proxy_->Settled()) out->push_back(fmt::format("{}: kube-proxy has rules to write", config_.name));
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

std::vector<std::string> World::Site::Refusals() const {
  std::vector<std::string> out = admissions_.Refusals(cluster_->api());
  for (std::string& why : fakekube::RefusedPods(cluster_->api())) out.push_back(std::move(why));
  return out;
}

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
  std::unique_ptr<PodProcess>& process = pods_[name];
  process = std::make_unique<PodProcess>(place_, pod);
  if (IsIstiodPod(*pod) && config_.primary()) {
    StartIstiod(name, process->workload(), std::move(ready));
  } else {
    process->Start(std::move(ready));
  }
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
  pods_.erase(name);
}

void World::Site::EndIstiod(const kube::NamespacedName& name) {
  const auto pod = pods_.find(name);
  if (pod != pods_.end()) {
    Workload& workload = world_.network_->at(pod->second->workload());
    for (const uint16_t port : {uint16_t{15010}, uint16_t{15012}, uint16_t{15017}}) workload.ports.erase(port);
    for (const uint16_t port : kIstiodHttpPorts) workload.ports.erase(port);
  }
  istiods_.erase(name);
}

// An istiod can lead where it is at home, and where it serves others.
bool World::Site::Contested() const {
  if (world_.options_.write_elections || more_than_one_) return true;
  int candidates = static_cast<int>(istiods_.size());
  for (const auto& site : world_.sites_) {
    if (site.get() == this) continue;
    for (const auto& [name, run] : site->istiods_) candidates += run->external ? 1 : 0;
  }
  return candidates > 1;
}

// A candidate that is new at this cluster, or at one that it serves.
void World::Site::ContestElections() {
  if (istiods_.size() > 1 || !left_behind_.empty()) more_than_one_ = true;
  for (json& record : std::exchange(left_behind_, {})) cluster_->api().Apply(std::move(record)).status().IgnoreError();
  for (const auto& site : world_.sites_) {
    for (const auto& [name, run] : site->istiods_) {
      if (run->process != nullptr) run->process->istiod().ReconsiderElections();
    }
  }
}

std::string World::Site::ClusterId() const {
  return istiods_.empty() ? config_.cluster_id() : istiods_.begin()->second->cluster_id;
}

absl::StatusOr<pilot::IstiodSettings> World::Site::SettingsOf(const kube::NamespacedName& name, IstiodRun& run) {
  pilot::IstiodSettings settings;
  pilot::IstiodOptions& options = settings.options;
  const Timing& timing = world_.timing_;
  options.name = run.name;
  options.pod_name = name.name;
  options.seed = world_.options_.seed;
  const kube::ObjectRef pod = cluster_->api().Get("Pod", name);
  if (pod != nullptr) {
    absl::StatusOr<pilot::Profile> profile = ProfileOfIstiod(*pod, world_.profile_);
    if (!profile.ok()) return profile.status();
    options.profile = *std::move(profile);
  } else {
    options.profile = world_.profile_;
  }
  options.mesh_config = world_.options_.mesh_config;
  options.debounce_after = timing.debounce_after;
  options.debounce_max = timing.debounce_max;
  options.push_throttle = static_cast<int>(timing.push_throttle);
  options.requests_per_second = static_cast<int>(timing.connections_per_second);
  if (options.profile.Has(pilot::Change::kLimitsByProcessors)) {
    // istiod: pilot/pkg/features/tuning.go, min(15+5*procs, 100). Where istiod's work takes no time it has as many as
    // by default.
    const int64_t processors = timing.istiod_cpus > 0 ? timing.istiod_cpus : Timing().istiod_cpus;
    const int limit = static_cast<int>(std::min<int64_t>(15 + 5 * processors, 100));
    if (!world_.options_.timing.contains("istiod.push_throttle")) options.push_throttle = limit;
    if (!world_.options_.timing.contains("istiod.connections_per_second")) options.requests_per_second = limit;
  }

  const auto keys_of = [this, &name](std::string_view kind,
                                     const std::string& of) -> std::optional<std::map<std::string, std::string>> {
    const kube::ObjectRef object = cluster_->api().Get(kind, {name.ns, of});
    if (object == nullptr) return std::nullopt;
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : Members(At(object->body, "data"))) {
      if (!value.is_string()) continue;
      std::string& text = out[key];
      if (kind != "Secret") {
        text = value.get<std::string>();
      } else if (!absl::Base64Unescape(value.get_ref<const std::string&>(), &text)) {
        out.erase(key);
      }
    }
    return out;
  };
  absl::StatusOr<pilot::ContainerSettings> said =
      pilot::ReadContainerSettings(pod == nullptr ? Null() : pod->body, "discovery", keys_of);
  if (!said.ok()) return said.status();
  // What the world was told expressly holds.
  for (const auto& [variable, quantity] :
       {std::pair("PILOT_DEBOUNCE_AFTER", "istiod.debounce_after"),
        std::pair("PILOT_DEBOUNCE_MAX", "istiod.debounce_max"),
        std::pair("PILOT_PUSH_THROTTLE", "istiod.push_throttle"),
        std::pair("PILOT_MAX_REQUESTS_PER_SECOND", "istiod.connections_per_second")}) {
    if (world_.options_.timing.contains(quantity)) said->variables.erase(variable);
  }
  // A Deployment that says nothing of itself; one that an upgrade made of it says its revision.
  // A switch of istiod's alone leaves the rest to be filled in (sim/mending/installation.cc, IsSketch).
  const bool sketch = said->variables.count("CLUSTER_ID") == 0 && said->variables.count("POD_NAMESPACE") == 0;
  if (absl::Status status = pilot::Apply(*said, &settings); !status.ok()) return status;
  for (std::string& line : settings.log) LinesOf(run)({.level = "warn", .text = std::move(line)});
  if (absl::Status levels =
          run.log.scopes->Configure(settings.log_output_level, settings.log_stacktrace_level, settings.log_caller);
      !levels.ok()) {
    return levels;
  }
  run.log.ctrlz_port = settings.ctrlz_port;
  run.patches_validation = settings.patches_validation;  // istiod: pilot/pkg/bootstrap/validation.go
  if (world_.options_.timing.contains("istiod.connection_age")) settings.connection_age.reset();

  if (options.profile.Has(pilot::Change::kWatchesOneNamespace)) {
    run.watches = options.watch_namespace;
  } else if (run.own != nullptr && !options.watch_namespace.empty()) {
    run.own->LooksForDefinitionsInANamespace();
  }
  // istiod: pilot/pkg/config/kube/crdclient/client.go, knownCRDs().
  if (run.at_home != nullptr && options.config_dir.empty()) {
    const absl::Status may = run.at_home({"", "list", "apiextensions.k8s.io", "customresourcedefinitions", "", ""});
    if (!may.ok()) {
      return absl::PermissionDeniedError(
          fmt::format("failed to create discovery service: error initializing config controller: {}", Message(may)));
    }
  }

  const Mending& mending = world_.options_.mending;
  if (!settings.cluster_named) {
    const bool mends = mending.Does(Mend::kClusterId, sketch);
    options.cluster_id = pilot::ClusterId(mends ? config_.cluster_id() : "Kubernetes");
    if (mends) world_.Mended(Mend::kClusterId, config_.name);
  }
  const bool named_by_remote =
      std::any_of(world_.options_.clusters.begin(), world_.options_.clusters.end(),
                  [&](const WorldCluster& c) { return !c.primary() && c.control_plane == config_.name; });
  if (named_by_remote && !settings.external_said && mending.Does(Mend::kExternal, sketch)) {
    options.external = true;
    world_.Mended(Mend::kExternal, config_.name);
  }
  if (!config_.observed && !run.files->Read(pilot::kInjectConfigFile).ok()) {
    const kube::ObjectRef map =
        cluster_->api().Get("ConfigMap", {options.system_namespace, pilot::InjectorConfigMapName(options.revision)});
    if (absl::Status injector = CheckInjector(settings, map.get()); !injector.ok() && (!sketch || map != nullptr))
      return injector;
  }
  return settings;
}

void World::Site::StartIstiod(const kube::NamespacedName& name, WorkloadId workload, std::function<void(bool)> ready) {
  std::unique_ptr<IstiodRun>& run = istiods_[name];
  // Two clusters may give the same pod name; traces must not confuse them.
  run = std::make_unique<IstiodRun>(world_, *this, fmt::format("{}.{}", name.name, config_.name), workload);
  run->pod_ns = name.ns;
  const kube::ObjectRef object = cluster_->api().Get("Pod", name);
  if (object != nullptr) {
    nodes_.Add(Text(At(object->body, "spec"), "nodeName"), *run->host);
    run->at_home = run->PermitAtHome(Text(At(object->body, "spec"), "serviceAccountName"));
  }
  run->config_cluster = run->ClientOf(*this, run->at_home);
  pilot::IstiodSurroundings surroundings;
  surroundings.host = run->host;
  surroundings.config_cluster = run->config_cluster.get();
  surroundings.remote_clusters = run.get();
  surroundings.resolver = run.get();
  surroundings.access_reviewer = [run = run.get()](std::string_view cluster) { return run->AuthorizerOf(cluster); };
  surroundings.token_reviewer = [run = run.get()](std::string_view cluster) { return run->ReviewerOf(cluster); };
  surroundings.fetch = [&web = world_.commons_.web](const std::string& url) {
    const auto it = web.find(url);
    return it == web.end() ? std::nullopt : std::optional(it->second);
  };
  surroundings.cluster_name = [run = run.get()](std::string_view cluster) { return run->NameOf(cluster); };
  surroundings.contested = [run = run.get()](std::string_view cluster) {
    const Site* const at = run->SiteOf(cluster);
    if (at == &run->site && !run->MayLock()) return true;
    return at != nullptr && at->Contested();
  };
  if (object != nullptr) {
    run->files = std::make_unique<PodFiles>(cluster_->api(), object, "discovery");
    surroundings.files = run->files.get();
  }
  surroundings.api_server_roots = ca_pem();
  surroundings.log = LinesOf(*run);
  absl::StatusOr<pilot::IstiodSettings> settings = SettingsOf(name, *run);
  const absl::Status failure = settings.status();
  if (!settings.ok()) settings = pilot::IstiodSettings{};
  if (!run->watches.empty()) {
    run->config_cluster = run->ClientOf(*this, run->at_home);
    surroundings.config_cluster = run->config_cluster.get();
  }
  run->cluster_id = settings->options.cluster_id.str();
  run->external = settings->options.external;
  ContestElections();
  if (!settings->resolves_gateways) surroundings.resolver = nullptr;
  const Duration age = settings->connection_age.value_or(world_.timing_.connection_age);
  run->process = std::make_unique<IstiodProcess>(
      *world_.channels_, *run->host, workload, std::move(surroundings), std::move(settings->options),
      IstiodProcess::ConnectionAge{world_.options_.seed, age, world_.timing_.connection_age_grace});
  if (!failure.ok()) return run->process->Fail(failure);
  Workload& pod = world_.network_->at(workload);
  pod.ports[15012] = run->process->grpc();
  pod.ports[15017] = run->process->webhook();
  run->plaintext = std::make_unique<ChannelServer>(
      *world_.channels_, *run->host, workload,
      [in_clear = std::make_shared<const envoysim::TlsServer>()] { return in_clear; }, *run->process);
  pod.ports[15010] = run->plaintext.get();
  run->pages = std::make_unique<IstiodPages>(*run->process, world_.host_->Intern(run->name));
  for (const uint16_t port : kIstiodHttpPorts) {
    run->http.push_back(std::make_unique<envoysim::AppServer>(world_.plane_->fabric(), *run->host, *run->pages));
    pod.ports[port] = run->http.back().get();
  }
  run->process->Start(std::move(ready));
  if (Validates()) WatchValidation(*run);
}

LogSink World::Site::LinesOf(const IstiodRun& run) {
  return {[this, name = run.name](const LogLine& line) { world_.on_istiod_log(name, world_.Now(), line); },
          [this] { return world_.on_istiod_log != nullptr; }};
}

// Its controller is one of istiod's: it runs on its host and by its client. It begins when there is a CA whose bundle
// it could write.
void World::Site::WatchValidation(IstiodRun& run) {
  if (!run.patches_validation || run.process == nullptr || !run.process->failure().ok()) return;
  const std::string& bundle = run.process->istiod().ca_bundle_pem();
  if (run.validation != nullptr) {
    if (run.bundle != bundle && !bundle.empty()) run.validation->OnBundleChanged();
    run.bundle = bundle;
    return;
  }
  if (bundle.empty()) {
    if (std::exchange(run.awaits_bundle, true)) return;
    run.host->RunAfter(kLookForBundle, [this, &run, alive = std::weak_ptr<int>(run.alive)] {
      if (alive.expired()) return;
      run.awaits_bundle = false;
      WatchValidation(run);
    });
    return;
  }
  run.bundle = bundle;
  pilot::ValidationController::Options with;
  if (const std::string& revision = run.process->istiod().options().revision; !revision.empty())
    with.revision = revision;
  with.system_namespace = run.process->istiod().options().system_namespace;
  with.ca_bundle = [&run] { return run.process->istiod().ca_bundle_pem(); };
  with.dry_run = [this, &run](const json& object) -> absl::Status {
    if (run.at_home != nullptr) {
      absl::Status may = run.at_home({"", "create", "networking.istio.io", "gateways", run.pod_ns, ""});
      if (!may.ok()) return may;
    }
    if (const fakekube::http::WebhookVerdict verdict = AskIstio(object); verdict.denied)
      return absl::InvalidArgumentError(*verdict.denied);
    return absl::OkStatus();
  };
  with.log = LinesOf(run);
  run.validation = std::make_unique<pilot::ValidationController>(*run.config_cluster, *run.host, std::move(with));
  run.validation->Start();
}

const World::Site::IstiodLog* World::Site::LogOf(std::string_view istiod) const {
  for (const auto& [name, run] : istiods_) {
    if (run->name == istiod) return &run->log;
  }
  return nullptr;
}

const World::Site::IstiodLog* LogOfIstiod(const World& world, std::string_view istiod) {
  for (const WorldCluster& cluster : world.options().clusters) {
    if (!istiod.ends_with("." + cluster.name)) continue;
    if (const World::Site::IstiodLog* const log = world.FindSite(cluster.name)->LogOf(istiod); log != nullptr)
      return log;
  }
  return nullptr;
}

void World::Site::Review(json pod, const kube::Labels& namespace_labels,
                         absl::AnyInvocable<void(absl::StatusOr<json>)> done) {
  // Templates of a record's workloads are its pods, who have passed their webhooks (fakes/kube/workloads/inferred.h).
  if (config_.observed && pilot::HasProxy(pod)) return done(std::move(pod));
  kube::Labels pod_labels, ns_labels = namespace_labels;
  const json& meta = At(pod, "metadata");
  ns_labels.emplace("kubernetes.io/metadata.name", Text(meta, "namespace"));
  for (const auto& [key, value] : Members(At(meta, "labels"))) pod_labels[key] = TextOf(value);
  for (const kube::ObjectRef& configuration : cluster_->api().List("MutatingWebhookConfiguration")) {
    absl::StatusOr<std::optional<pilot::WebhookTarget>> target =
        pilot::SelectWebhook(configuration->body, ns_labels, pod_labels);
    if (!target.ok()) return done(target.status());
    if (target->has_value())
      return CallWebhook(std::move(pod), **target, CaBundle(*configuration, (*target)->webhook), std::move(done));
  }
  done(std::move(pod));
}

void World::Site::CallWebhook(json pod, const pilot::WebhookTarget& target, const std::string& ca_bundle,
                              absl::AnyInvocable<void(absl::StatusOr<json>)> done) {
  ++reviews_;
  json asked = pod;
  // Exactly one of the answer, the failure to connect and the end of the channel comes first.
  using Done = absl::AnyInvocable<void(absl::StatusOr<json>)>;
  auto once = std::make_shared<Done>([this, alive = std::weak_ptr<int>(alive_), name = target.webhook,
                                      pod = std::move(pod), may_fail = !target.fail_if_absent,
                                      done = std::move(done)](absl::StatusOr<json> answer) mutable {
    if (alive.expired()) return;
    WAVETANK_ASSERT(reviews_ > 0, reviews_, config_.name);
    --reviews_;
    if (!answer.ok()) {
      const std::string why(Message(answer.status()));
      if (may_fail) {
        admissions_.Bypassed(pod, name, why);
        return done(std::move(pod));
      }
      admissions_.Refused(pod, name, why, !Items(At(At(pod, "metadata"), "ownerReferences")).empty());
      // As kube-apiserver tells it (apiserver: pkg/admission/plugin/webhook/errors).
      return done(absl::Status(answer.status().code(),
                               fmt::format("failed calling webhook \"{}\": failed to call webhook: {}", name, why)));
    }
    const bool patched = !At(At(*answer, "response"), "patch").is_null();
    absl::StatusOr<json> admitted = pilot::ApplyAdmissionResponse(pod, *answer);
    if (!admitted.ok()) {
      admissions_.Refused(pod, "", std::string(Message(admitted.status())),
                          !Items(At(At(pod, "metadata"), "ownerReferences")).empty());
    } else if (patched) {
      admissions_.Injected(pod);
    } else {
      admissions_.LeftOut(pod);
    }
    done(std::move(admitted));
  });
  const auto finish = [once](absl::StatusOr<json> answer) {
    if (Done call = std::exchange(*once, nullptr); call != nullptr) call(std::move(answer));
  };
  std::string host, path = target.path;
  uint16_t port = static_cast<uint16_t>(target.port);
  if (target.url.empty()) {
    host = fmt::format("{}.{}.svc", target.service_name, target.service_namespace);
  } else if (absl::Status status = ParseWebhookUrl(target.url, &host, &port, &path); !status.ok()) {
    return finish(status);
  }
  const auto in_its_words = [this, target, ca_bundle, path] {
    json config = {{"caBundle", absl::Base64Escape(ca_bundle)}};
    if (target.url.empty()) {
      config["service"] = {{"namespace", target.service_namespace},
                           {"name", target.service_name},
                           {"path", path},
                           {"port", target.port}};
    } else {
      config["url"] = target.url;
    }
    return ReachIstio({{"clientConfig", std::move(config)}});
  };
  // What the certificate must say: a Service's name, or the URL's host.
  absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> tls = place_.TlsTo(ca_bundle, host);
  if (!tls.ok()) {
    // Dialled all the same, and by the system's roots, which know no mesh's.
    const absl::Status why = in_its_words();
    constexpr std::string_view kHint = "its caBundle holds no certificate; has istiod patched it?";
    return finish(absl::UnavailableError(why.ok() ? std::string(kHint) : fmt::format("{} ({})", Message(why), kHint)));
  }
  const absl::StatusOr<std::vector<IpAddress>> addresses = dns_->Resolve(host, kSystemNamespace);
  if (!addresses.ok()) return finish(addresses.status());
  Channels::Dialling dialling;
  dialling.from = api_server_;
  dialling.host = world_.host_;
  dialling.to = {addresses->front(), port};
  dialling.sni = host;
  dialling.tls = *std::move(tls);
  dialling.timeout = 10s;  // timeoutSeconds
  auto opened = std::make_shared<std::weak_ptr<Channel>>();
  const auto review = std::make_shared<json>(
      pilot::MakeAdmissionReview(std::move(asked), fmt::format("{}-review-{}", config_.name, ++review_count_)));
  *opened = world_.channels_->Dial(
      std::move(dialling),
      [opened, finish, review, path, in_its_words, alive = std::weak_ptr<int>(alive_)](const absl::Status& status) {
        const ChannelRef channel = opened->lock();
        if (Message(status).find("x509: ") != std::string_view::npos && !alive.expired()) {
          const absl::Status words = in_its_words();
          return finish(words.ok() ? status : words);
        }
        if (!status.ok() || channel == nullptr) return finish(status.ok() ? absl::UnavailableError("closed") : status);
        channel->OnClose(Channel::End::kClient, finish);
        channel->Send(Channel::End::kClient, [channel, finish, review, path] {
          if (channel->istiod() == nullptr) return;
          channel->istiod()->istiod().Admit(path, std::move(*review), [channel, finish](json answer) {
            channel->Send(Channel::End::kServer, [channel, finish, answer = std::move(answer)]() mutable {
              channel->Close(Channel::End::kClient);
              finish(std::move(answer));
            });
          });
        });
      });
}

}  // namespace wavetank::sim
