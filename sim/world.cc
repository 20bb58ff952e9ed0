#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/webhook_configuration.h"
#include "core/kube/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/kube/types.h"
#include "core/registry/network_manager.h"
#include "core/security/remote_secret.h"
#include "core/x509/x509.h"
#include "fakes/kube/client.h"
#include "fakes/kube/http/rest.h"
#include "fakes/kube/http/status.h"
#include "fakes/kube/http/watch_stream.h"
#include "fakes/kube/rbac.h"
#include "fmt/format.h"
#include "sim/installation.h"
#include "sim/kube_proxy.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

constexpr std::string_view kSystemNamespace = "istio-system";
constexpr Duration kCaLifetime = 24h * 3650;

bool IsIstiodPod(const kube::Object& pod) {
  const auto app = pod.meta.labels.find("app");
  return pod.meta.ns == kSystemNamespace && app != pod.meta.labels.end() && app->second == "istiod";
}

}  // namespace

std::string ApiServerUrl(std::string_view cluster) {
  return fmt::format("https://{}.kubernetes.example:6443", cluster);
}

class World::CostsOfTiming final : public CostModel {
 public:
  explicit CostsOfTiming(const Timing& timing) : timing_(timing) {}
  Duration Cost(const Work& work) const override { return timing_.Cost(work); }

 private:
  const Timing& timing_;
};

// One cluster of the world: its API server and controllers, its pods, the istiod that may run in it.
class World::Site final : public fakekube::PodAdmission, public fakekube::PodRuntime {
 public:
  Site(World& world, const WorldCluster& config, SiteId site)
      : world_(world),
        config_(config),
        tokens_(world.options_.seed, config.name),
        api_ca_(x509::MakeRootCa(world.options_.seed, "kubernetes/" + config.name, Time{}, kCaLifetime)) {
    fakekube::ClusterOptions options;
    options.name = config.name;
    options.pod_cidr = config.pod_cidr;
    options.service_cidr = config.service_cidr;
    options.load_balancer_cidr = config.load_balancer_cidr;
    options.load_balancer_hostname = config.load_balancer_hostname;
    for (const WorldNode& node : config.nodes) options.nodes.push_back({node.name, node.region, node.zone, ""});
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
    place_.network = world.network_->Network(config.network);
    place_.cluster = cluster_.get();
    place_.dns = dns_.get();
    place_.tokens = &tokens_;
    kube_proxy_ = std::make_unique<KubeProxy>(*cluster_, *world.network_, site, place_.network, t.kube_proxy);

    // The API server as a client of webhooks. Its address is nobody's business.
    Workload api_server;
    api_server.site = site;
    api_server.network = place_.network;
    api_server.ip = IpAddress::V4(192, 168, static_cast<uint8_t>(site), 1);
    api_server.name = world.host_->Intern(config.name + "/kube-apiserver");
    api_server_ = world.network_->Add(std::move(api_server));
  }

  // The end of the world, in two acts: proxies hang up before the istiods that serve them go, and istiods leave the API
  // servers of all clusters before one of these goes.
  void StopPods() { pods_.clear(); }
  void StopIstiods() { istiods_.clear(); }

  const WorldCluster& config() const { return config_; }
  fakekube::Cluster& cluster() { return *cluster_; }
  ClusterSite& place() { return place_; }
  const kube::TokenAuthority& tokens() const { return tokens_; }
  // Made when the first real client, or the replay of one, asks.
  fakekube::http::RestApi& rest() {
    if (rest_ == nullptr) {
      fakekube::http::RestOptions options;
      options.tokens = &tokens_;
      options.admission = this;
      rest_ = std::make_unique<fakekube::http::RestApi>(cluster_->api(), std::move(options));
    }
    return *rest_;
  }
  std::string ca_pem() const { return api_ca_.certificate->ToPem(); }
  const std::map<kube::NamespacedName, std::unique_ptr<PodProcess>>& pods() const { return pods_; }
  bool Settled() const {
    if (!cluster_->Settled() || !kube_proxy_->Settled() || reviews_ > 0) return false;
    return std::all_of(istiods_.begin(), istiods_.end(),
                       [](const auto& entry) { return entry.second->process->istiod().Idle(); });
  }
  IstiodProcess* Serving() const {
    IstiodProcess* any = nullptr;
    for (const auto& [name, run] : istiods_) {
      if (run->process->istiod().Ready()) return run->process.get();
      if (any == nullptr) any = run->process.get();
    }
    return any;
  }
  void Istiods(std::vector<const IstiodProcess*>* out) const {
    for (const auto& [name, run] : istiods_) out->push_back(run->process.get());
  }
  void Complain(std::vector<std::string>* out) const {
    for (const auto& [name, run] : istiods_) {
      if (!run->process->failure().ok()) {
        out->push_back(
            fmt::format("{}: istiod {} does not start: {}", config_.name, name.name, Message(run->process->failure())));
      }
    }
    for (const auto& [name, pod] : pods_) {
      if (!pod->failure().ok()) {
        out->push_back(fmt::format("{}: pod {}/{}: {}", config_.name, name.ns, name.name, Message(pod->failure())));
      }
    }
    if (!last_refusal_.empty()) out->push_back(fmt::format("{}: {}", config_.name, last_refusal_));
  }

