#include "core/istiod/istiod.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/containers/countdown.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/base/text/parse_bool.h"
#include "core/config/mesh/mesh_watcher.h"
#include "core/config/store/store.h"
#include "core/election/cluster_elections.h"
#include "core/gen/cds/cds.h"
#include "core/gen/eds/eds.h"
#include "core/gen/extensions/ecds.h"
#include "core/gen/grpc/proxyless.h"
#include "core/gen/lds/lds.h"
#include "core/gen/nds/name_table.h"
#include "core/gen/rds/rds.h"
#include "core/gen/sds/secret_generator.h"
#include "core/inject/injection_webhook.h"
#include "core/istiod/discovery_scope.h"
#include "core/istiod/distribution_reporter.h"
#include "core/istiod/files/config_folder.h"
#include "core/istiod/files/config_sources.h"
#include "core/istiod/files/local_files.h"
#include "core/istiod/gateway_api.h"
#include "core/istiod/security_server.h"
#include "core/istiod/service_entry_addresses.h"
#include "core/istiod/start_lines.h"
#include "core/istiod/status_leader.h"
#include "core/istiod/trust_bundle_generator.h"
#include "core/istiod/webhooks/webhook_patcher.h"
#include "core/istiod/workload_entries.h"
#include "core/kube/definitions.h"
#include "core/model/proxyless.h"
#include "core/profile/changes.h"
#include "core/push/cluster_local.h"
#include "core/registry/crd_client.h"
#include "core/registry/ingress_controller.h"
#include "core/registry/kube/discovery_namespaces.h"
#include "core/registry/kube/service_auto_export.h"
#include "core/registry/multicluster/registries.h"
#include "core/security/credentials.h"
#include "core/security/jwks_cache.h"
#include "core/security/namespace_controller.h"
#include "core/security/spiffe_bundle.h"
#include "core/security/trust_bundle.h"
#include "core/xds/discovery_server.h"
#include "core/xds/generation_gate.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

// REVISION of a default installation.
std::string RevisionOf(const IstiodOptions& options) { return options.revision.empty() ? "default" : options.revision; }

// istiod: getMeshConfigMapName.
std::string MeshConfigMapName(const IstiodOptions& options) {
  return options.revision.empty() || options.revision == "default" ? "istio" : "istio-" + options.revision;
}

DiscoveryServer::Options DiscoveryOptions(const IstiodOptions& options, const IstiodSurroundings& surroundings) {
  DiscoveryServer::Options out;
  out.name = options.name;
  if (surroundings.cluster_name) {
    out.proxy_name = [&surroundings](const Proxy& proxy) {
      return proxy.id + "@" + surroundings.cluster_name(proxy.cluster().str());
    };
  }
  out.debounce.after = options.debounce_after;
  out.debounce.max = options.debounce_max;
  out.debounce.debounce_eds = options.debounce_eds;
  out.log = surroundings.log;
  out.push_throttle = options.push_throttle;
  if (options.shuffle_pushes) out.push_order = RandomStream(options.seed, "push order of " + options.name);
  out.requests_per_second = options.requests_per_second;
  out.xds_auth = options.xds_auth;
  out.identity_check = options.features.xds_identity_check;
  out.cache = options.xds_cache;
  out.cluster_aliases = options.cluster_aliases;
  return out;
}

// Listeners hold the key sets of RequestAuthentications: their push waits where those are missing.
class ListenersWithKeySets final : public Generator, public GenerationGate {
 public:
  ListenersWithKeySets(std::unique_ptr<Generator> listeners, security::JwksCache& key_sets)
      : listeners_(std::move(listeners)), key_sets_(key_sets) {}
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    return listeners_->Generate(proxy, watched, request);
  }
  GeneratedResources GenerateDeltas(const Proxy& proxy, const WatchedResource& watched,
                                    const PushRequest& request) override {
    return listeners_->GenerateDeltas(proxy, watched, request);
  }
  bool MustWait() const override { return key_sets_.MustWait(); }
  void Wait(Callback then) override { key_sets_.Wait(std::move(then)); }

 private:
  const std::unique_ptr<Generator> listeners_;
  security::JwksCache& key_sets_;
};

// "namespace/name" of a reviewed pod; generated names are given after admission.
std::string PodName(const nlohmann::json& review) {
  const auto text = [](const nlohmann::json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  if (!review.is_object() || !review.contains("request") || !review["request"].is_object()) return "?";
  const nlohmann::json& request = review["request"];
  std::string name = text(request, "name");
  if (request.contains("object") && request["object"].is_object() && request["object"].contains("metadata") &&
      request["object"]["metadata"].is_object()) {
    const nlohmann::json& metadata = request["object"]["metadata"];
    if (name.empty()) name = text(metadata, "name");
    if (name.empty()) name = text(metadata, "generateName");
  }
  return text(request, "namespace") + "/" + name;
}

}  // namespace

