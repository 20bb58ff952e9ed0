#include "core/config/mesh/mesh_text.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::config {
namespace {

using Json = nlohmann::ordered_json;

// istiod: pkg/config/mesh, DefaultMeshConfig, as protobuf's JSON mapping prints it.
const Json& MeshDefaults() {
  static const auto* const defaults = new Json{
      {"proxyListenPort", 15001},
      {"proxyInboundListenPort", 15006},
      {"connectTimeout", "10s"},
      {"protocolDetectionTimeout", "0s"},
      {"ingressClass", "istio"},
      {"ingressService", "istio-ingressgateway"},
      {"ingressControllerMode", "STRICT"},
      {"enableTracing", true},
      {"defaultConfig",
       {{"configPath", "./etc/istio/proxy"},
        {"binaryPath", "/usr/local/bin/envoy"},
        {"serviceCluster", "istio-proxy"},
        {"drainDuration", "45s"},
        {"discoveryAddress", "istiod.istio-system.svc:15012"},
        {"proxyAdminPort", 15000},
        {"controlPlaneAuthPolicy", "MUTUAL_TLS"},
        {"statNameLength", 189},
        {"tracing", {{"zipkin", {{"address", "zipkin.istio-system:9411"}}}}},
        {"statusPort", 15020},
        {"terminationDrainDuration", "5s"}}},
      {"outboundTrafficPolicy", {{"mode", "ALLOW_ANY"}}},
      {"enableAutoMtls", true},
      {"trustDomain", "cluster.local"},
      {"defaultServiceExportTo", {"*"}},
      {"defaultVirtualServiceExportTo", {"*"}},
      {"defaultDestinationRuleExportTo", {"*"}},
      {"rootNamespace", "istio-system"},
      {"localityLbSetting", {{"enabled", true}}},
      {"dnsRefreshRate", "60s"},
      {"enablePrometheusMerge", true},
      {"extensionProviders", Json::array({{{"name", "prometheus"}, {"prometheus", Json::object()}},
                                          {{"name", "stackdriver"}, {"stackdriver", Json::object()}},
                                          {{"name", "envoy"}, {"envoyFileAccessLog", {{"path", "/dev/stdout"}}}}})},
      {"defaultProviders", Json::object()}};
  return *defaults;
}

// What is given goes into what is there; a list replaces the one of its name, as the messages' decoder does.
void Overlay(const nlohmann::json& given, Json& out) {
  for (const auto& [name, value] : given.items()) {
    if (value.is_null()) continue;
    if (value.is_object() && out.contains(name) && out[name].is_object()) {
      Overlay(value, out[name]);
    } else {
      out[name] = value;
    }
  }
}

// Providers of the defaults stay, those that are given replace the one of their name or follow (istiod:
// pkg/config/mesh, ApplyMeshConfig).
void KeepDefaultProviders(Json& mesh) {
  Json all = MeshDefaults()["extensionProviders"];
  for (Json& provider : mesh["extensionProviders"]) {
    if (!provider.is_object()) continue;
    const auto same = std::find_if(all.begin(), all.end(), [&](const Json& other) {
      return provider.contains("name") && other.contains("name") && other["name"] == provider["name"];
    });
    if (same == all.end()) {
      all.push_back(std::move(provider));
    } else {
      *same = std::move(provider);
    }
  }
  mesh["extensionProviders"] = std::move(all);
}

// golang/protobuf: jsonpb, Marshaler with Indent.
void Print(const Json& value, size_t depth, std::string& out) {
  const bool object = value.is_object();
  if (!object && !value.is_array()) {
    out += JsonText(value);
    return;
  }
  const auto line = [&](size_t level) { out += '\n' + std::string(4 * level, ' '); };
  out += object ? '{' : '[';
  if (value.empty()) out += '\n';
  bool first = true;
  for (const auto& [name, item] : value.items()) {
    if (!first) out += ',';
    first = false;
    line(depth + 1);
    if (object) out += JsonText(Json(name)) + ": ";
    Print(item, depth + 1, out);
  }
  line(depth);
  out += object ? '}' : ']';
}

std::string Text(const Json& value) {
  std::string out;
  Print(value, 0, out);
  return out;
}

}  // namespace

Json MeshConfigJson(const MeshConfig& mesh) {
  Json out = MeshDefaults();
  if (mesh.raw.is_object()) Overlay(mesh.raw, out);
  if (At(mesh.raw, "extensionProviders").is_array()) KeepDefaultProviders(out);
  return out;
}

std::string MeshConfigText(const MeshConfig& mesh) { return Text(MeshConfigJson(mesh)); }

std::string MeshNetworksText(const MeshNetworks& networks) {
  Json out = Json::object();
  for (const auto& [name, network] : networks.networks) {
    Json one = Json::object();
    for (const MeshNetworks::Endpoint& endpoint : network.endpoints) {
      const bool registry = !endpoint.from_registry.empty();
      one["endpoints"].push_back(
          {{registry ? "fromRegistry" : "fromCidr", registry ? endpoint.from_registry : endpoint.from_cidr}});
    }
    for (const MeshNetworks::Gateway& gateway : network.gateways) {
      Json entry = Json::object();
      if (!gateway.registry_service_name.empty()) entry["registryServiceName"] = gateway.registry_service_name;
      if (!gateway.address.empty()) entry["address"] = gateway.address;
      entry["port"] = gateway.port;
      if (!gateway.locality.empty()) entry["locality"] = gateway.locality;
      one["gateways"].push_back(std::move(entry));
    }
    out["networks"][name] = std::move(one);
  }
  return Text(out);
}

}  // namespace wavetank::config