  // --- PodRuntime
  void Start(const kube::ObjectRef& pod, std::function<void(bool)> ready) override {
    const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
    std::unique_ptr<PodProcess>& process = pods_[name];
    process = std::make_unique<PodProcess>(place_, pod);
    if (IsIstiodPod(*pod) && config_.primary()) {
      StartIstiod(name, process->workload(), std::move(ready));
    } else {
      process->Start(std::move(ready));
    }
  }
  void Terminate(const kube::ObjectRef& pod) override {
    const auto it = pods_.find({pod->meta.ns, pod->meta.name});
    if (it != pods_.end()) it->second->Terminate();
  }
  void Remove(const kube::ObjectRef& pod) override {
    const kube::NamespacedName name{pod->meta.ns, pod->meta.name};
    istiods_.erase(name);
    pods_.erase(name);
  }

  // --- PodAdmission
  void Review(json pod, const kube::Labels& namespace_labels,
              absl::AnyInvocable<void(absl::StatusOr<json>)> done) override {
    kube::Labels pod_labels, ns_labels = namespace_labels;
    const json& meta = pod.at("metadata");
    ns_labels.emplace("kubernetes.io/metadata.name", meta.value("namespace", ""));
    if (const auto labels = meta.find("labels"); labels != meta.end()) {
      for (const auto& [key, value] : labels->items())
        pod_labels[key] = value.is_string() ? value.get<std::string>() : "";
    }
    for (const kube::ObjectRef& configuration : cluster_->api().List("MutatingWebhookConfiguration")) {
      absl::StatusOr<std::optional<pilot::WebhookTarget>> target =
          pilot::SelectWebhook(configuration->body, ns_labels, pod_labels);
      if (!target.ok()) return done(target.status());
      if (target->has_value())
        return CallWebhook(std::move(pod), **target, CaBundle(*configuration, (*target)->webhook), std::move(done));
    }
    done(std::move(pod));
  }

 private:
  // The token reviews that one istiod asks of one cluster.
  class Reviewer final : public kube::TokenReviewer {
   public:
    Reviewer(World& world, Site& of, Line& line) : world_(world), of_(of), line_(line) {}
    void Review(const std::string& token, const std::vector<std::string>& audiences,
                absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override {
      const Time now = world_.Now();
      const std::optional<Duration> there = line_.Transit(now), back = line_.Transit(now);
      if (!there || !back || of_.cluster_->api().faults().unreachable) {
        constexpr Duration kRequestTimeout = 10s;
        world_.host_->RunAfter(kRequestTimeout, [done = std::move(done)]() mutable {
          done(absl::UnavailableError("token review: i/o timeout"));
        });
        return;
      }
      // A 429 is tried again once, as long as it lasts.
      const Duration delay = *there + *back + world_.timing_.api_request + of_.cluster_->api().faults().extra_latency +
                             of_.cluster_->api().faults().retry_after;
      const fakekube::Faults& faults = of_.cluster_->api().faults();
      absl::StatusOr<kube::TokenClaims> claims = of_.tokens_.Verify(token, audiences, now + faults.clock_skew);
      if (claims.ok() && !claims->pod_name.empty()) {
        const kube::ObjectRef pod = of_.cluster_->api().Get("Pod", {claims->ns, claims->pod_name});
        if (pod == nullptr || pod->meta.uid != claims->pod_uid) {
          claims = absl::UnauthenticatedError("the pod that the token was issued for is gone");
        }
      }
      world_.host_->RunAfter(
          delay, [done = std::move(done), claims = std::move(claims)]() mutable { done(std::move(claims)); });
    }

   private:
    World& world_;
    Site& of_;
    Line& line_;
  };

  // What surrounds one istiod: its clients of API servers, its resolver, its host.
  struct IstiodRun final : kube::ClientFactory, pilot::GatewayResolver {
    IstiodRun(World& w, Site& s, std::string n) : world(w), site(s), name(std::move(n)) {
      host = &world.kernel_.NewHost(name, static_cast<int>(world.timing_.istiod_cpus), world.costs_.get());
    }
    ~IstiodRun() override {
      const IstiodProcess* gone = process.get();
      process = nullptr;
      world.outside_->IstiodGone(gone);
    }