struct Istiod::Impl {
  Impl(IstiodSurroundings s, IstiodOptions o)
      : surroundings(std::move(s)),
        options(std::move(o)),
        host(*surroundings.host),
        client(*surroundings.config_cluster),
        webhook(RevisionOf(options)),
        credentials(options.cluster_id.str()),
        key_sets(
            host,
            surroundings.fetch ? surroundings.fetch : [](const std::string&) { return std::optional<std::string>(); },
            [this] {
              PushRequest request;
              request.full = true;
              request.reasons = Reason(TriggerReason::kUnknown);
              discovery.ConfigUpdate(std::move(request));
            }),
        discovery(
            host, [this] { return CurrentEnvironment(); }, DiscoveryOptions(options, surroundings)) {
    webhook.SetConfig(
        InjectionConfig::Default(options.cluster_id.str(), options.network, options.mesh_id, options.profile));
    discovery.SetObserver(surroundings.observer);
    if (options.profile.Has(Change::kNameBeforeNamespace)) configs.SetTie(config::ConfigStore::Tie::kName);
    SetGenerator(XdsType::kCds, MakeCdsGenerator({options.features.cds_cache ? &discovery.cache() : nullptr}));
    SetGenerator(XdsType::kEds, MakeEdsGenerator({&discovery.cache()}));
    SetGenerator(XdsType::kLds, std::make_unique<ListenersWithKeySets>(MakeLdsGenerator(), key_sets));
    SetGenerator(XdsType::kEcds, MakeEcdsGenerator(&credentials));
    SetGenerator(XdsType::kRds, MakeRdsGenerator({options.features.rds_cache ? &discovery.cache() : nullptr}));
    SetGenerator(XdsType::kNds, MakeNdsGenerator());
    // Without it istiod answers such a request with nothing, as with any that no generator has an answer for.
    if (options.multi_root) SetGenerator(XdsType::kPcds, MakeTrustBundleGenerator(trust_bundle));
    SetGenerator(XdsType::kSds,
                 std::make_unique<security::SecretGenerator>(host, credentials, discovery.cache(), &surroundings.log));
    generators.push_back(MakeProxylessGenerator());
    for (const XdsType type : {XdsType::kCds, XdsType::kLds, XdsType::kRds}) {
      discovery.SetGenerator(kGrpcGenerator, type, generators.back().get());
    }
    credentials.OnSecret([this](const kube::NamespacedName& secret) {
      PushRequest request;
      request.configs_updated.insert({ConfigKind::kSecret, secret.name, secret.ns});
      request.reasons = Reason(TriggerReason::kSecret);
      discovery.ConfigUpdate(std::move(request));
    });
  }
  ~Impl() {
    security_server->Stop();
    discovery.SetRegistrar(nullptr);
  }

  // What follows one cluster beside its registry.
  struct ClusterExtras {
    std::unique_ptr<election::ClusterElections> elections;      // null: istiod's own cluster, or it is not served
    std::unique_ptr<security::NamespaceController> namespaces;  // null: another istiod does it
    std::unique_ptr<WebhookPatcher> webhooks;
    std::unique_ptr<ServiceAutoExport> exports;
  };

  void SetGenerator(XdsType type, std::unique_ptr<Generator> generator) {
    discovery.SetGenerator(type, generator.get());
    generators.push_back(std::move(generator));
  }
  void Start();
  bool StartMeshFromFiles();
  absl::Status CheckRegistries() const;
  void StartSecurity();
  void OnBundleChanged();
  void StartControllers();
  absl::Status OpenConfigSources();
  absl::Status StartInjection();
  absl::Status StartInjectionFromFiles(std::string config);
  void StartGatewayApi();
  void ScopeConfiguration(Callback done);
  bool Reads(std::string_view ns) const { return scope == nullptr || scope->Contains(ns); }
  void StartStatus();
  absl::Status StartTrustBundle();
  NativeSidecar NativeSidecarsFor(const std::string& path);
  // What the charts' templates of 1.19 to 1.24 ask of istiod's environment. As it was said: `1` is true to istiod and
  // not to them, so that istiod's own part of native sidecars and the template's may differ, as there.
  std::map<std::string, std::string> TemplateEnvironment() const {
    return {{"ENABLE_NATIVE_SIDECARS", options.native_sidecars}};
  }
  void Admit(std::string path, nlohmann::json review, absl::AnyInvocable<void(nlohmann::json)> done);
  void AwaitSync(Duration delay);
  bool CachesSynced() const;
  void Fail(const absl::Status& status);

  void OnClusterStarted(const ClusterId& id, kube::Client& cluster, bool config_cluster);
  void ServeCluster(const ClusterId& id, kube::Client& cluster, bool config_cluster);
  void DistributeRoots(const ClusterId& id, kube::Client& cluster, bool config_cluster);
  std::unique_ptr<election::ClusterElections> MakeElections(const ClusterId& id, kube::Client& cluster, bool remote);
  void OnService(const ServiceRef& old, const ServiceRef& now, Event event);
  Environment CurrentEnvironment();
  std::string TrustDomain() const { return mesh->mesh()->trust_domain; }
  bool Idle() const;

  template <class Fn>
  auto Guard(Fn fn) {
    return [fn = std::move(fn), guard = std::weak_ptr<char>(alive)](auto&&... args) mutable {
      if (!guard.expired()) fn(std::forward<decltype(args)>(args)...);
    };
  }

  const IstiodSurroundings surroundings;
  const IstiodOptions options;
  Host& host;
  kube::Client& client;
  StartLines lines{surroundings.log, host, options};
  LocalFiles files{host, surroundings.files,
                   options.cacerts_mount_delay > Duration::zero() ? options.cacerts_mount_delay : 30s};
  absl::AnyInvocable<void(absl::Status)> on_started;

