#include <array>
#include <memory>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/kinds/envoy_filter.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_reader.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace wavetank::validation {
namespace {

namespace pb = ::google::protobuf;

using ApplyTo = config::EnvoyFilter::ApplyTo;

// The API's words for what a patch applies to, by number, and what its value is of.
constexpr std::array<std::string_view, 12> kObjectNames = {
    "INVALID",      "LISTENER",   "FILTER_CHAIN", "NETWORK_FILTER",   "HTTP_FILTER", "ROUTE_CONFIGURATION",
    "VIRTUAL_HOST", "HTTP_ROUTE", "CLUSTER",      "EXTENSION_CONFIG", "BOOTSTRAP",   "LISTENER_FILTER",
};
constexpr std::array<const char*, kObjectNames.size()> kObjectMessages = {
    "",
    "envoy.config.listener.v3.Listener",
    "envoy.config.listener.v3.FilterChain",
    "envoy.config.listener.v3.Filter",
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
    "envoy.config.route.v3.RouteConfiguration",
    "envoy.config.route.v3.VirtualHost",
    "envoy.config.route.v3.Route",
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.core.v3.TypedExtensionConfig",
    "envoy.config.bootstrap.v3.Bootstrap",
    "envoy.config.listener.v3.ListenerFilter",
};

// Names of filters of old, and today's of each. Of two that share one, 1.18.2 names now this, now that; here the first.
// istiod: pkg/config/xds/deprecated.go.
constexpr std::pair<std::string_view, std::string_view> kOldNames[] = {
    {"envoy.buffer", "envoy.filters.http.buffer"},
    {"envoy.client_ssl_auth", "envoy.filters.network.client_ssl_auth"},
    {"envoy.cors", "envoy.filters.http.cors"},
    {"envoy.csrf", "envoy.filters.http.csrf"},
    {"envoy.ext_authz", "envoy.filters.http.ext_authz"},
    {"envoy.fault", "envoy.filters.http.fault"},
    {"envoy.grpc_http1_bridge", "envoy.filters.http.grpc_http1_bridge"},
    {"envoy.grpc_json_transcoder", "envoy.filters.http.grpc_json_transcoder"},
    {"envoy.grpc_web", "envoy.filters.http.grpc_web"},
    {"envoy.gzip", "envoy.filters.http.gzip"},
    {"envoy.health_check", "envoy.filters.http.health_check"},
    {"envoy.http_connection_manager", "envoy.filters.network.http_connection_manager"},
    {"envoy.http_dynamo_filter", "envoy.filters.http.dynamo"},
    {"envoy.ip_tagging", "envoy.filters.http.ip_tagging"},
    {"envoy.listener.http_inspector", "envoy.filters.listener.http_inspector"},
    {"envoy.listener.original_dst", "envoy.filters.listener.original_dst"},
    {"envoy.listener.original_src", "envoy.filters.listener.original_src"},
    {"envoy.listener.proxy_protocol", "envoy.filters.listener.proxy_protocol"},
    {"envoy.listener.tls_inspector", "envoy.filters.listener.tls_inspector"},
    {"envoy.lua", "envoy.filters.http.lua"},
    {"envoy.mongo_proxy", "envoy.filters.network.mongo_proxy"},
    {"envoy.rate_limit", "envoy.filters.http.ratelimit"},
    {"envoy.ratelimit", "envoy.filters.network.ratelimit"},
    {"envoy.redis_proxy", "envoy.filters.network.redis_proxy"},
    {"envoy.router", "envoy.filters.http.router"},
    {"envoy.squash", "envoy.filters.http.squash"},
    {"envoy.tcp_proxy", "envoy.filters.network.tcp_proxy"}};

void WarnOfOldName(const std::string& name, Problems& out) {
  for (const auto& [old, today] : kOldNames) {
    if (name == old) {
      out.Warn(fmt::format("using deprecated filter name {}; use {} instead", Quoted(name), Quoted(today)));
    }
  }
}

// The messages within that stand alone and name an extension without its configuration, by name (istiod:
// recurseMissingTypedConfig, which looks into no lists).
void MissingConfigs(const pb::Message& message, std::vector<std::string>* out) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  bool needed = false, there = false;
  std::string name;
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    const bool set = !field.is_repeated() && reflection.HasField(message, &field);
    needed |= field.json_name() == "typedConfig";
    there |= set && (field.json_name() == "typedConfig" || field.json_name() == "configDiscovery");
    if (field.name() == "name" && !field.is_repeated() && field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
      name = reflection.GetString(message, &field);
    }
    if (set && field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      MissingConfigs(reflection.GetMessage(message, &field), out);
    }
  }
  if (needed && !there) out->push_back(name);
}

