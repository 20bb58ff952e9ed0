#include "core/config/store/store.h"

#include <algorithm>
#include <tuple>

#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/config/kinds/read_message.h"

namespace wavetank::config {
namespace {

template <typename Spec>
absl::StatusOr<AnyConfigRef> Parse(Kind kind, const kube::Object& object) {
  auto config = std::make_shared<TypedConfig<Spec>>();
  config->meta = {.kind = kind,
                  .name = object.meta.name,
                  .ns = object.meta.ns,
                  .labels = object.meta.labels,
                  .annotations = object.meta.annotations,
                  .has_labels = At(At(object.body, "metadata"), "labels").is_object(),
                  .creation_unix_seconds = object.meta.creation_unix_seconds,
                  .generation = object.meta.generation,
                  .resource_version = object.meta.resource_version,
                  .uid = object.meta.uid};
  const auto spec = object.body.find("spec");
  if (spec != object.body.end() && !spec->is_null()) {
    absl::Status status;
    ProtoJson fields(*spec, object.Key() + ": spec", status);
    if (status.ok()) ReadMessage(fields, config->spec);
    if (!status.ok()) return status;
  }
  return AnyConfigRef(TypedConfigRef<Spec>(std::move(config)));
}

bool SpeaksOfIstio(const Labels& labels) {
  return std::any_of(labels.begin(), labels.end(),
                     [](const auto& label) { return label.first.find("istio.io") != std::string::npos; });
}

bool Holds(const AnyConfigRef& config) {
  return std::visit([](const auto& ref) { return ref != nullptr; }, config);
}

}  // namespace

const ConfigMeta& MetaOf(const AnyConfigRef& config) {
  return std::visit([](const auto& ref) -> const ConfigMeta& { return ref->meta; }, config);
}

bool SameSpec(const AnyConfigRef& a, const AnyConfigRef& b) {
  return std::visit(
      [&](const auto& left) {
        const auto* right = std::get_if<std::decay_t<decltype(left)>>(&b);
        return right != nullptr && (left == *right || left->spec == (*right)->spec);
      },
      a);
}

bool NeedsPush(const AnyConfigRef& old, const AnyConfigRef& now) {
  for (const AnyConfigRef* config : {&old, &now}) {
    const ConfigMeta& meta = MetaOf(*config);
    if (SpeaksOfIstio(meta.labels) || SpeaksOfIstio(meta.annotations)) return true;
  }
  return !SameSpec(old, now);
}

absl::StatusOr<AnyConfigRef> ParseConfig(const kube::Object& object) {
  const auto is = [&](Kind kind) { return object.kind == KindName(kind); };
  if (is(Kind::kAuthorizationPolicy)) return Parse<AuthorizationPolicy>(Kind::kAuthorizationPolicy, object);
  if (is(Kind::kDestinationRule)) return Parse<DestinationRule>(Kind::kDestinationRule, object);
  if (is(Kind::kEnvoyFilter)) return Parse<EnvoyFilter>(Kind::kEnvoyFilter, object);
  if (is(Kind::kGateway)) return Parse<Gateway>(Kind::kGateway, object);
  if (is(Kind::kPeerAuthentication)) return Parse<PeerAuthentication>(Kind::kPeerAuthentication, object);
  if (is(Kind::kRequestAuthentication)) return Parse<RequestAuthentication>(Kind::kRequestAuthentication, object);
  if (is(Kind::kServiceEntry)) return Parse<ServiceEntry>(Kind::kServiceEntry, object);
  if (is(Kind::kSidecar)) return Parse<Sidecar>(Kind::kSidecar, object);
  if (is(Kind::kTelemetry)) return Parse<Telemetry>(Kind::kTelemetry, object);
  if (is(Kind::kVirtualService)) return Parse<VirtualService>(Kind::kVirtualService, object);
  if (is(Kind::kWasmPlugin)) return Parse<WasmPlugin>(Kind::kWasmPlugin, object);
  if (is(Kind::kWorkloadEntry)) return Parse<WorkloadEntry>(Kind::kWorkloadEntry, object);
  return absl::InvalidArgumentError(object.Key() + ": not an Istio configuration that this control plane reads");
}

template <typename Spec>
TypedConfigRef<Spec> ConfigStore::Table<Spec>::Put(TypedConfigRef<Spec> config) {
  WAVETANK_ASSERT(config != nullptr);
  dirty_ = true;
  return std::exchange(by_key_[{config->meta.ns, config->meta.name}], std::move(config));
}

template <typename Spec>
TypedConfigRef<Spec> ConfigStore::Table<Spec>::Delete(std::string_view ns, std::string_view name) {
  const auto it = by_key_.find({std::string(ns), std::string(name)});
  if (it == by_key_.end()) return nullptr;
  TypedConfigRef<Spec> last = std::move(it->second);
  by_key_.erase(it);
  dirty_ = true;
  return last;
}

template <typename Spec>
const std::vector<TypedConfigRef<Spec>>& ConfigStore::Table<Spec>::Sorted() const {
  if (!std::exchange(dirty_, false)) return sorted_;
  sorted_.clear();
  for (const auto& [key, config] : by_key_) {
    WAVETANK_ASSERT(config->meta.name == key.second, config->meta.name, key.second);  // found under what it is called
    sorted_.push_back(config);
  }
  std::sort(sorted_.begin(), sorted_.end(), [this](const auto& a, const auto& b) {
    if (a->meta.creation_unix_seconds != b->meta.creation_unix_seconds) {
      return a->meta.creation_unix_seconds < b->meta.creation_unix_seconds;
    }
    if (tie_ == Tie::kName) return std::tie(a->meta.name, a->meta.ns) < std::tie(b->meta.name, b->meta.ns);
    return a->meta.name + "." + a->meta.ns < b->meta.name + "." + b->meta.ns;
  });
  return sorted_;
}

template <typename Spec>
void ConfigStore::Table<Spec>::SetTie(Tie tie) {
  tie_ = tie;
  dirty_ = true;
}

// EnvoyFilters are left out: initEnvoyFilters has an order of its own, and has kept it (1.30.3).
void ConfigStore::SetTie(Tie tie) {
  authorization_policies_.SetTie(tie);
  destination_rules_.SetTie(tie);
  gateways_.SetTie(tie);
  peer_authentications_.SetTie(tie);
  request_authentications_.SetTie(tie);
  service_entries_.SetTie(tie);
  sidecars_.SetTie(tie);
  telemetries_.SetTie(tie);
  virtual_services_.SetTie(tie);
  wasm_plugins_.SetTie(tie);
  workload_entries_.SetTie(tie);
}

template class ConfigStore::Table<AuthorizationPolicy>;
template class ConfigStore::Table<DestinationRule>;
template class ConfigStore::Table<EnvoyFilter>;
template class ConfigStore::Table<Gateway>;
template class ConfigStore::Table<PeerAuthentication>;
template class ConfigStore::Table<RequestAuthentication>;
template class ConfigStore::Table<ServiceEntry>;
template class ConfigStore::Table<Sidecar>;
template class ConfigStore::Table<Telemetry>;
template class ConfigStore::Table<VirtualService>;
template class ConfigStore::Table<WasmPlugin>;
template class ConfigStore::Table<WorkloadEntry>;

AnyConfigRef ConfigStore::Replace(AnyConfigRef config) {
  return std::visit([&](auto& ref) -> AnyConfigRef { return TableOf(ref).Put(std::move(ref)); }, config);
}

AnyConfigRef ConfigStore::Erase(Kind kind, std::string_view name, std::string_view ns) {
  switch (kind) {
    case Kind::kAuthorizationPolicy:
      return authorization_policies_.Delete(ns, name);
    case Kind::kDestinationRule:
      return destination_rules_.Delete(ns, name);
    case Kind::kEnvoyFilter:
      return envoy_filters_.Delete(ns, name);
    case Kind::kGateway:
      return gateways_.Delete(ns, name);
    case Kind::kPeerAuthentication:
      return peer_authentications_.Delete(ns, name);
    case Kind::kRequestAuthentication:
      return request_authentications_.Delete(ns, name);
    case Kind::kServiceEntry:
      return service_entries_.Delete(ns, name);
    case Kind::kSidecar:
      return sidecars_.Delete(ns, name);
    case Kind::kTelemetry:
      return telemetries_.Delete(ns, name);
    case Kind::kVirtualService:
      return virtual_services_.Delete(ns, name);
    case Kind::kWasmPlugin:
      return wasm_plugins_.Delete(ns, name);
    case Kind::kWorkloadEntry:
      break;
  }
  return workload_entries_.Delete(ns, name);
}

void ConfigStore::Put(AnyConfigRef config) {
  const AnyConfigRef old = Replace(config);
  if (Holds(old)) {
    Notify(ConfigEvent::kUpdate, &old, config);
  } else {
    Notify(ConfigEvent::kAdd, nullptr, config);
  }
}

void ConfigStore::Delete(Kind kind, std::string_view name, std::string_view ns) {
  const AnyConfigRef last = Erase(kind, name, ns);
  if (Holds(last)) Notify(ConfigEvent::kDelete, nullptr, last);
}

void ConfigStore::Notify(ConfigEvent event, const AnyConfigRef* old, const AnyConfigRef& now) const {
  WAVETANK_ASSERT((event == ConfigEvent::kUpdate) == (old != nullptr), event);  // handlers compare with what was
  for (const ConfigHandler& handler : handlers_[static_cast<int>(MetaOf(now).kind)]) handler(event, old, now);
}

void ConfigStore::AddHandler(Kind kind, ConfigHandler handler) {
  handlers_[static_cast<int>(kind)].push_back(std::move(handler));
}

}  // namespace wavetank::config