  InjectionWebhook webhook;
  config::ConfigStore configs;
  security::Credentials credentials;
  security::TrustBundleSources trust_bundle;
  std::unique_ptr<security::SpiffeEndpoints> spiffe_endpoints;
  security::JwksCache key_sets;
  std::vector<std::unique_ptr<Generator>> generators;
  DiscoveryServer discovery;
  std::unique_ptr<config::MeshWatcher> mesh;
  const std::shared_ptr<SecurityServer> security_server =
      std::make_shared<SecurityServer>(SecurityServer::Parts{host, client, options, surroundings, files, lines});
  std::vector<std::unique_ptr<ConfigFolder>> folders;  // of config sources
  bool reads_cluster = false;                          // it is a config source
  std::unique_ptr<config::CrdClient> crds;
  std::unique_ptr<DiscoveryScope> scope;  // once there have been discoverySelectors, where they hold for configuration
  std::unique_ptr<ServiceEntryAddresses> entry_addresses;  // null: nothing writes them
  std::unique_ptr<config::IngressController> ingresses;    // null: the mesh's mode was OFF at the start
  std::unique_ptr<WorkloadEntryController> workload_entries;
  std::unique_ptr<gatewayapi::Controller> gateway_api;             // once the config cluster serves it
  bool writes_gateway_statuses = false, deploys_gateways = false;  // by election
  bool leaves_statuses = false;                                    // whoever leads
  std::unique_ptr<kube::Informer> injector_config;
  std::unique_ptr<Registries> registries;
  std::map<ClusterId, ClusterExtras> extras;
  std::unique_ptr<election::ClusterElections> elections;  // of its own cluster; null before controllers start
  std::unique_ptr<DistributionReporter> reporter;         // null: statuses are not written
  std::unique_ptr<StatusLeader> status_leader;            // null: another istiod writes them
  uint64_t expected_updates = 0;
  bool caches_synced = false;
  std::shared_ptr<char> alive = std::make_shared<char>();
};

// The order is that of NewServer and Server.Start (istiod: pilot/pkg/bootstrap/server.go): mesh config, CA, then all
// controllers at once, then the wait for their caches and for the first push context.
void Istiod::Impl::Start() {
  lines.Begun();
  // istiod: NewDiscoveryServer, make(chan struct{}, features.PushThrottle)
  if (options.push_throttle < 0) {
    return Fail(absl::InvalidArgumentError("panic: makechan: size out of range: PILOT_PUSH_THROTTLE is negative"));
  }
  config::MeshConfigRef fallback;
  if (!options.mesh_config.empty()) {
    absl::StatusOr<config::MeshConfigRef> parsed = config::ApplyMeshConfigDefaults(options.mesh_config);
    if (!parsed.ok()) return Fail(parsed.status());
    fallback = *std::move(parsed);
  }
  mesh =
      std::make_unique<config::MeshWatcher>(client, host, options.system_namespace, MeshConfigMapName(options),
                                            std::move(fallback), config::ReadCaCertificateSources(options.mesh_config));
  if (options.profile.Has(Change::kMeshNetworksGo)) mesh->LetNetworksGo();
  mesh->on_refused = [this](const absl::Status& why) { lines.Warn(std::string(Message(why))); };
  if (!options.shared_mesh_config.empty()) mesh->Share(client, options.system_namespace, options.shared_mesh_config);
  if (StartMeshFromFiles()) return;
  mesh->log = surroundings.log;
  mesh->OnSynced(Guard([this] {
    lines.MeshRead(*mesh);
    StartSecurity();
  }));
  mesh->Start();
}

// istiod: initMeshConfiguration, initMeshNetworks. A file that cannot be read is as if it were not there.
bool Istiod::Impl::StartMeshFromFiles() {
  const std::optional<std::string> text = files.Read(options.mesh_config_file);
  if (!text || !mesh->TakeMesh(*text).ok()) return false;
  const bool shares = !options.shared_mesh_config.empty();
  if (!shares)
    lines.Warn(fmt::format("Using local mesh config file {}, in cluster configs ignored", options.mesh_config_file));
  files.Watch(options.mesh_config_file, [this](const std::string& now) {
    if (absl::Status status = mesh->TakeMesh(now); !status.ok())
      lines.Warn(fmt::format("failed to read mesh configuration, using default: {}", Message(status)));
  });
  lines.Say("initializing mesh networks");
  const std::optional<std::string> networks = files.Read(options.networks_config_file);
  if (!networks || !mesh->TakeNetworks(*networks).ok()) {
    lines.Say("mesh networks configuration not provided");
  } else {
    files.Watch(options.networks_config_file, [this](const std::string& now) {
      if (absl::Status status = mesh->TakeNetworks(now); !status.ok())
        lines.Warn(fmt::format("failed to read mesh networks configuration from \"{}\": {}",
                               options.networks_config_file, Message(status)));
    });
  }
  lines.MeshHandlers(*mesh);
  mesh->log = surroundings.log;
  auto begin = Guard([this] { StartSecurity(); });
  if (shares) {
    mesh->OnShared(std::move(begin));
  } else {
    host.Post(std::move(begin));
  }
  return true;
}

void Istiod::Impl::StartSecurity() {
  security_server->on_bundle_changed = [this] { OnBundleChanged(); };
  security_server->FindServingFiles();
  security_server->Start(*mesh,
                         [this](const absl::Status& status) { status.ok() ? StartControllers() : Fail(status); });
}

void Istiod::Impl::OnBundleChanged() {
  for (auto& [id, extra] : extras) {
    if (extra.namespaces != nullptr) extra.namespaces->OnBundleChanged();
    if (extra.webhooks != nullptr) extra.webhooks->OnBundleChanged();
  }
}

// istiod: initServiceControllers; 1.18.2 has one registry.
absl::Status Istiod::Impl::CheckRegistries() const {
  for (const std::string& registry : options.registries) {
    if (registry == "Kubernetes") continue;
    return absl::InvalidArgumentError(
        fmt::format("failed to create discovery service: error initializing service controllers: "
                    "service registry {} is not supported",
                    registry));
  }
  return absl::OkStatus();
}

