#include "core/inject/injection_config.h"

#include <algorithm>
#include <array>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_config.h"
#include "core/kube/types.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// The Helm values that the templates read (manifests/charts/istio-control/istio-discovery/values.yaml).
json DefaultValues(std::string_view tag) {
  json proxy = {
      {"autoInject", "enabled"},
      {"clusterDomain", "cluster.local"},
      {"componentLogLevel", "misc:error"},
      {"enableCoreDump", false},
      {"excludeIPRanges", ""},
      {"excludeInboundPorts", ""},
      {"excludeOutboundPorts", ""},
      {"holdApplicationUntilProxyStarts", false},
      {"image", "proxyv2"},
      {"includeIPRanges", "*"},
      {"includeInboundPorts", "*"},
      {"includeOutboundPorts", ""},
      {"logLevel", "warning"},
      {"privileged", false},
      {"readinessFailureThreshold", 30},
      {"readinessInitialDelaySeconds", 1},
      {"readinessPeriodSeconds", 2},
      {"resources",
       {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}, {"limits", {{"cpu", "2000m"}, {"memory", "1024Mi"}}}}},
      {"statusPort", 15020},
      {"tracer", "zipkin"}};
  json global = {{"caAddress", ""},
                 {"caName", ""},
                 {"hub", "docker.io/istio"},
                 {"imagePullPolicy", ""},
                 {"imagePullSecrets", json::array()},
                 {"istioNamespace", "istio-system"},
                 {"jwtPolicy", "third-party-jwt"},
                 {"logAsJson", false},
                 {"logging", {{"level", "default:info"}}},
                 {"meshID", ""},
                 {"mountMtlsCerts", false},
                 {"multiCluster", {{"clusterName", ""}, {"enabled", false}}},
                 {"network", ""},
                 {"pilotCertProvider", "istiod"},
                 {"proxy", std::move(proxy)},
                 {"proxy_init", {{"image", "proxyv2"}}},
                 {"sds", {{"token", {{"aud", "istio-ca"}}}}},
                 {"sts", {{"servicePort", 0}}},
                 {"tag", tag}};
  return {{"global", std::move(global)},
          {"istio_cni", {{"chained", true}, {"enabled", false}}},
          {"revision", ""},
          {"sidecarInjectorWebhook", {{"enableNamespacesByDefault", false}, {"rewriteAppHTTPProbe", true}}}};
}

absl::Status Invalid(const kube::Object& map, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", map.Key(), what));
}

absl::StatusOr<std::vector<kube::LabelSelector>> Selectors(const kube::Object& map, const json& config,
                                                           const char* field) {
  std::vector<kube::LabelSelector> out;
  const json& list = At(config, field);
  if (list.is_null()) return out;
  if (!list.is_array()) return Invalid(map, fmt::format("config: {} must be a list of label selectors", field));
  for (size_t i = 0; i < list.size(); ++i) {
    auto selector = kube::LabelSelector::FromJson(list[i]);
    if (!selector.ok()) {
      return Invalid(map, fmt::format("config: {}[{}]: {}", field, i, Message(selector.status())));
    }
    out.push_back(*std::move(selector));
  }
  return out;
}

std::vector<std::string> Names(const json& list) {
  std::vector<std::string> out;
  if (!list.is_array()) return out;
  for (const json& item : list) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

// A template that cannot be parsed makes the whole configuration unreadable (istiod: inject.ParseTemplates).
absl::Status ReadTemplates(const kube::Object& map, const json& templates,
                           const std::map<std::string, std::string>& environment, InjectionConfig& out) {
  if (!templates.is_object()) return absl::OkStatus();
  // Of messages it writes what is not the default.
  const GoTemplate::Functions more = {
      // istiod: pkg/kube/inject/template.go, env. An empty variable is none.
      {"env",
       [environment](const std::vector<gotemplate::Value>& in) -> absl::StatusOr<gotemplate::Value> {
         if (in.size() != 2) return absl::InvalidArgumentError(fmt::format("want 2 arguments, got {}", in.size()));
         const auto found =
             in[0].json.is_string() ? environment.find(in[0].json.get<std::string>()) : environment.end();
         return found == environment.end() || found->second.empty() ? in[1] : gotemplate::Value::Plain(found->second);
       }},
      {"protoToJSON", [](const std::vector<gotemplate::Value>& in) -> absl::StatusOr<gotemplate::Value> {
         if (in.size() != 1) return absl::InvalidArgumentError(fmt::format("want 1 argument, got {}", in.size()));
         if (!in[0].json.is_object()) return gotemplate::Value::Plain("{}");
         json message = in[0].json;
         // The zero of its enum, which templates print by its name (injection_webhook.cc).
         if (Text(message, "interceptionMode") == "REDIRECT") message.erase("interceptionMode");
         return gotemplate::Value::Plain(JsonText(WithoutDefaults(message)));
       }}};
  for (const auto& [name, text] : templates.items()) {
    if (!text.is_string()) return Invalid(map, fmt::format("config: templates.{} must be a text", name));
    absl::StatusOr<GoTemplate> parsed = GoTemplate::Parse("inject", text.get_ref<const std::string&>(), more);
    if (!parsed.ok()) return Invalid(map, fmt::format("config: templates.{}: {}", name, Message(parsed.status())));
    out.templates[name] = *std::move(parsed);
  }
  return absl::OkStatus();
}

}  // namespace

