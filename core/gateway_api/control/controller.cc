#include "core/gateway_api/control/controller.h"

#include <algorithm>
#include <chrono>

#include "core/base/json_access.h"
#include "core/gateway_api/classes.h"
#include "core/gateway_api/control/conversion.h"
#include "core/gateway_api/control/deployment.h"
#include "core/gateway_api/gateways.h"
#include "core/kube/time_format.h"
#include "core/profile/changes.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

// istiod: pilot/pkg/credentials/kube, SecretsFieldSelector.
constexpr const char* kSecrets = "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token";

// A Deployment's selector never changes: one of before 1.24 goes on to select by the label that its pods then keep.
void KeepSelector(const kube::Object& there, json& wanted) {
  constexpr const char* kOldLabel = "istio.io/gateway-name";
  const json& old = At(there.body, {"spec", "selector", "matchLabels", kOldLabel});
  if (there.kind != "Deployment" || !old.is_string()) return;
  wanted["spec"]["selector"] = At(there.body, {"spec", "selector"});
  wanted["spec"]["template"]["metadata"]["labels"][kOldLabel] = old;
}

bool SameConfig(const kube::Object& a, const kube::Object& b) { return a.body == b.body; }

}  // namespace

Controller::Controller(kube::Client& client, Host& host, config::ConfigStore& store, Surroundings surroundings,
                       Options options)
    : client_(client),
      host_(host),
      store_(store),
      surroundings_(std::move(surroundings)),
      options_(std::move(options)) {
  Watch(kinds::kGatewayClass);
  Watch(kinds::kGateway);
  Watch(kinds::kHttpRoute);
  if (options_.profile.Has(pilot::Change::kGatewayApiGrpcRoutes)) Watch(kinds::kGrpcRoute);
  Watch(kinds::kTlsRoute);
  if (options_.alpha) Watch(kinds::kTcpRoute);
  if (options_.profile.Has(pilot::Change::kGatewayApiListenerSets)) Watch(kinds::kListenerSet);
  Watch(kinds::kReferenceGrant);
  if (options_.profile.Has(pilot::Change::kGatewayApiBackendTls)) {
    Watch(kinds::kBackendTlsPolicy);
    Watch(kube::kinds::kConfigMap);
  }
  Watch(kube::kinds::kService);
  Watch(kube::kinds::kSecret, {.field_selector = kSecrets});
  Watch(kube::kinds::kNamespace);
  Watch(kube::kinds::kServiceEntry);
  Watch(kube::kinds::kDeployment);
  Watch(kube::kinds::kServiceAccount);
}

Controller::~Controller() = default;

void Controller::Watch(const kube::ResourceKind& kind, kube::ListOptions list) {
  auto informer = std::make_unique<kube::Informer>(client_, host_, kind, std::move(list));
  const auto on = [this](const kube::ObjectRef&) {
    ++events_;
    Reconsider();
  };
  informer->AddHandler({.on_add = on,
                        .on_update = [on](const kube::ObjectRef&, const kube::ObjectRef& now) { on(now); },
                        .on_delete = on});
  informers_.emplace(kind.kind, std::move(informer));
}

const kube::Informer& Controller::Of(std::string_view kind) const { return *informers_.at(kind); }

void Controller::Start() {
  for (const auto& [kind, informer] : informers_) {
    informer->OnSynced([this] { MaybeSynced(); });
    informer->Start();
  }
}

void Controller::MaybeSynced() {
  synced_ = std::all_of(informers_.begin(), informers_.end(), [](const auto& one) { return one.second->HasSynced(); });
  if (synced_) Reconsider();
}

void Controller::Reconsider() {
  if (!synced_ || scheduled_) return;
  scheduled_ = true;
  host_.Post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) Run();
  });
}