void Istiod::Impl::StartControllers() {
  if (absl::Status selectors = DiscoveryNamespaces::Check(mesh->mesh()->discovery_selectors); !selectors.ok()) {
    return Fail(selectors);
  }
  if (absl::Status registries_known = CheckRegistries(); !registries_known.ok()) return Fail(registries_known);
  if (absl::Status bundle = StartTrustBundle(); !bundle.ok()) return Fail(bundle);
  if (absl::Status provider = security_server->CheckCertProvider(); !provider.ok()) return Fail(provider);
  // What there is already is no change.
  mesh->AddMeshHandler([this] {
    PushRequest request;
    request.full = true;
    request.reasons = Reason(TriggerReason::kGlobal);
    discovery.ConfigUpdate(std::move(request));
  });

  const auto reads = [this](const ClusterId& id) { return registries->Find(id) != nullptr; };
  if (absl::Status status = security_server->AddAuthenticators(reads); !status.ok()) return Fail(status);
  security_server->ServeCertificates();

  lines.Controllers(security_server->signer(), DiscoveryHost(*mesh->mesh()));
  lines.Starting();
  elections = MakeElections(options.cluster_id, client, false);
  if (absl::Status status = OpenConfigSources(); !status.ok()) return Fail(status);
  if (config::IngressModeOf(*mesh->mesh()) != config::IngressMode::kOff) {
    ingresses = std::make_unique<config::IngressController>(
        client, host, configs, discovery, [this] { return mesh->mesh(); },
        config::IngressController::Options{.domain_suffix = options.domain_suffix,
                                           .names_all_hosts = options.profile.Has(Change::kIngressOfAllHostsNamed)});
    mesh->AddMeshHandler([this] { ingresses->OnMeshConfigChanged(); });
    elections->Join(
        election::kIngressController,
        [this] {
          lines.Say("Starting ingress controller");
          ingresses->SetWritesStatus(true);
        },
        [this] { ingresses->SetWritesStatus(false); });
  }
  if (options.auto_registration && reads_cluster) {
    if (absl::Status grace = WorkloadEntryController::CheckGrace(options.entry_grace); !grace.ok()) return Fail(grace);
    WorkloadEntryController::Options entries{options.name, options.entry_grace, options.validate_entry_identity,
                                             options.entry_health_checks};
    workload_entries = std::make_unique<WorkloadEntryController>(
        host, client, [this] { return crds->Objects(); }, std::move(entries));
    discovery.SetRegistrar(workload_entries.get());
    workload_entries->Start();
  }
  Registries::Options registry;
  registry.config_cluster = options.cluster_id;
  registry.domain_suffix = options.domain_suffix;
  registry.system_namespace = options.system_namespace;
  registry.remote_cluster_timeout = options.remote_cluster_timeout;
  registry.trust_domain = [this] { return TrustDomain(); };
  registry.networks = [this] { return mesh->networks(); };
  registry.discovery_selectors = [this] { return mesh->mesh()->discovery_selectors; };
  registry.resolver = surroundings.resolver;
  registry.profile = &options.profile;
  registry.mcs = options.mcs;
  if (options.profile.Has(Change::kAddressesByController) && reads_cluster) {
    entry_addresses = std::make_unique<ServiceEntryAddresses>(client, host, *crds);
    registry.addresses = entry_addresses.get();
  }
  registry.endpoints_only = options.endpoints_only;
  registry.features = options.features;
  registry.log = surroundings.log;
  registries = std::make_unique<Registries>(client, *surroundings.remote_clusters, host, discovery, configs,
                                            std::move(registry));
  registries->on_service = [this](const ClusterId&, const ServiceRef& old, const ServiceRef& now, Event event) {
    OnService(old, now, event);
  };
  registries->on_cluster_started = [this](const ClusterId& id, kube::Client& cluster, bool config_cluster) {
    OnClusterStarted(id, cluster, config_cluster);
  };
  const auto forget = [this](const ClusterId& id) {
    if (const auto extra = extras.find(id); extra != extras.end() && extra->second.elections != nullptr)
      extra->second.elections->Stop([] {});
    extras.erase(id);
    credentials.RemoveCluster(id.str());
  };
  registries->on_cluster_stopped = forget;
  registries->on_cluster_deleted = forget;
  mesh->AddNetworksHandler([this] { registries->OnMeshNetworksChanged(); });
  mesh->AddMeshHandler([this] { registries->OnMeshConfigChanged(); });

  if (absl::Status injection = StartInjection(); !injection.ok()) return Fail(injection);
  StartGatewayApi();
  StartStatus();
  mesh->AddMeshHandler([this] { ScopeConfiguration([] {}); });
  ScopeConfiguration(Guard([this] { crds->Start(); }));
  if (ingresses != nullptr) ingresses->Start();
  registries->Start();
  lines.Started(security_server->signer());
  AwaitSync(1ms);
}

// istiod: initConfigController.
absl::Status Istiod::Impl::OpenConfigSources() {
  const absl::StatusOr<ConfigSources> chosen = ChooseConfigSources(mesh->mesh()->raw, options.config_dir);
  if (!chosen.ok()) {
    return absl::Status(chosen.status().code(),
                        fmt::format("failed to create discovery service: error initializing config controller: {}",
                                    Message(chosen.status())));
  }
  for (const std::string& warning : chosen->warnings) lines.Warn(warning);
  std::vector<kube::Client*> sources;
  for (const ConfigSource& source : chosen->sources) {
    if (source.kind == ConfigSource::Kind::kCluster) {
      reads_cluster = true;
      sources.push_back(&client);
      if (!source.address.empty()) lines.Say("Started Kubernetes configSource " + source.address);
    } else {
      folders.push_back(std::make_unique<ConfigFolder>(files, host, source.folder, options.profile,
                                                       [this](std::string text) { lines.Warn(std::move(text)); }));
      sources.push_back(folders.back().get());
      if (!source.address.empty()) lines.Say("Started File configSource " + source.address);
    }
  }
  // Without any, a folder that is nowhere.
  if (sources.empty()) {
    folders.push_back(std::make_unique<ConfigFolder>(files, host, "", options.profile, [](const std::string&) {}));
    sources.push_back(folders.back().get());
  }
  crds = std::make_unique<config::CrdClient>(
      *sources.front(), host, configs, discovery,
      config::CrdClient::Options{.revision = RevisionOf(options),
                                 .health_checks = options.entry_health_checks,
                                 .more_sources = {sources.begin() + 1, sources.end()},
                                 .reads = [this](std::string_view ns) { return Reads(ns); }});
  return absl::OkStatus();
}

