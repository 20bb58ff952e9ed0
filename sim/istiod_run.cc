#include "sim/istiod_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json/json_read.h"
#include "core/base/status.h"
#include "core/debug/pages.h"
#include "core/inject/injection_config.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/istiod/files/local_files.h"
#include "core/istiod/webhooks/validation_controller.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/profile/changes.h"
#include "core/settings/istiod_settings.h"
#include "fakes/envoy/apps/app.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/store/rbac.h"
#include "fmt/format.h"
#include "sim/agent/image_reference.h"
#include "sim/agent/pod_files.h"
#include "sim/remote/client_bucket.h"
#include "sim/remote/own_account.h"
#include "sim/remote/remote_reader.h"
#include "sim/remote/watched_namespace.h"
#include "sim/signing/token_reviews.h"
#include "sim/upgrade/release_of_pod.h"

namespace wavetank::sim {

using nlohmann::json;

namespace {

constexpr uint16_t kIstiodHttpPorts[] = {8080, 15014};
constexpr Duration kLookForBundle = 10ms;  // while there is no CA yet

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

// What an API server says to a request, kept while it refuses it.
absl::Status Remember(const std::shared_ptr<std::map<std::pair<std::string, std::string>, std::string>>& refused,
                      const std::string& cluster, const kube::AccessRequest& request, absl::Status may) {
  const std::pair<std::string, std::string> key(
      cluster, fmt::format("{} {}.{} {}", request.verb, request.resource, request.group, request.ns));
  if (may.ok()) {
    refused->erase(key);
  } else {
    (*refused)[key] = std::string(Message(may));
  }
  return may;
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
    absl::StatusOr<kube::TokenClaims> claims =
        ReviewToken(of_.cluster_->api(), of_.tokens_, fate, token, audiences, now);
    if (permit_ != nullptr) {
      if (absl::Status may = permit_({"", "create", "authentication.k8s.io", "tokenreviews", "", ""}); !may.ok())
        claims = may;
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

World::Site::IstiodRun::IstiodRun(World& w, Site& s, std::string n, WorkloadId pod)
    : world(w), site(s), name(std::move(n)), workload(pod) {
  host = &world.kernel_.NewHost(name, static_cast<int>(world.timing_.istiod_cpus), world.costs_.get());
}

World::Site::IstiodRun::~IstiodRun() {
  const IstiodProcess* gone = process.get();
  validation = nullptr;
  http.clear();
  plaintext = nullptr;
  process = nullptr;
  world.outside_->IstiodGone(gone);
}

bool World::Site::IstiodRun::Idle() const {
  return process->istiod().Idle() && (validation == nullptr || validation->Idle());
}

std::unique_ptr<kube::Client> World::Site::IstiodRun::ClientOf(Site& to, fakekube::ClientPermit permit) {
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

fakekube::ClientPermit World::Site::IstiodRun::PermitOf(Site& to, const std::string& cluster,
                                                        const kube::KubeConfig& config) {
  if (to.config_.observed) return nullptr;  // a recording holds neither accounts nor roles
  auto reader = std::make_shared<RemoteReader>(
      RemoteReader::Server{&to.cluster_->api(), &to.tokens_, to.api_ca_.certificate, config.server}, config,
      [&w = world, &to](bool bound, bool known) {
        if (!w.options_.mending.Does(Mend::kRbac, !known)) return false;
        if (!bound) w.Mended(Mend::kRbac, to.config_.name);
        return true;
      });
  return [reader, cluster, clock = host, refused = refused](const kube::AccessRequest& request) {
    return Remember(refused, cluster, request, reader->Permit(clock->WallClock(), request));
  };
}

fakekube::ClientPermit World::Site::IstiodRun::PermitAtHome(const std::string& account) {
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

fakekube::ClientPermit World::Site::IstiodRun::PermitFor(const Site& to, std::string_view cluster) const {
  if (&to == &site) return at_home;
  const auto permit = permits.find(cluster);
  return permit == permits.end() ? fakekube::ClientPermit() : permit->second;
}

absl::StatusOr<std::unique_ptr<kube::Client>> World::Site::IstiodRun::Connect(const std::string& id,
                                                                              const std::string& kubeconfig) {
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

pilot::GatewayResolver::Answer World::Site::IstiodRun::Resolve(const std::string& hostname) {
  Answer answer;
  const absl::StatusOr<WorldDns::Answer> found = site.dns_->Ask(hostname, pod_ns);
  if (!found.ok()) return answer;
  for (const IpAddress& ip : found->addresses) answer.addresses.push_back(ip.ToString());
  answer.ttl = found->ttl.value_or(60s);
  return answer;
}

bool World::Site::IstiodRun::IsCalled(const Site& candidate, std::string_view cluster) const {
  if (&candidate == &site) return cluster_id == cluster;
  const auto it = registered.find(cluster);
  return it == registered.end() ? candidate.config_.name == cluster : it->second == &candidate;
}

kube::TokenReviewer* World::Site::IstiodRun::ReviewerOf(std::string_view cluster) {
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

const kube::AccessReviewer* World::Site::IstiodRun::AuthorizerOf(std::string_view cluster) {
  for (const auto& candidate : world.sites_) {
    if (!IsCalled(*candidate, cluster)) continue;
    std::unique_ptr<Authorizer>& authorizer = authorizers[candidate->config_.name];
    if (authorizer == nullptr)
      authorizer = std::make_unique<Authorizer>(candidate->cluster_->api(), PermitFor(*candidate, cluster));
    return authorizer.get();
  }
  return nullptr;
}

bool World::Site::IstiodRun::MayLock() const {
  if (at_home == nullptr) return true;
  for (const char* verb : {"get", "create", "update"}) {
    if (!at_home({"", verb, "", "configmaps", pod_ns, ""}).ok()) return false;
    if (!at_home({"", verb, "coordination.k8s.io", "leases", pod_ns, ""}).ok()) return false;
  }
  return true;
}

const World::Site* World::Site::IstiodRun::SiteOf(std::string_view cluster) const {
  if (cluster == cluster_id) return &site;
  const auto it = registered.find(cluster);
  return it == registered.end() ? nullptr : it->second;
}

std::string World::Site::IstiodRun::NameOf(std::string_view cluster) const {
  if (cluster == cluster_id) return site.config_.name;
  const auto it = registered.find(cluster);
  return it == registered.end() ? std::string(cluster) : it->second->config_.name;
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
  if (pod != nullptr && !config_.observed) {
    std::string image = InvalidImage(At(pod->body, "spec"));
    if (image.empty()) image = UnpublishedImage(At(pod->body, "spec"));
    if (!image.empty()) return absl::NotFoundError(std::move(image));
  }
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

}  // namespace wavetank::sim