// Extensions of the API before v3, which Envoy's own annotations call frozen, by URL; where they stand alone, as above
// (istiod: recurseDeprecatedTypes).
void FrozenTypes(const pb::Message& message, std::vector<std::string>* out) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    if (field.is_repeated() || field.cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE ||
        !reflection.HasField(message, &field)) {
      continue;
    }
    const pb::Message& inner = reflection.GetMessage(message, &field);
    if (inner.GetDescriptor()->full_name() != "google.protobuf.Any") {
      FrozenTypes(inner, out);
      continue;
    }
    const pb::FieldDescriptor* url_field = inner.GetDescriptor()->FindFieldByNumber(1);
    const std::string url = inner.GetReflection()->GetString(inner, url_field);
    const std::string name = url.substr(url.rfind('/') + 1);
    if (name.starts_with("envoy.") && name.find(".v2.") != std::string::npos) out->push_back(url);
  }
}

// What the patch would put there.
void CheckValue(const json& value, ApplyTo apply_to, Problems& out) {
  if (!value.is_object()) return;
  const std::unique_ptr<pb::Message> lenient = pilot::NewEnvoyMessage(kObjectMessages[static_cast<size_t>(apply_to)]);
  if (lenient == nullptr) return;
  if (absl::Status status = pilot::ReadEnvoyJsonAsGo(value, pilot::UnknownFields::kPassedOver, *lenient);
      !status.ok()) {
    return out.Add(fmt::format("Envoy filter: {}", Message(status)));
  }
  const std::unique_ptr<pb::Message> strict = pilot::NewEnvoyMessage(kObjectMessages[static_cast<size_t>(apply_to)]);
  if (absl::Status status = pilot::ReadEnvoyJsonAsGo(value, pilot::UnknownFields::kRefused, *strict); !status.ok()) {
    return out.Warn(fmt::format("Envoy filter: {}", Message(status)));
  }
  std::vector<std::string> frozen, missing;
  FrozenTypes(*strict, &frozen);
  if (!frozen.empty()) out.Warn(fmt::format("using deprecated type_url(s); {}", fmt::join(frozen, ", ")));
  MissingConfigs(*strict, &missing);
  if (!missing.empty()) {
    out.Warn(fmt::format("using deprecated types by name without typed_config; {}", fmt::join(missing, ", ")));
  }
}

// False: nothing else of the patch is looked at.
bool CheckListenerMatch(const json& match, ApplyTo apply_to, Problems& out) {
  const auto wrong = [&](std::string_view what) {
    out.Add(fmt::format("Envoy filter: {}", what));
    return false;
  };
  const json& filter = Member(Member(Member(match, "listener"), "filterChain"), "filter");
  if (filter.is_null()) return true;
  if (apply_to == ApplyTo::kListener || apply_to == ApplyTo::kFilterChain) {
    out.Warn(fmt::format("Envoy filter: filter match has no effect when used with {}",
                         kObjectNames[static_cast<size_t>(apply_to)]));
  }
  const std::string name = MemberText(filter, "name");
  const json& inner = Member(filter, "subFilter");
  if (name.empty()) return wrong("filter match has no name to match on");
  if (!inner.is_null()) {
    constexpr std::string_view kHttp = "envoy.filters.network.http_connection_manager";
    if (apply_to != ApplyTo::kHttpFilter) return wrong("subfilter match can be used with applyTo HTTP_FILTER only");
    if (name != kHttp && name != "envoy.http_connection_manager") {
      return wrong(fmt::format("subfilter match requires filter match with {}", kHttp));
    }
    if (MemberText(inner, "name").empty()) return wrong("subfilter match has no name to match on");
  }
  WarnOfOldName(name, out);
  WarnOfOldName(MemberText(inner, "name"), out);
  return true;
}