// istiod: pilot/pkg/bootstrap/server.go, initMeshConfiguration; it waits for the namespaces before it reads anything.
// `done` runs when what is read is known. A folder has no namespaces to choose from.
void Istiod::Impl::ScopeConfiguration(Callback done) {
  if (scope != nullptr) {
    scope->OnMeshConfigChanged();
    return done();
  }
  const auto selectors = [this] { return mesh->mesh()->discovery_selectors; };
  if (!options.profile.Has(Change::kSelectorsScopeConfiguration) || !reads_cluster || selectors().empty())
    return done();
  scope = std::make_unique<DiscoveryScope>(client, host, selectors, [this](const std::vector<std::string>& namespaces) {
    crds->OnNamespacesRead(namespaces);
    if (gateway_api != nullptr) gateway_api->Reconsider();
  });
  scope->Start(std::move(done));
}

// istiod: initWorkloadTrustBundle.
absl::Status Istiod::Impl::StartTrustBundle() {
  using Source = security::TrustBundleSources::Source;
  if (!options.multi_root) return absl::OkStatus();
  trust_bundle.OnChanged([this] {
    PushRequest request;
    request.full = true;
    request.reasons = Reason(TriggerReason::kGlobal);
    discovery.ConfigUpdate(std::move(request));
  });
  const auto nowhere = [](const std::string&) { return std::optional<std::string>(); };
  spiffe_endpoints = std::make_unique<security::SpiffeEndpoints>(host, trust_bundle, TrustDomain(),
                                                                 surroundings.fetch ? surroundings.fetch : nowhere);
  const auto take = [this] {
    absl::Status status = trust_bundle.Update(Source::kMeshConfig, mesh->mesh()->ca_certificates);
    if (status.ok()) spiffe_endpoints->SetEndpoints(mesh->ca_certificates().spiffe_bundle_urls);
    return status;
  };
  if (absl::Status status = take(); !status.ok()) return status;
  mesh->AddMeshHandler([take] { take().IgnoreError(); });  // what cannot be read leaves what was there
  return security_server->AddRoots(trust_bundle);
}

