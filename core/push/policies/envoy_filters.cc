#include "core/push/policies/envoy_filters.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/status.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_reader.h"
#include "core/push/policies/policy_attachment.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::pilot {
namespace {

using config::EnvoyFilter;
using ApplyTo = EnvoyFilter::ApplyTo;
using Operation = EnvoyFilter::Operation;

std::unique_ptr<google::protobuf::Message> NewPatchValue(ApplyTo kind) {
  namespace envoy_config = ::envoy::config;
  namespace hcm = ::envoy::extensions::filters::network::http_connection_manager::v3;
  switch (kind) {
    case ApplyTo::kListener:
      return std::make_unique<envoy_config::listener::v3::Listener>();
    case ApplyTo::kFilterChain:
      return std::make_unique<envoy_config::listener::v3::FilterChain>();
    case ApplyTo::kNetworkFilter:
      return std::make_unique<envoy_config::listener::v3::Filter>();
    case ApplyTo::kHttpFilter:
      return std::make_unique<hcm::HttpFilter>();
    case ApplyTo::kRouteConfiguration:
      return std::make_unique<envoy_config::route::v3::RouteConfiguration>();
    case ApplyTo::kVirtualHost:
      return std::make_unique<envoy_config::route::v3::VirtualHost>();
    case ApplyTo::kHttpRoute:
      return std::make_unique<envoy_config::route::v3::Route>();
    case ApplyTo::kCluster:
      return std::make_unique<envoy_config::cluster::v3::Cluster>();
    case ApplyTo::kExtensionConfig:
      return std::make_unique<envoy_config::core::v3::TypedExtensionConfig>();
    case ApplyTo::kBootstrap:
      return NewEnvoyMessage("envoy.config.bootstrap.v3.Bootstrap");
    case ApplyTo::kListenerFilter:
      return std::make_unique<envoy_config::listener::v3::ListenerFilter>();
    case ApplyTo::kInvalid:
      break;
  }
  return nullptr;
}

// Null: there is none, or the patch applies to nothing.
absl::StatusOr<std::shared_ptr<const google::protobuf::Message>> PatchValue(ApplyTo kind, const nlohmann::json& json) {
  std::unique_ptr<google::protobuf::Message> out = json.is_null() ? nullptr : NewPatchValue(kind);
  if (out == nullptr) return nullptr;
  if (absl::Status status = ReadEnvoyJson(json, *out); !status.ok()) return status;
  return out;
}

// Only where there is an order that a patch can name. Elsewhere what is inserted is added.
bool HasPlaces(ApplyTo kind) {
  return kind == ApplyTo::kHttpFilter || kind == ApplyTo::kNetworkFilter || kind == ApplyTo::kHttpRoute ||
         kind == ApplyTo::kListenerFilter;
}

Operation OperationOf(ApplyTo kind, Operation operation) {
  const bool inserts = operation == Operation::kInsertBefore || operation == Operation::kInsertAfter ||
                       operation == Operation::kInsertFirst;
  return inserts && !HasPlaces(kind) ? Operation::kAdd : operation;
}

// "^1\.18.*", as Istio's own EnvoyFilters ask for a version, means what stands before the dots that the expression
// leaves open; istiod knows 1.4 to 1.19.
std::optional<std::string> PrefixOf(const std::string& expression) {
  constexpr std::string_view kStart = "^1\\.", kEnd = ".*";
  if (!expression.starts_with(kStart) || !expression.ends_with(kEnd)) return std::nullopt;
  const std::string minor = expression.substr(kStart.size(), expression.size() - kStart.size() - kEnd.size());
  for (int known = 4; known <= 19; ++known) {
    if (minor == std::to_string(known)) return "1." + minor;
  }
  return std::nullopt;
}

// What Attaches() asks of.
struct Attached {
  const std::optional<config::Labels>& selector;
  const std::vector<config::PolicyTarget>& targets;
};

EnvoyPatch Compile(const config::ConfigMeta& meta, const EnvoyFilter::ConfigPatch& patch, bool by_domain) {
  EnvoyPatch out;
  out.from = {ConfigKind::kEnvoyFilter, meta.name, meta.ns};
  out.operation = OperationOf(patch.apply_to, patch.patch->operation);
  out.match = &patch.match;
  out.by_domain = by_domain;
  if (auto value = PatchValue(patch.apply_to, patch.patch->value); value.ok()) out.value = *std::move(value);
  if (patch.match.proxy && !patch.match.proxy->proxy_version.empty()) {
    const std::string& expression = patch.match.proxy->proxy_version;
    if (std::optional<std::string> prefix = PrefixOf(expression)) {
      out.version_prefix = *std::move(prefix);
    } else {
      auto version = std::make_shared<const re2::RE2>(expression, re2::RE2::Quiet);
      if (version->ok()) out.version = std::move(version);  // else any version will do
    }
  }
  return out;
}

}  // namespace