Inputs Controller::MakeInputs() {
  Inputs in;
  const std::vector<kube::ObjectRef> namespaces = Of("Namespace").List();
  const bool reads_all = !surroundings_.reads ||
                         std::all_of(namespaces.begin(), namespaces.end(),
                                     [this](const kube::ObjectRef& ns) { return surroundings_.reads(ns->meta.name); });
  read_.clear();
  for (const auto& [kind, informer] : informers_) {
    if (reads_all) {
      in.objects[kind] = &informer->objects();
      continue;
    }
    kube::NamedObjects& some = read_[kind];
    for (const kube::ObjectRef& object : informer->List()) {
      if (object->meta.ns.empty() || surroundings_.reads(object->meta.ns)) some.Put(object);
    }
    in.objects[kind] = &some;
  }
  in.domain_suffix = options_.domain_suffix;
  const auto since = std::chrono::floor<std::chrono::seconds>(host_.Now().time_since_epoch());
  in.now = kube::FormatRfc3339(kWorldEpochUnixSeconds + since.count());
  in.alpha = options_.alpha;
  in.profile = options_.profile;
  in.instances = surroundings_.instances;
  in.has_service = surroundings_.has_service;
  return in;
}

void Controller::Run() {
  scheduled_ = false;
  const Inputs in = MakeInputs();
  Outputs outputs = Convert(in);
  converted_ = true;
  Store(std::move(outputs.configs));
  MakeClasses();
  if (writes_statuses_) WriteStatuses(outputs);
  if (deploys_) Deploy(in);
}

void Controller::SetWriters(bool statuses, bool deployments) {
  const bool more = (statuses && !writes_statuses_) || (deployments && !deploys_);
  writes_statuses_ = statuses;
  deploys_ = deployments;
  if (more) Reconsider();
}

// Both lists are sorted alike.
void Controller::Store(std::vector<kube::ObjectRef> configs) {
  const std::vector<kube::ObjectRef> before = std::exchange(configs_, std::move(configs));
  std::map<std::string, kube::ObjectRef> old;
  for (const kube::ObjectRef& config : before) old.emplace(config->Key(), config);
  for (const kube::ObjectRef& config : configs_) {
    const auto known = old.find(config->Key());
    const bool same = known != old.end() && SameConfig(*known->second, *config);
    if (known != old.end()) old.erase(known);
    if (same) continue;
    // What cannot be read would be a fault of the conversion; it is then as if it were not there.
    if (absl::StatusOr<config::AnyConfigRef> read = config::ParseConfig(*config); read.ok()) {
      store_.Put(*std::move(read));
    } else {
      Drop(*config);
    }
  }
  for (const auto& [key, config] : old) Drop(*config);
}

void Controller::Drop(const kube::Object& config) {
  const config::Kind kind = config.kind == "Gateway"           ? config::Kind::kGateway
                            : config.kind == "DestinationRule" ? config::Kind::kDestinationRule
                                                               : config::Kind::kVirtualService;
  store_.Delete(kind, config.meta.name, config.meta.ns);
}

void Controller::WriteStatuses(const Outputs& outputs) {
  for (const auto& [key, status] : outputs.statuses) {
    const kube::ObjectRef object = Of(key.kind).Get(key.ns, key.name);
    if (object == nullptr || object->meta.deleting || !IsMine(*object)) continue;
    if (At(object->body, "status") == status) continue;
    // One writing of a version is enough: what it brings comes as another one.
    auto& [version, last] = written_[key];
    if (version == object->meta.resource_version && last == status) continue;
    version = object->meta.resource_version;
    last = status;
    json body = object->body;
    body["status"] = status;
    Write(key, std::move(body));
  }
}

void Controller::MakeClasses() {
  for (const BuiltInClass& wanted : BuiltInClasses(options_.profile)) {
    if (Of("GatewayClass").Get("", wanted.name) != nullptr) continue;
    const StatusKey key{"GatewayClass", "", std::string(wanted.name)};
    auto& [version, last] = written_[key];
    if (version != 0) continue;  // under way, or somebody deleted it; the next start makes it again
    version = -1;
    Write(key,
          {{"apiVersion", "gateway.networking.k8s.io/v1"},
           {"kind", "GatewayClass"},
           {"metadata", {{"name", std::string(wanted.name)}}},
           {"spec",
            {{"controllerName", std::string(wanted.controller)}, {"description", std::string(wanted.description)}}}});
  }
}