// What cannot be read later leaves what was there; istiod does not start without what it needs at first.
absl::Status Istiod::Impl::StartInjectionFromFiles(std::string config) {
  const auto read = [this](const std::string& text) -> absl::Status {
    const std::optional<std::string> values = files.Read(kInjectValuesFile);
    if (!values) {
      return absl::NotFoundError(fmt::format(
          "error initializing sidecar injector: failed to create injection webhook: open {}: no such file or directory",
          kInjectValuesFile));
    }
    absl::StatusOr<kube::ObjectRef> as_map = kube::Object::FromJson(
        {{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", {{"name", InjectorConfigMapName(options.revision)}, {"namespace", options.system_namespace}}},
         {"data", {{"config", text}, {"values", *values}}}});
    if (!as_map.ok()) return as_map.status();
    absl::StatusOr<InjectionConfig> injection =
        InjectionConfig::FromConfigMap(**as_map, options.profile, TemplateEnvironment());
    if (!injection.ok()) return injection.status();
    webhook.SetConfig(*std::move(injection));
    return absl::OkStatus();
  };
  if (absl::Status status = read(config); !status.ok()) return status;
  for (const std::string_view path : {kInjectConfigFile, kInjectValuesFile}) {
    files.Watch(std::string(path), [this, read](const std::string&) {
      const std::optional<std::string> text = files.Read(kInjectConfigFile);
      if (absl::Status status = read(text.value_or("")); !status.ok())
        lines.Warn("update error: " + std::string(Message(status)));
    });
  }
  return absl::OkStatus();
}

absl::Status Istiod::Impl::StartInjection() {
  webhook.SetMeshConfig(mesh->mesh());
  mesh->AddMeshHandler([this] { webhook.SetMeshConfig(mesh->mesh()); });
  if (std::optional<std::string> config = files.Read(kInjectConfigFile))
    return StartInjectionFromFiles(*std::move(config));
  injector_config = std::make_unique<kube::Informer>(
      client, host, kube::kinds::kConfigMap,
      kube::ListOptions{.ns = options.system_namespace,
                        .field_selector = "metadata.name=" + InjectorConfigMapName(options.revision)});
  const auto on = [this](const kube::ObjectRef& object) {
    if (object->meta.name != InjectorConfigMapName(options.revision)) return;
    // What cannot be read leaves what was there.
    absl::StatusOr<InjectionConfig> read =
        InjectionConfig::FromConfigMap(*object, options.profile, TemplateEnvironment());
    if (!read.ok()) {
      lines.Warn("failed to read injection config from ConfigMap: " + std::string(Message(read.status())));
      return;
    }
    webhook.SetConfig(*std::move(read));
  };
  injector_config->AddHandler({.on_add = on, .on_update = [on](const auto&, const auto& now) { on(now); }});
  injector_config->Start();
  return absl::OkStatus();
}

// istiod: pkg/kube/inject/webhook.go, DetectNativeSidecar.
NativeSidecar Istiod::Impl::NativeSidecarsFor(const std::string& path) {
  constexpr int kMinor = 33;  // Kubernetes' release in which they are stable
  if (!options.profile.Has(Change::kNativeSidecars)) return NativeSidecar::kUnknown;
  const bool knows_auto = options.profile.Has(Change::kNativeSidecarsByNode);
  const std::string said = options.native_sidecars.empty() && knows_auto ? "auto" : options.native_sidecars;
  if (!knows_auto || said != "auto") return ParseBool(said).value_or(false) ? NativeSidecar::kYes : NativeSidecar::kNo;
  const std::string named = webhook.ClusterOf(path);
  const KubeController* const controller =
      registries == nullptr ? nullptr : registries->Find(named.empty() ? options.cluster_id : ClusterId(named));
  return controller != nullptr && controller->AllKubeletsFrom(kMinor) ? NativeSidecar::kYes : NativeSidecar::kNo;
}

void Istiod::Impl::Admit(std::string path, nlohmann::json review, absl::AnyInvocable<void(nlohmann::json)> done) {
  host.Spend(
      {WorkKind::kInjectPod},
      Guard([this, path = std::move(path), review = std::move(review), done = std::move(done)]() mutable {
        if (crds != nullptr) {
          std::vector<kube::ObjectRef> proxy_configs;
          for (const auto& [key, object] : crds->Raw(ConfigKind::kProxyConfig)) proxy_configs.push_back(object);
          webhook.SetProxyConfigs(std::move(proxy_configs));
        }
        lines.Say("Sidecar injection request for " + PodName(review));
        nlohmann::json answer = webhook.Admit(review, path, NativeSidecarsFor(path));
        const nlohmann::json& response = At(answer, "response");
        const bool allowed = At(response, "allowed") == true;
        const std::string_view result = !allowed ? "refused" : response.contains("patch") ? "injected" : "skipped";
        host.Emit({TraceKind::kPodInjected, host.Intern(options.name), host.Intern(PodName(review)), 0, 0, result});
        done(std::move(answer));
      }));
}

// istiod waits for the definitions before it watches what they define (pkg/kube/kclient, delayed informers).
void Istiod::Impl::StartGatewayApi() {
  if (!reads_cluster || !options.features.gateway_api) return;
  auto* definitions = dynamic_cast<kube::DefinitionWatcher*>(&client);
  const auto tell = [this] {
    if (gateway_api != nullptr) gateway_api->SetWriters(writes_gateway_statuses && !leaves_statuses, deploys_gateways);
  };
  // Both are elected whether there are Gateways or not.
  elections->Join(
      election::kGatewayStatusController,
      [this, tell] {
        lines.Say("Starting gateway status writer");
        writes_gateway_statuses = options.features.gateway_api_status;
        tell();
      },
      [this, tell] {
        lines.Say("Stopping gateway status writer");
        writes_gateway_statuses = false;
        tell();
      });
  const auto deploy = [this, tell](bool leads) {
    deploys_gateways = leads;
    tell();
  };
  if (options.features.gateway_api_deployments) {
    elections->Join(
        election::kGatewayDeploymentController, [deploy] { deploy(true); }, [deploy] { deploy(false); });
  }
  if (definitions == nullptr) return;
  definitions->WhenServed(std::string(gatewayapi::kGroup), gatewayapi::KindNames(), Guard([this] {
                            GatewayApiParts parts{client, host, configs, discovery, webhook, *crds};
                            parts.registries = registries.get();
                            parts.mesh = [this] { return mesh->mesh(); };
                            parts.reads = [this](std::string_view ns) { return Reads(ns); };
                            gateway_api = MakeGatewayApi(parts, options, RevisionOf(options));
                            gateway_api->SetWriters(writes_gateway_statuses && !leaves_statuses, deploys_gateways);
                            gateway_api->Start();
                          }));
}

// istiod: initStatusController.
void Istiod::Impl::StartStatus() {
  if (!options.status || !options.distribution_tracking) return;
  DistributionReporter::Options with;
  with.ns = options.system_namespace;
  with.pod = options.pod_name.empty() ? options.name : options.pod_name;
  with.interval = options.status_update_interval;
  reporter = std::make_unique<DistributionReporter>(host, client, configs, discovery, std::move(with));
  lines.Say("Starting status follower controller", "status");
  reporter->Start();
  elections->Join(
      election::kStatusController,
      [this] {
        lines.Say("Starting status leader controller", "status");
        status_leader =
            std::make_unique<StatusLeader>(host, client, options.system_namespace, [this] { return crds->Objects(); });
        status_leader->Start();
      },
      [this] { status_leader = nullptr; });
}

// istiod polls, with growing pauses (pkg/kube/client.go, WaitForCacheSync). Once the caches are there, the push context
// must have seen every event that led to them.
void Istiod::Impl::AwaitSync(Duration delay) {
  if (!caches_synced && CachesSynced()) {
    caches_synced = true;
    lines.CachesSynced();
    expected_updates = discovery.inbound_updates();
    delay = 1ms;
  }
  if (caches_synced && discovery.committed_updates() >= expected_updates) {
    discovery.SetReady();
    lines.Ready();
    if (on_started) std::exchange(on_started, nullptr)(absl::OkStatus());
    return;
  }
  const Duration next = std::min<Duration>(delay * 2, 100ms);
  host.RunAfter(next, Guard([this, next] { AwaitSync(next); }));
}

// Of remote clusters only the registries are waited for, and those not longer than their timeout. The injector's
// ConfigMap is read before istiod starts (pilot/pkg/bootstrap/sidecarinjector.go): nothing is injected without it.
bool Istiod::Impl::CachesSynced() const {
  return (injector_config == nullptr || injector_config->HasSynced()) && registries->HasSynced() && crds->HasSynced() &&
         (ingresses == nullptr || ingresses->HasSynced()) && credentials.Synced(options.cluster_id.str()) &&
         (gateway_api == nullptr || gateway_api->HasSynced());
}

void Istiod::Impl::Fail(const absl::Status& status) {
  host.Post(Guard([this, status] {
    if (on_started) std::exchange(on_started, nullptr)(status);
  }));
}

void Istiod::Impl::OnClusterStarted(const ClusterId& id, kube::Client& cluster, bool config_cluster) {
  lines.Cluster(id.str(), config_cluster);
  if (!options.external) lines.ShouldLead(id.str(), false);
  const kube::AccessReviewer* const reviewer =
      surroundings.access_reviewer ? surroundings.access_reviewer(id.str()) : nullptr;
  credentials
      .AddCluster(id.str(),
                  std::make_unique<security::CredentialsController>(host, cluster, reviewer, id.str(), options.seed))
      .Start();
  if (options.mcs.auto_export) {
    std::unique_ptr<ServiceAutoExport>& exports = extras[id].exports;
    exports = std::make_unique<ServiceAutoExport>(
        cluster, host, options.mcs, options.domain_suffix, [this](std::string_view hostname) {
          const bool most_specific = options.profile.Has(Change::kClusterLocalBySpecificity);
          return ClusterLocalHosts(*mesh->mesh(), options.domain_suffix, most_specific).Contains(hostname);
        });
    exports->Start();
  }
  if (config_cluster) return ServeCluster(id, cluster, true);
  if (!options.external) return;
  // An external istiod serves those clusters that name it. Asked once, as in 1.18.2: an annotation that comes later has
  // to wait for the cluster's Secret to change.
  const kube::ListOptions only{.field_selector = "metadata.name=" + options.system_namespace};
  cluster.List(kube::kinds::kNamespace, only, Guard([this, id, &cluster](absl::StatusOr<kube::ObjectList> found) {
                 if (!found.ok()) return;
                 const KubeController* const controller = registries->Find(id);
                 if (controller == nullptr || &controller->client() != &cluster || controller->stopped()) return;
                 bool leads = false;
                 for (const kube::ObjectRef& ns : found->items) {
                   leads |= ns->meta.name == options.system_namespace &&
                            security::ShouldLead(options.cluster_id.str(), id.str(), true, ns.get());
                 }
                 lines.ShouldLead(id.str(), leads);
                 if (leads) ServeCluster(id, cluster, false);
               }));
}

void Istiod::Impl::DistributeRoots(const ClusterId& id, kube::Client& cluster, bool config_cluster) {
  ClusterExtras& extra = extras[id];
  lines.Say(fmt::format("joining leader-election for {} in {} on cluster {}", election::kNamespaceController,
                        options.system_namespace, id.str()),
            "kube");
  if (!config_cluster) extra.elections = MakeElections(id, cluster, true);
  election::ClusterElections& joined = config_cluster ? *elections : *extra.elections;
  joined.Join(
      election::kNamespaceController,
      [this, id, &cluster] {
        lines.Say(fmt::format("starting namespace controller for cluster {}", id.str()), "kube");
        ClusterExtras& of = extras[id];
        of.namespaces = std::make_unique<security::NamespaceController>(
            host, cluster, id.str(), options.seed, [this] { return security_server->bundle_pem(); });
        of.namespaces->LimitTo(options.watch_namespace);
        of.namespaces->Start();
      },
      [this, id] {
        if (const auto of = extras.find(id); of != extras.end()) of->second.namespaces = nullptr;
      });
}

void Istiod::Impl::ServeCluster(const ClusterId& id, kube::Client& cluster, bool config_cluster) {
  // Only an istiod with an authority distributes roots (istiod: pilot/pkg/bootstrap/server.go,
  // shouldStartNsController); its certificate may be somebody else's.
  if (security_server->HasCertificates()) DistributeRoots(id, cluster, config_cluster);
  ClusterExtras& extra = extras[id];
  // Without an election: each revision patches its own. Where INJECTION_WEBHOOK_CONFIG_NAME is empty somebody else does
  // (istiod: pilot/pkg/bootstrap/sidecarinjector.go, pilot/pkg/serviceregistry/kube/controller/multicluster.go).
  if (!options.patches_injection) return;
  extra.webhooks = std::make_unique<WebhookPatcher>(cluster, host, RevisionOf(options),
                                                    [this] { return security_server->bundle_pem(); });
  extra.webhooks->Start();
}

std::unique_ptr<election::ClusterElections> Istiod::Impl::MakeElections(const ClusterId& id, kube::Client& cluster,
                                                                        bool remote) {
  election::ClusterElections::Options with;
  with.ns = options.system_namespace;
  with.identity = options.pod_name.empty() ? options.name : options.pod_name;
  with.revision = RevisionOf(options);
  with.remote = remote;
  with.enabled = options.leader_election;
  with.prioritized = options.prioritized_election;
  with.seed = options.seed;
  auto contested = [this, id] { return surroundings.contested && surroundings.contested(id.str()); };
  return std::make_unique<election::ClusterElections>(host, cluster, std::move(with), std::move(contested),
                                                      surroundings.log);
}

// istiod: initRegistryEventHandlers.
void Istiod::Impl::OnService(const ServiceRef& old, const ServiceRef& now, Event event) {
  const bool resolution_counts = options.profile.Has(Change::kResolutionCounts);
  if (event == Event::kUpdate && old != nullptr && SameService(*old, *now) &&
      (!resolution_counts || old->resolution == now->resolution)) {
    return;
  }
  PushRequest request;
  request.full = true;
  request.configs_updated.insert({ConfigKind::kServiceEntry, now->hostname, now->attributes.ns});
  request.reasons = Reason(TriggerReason::kService);
  discovery.ConfigUpdate(std::move(request));
}

Environment Istiod::Impl::CurrentEnvironment() {
  if (gateway_api != nullptr) gateway_api->Reconsider();
  if (ingresses != nullptr) ingresses->Refresh();
  Environment environment;
  environment.discovery = &registries->aggregate();
  environment.configs = &configs;
  environment.mesh = mesh->mesh();
  environment.networks = mesh->networks();
  environment.gateways = registries->networks().Gateways();
  environment.profile = &options.profile;
  environment.jwks = &key_sets;
  environment.domain_suffix = options.domain_suffix;
  environment.system_namespace = options.system_namespace;
  environment.cluster_id = options.cluster_id;
  environment.features = options.features;
  return environment;
}

bool Istiod::Impl::Idle() const {
  return discovery.ready() && discovery.Idle() && registries->Idle() && crds->Idle() &&
         (ingresses == nullptr || ingresses->Idle()) && (gateway_api == nullptr || gateway_api->Idle()) &&
         std::all_of(extras.begin(), extras.end(),
                     [](const auto& e) { return e.second.webhooks == nullptr || e.second.webhooks->Idle(); });
}

Istiod::Istiod(IstiodSurroundings surroundings, IstiodOptions options)
    : impl_(std::make_unique<Impl>(std::move(surroundings), std::move(options))) {}
Istiod::~Istiod() = default;

void Istiod::Start(absl::AnyInvocable<void(absl::Status)> done) {
  impl_->on_started = std::move(done);
  impl_->Start();
}

bool Istiod::Ready() const { return impl_->discovery.ready(); }
const Profile& Istiod::profile() const { return impl_->options.profile; }

void Istiod::LeaveStatusesToOthers() {
  impl_->leaves_statuses = true;
  if (impl_->gateway_api != nullptr) impl_->gateway_api->SetWriters(false, impl_->deploys_gateways);
}

void Istiod::ReconsiderElections() {
  if (impl_->elections != nullptr) impl_->elections->Reconsider();
  for (const auto& [id, extra] : impl_->extras) {
    if (extra.elections != nullptr) extra.elections->Reconsider();
  }
}

void Istiod::Terminate(std::function<void()> ended) {
  if (impl_->reporter != nullptr) impl_->reporter->Stop();
  std::vector<election::ClusterElections*> joined;
  if (impl_->elections != nullptr) joined.push_back(impl_->elections.get());
  for (const auto& [id, extra] : impl_->extras) {
    if (extra.elections != nullptr) joined.push_back(extra.elections.get());
  }
  const std::function<void()> one = AfterCalls(joined.size() + 1, std::move(ended));
  for (election::ClusterElections* elections : joined) elections->Stop(one);
  one();
}

std::vector<nlohmann::json> Istiod::UnwrittenElections() const {
  return impl_->elections == nullptr ? std::vector<nlohmann::json>() : impl_->elections->Unwritten();
}

bool Istiod::Leads(std::string_view election) const {
  return impl_->elections != nullptr && impl_->elections->Leads(election);
}

bool Istiod::Idle() const { return impl_->Idle(); }

absl::Status Istiod::VerifyClient(const std::vector<x509::CertificateRef>& chain) const {
  return impl_->security_server->VerifyClient(chain);
}

std::unique_ptr<AdsConnection> Istiod::OpenAds(security::PeerCredentials peer, std::string address, AdsStream& stream) {
  AuthenticatePeer authenticate;
  if (peer.address.empty()) peer.address = address;
  if (peer.tls || impl_->options.xds_auth_plaintext) {
    authenticate = [security_server = impl_->security_server, peer = std::move(peer)](auto done) mutable {
      security_server->Authenticate(std::move(peer),
                                    [done = std::move(done)](absl::StatusOr<security::Caller> caller) mutable {
                                      if (!caller.ok()) return done(caller.status());
                                      done(std::move(caller->identities));
                                    });
    };
  }
  return impl_->discovery.Connect({.address = std::move(address)}, stream, std::move(authenticate));
}

void Istiod::CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                               security::CaServer::Done done) {
  impl_->security_server->CreateCertificate(std::move(peer), std::move(request), std::move(done));
}

