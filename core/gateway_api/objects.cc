#include "core/gateway_api/objects.h"

#include <utility>

#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/kube/time_format.h"

namespace wavetank::gatewayapi {

std::vector<std::string> KindNames() {
  using namespace kinds;  // NOLINT: a list of names
  std::vector<std::string> out;
  for (const kube::ResourceKind& kind : {kGatewayClass, kGateway, kHttpRoute, kGrpcRoute, kTlsRoute, kTcpRoute,
                                         kListenerSet, kReferenceGrant, kBackendTlsPolicy}) {
    out.emplace_back(kind.kind);
  }
  return out;
}

GroupKind KindOf(const nlohmann::json& reference, const GroupKind& otherwise) {
  return {Text(reference, "group", otherwise.group), Text(reference, "kind", otherwise.kind)};
}

std::vector<kube::ObjectRef> Inputs::Of(std::string_view kind) const {
  const auto it = objects.find(kind);
  return it == objects.end() || it->second == nullptr ? std::vector<kube::ObjectRef>() : it->second->All();
}

const kube::Object* Inputs::Find(std::string_view kind, const std::string& ns, const std::string& name) const {
  const auto all = objects.find(kind);
  if (all == objects.end() || all->second == nullptr) return nullptr;
  const kube::ObjectRef* const found = all->second->Find(ns, name);
  return found == nullptr ? nullptr : found->get();
}

kube::ObjectRef MakeConfig(std::string_view kind, const std::string& ns, const std::string& name,
                           const std::map<std::string, std::string>& annotations, const kube::Object& of,
                           nlohmann::json spec) {
  nlohmann::json meta = {{"name", name}, {"namespace", ns}, {"annotations", annotations}};
  if (of.meta.creation_unix_seconds != 0)
    meta["creationTimestamp"] = kube::FormatRfc3339(of.meta.creation_unix_seconds);
  absl::StatusOr<kube::ObjectRef> made = kube::Object::FromJson({{"apiVersion", "networking.istio.io/v1"},
                                                                 {"kind", std::string(kind)},
                                                                 {"metadata", std::move(meta)},
                                                                 {"spec", std::move(spec)}});
  WAVETANK_ASSERT(made.ok(), "metadata of our own can be read");
  return *std::move(made);
}

}  // namespace wavetank::gatewayapi
