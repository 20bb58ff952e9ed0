// Which pods the injector injects, and with what: ConfigMap istio-sidecar-injector (istiod:
// pkg/kube/inject/{inject,watcher}.go).
//
// A ConfigMap's templates are interpreted (template/go_template.h), whatever their names. Where it has none under the
// names `sidecar`, `gateway`, `grpc-agent` and `grpc-simple`, these are built in (injection_templates.h) with the
// meaning that 1.18.2's have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/inject/template/go_template.h"
#include "core/kube/label_selector.h"
#include "core/kube/object.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

inline constexpr char kInjectorConfigMap[] = "istio-sidecar-injector";
// "istio-sidecar-injector", or with the revision behind it.
std::string InjectorConfigMapName(std::string_view revision);

struct InjectionConfig {
  enum class Policy : uint8_t { kEnabled, kDisabled, kIllegal };  // an illegal one injects no pod

  Policy policy = Policy::kEnabled;
  std::vector<std::string> default_templates = {"sidecar"};
  std::map<std::string, std::vector<std::string>, std::less<>> aliases;
  std::vector<kube::LabelSelector> never_inject, always_inject;
  std::map<std::string, std::string> injected_annotations;
  std::map<std::string, GoTemplate, std::less<>> templates;  // by name
  nlohmann::json values;  // the Helm values global, istio_cni, sidecarInjectorWebhook, revision

  // What a default installation of the profile's release has, with the values that a multi-cluster installation sets.
  static InjectionConfig Default(std::string_view cluster = {}, std::string_view network = {},
                                 std::string_view mesh_id = {}, const Profile& profile = {});
  // Keys `config` and `values`; values that are not there are those of the default installation. InvalidArgument says
  // what is missing or cannot be read: istiod then keeps what it has.
  // `environment`: what templates find of istiod's by their function `env`.
  static absl::StatusOr<InjectionConfig> FromConfigMap(const kube::Object& config_map, const Profile& profile = {},
                                                       const std::map<std::string, std::string>& environment = {});
  // Whether that failed for a function that the template engine lacks: then it is no mistake of the user's.
  static bool LacksFunction(const absl::Status& failure);
};

// Whether the webhook, once asked, injects this pod; its metadata.namespace must be set. istiod: injectRequired.
bool InjectionRequired(const InjectionConfig& config, const nlohmann::json& pod);

}  // namespace wavetank::pilot
