// Configurations out of YAML text, for tests.
#pragma once

#include <string>
#include <string_view>

#include "core/config/store/store.h"
#include "core/kube/yaml.h"

namespace wavetank::config {

// metadata.uid, resourceVersion and creationTimestamp may be left out.
inline absl::StatusOr<AnyConfigRef> TryParseYaml(std::string_view yaml) {
  absl::StatusOr<nlohmann::json> body = kube::ParseYaml(yaml, "test.yaml");
  if (!body.ok()) return body.status();
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(*std::move(body));
  if (!object.ok()) return object.status();
  return ParseConfig(**object);
}
inline AnyConfigRef ParseYaml(std::string_view yaml) { return TryParseYaml(yaml).value(); }

// "Kind ns/name" and a spec: the shortest way to say a configuration. `second`: of its creation.
inline std::string ConfigYaml(std::string_view kind, std::string_view ns, std::string_view name, std::string_view spec,
                              int second = 0) {
  const bool security =
      kind == "PeerAuthentication" || kind == "AuthorizationPolicy" || kind == "RequestAuthentication";
  std::string out = std::string("apiVersion: ") +
                    (security              ? "security.istio.io/v1beta1"
                     : kind == "Telemetry" ? "telemetry.istio.io/v1alpha1"
                                           : "networking.istio.io/v1alpha3") +
                    "\nkind: " + std::string(kind) + "\nmetadata:\n  name: \"" + std::string(name) +
                    "\"\n  namespace: \"" + std::string(ns) + "\"\n  uid: " + std::string(ns) + "-" +
                    std::string(name) +
                    "\n  resourceVersion: \"1\"\n  creationTimestamp: \"2023-09-01T00:00:" + (second < 10 ? "0" : "") +
                    std::to_string(second) + "Z\"\nspec:";
  if (spec.empty()) return out + " {}\n";
  out += "\n";
  for (size_t at = 0; at < spec.size();) {
    const size_t end = std::min(spec.find('\n', at), spec.size());
    out.append("  ").append(spec.substr(at, end - at)).append("\n");
    at = end + 1;
  }
  return out;
}

template <typename Spec>
TypedConfigRef<Spec> ParseAs(std::string_view yaml) {
  return std::get<TypedConfigRef<Spec>>(ParseYaml(yaml));
}

}  // namespace wavetank::config
