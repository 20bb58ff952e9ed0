#include "core/debug/generated.h"

#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/config/store/store.h"
#include "core/debug/go_text.h"
#include "core/envoyapi/json_printer.h"
#include "core/istiod/istiod.h"
#include "core/push/push_context.h"
#include "core/xds/discovery_server.h"

namespace wavetank::debug {
namespace {

using Json = nlohmann::ordered_json;
using pilot::Connection;
using pilot::XdsType;

constexpr std::string_view kWasm = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
constexpr const char* kPullSecret = "ISTIO_META_WASM_IMAGE_PULL_SECRET";

// The value at a path of members; null: it is not there.
Json* Find(Json& in, std::initializer_list<const char*> path) {
  Json* at = &in;
  for (const char* name : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(name);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

// istiod: pilot/pkg/xds/debug.go, getConfigDumpByResourceType.
void RedactSecret(Json& secret) {
  if (Json* const certificate = Find(secret, {"tlsCertificate"})) {
    (*certificate)["privateKey"] = {{"inlineBytes", absl::Base64Escape("[redacted]")}};
  }
}
void OpenExtension(Generated& extension) {
  Json* const typed = Find(extension.json, {"typedConfig"});
  if (typed == nullptr || typed->value("@type", "") != kWasm) return;
  Json wasm = std::move(*typed);
  Json* const variables = Find(wasm, {"config", "vmConfig", "environmentVariables", "keyValues"});
  if (variables != nullptr && variables->contains(kPullSecret)) (*variables)[kPullSecret] = "<Redacted>";
  extension.json = std::move(wasm);
}

std::string AdminType(const char* name) { return std::string("type.googleapis.com/envoy.admin.v3.") + name; }

// {"@type", "versionInfo"} of one section; lists follow if they hold anything, as protobuf's mapping leaves out what
// is empty.
Json Section(const char* type) { return {{"@type", AdminType(type)}}; }
void PutList(Json& section, const char* name, Json list) {
  if (!list.empty()) section[name] = std::move(list);
}

Json Wrapped(std::vector<Generated> resources, const char* name, const std::string& version) {
  Json out = Json::array();
  for (Generated& resource : resources) {
    out.push_back({{"versionInfo", version}, {name, std::move(resource.json)}});
  }
  return out;
}

Json ClustersSection(std::vector<Generated> clusters, const std::string& version) {
  Json out = Section("ClustersConfigDump");
  out["versionInfo"] = version;
  Json list = Json::array();
  for (Generated& cluster : clusters) list.push_back({{"cluster", std::move(cluster.json)}});
  PutList(out, "dynamicActiveClusters", std::move(list));
  return out;
}

Json ListenersSection(std::vector<Generated> listeners, const std::string& version) {
  Json out = Section("ListenersConfigDump");
  out["versionInfo"] = version;
  Json list = Json::array();
  for (Generated& listener : listeners) {
    list.push_back(
        {{"name", listener.name}, {"activeState", {{"versionInfo", version}, {"listener", std::move(listener.json)}}}});
  }
  PutList(out, "dynamicListeners", std::move(list));
  return out;
}

constexpr std::pair<pilot::XdsCache::Type, XdsType> kCached[] = {{pilot::XdsCache::Type::kCds, XdsType::kCds},
                                                                 {pilot::XdsCache::Type::kEds, XdsType::kEds},
                                                                 {pilot::XdsCache::Type::kRds, XdsType::kRds},
                                                                 {pilot::XdsCache::Type::kSds, XdsType::kSds}};

// `push`: null for what the proxy was last served from.
pilot::GeneratedResources Ask(const pilot::Istiod& istiod, const Connection& connection, XdsType type,
                              const pilot::PushContextRef& push = nullptr) {
  const pilot::Proxy& proxy = connection.proxy();
  pilot::Generator* const generator = istiod.discovery().FindGenerator(type, proxy);
  const auto watched = proxy.watched_resources.find(type);
  pilot::PushRequest request;
  request.full = true;
  request.push = push != nullptr                     ? push
                 : connection.last_push() != nullptr ? connection.last_push()
                                                     : istiod.discovery().last_push_context();
  // Without a time of its beginning nothing that is made for it may be cached.
  if (generator == nullptr || request.push == nullptr) return {};
  if (watched == proxy.watched_resources.end()) {
    if (type != XdsType::kNds) return {};
    pilot::WatchedResource all;
    all.type = type;
    all.wildcard = true;
    return generator->Generate(proxy, all, request);
  }
  return generator->Generate(proxy, watched->second, request);
}

}  // namespace

namespace {

std::vector<Generated> Opened(XdsType type, const pilot::GeneratedResources& generated) {
  std::vector<std::string_view> bytes;
  for (const pilot::Resource& resource : generated.resources) bytes.emplace_back(*resource.bytes);
  std::vector<Json> json = pilot::EnvoyJson(pilot::TypeUrl(type), bytes);
  std::vector<Generated> out;
  for (size_t i = 0; i < json.size(); ++i) {
    Generated one{std::string(generated.resources[i].name), std::move(json[i])};
    if (type == XdsType::kSds) RedactSecret(one.json);
    if (type == XdsType::kEcds) OpenExtension(one);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<Generated> Generate(const pilot::Istiod& istiod, const Connection& connection, XdsType type) {
  return Opened(type, Ask(istiod, connection, type));
}

struct Unpatched::Impl {
  explicit Impl(const pilot::Istiod& of) : istiod(of) {}

  const pilot::Istiod& istiod;
  config::ConfigStore configs;
  pilot::PushContextRef push;  // null: none is in force
};

Unpatched::Unpatched(const pilot::Istiod& istiod) : impl_(std::make_unique<Impl>(istiod)) {
  const pilot::PushContextRef& now = istiod.discovery().last_push_context();
  if (now == nullptr || now->env().configs == nullptr) return;
  impl_->configs = *now->env().configs;
  for (const config::EnvoyFilterRef& filter : now->env().configs->EnvoyFilters())
    impl_->configs.Erase(config::Kind::kEnvoyFilter, filter->meta.name, filter->meta.ns);
  pilot::Environment environment = now->env();
  environment.configs = &impl_->configs;
  pilot::PushRequest everything;
  everything.full = true;
  impl_->push = pilot::PushContext::Create(environment, nullptr, everything, now->version());
}

Unpatched::~Unpatched() = default;

std::vector<Generated> Unpatched::Generate(const Connection& connection, XdsType type) const {
  if (impl_->push == nullptr) return {};
  return Opened(type, Ask(impl_->istiod, connection, type, impl_->push));
}

// istiod: connectionConfigDump.
Json ConfigDump(const pilot::Istiod& istiod, const Connection& connection, bool include_eds) {
  const pilot::PushContextRef& push =
      connection.last_push() != nullptr ? connection.last_push() : istiod.discovery().last_push_context();
  const std::string version = push == nullptr ? "" : push->version();
  const auto of = [&](XdsType type) { return Generate(istiod, connection, type); };
  Json configs = Json::array({Section("BootstrapConfigDump")});
  configs.push_back(ClustersSection(of(XdsType::kCds), version));
  if (include_eds) {
    Json endpoints = Section("EndpointsConfigDump");
    PutList(endpoints, "dynamicEndpointConfigs", Wrapped(of(XdsType::kEds), "endpointConfig", version));
    configs.push_back(std::move(endpoints));
  }
  configs.push_back(ListenersSection(of(XdsType::kLds), version));
  configs.push_back(Section("ScopedRoutesConfigDump"));
  Json routes = Section("RoutesConfigDump");
  PutList(routes, "dynamicRouteConfigs", Wrapped(of(XdsType::kRds), "routeConfig", version));
  configs.push_back(std::move(routes));
  Json secrets = Section("SecretsConfigDump");
  PutList(secrets, "dynamicActiveSecrets", Wrapped(of(XdsType::kSds), "secret", version));
  configs.push_back(std::move(secrets));
  Json extensions = Section("EcdsConfigDump");
  PutList(extensions, "ecdsFilters", Wrapped(of(XdsType::kEcds), "ecdsFilter", version));
  configs.push_back(std::move(extensions));
  return {{"configs", std::move(configs)}};
}

Json DumpOfType(const pilot::Istiod& istiod, const Connection& connection, XdsType type) {
  Json out = Json::array();
  for (Generated& resource : Generate(istiod, connection, type)) out.push_back(std::move(resource.json));
  return out;
}

Json Ndsz(const pilot::Istiod& istiod, const Connection& connection) {
  for (Generated& table : Generate(istiod, connection, XdsType::kNds)) {
    return {{"name", table.name}, {"resource", std::move(table.json)}};
  }
  return nullptr;
}

// istiod: pilot/pkg/xds/endpoint_builder.go counts a cluster that has no locality with an endpoint.
Json PushStatus(const pilot::Istiod& istiod) {
  std::map<std::string, Json> empty;
  for (const Connection* connection : istiod.discovery().Clients()) {
    for (const Generated& endpoints : Generate(istiod, *connection, XdsType::kEds)) {
      if (!endpoints.json.contains("endpoints")) empty[endpoints.name] = Json::object();
    }
  }
  Json out = Json::object();
  if (empty.empty()) return out;
  Json& clusters = out["pilot_eds_no_instances"] = Json::object();
  for (const auto& [name, nothing] : empty) clusters[name] = nothing;
  return out;
}

Json Cachez(const pilot::Istiod& istiod) {
  std::map<std::string, Json> names;
  for (const auto& [cached, type] : kCached) {
    for (const pilot::Resource& resource : istiod.discovery().cache().Snapshot(cached)) {
      names[std::string(pilot::TypeUrl(type))].push_back(resource.name);
    }
  }
  Json out = Json::object();
  for (auto& [type, list] : names) out[type] = std::move(list);
  return out;
}

// 1.18.2 writes the sizes of a type's resources one behind the other.
Json CacheSizes(const pilot::Istiod& istiod) {
  std::map<std::string, std::string> sizes;
  int64_t total = 0;
  for (const auto& [cached, type] : kCached) {
    for (const pilot::Resource& resource : istiod.discovery().cache().Snapshot(cached)) {
      const auto size = static_cast<int64_t>(resource.bytes->size());
      sizes[std::string(pilot::TypeUrl(type))] += ByteCount(size);
      total += size;
    }
  }
  sizes["total"] = ByteCount(total);
  Json out = Json::object();
  for (const auto& [type, size] : sizes) out[type] = size;
  return out;
}

}  // namespace wavetank::debug
