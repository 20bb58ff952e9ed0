#include "fakes/kube/services/metal_lb_definitions.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "fakes/kube/objects/kinds.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

json Of(const char* type) { return {{"type", type}}; }
json ListOf(json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
json ObjectOf(json properties) { return {{"type", "object"}, {"properties", std::move(properties)}}; }

json Selector() {
  return ObjectOf(
      {{"matchLabels", {{"type", "object"}, {"additionalProperties", Of("string")}}},
       {"matchExpressions",
        ListOf(ObjectOf({{"key", Of("string")}, {"operator", Of("string")}, {"values", ListOf(Of("string"))}}))}});
}

json Definition(const char* kind, std::initializer_list<const char*> versions, json spec) {
  const std::string singular = absl::AsciiStrToLower(kind);
  const std::string plural = PluralOf(kind);
  json served = json::array();
  const json schema = ObjectOf(
      {{"spec", std::move(spec)}, {"status", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}});
  for (const char* version : versions)
    served.push_back(
        {{"name", version}, {"served", true}, {"storage", served.empty()}, {"schema", {{"openAPIV3Schema", schema}}}});
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", plural + ".metallb.io"}}},
          {"spec",
           {{"group", "metallb.io"},
            {"scope", "Namespaced"},
            {"names",
             {{"kind", kind}, {"plural", plural}, {"singular", singular}, {"listKind", std::string(kind) + "List"}}},
            {"versions", std::move(served)}}}};
}

}  // namespace

std::vector<json> MetalLbDefinitions() {
  const json text = Of("string"), number = Of("integer"), yes_or_no = Of("boolean");
  json pool = ObjectOf({{"addresses", ListOf(text)},
                        {"autoAssign", yes_or_no},
                        {"avoidBuggyIPs", yes_or_no},
                        {"serviceAllocation", ObjectOf({{"priority", number},
                                                        {"namespaces", ListOf(text)},
                                                        {"namespaceSelectors", ListOf(Selector())},
                                                        {"serviceSelectors", ListOf(Selector())}})}});
  pool["required"] = {"addresses"};
  const json advertised = {{"ipAddressPools", ListOf(text)},
                           {"ipAddressPoolSelectors", ListOf(Selector())},
                           {"nodeSelectors", ListOf(Selector())}};
  json layer2 = advertised, bgp = advertised;
  layer2["interfaces"] = ListOf(text);
  bgp.update({{"aggregationLength", number},
              {"aggregationLengthV6", number},
              {"localPref", number},
              {"communities", ListOf(text)},
              {"peers", ListOf(text)}});
  json peer =
      ObjectOf({{"myASN", number},           {"peerASN", number},
                {"dynamicASN", text},        {"peerAddress", text},
                {"interface", text},         {"sourceAddress", text},
                {"peerPort", number},        {"holdTime", text},
                {"keepaliveTime", text},     {"connectTime", text},
                {"routerID", text},          {"nodeSelectors", ListOf(Selector())},
                {"password", text},          {"passwordSecret", ObjectOf({{"name", text}, {"namespace", text}})},
                {"bfdProfile", text},        {"enableGracefulRestart", yes_or_no},
                {"ebgpMultiHop", yes_or_no}, {"vrf", text},
                {"disableMP", yes_or_no},    {"dualStackAddressFamily", yes_or_no}});
  peer["required"] = {"myASN"};
  return {Definition("IPAddressPool", {"v1beta1"}, std::move(pool)),
          Definition("L2Advertisement", {"v1beta1"}, ObjectOf(std::move(layer2))),
          Definition("BGPAdvertisement", {"v1beta1"}, ObjectOf(std::move(bgp))),
          Definition("BGPPeer", {"v1beta2", "v1beta1"}, std::move(peer))};
}

}  // namespace wavetank::fakekube