// istiod: revisions.TagWatcher.IsMine. Tags of revisions are not looked at.
bool Controller::IsMine(const kube::Object& object) const {
  constexpr std::string_view kRevision = "istio.io/rev";
  const auto of = [&](const kube::Labels& labels) {
    const auto it = labels.find(kRevision);
    return it == labels.end() ? std::string() : it->second;
  };
  std::string wanted = of(object.meta.labels);
  if (wanted.empty()) {
    const kube::ObjectRef ns = Of("Namespace").Get("", object.meta.ns);
    if (ns != nullptr) wanted = of(ns->meta.labels);
  }
  return wanted.empty() ? options_.revision == "default" : wanted == options_.revision;
}

void Controller::Deploy(const Inputs& in) {
  DeployedFor now{events_, surroundings_.mesh(), surroundings_.injection().values, surroundings_.proxy_configs()};
  if (deployed_for_ == now) return;
  deployed_for_ = std::move(now);
  ++renderings_;
  const config::MeshConfigRef& mesh = deployed_for_->mesh;
  const std::vector<kube::ObjectRef>& proxy_configs = deployed_for_->proxy_configs;
  const DeploymentData data{in,
                            surroundings_.injection(),
                            *mesh,
                            proxy_configs,
                            options_.revision,
                            options_.cluster_id,
                            mesh->root_namespace};
  for (const kube::ObjectRef& gateway : in.Of("Gateway")) {
    const json& spec = At(gateway->body, "spec");
    if (gateway->meta.deleting || !IsManaged(spec) || !IsMine(*gateway)) continue;
    if (ControllerOf(in, Text(spec, "gatewayClassName")) != kController) continue;
    std::vector<json> objects = RenderGateway(*gateway, data);
    for (json& wanted : objects) ApplyOver(std::move(wanted));
  }
}

// What was there and has vanished is made again after a while: it may have gone with its Gateway, whose own end is then
// on its way. (Kubernetes' collector takes that while; here dependents go in the owner's instant.)
bool Controller::MayMake(const StatusKey& key, bool there) {
  constexpr Duration kCollected = 1s;
  if (there) {
    vanished_[key] = std::nullopt;
    return true;
  }
  const auto known = vanished_.find(key);
  if (known == vanished_.end()) return true;
  if (!known->second) {
    known->second = host_.Now();
    host_.RunAfter(kCollected, [this, alive = std::weak_ptr<char>(alive_)] {
      if (alive.expired()) return;
      ++events_;
      Reconsider();
    });
    return false;
  }
  if (host_.Now() - *known->second < kCollected) return false;
  vanished_.erase(known);
  written_.erase(key);
  return true;
}

void Controller::ApplyOver(json wanted) {
  const json& meta = At(wanted, "metadata");
  const std::string kind = Text(wanted, "kind"), ns = Text(meta, "namespace"), name = Text(meta, "name");
  const kube::ObjectRef there = Of(kind).Get(ns, name);
  if (!MayMake({kind, ns, name}, there != nullptr)) return;
  if (there != nullptr && !there->meta.labels.contains("gateway.istio.io/managed")) return;  // somebody else's
  if (there != nullptr) KeepSelector(*there, wanted);
  if (there != nullptr && (there->meta.deleting || Covers(there->body, wanted))) return;
  // One writing of a version; the answer comes as another.
  const StatusKey key{kind, ns, name};
  auto& [version, last] = written_[key];
  const int64_t now = there == nullptr ? -1 : there->meta.resource_version;
  if (version == now && last == wanted) return;
  version = now;
  last = wanted;
  Write(key, there == nullptr ? wanted : Overlaid(there->body, wanted));
}

void Controller::Write(const StatusKey& key, json body) {
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) return;  // made of an object that could be read
  ++under_way_;
  client_.Apply(*std::move(object),
                [this, key, alive = std::weak_ptr<char>(alive_)](const absl::StatusOr<kube::ObjectRef>& r) {
                  if (alive.expired()) return;
                  --under_way_;
                  // A conflict comes with a newer version, which is looked at by itself; what failed otherwise is tried
                  // again with the next event or push.
                  if (r.ok()) return;
                  written_.erase(key);
                  ++events_;
                });
}

}  // namespace wavetank::gatewayapi
