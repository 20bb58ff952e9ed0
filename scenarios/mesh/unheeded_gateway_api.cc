#include "scenarios/mesh/unheeded_gateway_api.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/gateway_api/classes.h"
#include "fmt/format.h"

namespace wavetank::scenario {

using nlohmann::json;

std::string Named(const json& object) {
  const json& meta = At(object, "metadata");
  const std::string ns = Text(meta, "namespace"), name = Text(meta, "name", Text(meta, "generateName"));
  return fmt::format("{} {}", Text(object, "kind"), ns.empty() ? name : ns + "/" + name);
}

namespace {

void AddOfGateway(const json& object, std::vector<std::string>* out) {
  const json& spec = At(object, "spec");
  if (const std::string name = Text(spec, "gatewayClassName"); gatewayapi::IsRefusedClass(name)) {
    out->push_back(fmt::format("{}: class {} is of ambient mode, and has no effect here", Named(object), name));
  }
  if (Text(spec, "gatewayClassName") == gatewayapi::kRemoteClass) {
    out->push_back(fmt::format("{}: class {} makes it no gateway of its network here; name it in meshNetworks",
                               Named(object), gatewayapi::kRemoteClass));
  }
  for (const json& listener : Items(At(spec, "listeners"))) {
    if (Text(listener, "protocol") != "HBONE") continue;
    out->push_back(
        fmt::format("{}: listener {} of protocol HBONE has no effect here", Named(object), Text(listener, "name")));
  }
  if (At(spec, {"infrastructure", "parametersRef"}).is_object()) {
    out->push_back(fmt::format("{}: spec.infrastructure.parametersRef has no effect here", Named(object)));
  }
  if (At(spec, {"tls", "frontend"}).is_object()) {
    out->push_back(fmt::format("{}: caCertificateRefs of spec.tls.frontend are not read here", Named(object)));
  }
}

void AddOfRoute(const json& object, std::vector<std::string>* out) {
  bool backoff = false, persistence = false;
  int64_t mirrors = 0;
  for (const json& rule : Items(At(object, {"spec", "rules"}))) {
    backoff = backoff || At(rule, {"retry", "backoff"}).is_string();
    persistence = persistence || At(rule, "sessionPersistence").is_object();
    const json& filters = Items(At(rule, "filters"));
    mirrors = std::max(mirrors, static_cast<int64_t>(std::count_if(filters.begin(), filters.end(), [](const json& f) {
                         return Text(f, "type") == "RequestMirror";
                       })));
  }
  if (backoff) out->push_back(fmt::format("{}: retry.backoff has no effect here", Named(object)));
  if (persistence) out->push_back(fmt::format("{}: sessionPersistence has no effect here", Named(object)));
  if (mirrors > 1)
    out->push_back(fmt::format("{}: of several mirrors of a rule the first alone has effect here", Named(object)));
}

void AddOfBackendTls(const json& object, std::vector<std::string>* out) {
  for (const json& ref : Items(At(object, {"spec", "validation", "caCertificateRefs"}))) {
    if (Text(ref, "kind") != "ConfigMap") continue;
    out->push_back(
        fmt::format("{}: certificates of ConfigMap {} are served to no simulated proxy here: clusters that take them "
                    "stay warming",
                    Named(object), Text(ref, "name")));
  }
}

}  // namespace

std::vector<std::string> UnheededOfGatewayApi(const json& object) {
  std::vector<std::string> out;
  const std::string kind = Text(object, "kind");
  if (kind == "Gateway") {
    AddOfGateway(object, &out);
  } else if (kind == "HTTPRoute" || kind == "GRPCRoute") {
    AddOfRoute(object, &out);
  } else if (kind == "TCPRoute") {
    out.push_back(
        fmt::format("{} has no effect: istiod reads TCPRoutes with PILOT_ENABLE_ALPHA_GATEWAY_API alone, which "
                    "it does not heed here",
                    Named(object)));
  } else if (kind == "BackendTLSPolicy") {
    AddOfBackendTls(object, &out);
  } else if (kind != "GatewayClass" && kind != "TLSRoute" && kind != "ListenerSet" && kind != "ReferenceGrant") {
    out.push_back(fmt::format("{} ({}) is stored here, and has no effect", kind, gatewayapi::kGroup));
  }
  return out;
}

std::vector<std::string> UnheededOfAmbient(const json& object) {
  std::vector<std::string> out;
  const json& labels = At(object, {"metadata", "labels"});
  const std::string mode = Text(labels, "istio.io/dataplane-mode"), waypoint = Text(labels, "istio.io/use-waypoint");
  if (mode == "ambient") {
    out.push_back(fmt::format(
        "{}: its pods are in no mesh without a sidecar: label istio.io/dataplane-mode=ambient has no effect "
        "here",
        Named(object)));
  }
  if (!waypoint.empty() && waypoint != "none") {
    out.push_back(fmt::format("{}: label istio.io/use-waypoint has no effect here", Named(object)));
  }
  if (Text(object, "kind") == "DaemonSet" && Text(At(object, "metadata"), "name") == "ztunnel") {
    out.push_back(fmt::format("{} is of ambient mode, and has no effect here", Named(object)));
  }
  return out;
}

}  // namespace wavetank::scenario
