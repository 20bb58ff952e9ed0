#include "core/validation/istio_object.h"

#include <map>

#include "core/base/json_access.h"
#include "core/base/text/parse_bool.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

using Check = void (*)(const nlohmann::json&, Problems&);

// By group and kind, whatever the version.
Check RulesOf(const nlohmann::json& object) {
  static const auto* const kRules = new std::map<std::string, Check, std::less<>>{
      {"extensions.istio.io/WasmPlugin", CheckWasmPlugin},
      {"networking.istio.io/DestinationRule", CheckDestinationRule},
      {"networking.istio.io/EnvoyFilter", CheckEnvoyFilter},
      {"networking.istio.io/Gateway", CheckGateway},
      {"networking.istio.io/ProxyConfig", CheckProxyConfig},
      {"networking.istio.io/ServiceEntry", CheckServiceEntry},
      {"networking.istio.io/Sidecar", CheckSidecar},
      {"networking.istio.io/VirtualService", CheckVirtualService},
      {"networking.istio.io/WorkloadEntry", CheckWorkloadEntry},
      {"networking.istio.io/WorkloadGroup", CheckWorkloadGroup},
      {"security.istio.io/AuthorizationPolicy", CheckAuthorizationPolicy},
      {"security.istio.io/PeerAuthentication", CheckPeerAuthentication},
      {"security.istio.io/RequestAuthentication", CheckRequestAuthentication},
      {"telemetry.istio.io/Telemetry", CheckTelemetry}};
  const std::string version = Text(object, "apiVersion");
  const auto found = kRules->find(version.substr(0, version.find('/')) + "/" + Text(object, "kind"));
  return found == kRules->end() ? nullptr : found->second;
}

// The annotation that makes an AuthorizationPolicy only say what it would do (istiod: checkDryRunAnnotation).
std::string DryRunProblem(const nlohmann::json& object) {
  constexpr std::string_view kDryRun = "istio.io/dry-run";
  const nlohmann::json& metadata = At(object, "metadata");
  const nlohmann::json& value = At(At(metadata, "annotations"), kDryRun);
  if (!value.is_string()) return "";
  const std::string where = Text(metadata, "namespace") + "/" + Text(metadata, "name");
  if (Text(object, "kind") != "AuthorizationPolicy") {
    return fmt::format("{} has unsupported annotation {}, please remove the annotation", where, kDryRun);
  }
  constexpr std::string_view kActions[] = {"ALLOW", "DENY", "AUDIT", "CUSTOM"};
  const int action = MemberEnum(At(object, "spec"), "action", {"ALLOW", "DENY", "AUDIT", "CUSTOM"});
  if (action == 2 || action == 3) {
    return fmt::format("the annotation {} currently only supports action ALLOW/DENY, found action {} in {}", kDryRun,
                       kActions[action], where);
  }
  const std::string text = TextOf(value);
  if (ParseBool(text)) return "";
  return fmt::format("{} has annotation {} with invalid value ({}): strconv.ParseBool: parsing {}: invalid syntax",
                     where, kDryRun, text, Quoted(text));
}

// Beside the five that every object of Kubernetes has, a kind of Istio has no fields (istiod: checkFields).
std::string UnknownField(const nlohmann::json& object) {
  for (const auto& [name, value] : object.items()) {
    if (name == "apiVersion" || name == "kind" || name == "metadata" || name == "spec" || name == "status") continue;
    const nlohmann::json& metadata = At(object, "metadata");
    return fmt::format("unknown field {} on {} resource {}/{}", Quoted(name), Text(object, "kind"),
                       Text(metadata, "namespace"), Text(metadata, "name"));
  }
  return "";
}

}  // namespace

Verdict Judge(const nlohmann::json& object, const pilot::Profile& profile) {
  const Check check = RulesOf(object);
  if (check == nullptr) return {};
  Problems problems(profile);
  problems.Add(DryRunProblem(object));
  if (problems.empty()) check(object, problems);
  if (!problems.empty()) return {"configuration is invalid: " + problems.Text(), {}};
  if (std::string unknown = UnknownField(object); !unknown.empty()) return {std::move(unknown), {}};
  return {"", problems.warnings()};
}

std::string WhyInvalid(const nlohmann::json& object) { return Judge(object).denied; }

}  // namespace wavetank::validation