    std::unique_ptr<kube::Client> ClientOf(Site& to) {
      fakekube::ClientLatency latency;
      latency.request = world.timing_.api_request;
      latency.watch_delay = world.timing_.watch_delay;
      latency.watch_jitter = world.timing_.watch_jitter;
      Line& line = world.links_->Between(site.place_.site, to.place_.site);
      latency.transit = [&line, &w = world] { return line.Transit(w.Now()); };
      return fakekube::MakeClient(to.cluster_->api(), *host, fmt::format("{}->{}", name, to.config_.name),
                                  world.options_.seed, std::move(latency));
    }

    absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string& cluster_id,
                                                          const std::string& kubeconfig) override {
      absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, "kubeconfig of " + cluster_id);
      if (!parsed.ok()) return parsed.status();
      for (const auto& candidate : world.sites_) {
        if (parsed->server == ApiServerUrl(candidate->config_.name)) {
          return absl::StatusOr<std::unique_ptr<kube::Client>>(ClientOf(*candidate));
        }
      }
      // A kubeconfig of a real mesh names a real server: here the cluster of that name stands in for it.
      for (const auto& candidate : world.sites_) {
        if (candidate->config_.name == cluster_id) {
          return absl::StatusOr<std::unique_ptr<kube::Client>>(ClientOf(*candidate));
        }
      }
      return absl::UnavailableError(fmt::format("no API server answers at {}: no cluster of this world is named '{}'",
                                                parsed->server, cluster_id));
    }

    Answer Resolve(const std::string& hostname) override {
      Answer answer;
      const absl::StatusOr<std::vector<IpAddress>> found = site.dns_->Resolve(hostname, kSystemNamespace);
      if (!found.ok()) return answer;
      for (const IpAddress& ip : *found) answer.addresses.push_back(ip.ToString());
      answer.ttl = 60s;
      return answer;
    }

    kube::TokenReviewer* ReviewerOf(std::string_view cluster) {
      for (const auto& candidate : world.sites_) {
        if (candidate->config_.name != cluster) continue;
        std::unique_ptr<Reviewer>& reviewer = reviewers[candidate->config_.name];
        if (reviewer == nullptr) {
          reviewer = std::make_unique<Reviewer>(world, *candidate,
                                                world.links_->Between(site.place_.site, candidate->place_.site));
        }
        return reviewer.get();
      }
      return nullptr;
    }

    const kube::AccessReviewer* AuthorizerOf(std::string_view cluster) {
      for (const auto& candidate : world.sites_) {
        if (candidate->config_.name != cluster) continue;
        return &authorizers.try_emplace(candidate->config_.name, candidate->cluster_->api()).first->second;
      }
      return nullptr;
    }

