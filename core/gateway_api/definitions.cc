#include "core/gateway_api/definitions.h"

#include <string>
#include <utility>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {
namespace {

using nlohmann::json;

struct Column {
  const char *name, *path, *type = "string";
};
struct Definition {
  kube::ResourceKind kind;
  const char* singular;
  std::vector<const char*> short_names, versions;  // the first version is the stored one
  std::vector<Column> columns;
  json spec;  // of the schema: properties and what is required
};

json Open() { return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}; }

// An object with these properties at least, of which those of `required` must be there.
json With(json properties, json required) {
  json out = Open();
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

json Listener() {
  const json text = {{"type", "string"}};
  const json port = {{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}};
  return With({{"name", text}, {"port", port}, {"protocol", text}, {"hostname", text}}, {"name", "protocol"});
}

json ListOf(json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

json RouteSpec() {
  const json text = {{"type", "string"}};
  return With({{"parentRefs", ListOf(With({{"name", text}}, {"name"}))},
               {"hostnames", ListOf(text)},
               {"rules", ListOf(Open())}},
              json::array());
}

std::vector<Definition> All() {
  const json text = {{"type", "string"}};
  const Column age = {"Age", ".metadata.creationTimestamp", "date"};
  const Column hosts = {"Hostnames", ".spec.hostnames"};
  const auto condition = [](const char* name, const char* path) { return Column{name, path}; };
  return {
      {kinds::kGatewayClass,
       "gatewayclass",
       {"gc"},
       {"v1", "v1beta1"},
       {{"Controller", ".spec.controllerName"},
        condition("Accepted", ".status.conditions[?(@.type==\"Accepted\")].status"),
        age},
       With({{"controllerName", text}}, {"controllerName"})},
      {kinds::kGateway,
       "gateway",
       {"gtw"},
       {"v1", "v1beta1"},
       {{"Class", ".spec.gatewayClassName"},
        {"Address", ".status.addresses[*].value"},
        condition("Programmed", ".status.conditions[?(@.type==\"Programmed\")].status"),
        age},
       With({{"gatewayClassName", text}, {"listeners", ListOf(Listener())}}, {"gatewayClassName", "listeners"})},
      {kinds::kHttpRoute, "httproute", {}, {"v1", "v1beta1"}, {hosts, age}, RouteSpec()},
      {kinds::kGrpcRoute, "grpcroute", {}, {"v1"}, {hosts, age}, RouteSpec()},
      {kinds::kTlsRoute, "tlsroute", {}, {"v1", "v1alpha2"}, {age}, RouteSpec()},
      {kinds::kTcpRoute, "tcproute", {}, {"v1alpha2"}, {age}, RouteSpec()},
      {kinds::kListenerSet,
       "listenerset",
       {},
       {"v1"},
       {condition("Accepted", ".status.conditions[?(@.type==\"Accepted\")].status"),
        condition("Programmed", ".status.conditions[?(@.type==\"Programmed\")].status"), age},
       With({{"parentRef", With({{"name", text}}, {"name"})}, {"listeners", ListOf(Listener())}},
            {"parentRef", "listeners"})},
      {kinds::kReferenceGrant,
       "referencegrant",
       {"refgrant"},
       {"v1beta1"},
       {age},
       With({{"from", ListOf(Open())}, {"to", ListOf(Open())}}, {"from", "to"})},
      {kinds::kBackendTlsPolicy,
       "backendtlspolicy",
       {"btlspolicy"},
       {"v1"},
       {age},
       With({{"targetRefs", ListOf(With({{"group", text}, {"kind", text}, {"name", text}}, {"group", "kind", "name"}))},
             {"validation", With({{"hostname", text}}, {"hostname"})}},
            {"targetRefs", "validation"})}};
}

json Made(const Definition& d) {
  json columns = json::array(), versions = json::array();
  for (const Column& c : d.columns) columns.push_back({{"name", c.name}, {"type", c.type}, {"jsonPath", c.path}});
  for (const char* version : d.versions) {
    versions.push_back({{"name", version},
                        {"served", true},
                        {"storage", version == d.versions.front()},
                        {"subresources", {{"status", json::object()}}},
                        {"additionalPrinterColumns", columns},
                        {"schema",
                         {{"openAPIV3Schema",
                           {{"type", "object"},
                            {"properties", {{"spec", d.spec}, {"status", Open()}}},
                            {"required", json::array({"spec"})}}}}}});
  }
  const std::string group(d.kind.group), kind(d.kind.kind), plural(d.kind.resource);
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata",
           {{"name", plural + "." + group},
            {"annotations",
             {{"api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/gateway-api/pull/2997"},
              {"gateway.networking.k8s.io/bundle-version", "v1.5.1"},
              {"gateway.networking.k8s.io/channel", "experimental"}}}}},
          {"spec",
           {{"group", group},
            {"scope", d.kind.namespaced ? "Namespaced" : "Cluster"},
            {"names",
             {{"kind", kind},
              {"listKind", kind + "List"},
              {"plural", plural},
              {"singular", d.singular},
              {"shortNames", d.short_names},
              {"categories", json::array({"gateway-api"})}}},
            {"versions", std::move(versions)}}}};
}

}  // namespace

std::vector<json> Definitions() {
  std::vector<json> out;
  for (const Definition& definition : All()) out.push_back(Made(definition));
  return out;
}

}  // namespace wavetank::gatewayapi