const security::ServingCertificate* Istiod::serving_certificate() const { return impl_->security_server->serving(); }
const std::string& Istiod::ca_bundle_pem() const { return impl_->security_server->bundle_pem(); }
absl::Status Istiod::mesh_problem() const { return impl_->mesh == nullptr ? absl::OkStatus() : impl_->mesh->status(); }

void Istiod::Admit(std::string path, nlohmann::json review, absl::AnyInvocable<void(nlohmann::json)> done) {
  impl_->Admit(std::move(path), std::move(review), std::move(done));
}

const IstiodOptions& Istiod::options() const { return impl_->options; }
Time Istiod::Now() const { return impl_->host.Now(); }
const config::CrdClient& Istiod::config_objects() const { return *impl_->crds; }
kube::ObjectRef Istiod::injector_config() const {
  if (impl_->injector_config == nullptr) return nullptr;
  return impl_->injector_config->Get(impl_->options.system_namespace, InjectorConfigMapName(impl_->options.revision));
}
const config::MeshConfig& Istiod::mesh_config() const { return *impl_->mesh->mesh(); }
DiscoveryServer& Istiod::discovery() { return impl_->discovery; }
const DiscoveryServer& Istiod::discovery() const { return impl_->discovery; }
Registries& Istiod::registries() { return *impl_->registries; }
const Registries& Istiod::registries() const { return *impl_->registries; }

}  // namespace wavetank::pilot