std::string InjectorConfigMapName(std::string_view revision) {
  if (revision.empty() || revision == "default") return kInjectorConfigMap;
  return fmt::format("{}-{}", kInjectorConfigMap, revision);
}

InjectionConfig InjectionConfig::Default(std::string_view cluster, std::string_view network, std::string_view mesh_id,
                                         const Profile& profile) {
  InjectionConfig out;
  out.values = DefaultValues(profile.istio);
  json& global = out.values["global"];
  global["multiCluster"]["clusterName"] = cluster;
  global["network"] = network;
  global["meshID"] = mesh_id;
  return out;
}

absl::StatusOr<InjectionConfig> InjectionConfig::FromConfigMap(const kube::Object& config_map, const Profile& profile,
                                                               const std::map<std::string, std::string>& environment) {
  const std::map<std::string, std::string> data = kube::ConfigMapData(config_map);
  const auto config_yaml = data.find("config"), values_yaml = data.find("values");
  if (config_yaml == data.end()) return Invalid(config_map, "key config is missing");
  if (values_yaml == data.end()) return Invalid(config_map, "key values is missing");
  const absl::StatusOr<json> config = kube::ParseYaml(config_yaml->second, config_map.Key() + ": config");
  if (!config.ok()) return config.status();
  const absl::StatusOr<json> values = kube::ParseYaml(values_yaml->second, config_map.Key() + ": values");
  if (!values.ok()) return values.status();
  if (!config->is_object()) return Invalid(config_map, "config must be a mapping");
  if (!values->is_object()) return Invalid(config_map, "values must be a mapping");

  InjectionConfig out = Default({}, {}, {}, profile);
  out.values.merge_patch(*values);
  const std::string policy = Text(*config, "policy");
  out.policy = policy == "enabled" ? Policy::kEnabled : policy == "disabled" ? Policy::kDisabled : Policy::kIllegal;
  if (auto names = Names(At(*config, "defaultTemplates")); !names.empty()) out.default_templates = std::move(names);
  if (const json& aliases = At(*config, "aliases"); aliases.is_object()) {
    for (const auto& [alias, names] : aliases.items()) out.aliases[alias] = Names(names);
  }
  auto never = Selectors(config_map, *config, "neverInjectSelector");
  if (!never.ok()) return never.status();
  auto always = Selectors(config_map, *config, "alwaysInjectSelector");
  if (!always.ok()) return always.status();
  out.never_inject = *std::move(never);
  out.always_inject = *std::move(always);
  for (const auto& [name, value] : TextMap(At(*config, "injectedAnnotations"))) out.injected_annotations[name] = value;
  if (absl::Status read = ReadTemplates(config_map, At(*config, "templates"), environment, out); !read.ok())
    return read;
  return out;
}

// go_template.h says which message that is.
bool InjectionConfig::LacksFunction(const absl::Status& failure) {
  const std::string_view said = Message(failure);
  const size_t at = said.find("function \"");
  return at != said.npos && said.find("\" not defined", at) != said.npos;
}

bool InjectionRequired(const InjectionConfig& config, const json& pod) {
  // iptables rules of a pod on the host's network would redirect the host's traffic.
  if (At(At(pod, "spec"), "hostNetwork") == true) return false;
  const json& metadata = At(pod, "metadata");
  constexpr std::array<std::string_view, 4> kIgnored = {"kube-system", "kube-public", "kube-node-lease",
                                                        "local-path-storage"};
  if (std::find(kIgnored.begin(), kIgnored.end(), Text(metadata, "namespace")) != kIgnored.end()) return false;
  if (config.policy == InjectionConfig::Policy::kIllegal) return false;

  const kube::Labels labels = TextMap(At(metadata, "labels"));
  std::string wish = Text(At(metadata, "annotations"), "sidecar.istio.io/inject");
  if (const auto it = labels.find("sidecar.istio.io/inject"); it != labels.end()) wish = it->second;
  std::transform(wish.begin(), wish.end(), wish.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (!wish.empty()) return wish == "y" || wish == "yes" || wish == "true" || wish == "on";

  // Empty selectors select nobody here.
  const auto selects = [&](const kube::LabelSelector& s) { return !s.empty() && s.Matches(labels); };
  if (std::any_of(config.never_inject.begin(), config.never_inject.end(), selects)) return false;
  if (std::any_of(config.always_inject.begin(), config.always_inject.end(), selects)) return true;
  return config.policy == InjectionConfig::Policy::kEnabled;
}

}  // namespace wavetank::pilot