bool EnvoyPatch::Matches(const Proxy& proxy) const {
  if (!match->proxy) return true;
  const std::string& its_version = proxy.metadata.istio_version;
  if (!version_prefix.empty() && !its_version.starts_with(version_prefix)) return false;
  if (version != nullptr && (its_version.empty() || !re2::RE2::PartialMatch(its_version, *version))) return false;
  return std::all_of(match->proxy->metadata.begin(), match->proxy->metadata.end(), [&](const auto& wanted) {
    if (!proxy.metadata.raw->is_object()) return false;
    const auto found = proxy.metadata.raw->find(wanted.first);
    return found != proxy.metadata.raw->end() && found->is_string() && *found == wanted.second;
  });
}

const EnvoyPatches::List& EnvoyPatches::Of(ApplyTo kind) const {
  static const List* const none = new List();
  const auto it = by_kind_.find(kind);
  return it == by_kind_.end() ? *none : it->second;
}

std::vector<ConfigKey> EnvoyPatches::From(std::initializer_list<ApplyTo> kinds) const {
  std::map<std::string, const ConfigKey*> keys;
  for (const ApplyTo kind : kinds) {
    for (const EnvoyPatch* patch : Of(kind)) keys[patch->from.ns + "/" + patch->from.name] = &patch->from;
  }
  std::vector<ConfigKey> out;
  out.reserve(keys.size());
  for (const auto& [text, key] : keys) out.push_back(*key);
  return out;
}

EnvoyFilters::EnvoyFilters(const std::vector<config::EnvoyFilterRef>& sorted, std::string root_namespace, Rules rules)
    : root_namespace_(std::move(root_namespace)), rules_(rules) {
  std::vector<config::EnvoyFilterRef> by_priority = sorted;
  std::stable_sort(by_priority.begin(), by_priority.end(),
                   [](const auto& a, const auto& b) { return a->spec.priority < b->spec.priority; });
  for (config::EnvoyFilterRef& filter : by_priority) {
    Filter& out = by_namespace_[filter->meta.ns].emplace_back();
    for (const EnvoyFilter::ConfigPatch& patch : filter->spec.config_patches) {
      if (patch.patch) out.patches.emplace_back(patch.apply_to, Compile(filter->meta, patch, rules.by_domain));
    }
    out.config = std::move(filter);
  }
}

std::vector<std::string> UnreadablePatchValues(const EnvoyFilter& filter) {
  std::vector<std::string> out;
  for (size_t i = 0; i < filter.config_patches.size(); ++i) {
    const EnvoyFilter::ConfigPatch& patch = filter.config_patches[i];
    if (!patch.patch) continue;
    if (const auto value = PatchValue(patch.apply_to, patch.patch->value); !value.ok())
      out.push_back(fmt::format("spec.configPatches[{}].patch.value: {}", i, Message(value.status())));
  }
  return out;
}

std::shared_ptr<const EnvoyPatches> EnvoyFilters::For(const Proxy& proxy) const {
  if (by_namespace_.empty()) return nullptr;
  std::vector<const Filter*> held;
  const auto look = [&](std::string_view ns) {
    const auto it = by_namespace_.find(ns);
    if (it == by_namespace_.end()) return;
    for (const Filter& filter : it->second) {
      if (Attaches(Attached{filter.config->spec.workload_selector, filter.config->spec.targets}, ns,
                   proxy.config_namespace, proxy.labels, rules_.by_target))
        held.push_back(&filter);
    }
  };
  if (!root_namespace_.empty()) look(root_namespace_);
  if (proxy.config_namespace != root_namespace_) look(proxy.config_namespace);
  if (held.empty()) return nullptr;
  // Within a namespace they are by priority and age already, and the root namespace's stand first.
  if (rules_.by_priority) {
    std::stable_sort(held.begin(), held.end(), [](const Filter* a, const Filter* b) {
      return a->config->spec.priority < b->config->spec.priority;
    });
  }
  auto out = std::make_shared<EnvoyPatches>();
  for (const Filter* filter : held) {
    for (const auto& [kind, patch] : filter->patches) {
      if (patch.Matches(proxy)) out->Add(kind, &patch);
    }
  }
  return out;
}

}  // namespace wavetank::pilot