    World& world;
    Site& site;
    std::string name;
    Host* host;
    std::map<std::string, fakekube::RbacAuthorizer> authorizers;
    std::unique_ptr<kube::Client> config_cluster;
    std::map<std::string, std::unique_ptr<Reviewer>> reviewers;
    std::unique_ptr<IstiodProcess> process;
  };

  void StartIstiod(const kube::NamespacedName& name, WorkloadId workload, std::function<void(bool)> ready) {
    std::unique_ptr<IstiodRun>& run = istiods_[name];
    // Two clusters may give the same pod name; traces must not confuse them.
    run = std::make_unique<IstiodRun>(world_, *this, fmt::format("{}.{}", name.name, config_.name));
    run->config_cluster = run->ClientOf(*this);
    pilot::IstiodSurroundings surroundings;
    surroundings.host = run->host;
    surroundings.config_cluster = run->config_cluster.get();
    surroundings.remote_clusters = run.get();
    surroundings.resolver = run.get();
    surroundings.access_reviewer = [run = run.get()](std::string_view cluster) { return run->AuthorizerOf(cluster); };
    surroundings.token_reviewer = [run = run.get()](std::string_view cluster) { return run->ReviewerOf(cluster); };
    pilot::IstiodOptions options;
    options.name = run->name;
    options.cluster_id = pilot::ClusterId(config_.name);
    options.seed = world_.options_.seed;
    options.profile = world_.profile_;
    options.external =
        std::any_of(world_.options_.clusters.begin(), world_.options_.clusters.end(),
                    [&](const WorldCluster& c) { return !c.primary() && c.control_plane == config_.name; });
    options.mesh_config = world_.options_.mesh_config;
    options.debounce_after = world_.timing_.debounce_after;
    options.debounce_max = world_.timing_.debounce_max;
    options.push_throttle = static_cast<int>(world_.timing_.push_throttle);
    options.requests_per_second = static_cast<int>(world_.timing_.connections_per_second);
    run->process = std::make_unique<IstiodProcess>(*world_.channels_, *run->host, workload, std::move(surroundings),
                                                   std::move(options));
    Workload& pod = world_.network_->at(workload);
    pod.ports[15012] = run->process->grpc();
    pod.ports[15017] = run->process->webhook();
    run->process->Start(std::move(ready));
  }

  static std::string CaBundle(const kube::Object& configuration, const std::string& webhook) {
    for (const json& candidate : configuration.body.value("webhooks", json::array())) {
      if (candidate.value("name", "") != webhook) continue;
      std::string pem;
      if (absl::Base64Unescape(candidate.value("clientConfig", json::object()).value("caBundle", ""), &pem)) return pem;
    }
    return {};
  }

  void CallWebhook(json pod, const pilot::WebhookTarget& target, const std::string& ca_bundle,
                   absl::AnyInvocable<void(absl::StatusOr<json>)> done) {
    ++reviews_;
    // Exactly one of the answer, the failure to connect and the end of the channel comes first.
    using Done = absl::AnyInvocable<void(absl::StatusOr<json>)>;
    auto once = std::make_shared<Done>([this, alive = std::weak_ptr<int>(alive_), name = target.webhook, pod,
                                        may_fail = !target.fail_if_absent,
                                        done = std::move(done)](absl::StatusOr<json> answer) mutable {
      if (alive.expired()) return;
      --reviews_;
      if (!answer.ok()) {
        last_refusal_ = fmt::format("pod {} was not admitted: webhook {}: {}",
                                    pod["metadata"].value("name", pod["metadata"].value("generateName", "")), name,
                                    Message(answer.status()));
        if (may_fail) return done(std::move(pod));
        return done(answer.status());
      }
      last_refusal_.clear();
      done(pilot::ApplyAdmissionResponse(std::move(pod), *answer));
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
    // What the certificate must say: a Service's name, or the URL's host.
    absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> tls =
        place_.TlsTo(ca_bundle, target.url.empty() ? host : "istiod.istio-system.svc");
    if (!tls.ok()) {
      return finish(absl::UnavailableError("its caBundle holds no certificate; has istiod patched it?"));
    }
    const absl::StatusOr<std::vector<IpAddress>> addresses = dns_->Resolve(host, kSystemNamespace);
    if (!addresses.ok()) return finish(addresses.status());
    Channels::Dialling dialling;
    dialling.from = api_server_;
    dialling.host = world_.host_;
    dialling.to = {addresses->front(), port};
    dialling.sni = target.url.empty() ? host : "istiod.istio-system.svc";
    dialling.tls = *std::move(tls);
    dialling.timeout = 10s;  // timeoutSeconds
    auto opened = std::make_shared<std::weak_ptr<Channel>>();
    const json review = pilot::MakeAdmissionReview(pod, fmt::format("{}-review-{}", config_.name, ++review_count_));
    *opened = world_.channels_->Dial(std::move(dialling), [opened, finish, review, path](const absl::Status& status) {
      const ChannelRef channel = opened->lock();
      if (!status.ok() || channel == nullptr) return finish(status.ok() ? absl::UnavailableError("closed") : status);
      channel->OnClose(Channel::End::kClient, finish);
      channel->Send(Channel::End::kClient, [channel, finish, review, path] {
        if (channel->istiod() == nullptr) return;
        channel->istiod()->istiod().Admit(path, review, [channel, finish](json answer) {
          channel->Send(Channel::End::kServer, [channel, finish, answer = std::move(answer)]() mutable {
            channel->Close(Channel::End::kClient);
            finish(std::move(answer));
          });
        });
      });
    });
  }

  World& world_;
  const WorldCluster config_;
  kube::TokenAuthority tokens_;
  x509::CertificateAuthority api_ca_;
  std::unique_ptr<fakekube::Cluster> cluster_;
  std::unique_ptr<fakekube::http::RestApi> rest_;
  std::unique_ptr<ClusterDns> dns_;
  std::unique_ptr<KubeProxy> kube_proxy_;
  ClusterSite place_;
  WorkloadId api_server_{};
  std::map<kube::NamespacedName, std::unique_ptr<IstiodRun>> istiods_;
  std::map<kube::NamespacedName, std::unique_ptr<PodProcess>> pods_;
  int64_t reviews_ = 0, review_count_ = 0;
  std::string last_refusal_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

World::World(const WorldOptions& options) : options_(options), kernel_(options.seed) {}

absl::StatusOr<std::unique_ptr<World>> World::Create(const WorldOptions& options) {
  std::unique_ptr<World> world(new World(options));
  world->kernel_.RunUntil(options.start);
  for (const auto& [name, value] : options.timing) {
    if (absl::Status status = world->timing_.Set(name, value); !status.ok()) return status;
  }
  absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(options.profile);
  if (!profile.ok()) return profile.status();
  world->profile_ = *profile;
  world->costs_ = std::make_unique<CostsOfTiming>(world->timing_);
  world->host_ = &world->kernel_.NewHost("world", 0, nullptr);
  const Timing& t = world->timing_;
  world->links_ = std::make_unique<Links>(options.seed, LineQuality{t.line_inside, {}, 0, false},
                                          LineQuality{t.line_between, {}, 0, false});
  world->network_ = std::make_unique<MeshNetwork>(*world->links_);
  envoysim::DataPlane::Options plane;
  plane.seed = options.seed;
  plane.trace_requests = plane.trace_connections = options.trace_requests;
  world->plane_ = std::make_unique<envoysim::DataPlane>(*world->host_, *world->network_, plane);
  world->network_->on_address_gone = [w = world.get()](const IpAddress& ip) { w->plane_->fabric().ResetDialled(ip); };
  world->channels_ = std::make_unique<Channels>(*world->host_, world->plane_->fabric(), world->plane_->tls(),
                                                *world->network_, *world->links_);
  Commons& commons = world->commons_;
  commons.seed = options.seed;
  commons.host = world->host_;
  commons.links = world->links_.get();
  commons.network = world->network_.get();
  commons.plane = world->plane_.get();
  commons.channels = world->channels_.get();
  world->outside_ = std::make_unique<OutsideClients>(
      *world->host_, [w = world.get()](std::string_view cluster, const kube::TokenClaims& claims) {
        const kube::TokenAuthority* authority = w->tokens(cluster);
        if (authority == nullptr) {
          return absl::StatusOr<std::string>(
              absl::NotFoundError(fmt::format("no cluster of this world is named '{}'", cluster)));
        }
        return absl::StatusOr<std::string>(authority->Issue(claims));
      });
  commons.xds_retry_base = t.xds_retry_base;
  commons.xds_retry_max = t.xds_retry_max;
  if (options.delta_xds) commons.ads_protocol = envoysim::AdsTransport::Protocol::kDelta;
  world->kernel_.AddObserver([w = world.get()](const TraceEvent& event) {
    if (event.record.kind < TraceKind::kRequest) w->last_control_ = event.time;
    if (event.record.kind == TraceKind::kClusterRejected) {
      w->rejected_[w->kernel_.names().Text(event.record.subject)] =
          fmt::format("remote Secret {}: {}", w->kernel_.names().Text(event.record.object), event.record.detail);
    } else if (event.record.kind == TraceKind::kClusterAdded || event.record.kind == TraceKind::kClusterRemoved) {
      w->rejected_.erase(w->kernel_.names().Text(event.record.object));
    }
  });
  for (const WorldCluster& cluster : options.clusters) {
    world->sites_.push_back(std::make_unique<Site>(*world, cluster, world->links_->AddSite(cluster.name)));
  }
  const auto site_of = [&](const std::string& name) {
    const auto it = std::find_if(world->sites_.begin(), world->sites_.end(),
                                 [&](const auto& s) { return s->config().name == name; });
    return it == world->sites_.end() ? nullptr : it->get();
  };
  for (const WorldCluster& cluster : options.clusters) {
    const Site* control_plane = site_of(cluster.control_plane);
    if (control_plane == nullptr || !control_plane->config().primary()) {
      return absl::InvalidArgumentError(
          fmt::format("cluster '{}' names '{}' as its control plane, which is no primary cluster of this world",
                      cluster.name, cluster.control_plane));
    }
  }
  for (const WorldLink& link : options.links) {
    Site *a = site_of(link.a), *b = site_of(link.b);
    if (a == nullptr || b == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("a link ends at '{}', which is no cluster of this world", a == nullptr ? link.a : link.b));
    }
    world->links_->Between(a->place().site, b->place().site)
        .set_quality({link.latency, link.jitter, link.loss_ppm, false});
  }
  return world;
}

World::~World() {
  traffic_.clear();
  for (const auto& site : sites_) site->StopPods();
  for (const auto& site : sites_) site->StopIstiods();
  sites_.clear();
}

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
  ScopedCause scope(*host_, kernel_.causes().Of(inputs_));
  const uint64_t number = inputs_++;
  if (on_input) on_input(number, Now(), input);
  return Apply(input);
}

