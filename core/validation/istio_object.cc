#include "core/validation/istio_object.h"

#include <map>

#include "core/base/json_access.h"
#include "core/validation/rules.h"

namespace wavetank::validation {

std::string WhyInvalid(const nlohmann::json& object) {
  using Check = void (*)(const nlohmann::json&, Problems&);
  static const auto* const kRules = new std::map<std::string, Check, std::less<>>{
      {"DestinationRule", CheckDestinationRule}, {"Gateway", CheckGateway}, {"VirtualService", CheckVirtualService}};
  if (!Text(object, "apiVersion").starts_with("networking.istio.io/")) return "";
  const auto rule = kRules->find(Text(object, "kind"));
  if (rule == kRules->end()) return "";
  Problems problems;
  rule->second(object, problems);
  return problems.empty() ? "" : "configuration is invalid: " + problems.Text();
}

}  // namespace wavetank::validation
