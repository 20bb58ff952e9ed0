#include "core/config/schema/istio_definitions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/config/schema/istio_schemas.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

struct Column {
  const char *name, *path, *type = "string";
};
struct Definition {
  const char *group, *kind, *plural, *singular;
  std::vector<const char*> short_names, versions;  // the first version is the stored one
  std::vector<Column> columns;
};

const Column kAge = {"Age", ".metadata.creationTimestamp", "date"};

const std::vector<Definition>& Definitions() {
  static const auto* const kAll = new std::vector<Definition>{
      {"extensions.istio.io", "WasmPlugin", "wasmplugins", "wasmplugin", {}, {"v1alpha1"}, {kAge}},
      {"networking.istio.io",
       "DestinationRule",
       "destinationrules",
       "destinationrule",
       {"dr"},
       {"v1alpha3", "v1beta1"},
       {{"Host", ".spec.host"}, kAge}},
      {"networking.istio.io", "EnvoyFilter", "envoyfilters", "envoyfilter", {}, {"v1alpha3"}, {}},
      {"networking.istio.io", "Gateway", "gateways", "gateway", {"gw"}, {"v1alpha3", "v1beta1"}, {}},
      {"networking.istio.io", "ProxyConfig", "proxyconfigs", "proxyconfig", {}, {"v1beta1"}, {}},
      {"networking.istio.io",
       "ServiceEntry",
       "serviceentries",
       "serviceentry",
       {"se"},
       {"v1alpha3", "v1beta1"},
       {{"Hosts", ".spec.hosts"}, {"Location", ".spec.location"}, {"Resolution", ".spec.resolution"}, kAge}},
      {"networking.istio.io", "Sidecar", "sidecars", "sidecar", {}, {"v1alpha3", "v1beta1"}, {}},
      {"networking.istio.io",
       "VirtualService",
       "virtualservices",
       "virtualservice",
       {"vs"},
       {"v1alpha3", "v1beta1"},
       {{"Gateways", ".spec.gateways"}, {"Hosts", ".spec.hosts"}, kAge}},
      {"networking.istio.io",
       "WorkloadEntry",
       "workloadentries",
       "workloadentry",
       {"we"},
       {"v1alpha3", "v1beta1"},
       {kAge, {"Address", ".spec.address"}}},
      {"networking.istio.io",
       "WorkloadGroup",
       "workloadgroups",
       "workloadgroup",
       {"wg"},
       {"v1alpha3", "v1beta1"},
       {kAge}},
      {"security.istio.io",
       "AuthorizationPolicy",
       "authorizationpolicies",
       "authorizationpolicy",
       {},
       {"v1beta1", "v1"},
       {}},
      {"security.istio.io",
       "PeerAuthentication",
       "peerauthentications",
       "peerauthentication",
       {"pa"},
       {"v1beta1"},
       {{"Mode", ".spec.mtls.mode"}, kAge}},
      {"security.istio.io",
       "RequestAuthentication",
       "requestauthentications",
       "requestauthentication",
       {"ra"},
       {"v1beta1", "v1"},
       {}},
      {"telemetry.istio.io", "Telemetry", "telemetries", "telemetry", {"telemetry"}, {"v1alpha1"}, {kAge}},
  };
  return *kAll;
}

// Kinds that became v1 in 1.22, but for those that are not before.
bool HasV1(const Definition& d) {
  const std::string_view kind = d.kind;
  if (kind == "EnvoyFilter" || kind == "ProxyConfig" || kind == "WasmPlugin") return false;
  return std::find(d.versions.begin(), d.versions.end(), std::string_view("v1")) == d.versions.end();
}

std::vector<json> Make(bool with_v1) {
  std::vector<json> out;
  for (const Definition& d : Definitions()) {
    json columns = json::array();
    for (const Column& c : d.columns) columns.push_back({{"name", c.name}, {"type", c.type}, {"jsonPath", c.path}});
    json versions = json::array();
    std::vector<const char*> served = d.versions;
    if (with_v1 && HasV1(d)) served.push_back("v1");
    for (const char* version : served) {
      json entry = {{"name", version},
                    {"served", true},
                    {"storage", version == d.versions.front()},
                    {"subresources", {{"status", json::object()}}},
                    {"schema", {{"openAPIV3Schema", IstioSchema(d.kind, with_v1)}}}};
      if (!columns.empty()) entry["additionalPrinterColumns"] = columns;
      versions.push_back(std::move(entry));
    }
    out.push_back({{"apiVersion", "apiextensions.k8s.io/v1"},
                   {"kind", "CustomResourceDefinition"},
                   {"metadata", {{"name", std::string(d.plural) + "." + d.group}}},
                   {"spec",
                    {{"group", d.group},
                     {"scope", "Namespaced"},
                     {"names",
                      {{"kind", d.kind},
                       {"listKind", std::string(d.kind) + "List"},
                       {"plural", d.plural},
                       {"singular", d.singular},
                       {"shortNames", d.short_names},
                       {"categories", json::array({"istio-io"})}}},
                     {"versions", versions}}}});
  }
  return out;
}

}  // namespace

std::vector<json> IstioDefinitions() { return Make(false); }
std::vector<json> IstioDefinitionsWithV1() { return Make(true); }

}  // namespace wavetank::pilot