absl::Status World::Apply(const Input& input) {
  const json& body = input.body;
  const kube::NamespacedName name{Text(body, "namespace"), Text(body, "name")};
  if (input.kind == "link") {
    const json ends = body.value("between", json::array());
    if (ends.size() != 2) return absl::InvalidArgumentError("a link has two ends");
    absl::StatusOr<Site*> a = FindSite({{"cluster", ends[0]}}), b = FindSite({{"cluster", ends[1]}});
    if (!a.ok()) return a.status();
    if (!b.ok()) return b.status();
    Line& line = links_->Between((*a)->place().site, (*b)->place().site);
    LineQuality quality = line.quality();
    quality.cut = body.value("cut", quality.cut);
    quality.latency = Duration(body.value("latencyNs", quality.latency.count()));
    quality.jitter = Duration(body.value("jitterNs", quality.jitter.count()));
    quality.loss_ppm = body.value("lossPpm", quality.loss_ppm);
    line.set_quality(quality);
    TraceRecord record;
    record.kind = quality.cut ? TraceKind::kFaultStarted : TraceKind::kFaultEnded;
    record.subject = host_->Intern(line.name());
    host_->Emit(record);
    return absl::OkStatus();
  }
  if (input.kind == "dns") {
    if (body.value("addresses", json()).is_null()) {
      commons_.dns.Reset(name.name);
      return absl::OkStatus();
    }
    std::vector<IpAddress> addresses;
    for (const json& text : body["addresses"]) {
      absl::StatusOr<IpAddress> ip = IpAddress::Parse(text.is_string() ? text.get<std::string>() : "");
      if (!ip.ok()) return ip.status();
      addresses.push_back(*ip);
    }
    commons_.dns.Set(name.name, std::move(addresses));
    return absl::OkStatus();
  }
  if (input.kind == "remoteSecret") return ApplyRemoteSecret(body);
  if (input.kind == "xdsOpen") return outside_->Open(body, IstiodOf(Text(body, "cluster")));
  if (input.kind == "xdsRequest") return outside_->Request(body);
  if (input.kind == "xdsDeltaRequest") return outside_->DeltaRequest(body);
  if (input.kind == "xdsClose") return outside_->Close(body);
  if (input.kind == "certificateRequest") {
    return outside_->RequestCertificate(body, IstiodOf(Text(body, "cluster")));
  }
  if (input.kind == "stopTraffic") {
    const auto it = traffic_.find(Text(body, "id"));
    if (it != traffic_.end()) it->second->Stop();
    return absl::OkStatus();
  }
  if (input.kind == "traffic") {
    TrafficSpec spec;
    spec.id = Text(body, "id");
    spec.flow = Text(body, "flow");
    const json from = body.value("from", json::object());
    absl::StatusOr<Site*> site = FindSite(from);
    if (!site.ok()) return site.status();
    spec.cluster = Text(from, "cluster");
    spec.ns = Text(from, "namespace");
    spec.app = Text(from, "app");
    spec.host = Text(body, "host");
    spec.port = body.value("port", 80);
    spec.path = body.value("path", "/");
    spec.keep_alive = body.value("keepAlive", false);
    spec.tcp = body.value("tcp", false);
    spec.requests = body.value("requests", int64_t{0});
    spec.period = Duration(std::max<int64_t>(body.value("periodNs", int64_t{10'000'000}), 1000));
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
    traffic_[id] = std::make_unique<TrafficSource>(commons_, std::move(spec), std::move(clients),
                                                   [this](const TrafficRecord& record) {
                                                     if (on_request) on_request(record);
                                                   });
    return absl::OkStatus();
  }

  absl::StatusOr<Site*> site = FindSite(body);
  if (!site.ok()) return site.status();
  fakekube::Cluster& cluster = (*site)->cluster();
  if (input.kind == "install") return Install(**site);
  if (input.kind == "apply") return cluster.api().Apply(body.value("object", json::object())).status();
  if (input.kind == "delete") return cluster.api().Delete(Text(body, "kind"), name);
  if (input.kind == "patch") {
    return cluster.api().Patch(Text(body, "kind"), name, body.value("patch", json::object())).status();
  }
  if (input.kind == "kubeRequest") return ApplyKubeRequest(**site, body);
  if (input.kind == "loadBalancer") return cluster.SetLoadBalancerAddress(name, Text(body, "address"));
  if (input.kind == "cacerts") {
    const std::string root_name = body.value("root", "root");
    const x509::CertificateAuthority root = x509::MakeRootCa(options_.seed, "root/" + root_name, Time{}, kCaLifetime);
    const x509::CertificateAuthority ca = x509::MakeIntermediateCa(
        options_.seed, fmt::format("intermediate/{}/{}", root_name, (*site)->config().name), root, Time{}, kCaLifetime);
    kube::SecretData data;
    for (auto& [key, value] : x509::CaCertsSecretData(ca)) data[key] = value;
    return cluster.api().Apply(kube::MakeSecret(kSystemNamespace, security::kPluggedCaSecret, data)->body).status();
  }
  if (input.kind == "kill") {
    const std::string app = Text(body, "app");
    std::vector<kube::NamespacedName> victims;
    for (const auto& [key, pod] : (*site)->pods()) {
      if ((name.ns.empty() || key.ns == name.ns) && pod->app() == app) victims.push_back(key);
    }
    if (victims.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("no pod of app '{}' runs in cluster '{}'", app, (*site)->config().name));
    }
    for (const kube::NamespacedName& victim : victims) cluster.api().Finalize("Pod", victim).IgnoreError();
    return absl::OkStatus();
  }
  if (input.kind == "apiServer") {
    fakekube::Faults& faults = cluster.api().faults();
    const std::string fault = Text(body, "fault");
    if (fault == "unreachable") {
      faults.unreachable = true;
      cluster.api().DropWatches(absl::UnavailableError("connection lost"));
    } else if (fault == "slow") {
      faults.extra_latency = Duration(body.value("latencyNs", int64_t{500'000'000}));
    } else if (fault == "watches-dropped") {
      cluster.api().DropWatches(absl::UnavailableError("connection lost"));
    } else if (fault == "history-gone") {
      cluster.api().ForgetHistory();
      cluster.api().DropWatches(absl::OutOfRangeError("too old resource version"));
    } else if (fault == "unauthorized") {
      faults.unauthorized = true;
      cluster.api().DropWatches(absl::UnauthenticatedError("Unauthorized"));
    } else if (fault == "too-many-requests") {
      faults.retry_after = Duration(body.value("retryAfterNs", int64_t{1'000'000'000}));
    } else if (fault == "stale-reads") {
      cluster.api().SetStaleReads(true);
    } else if (fault == "clock-skew") {
      faults.clock_skew = Duration(body.value("skewNs", int64_t{0}));
    } else if (fault == "none") {
      faults = {};
      cluster.api().SetStaleReads(false);
    } else {
      return absl::InvalidArgumentError(fmt::format("no fault of an API server is named '{}'", fault));
    }
    TraceRecord record;
    record.kind = fault == "none" ? TraceKind::kFaultEnded : TraceKind::kFaultStarted;
    record.subject = host_->Intern((*site)->config().name + "/kube-apiserver");
    host_->Emit(record);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(fmt::format("no input is of kind '{}'", input.kind));
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
      ConnectRemoteWhenExposed(candidate->cluster().api(), site.cluster().api());
    }
  }
  return absl::OkStatus();
}

absl::Status World::ApplyRemoteSecret(const json& body) {
  absl::StatusOr<Site*> of = FindSite(body, "of"), in = FindSite(body, "in");
  if (!of.ok()) return of.status();
  if (!in.ok()) return in.status();
  const std::string state = body.value("state", "present");
  const std::string& cluster = (*of)->config().name;
  fakekube::ApiServer& api = (*in)->cluster().api();
  if (state == "deleted")
    return api.Delete("Secret", {std::string(kSystemNamespace), "istio-remote-secret-" + cluster});
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

fakekube::http::RestApi* World::KubeApi(std::string_view cluster) {
  for (const auto& site : sites_) {
    if (site->config().name == cluster) return &site->rest();
  }
  return nullptr;
}

fakekube::http::Response World::KubeRequest(std::string_view cluster, const fakekube::http::Request& request) {
  fakekube::http::RestApi* api = KubeApi(cluster);
  if (api == nullptr) return fakekube::http::NoSuchPath();
  if (!api->Changes(request)) return api->Handle(request);
  if (std::optional<fakekube::http::Response> refusal = api->Refuse(request)) return *std::move(refusal);
  const absl::StatusOr<json> body = api->ParseBody(request);
  if (!body.ok()) return fakekube::http::BadRequest(Message(body.status()));
  kube_request_ = &request;
  // The log holds no credentials: who came this far was let in.
  const absl::Status status = Do({"kubeRequest",
                                  {{"cluster", cluster},
                                   {"method", request.method},
                                   {"path", request.path},
                                   {"query", request.query},
                                   {"contentType", request.content_type},
                                   {"body", *body}}});
  kube_request_ = nullptr;
  if (!status.ok()) return fakekube::http::Failure(500, "InternalError", Message(status));
  fakekube::http::Response response = std::move(*kube_response_);
  kube_response_ = nullptr;
  response.delay = api->server().faults().extra_latency;
  return response;
}

absl::Status World::ApplyKubeRequest(Site& site, const json& body) {
  fakekube::http::Request request;
  if (kube_request_ != nullptr) request.accept = kube_request_->accept;
  request.method = Text(body, "method");
  request.path = Text(body, "path");
  request.query = Text(body, "query");
  request.content_type = Text(body, "contentType");
  request.parsed = std::make_shared<const json>(body.value("body", json()));
  if (!site.rest().Changes(request)) {
    return absl::InvalidArgumentError(fmt::format("{} {} changes nothing", request.method, request.path));
  }
  fakekube::http::Response response = site.rest().Execute(request);
  if (kube_request_ != nullptr) kube_response_ = std::make_unique<fakekube::http::Response>(std::move(response));
  return absl::OkStatus();
}

bool World::Settled() const {
  return std::all_of(sites_.begin(), sites_.end(), [](const auto& site) { return site->Settled(); });
}

bool World::RunUntilSettled(Time deadline, Duration quiet) {
  // Looking every 50 ms keeps the end of a step independent of how often somebody asks.
  constexpr Duration kLook = 50ms;
  while (Now() < deadline) {
    if (Settled() && Now() - last_control_ >= quiet) return true;
    RunUntil(std::min(deadline, Now() + kLook));
  }
  return Settled() && Now() - last_control_ >= quiet;
}

fakekube::Cluster& World::cluster(std::string_view name) {
  for (const auto& site : sites_) {
    if (site->config().name == name) return site->cluster();
  }
  return sites_.front()->cluster();
}

const kube::TokenAuthority* World::tokens(std::string_view cluster) const {
  for (const auto& site : sites_) {
    if (site->config().name == cluster) return &site->tokens();
  }
  return nullptr;
}

IstiodProcess* World::IstiodOf(std::string_view cluster) const {
  const auto find = [&](std::string_view name) {
    const auto it =
        std::find_if(sites_.begin(), sites_.end(), [&](const auto& site) { return site->config().name == name; });
    return it == sites_.end() ? nullptr : it->get();
  };
  const Site* site = find(cluster);
  if (site != nullptr && !site->config().primary()) site = find(site->config().control_plane);
  return site == nullptr ? nullptr : site->Serving();
}

void World::MoveAds(AdsElsewhere* elsewhere) {
  commons_.ads_elsewhere = elsewhere;
  for (const auto& site : sites_) {
    for (const auto& [name, pod] : site->pods()) pod->BreakAds(absl::UnavailableError("the control plane has moved"));
  }
}

std::vector<const PodProcess*> World::Pods() const {
  std::vector<const PodProcess*> out;
  for (const auto& site : sites_) {
    for (const auto& [name, pod] : site->pods()) out.push_back(pod.get());
  }
  return out;
}

std::vector<const PodProcess*> World::Pods(std::string_view cluster, std::string_view ns, std::string_view app) const {
  std::vector<const PodProcess*> out;
  for (const auto& site : sites_) {
    if (!cluster.empty() && site->config().name != cluster) continue;
    for (const auto& [name, pod] : site->pods()) {
      if ((ns.empty() || name.ns == ns) && (app.empty() || pod->app() == app)) out.push_back(pod.get());
    }
  }
  return out;
}

const PodProcess* World::FindPod(std::string_view name) const {
  for (const PodProcess* pod : Pods()) {
    if (pod->name() == name) return pod;
  }
  return nullptr;
}

std::vector<const IstiodProcess*> World::Istiods() const {
  std::vector<const IstiodProcess*> out;
  for (const auto& site : sites_) site->Istiods(&out);
  return out;
}

std::vector<std::string> World::Complaints() const {
  std::vector<std::string> out;
  for (const auto& site : sites_) site->Complain(&out);
  for (const auto& [cluster, why] : rejected_) out.push_back(why);
  return out;
}

int64_t World::requests_under_way() const {
  int64_t total = 0;
  for (const auto& [id, source] : traffic_) total += source->pending();
  return total;
}

int64_t World::TrafficPending(std::string_view id) const {
  const auto it = traffic_.find(id);
  return it == traffic_.end() ? 0 : it->second->pending();
}

bool World::TrafficDone(std::string_view id) const {
  const auto it = traffic_.find(id);
  return it == traffic_.end() || it->second->Done();
}

}  // namespace wavetank::sim