bool CheckMatch(const json& match, ApplyTo apply_to, Problems& out) {
  const json& regex = Member(Member(match, "proxy"), "proxyVersion");
  if (const std::string error = RegexError(TextOf(regex)); !error.empty()) {
    out.Add(fmt::format("Envoy filter: invalid regex for proxy version, [{}]", error));
    return false;
  }
  // Of a oneof the field that is declared last counts.
  const bool cluster = Has(match, "cluster");
  const bool route = !cluster && Has(match, "routeConfiguration");
  const bool listener = !cluster && !route && Has(match, "listener");
  const bool any = cluster || route || listener;
  switch (apply_to) {
    case ApplyTo::kListener:
    case ApplyTo::kFilterChain:
    case ApplyTo::kNetworkFilter:
    case ApplyTo::kHttpFilter:
      if (!any) return true;
      if (listener) return CheckListenerMatch(match, apply_to, out);
      out.Add("Envoy filter: applyTo for listener class objects cannot have non listener match");
      return false;
    case ApplyTo::kRouteConfiguration:
    case ApplyTo::kVirtualHost:
    case ApplyTo::kHttpRoute:
      if (any && !route) {
        out.Add("Envoy filter: applyTo for http route class objects cannot have non route configuration match");
      }
      return true;
    case ApplyTo::kCluster:
      if (any && !cluster) {
        out.Add("Envoy filter: applyTo for cluster class objects cannot have non cluster match");
      }
      return true;
    default:
      return true;
  }
}

void CheckConfigPatch(const json& config, Problems& out) {
  const auto wrong = [&](std::string_view what) { out.Add(fmt::format("Envoy filter: {}", what)); };
  const int number = MemberEnum(config, "applyTo", kObjectNames);
  const bool known = number > 0 && static_cast<size_t>(number) < kObjectMessages.size();
  const ApplyTo apply_to = known ? static_cast<ApplyTo>(number) : ApplyTo::kInvalid;
  if (number == 0) return wrong("missing applyTo");
  const json& patch = Member(config, "patch");
  if (patch.is_null()) return wrong("missing patch");
  constexpr int kNoOperation = 0, kRemove = 3;
  const int operation =
      MemberEnum(patch, "operation",
                 {"INVALID", "MERGE", "ADD", "REMOVE", "INSERT_BEFORE", "INSERT_AFTER", "INSERT_FIRST", "REPLACE"});
  if (operation == kNoOperation) return wrong("missing patch operation");
  const json& value = Member(patch, "value");
  if (operation != kRemove && value.is_null()) return wrong("missing patch value for non-remove operation");
  if (!CheckMatch(Member(config, "match"), apply_to, out)) return;
  if (value.is_null()) return;
  if (!known) return wrong(fmt::format("unknown object type for applyTo {}", number));
  CheckValue(value, apply_to, out);
}

}  // namespace

void CheckEnvoyFilter(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  Selector(Member(spec, "workloadSelector"), "labels",
           "Envoy filter: ", ", will be applied to all services in namespace", out);
  if (!out.empty()) return;
  for (const json& config : Items(Member(spec, "configPatches"))) CheckConfigPatch(config, out);
}

}  // namespace wavetank::validation
