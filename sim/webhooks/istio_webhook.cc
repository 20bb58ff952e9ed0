#include "sim/webhooks/istio_webhook.h"

#include "core/base/json_access.h"
#include "core/validation/istio_object.h"
#include "fakes/kube/store/api_server.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

constexpr const char* kDefaultName = "rev.validation.istio.io";

// The webhook's name; nullopt: no webhook of an istiod is asked.
std::optional<std::string> WebhookOf(const fakekube::ApiServer& cluster) {
  bool any = false;
  for (const kube::ObjectRef& object : cluster.List("ValidatingWebhookConfiguration")) {
    any = true;
    for (const nlohmann::json& webhook : Items(At(object->body, "webhooks"))) {
      if (Text(At(webhook, {"clientConfig", "service"}), "name").starts_with("istiod")) {
        return Text(webhook, "name", kDefaultName);
      }
    }
  }
  if (any) return std::nullopt;
  return kDefaultName;
}

}  // namespace

std::optional<std::string> DeniedByIstio(const fakekube::ApiServer& cluster, const nlohmann::json& object) {
  if (!Text(object, "apiVersion").starts_with("networking.istio.io/")) return std::nullopt;
  const std::optional<std::string> webhook = WebhookOf(cluster);
  if (!webhook.has_value()) return std::nullopt;
  const std::string why = validation::WhyInvalid(object);
  if (why.empty()) return std::nullopt;
  return fmt::format("admission webhook \"{}\" denied the request: {}", *webhook, why);
}

}  // namespace wavetank::sim
