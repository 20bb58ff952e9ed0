#include "core/gen/telemetry/tracing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/telemetry/tracing_providers.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"

namespace wavetank::pilot {
namespace {

using TracingPb = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager::Tracing;
using TagPb = ::envoy::type::tracing::v3::CustomTag;
using CustomTags = std::map<std::string, config::Telemetry::CustomTag>;
using NamedTag = std::pair<std::string, std::string>;  // name, encoded CustomTag

NamedTag DryRunTag(const char* name, const char* key) {
  TagPb tag;
  tag.set_tag(absl::StrCat("istio.authorization.dry_run.", name));
  auto* metadata = tag.mutable_metadata();
  metadata->mutable_kind()->mutable_request();
  metadata->mutable_metadata_key()->set_key("envoy.filters.http.rbac");
  metadata->mutable_metadata_key()->add_path()->set_key(key);
  return {tag.tag(), Serialize(tag)};
}

// What is the same for every proxy, by name.
const std::vector<NamedTag>& DryRunTags() {
  static const auto& tags = *new std::vector<NamedTag>{
      DryRunTag("allow_policy.name", "istio_dry_run_allow_shadow_effective_policy_id"),
      DryRunTag("allow_policy.result", "istio_dry_run_allow_shadow_engine_result"),
      DryRunTag("deny_policy.name", "istio_dry_run_deny_shadow_effective_policy_id"),
      DryRunTag("deny_policy.result", "istio_dry_run_deny_shadow_engine_result"),
  };
  return tags;
}

NamedTag LiteralTag(std::string_view name, std::string_view value) {
  return {std::string(name), wire::Encode([&](wire::Writer& w) {
            w.Bytes(TagPb::kTagFieldNumber, name);
            w.Message(TagPb::kLiteralFieldNumber, [&] { w.NonEmpty(TagPb::Literal::kValueFieldNumber, value); });
          })};
}

// Who the proxy is, by name.
std::vector<NamedTag> ServiceTags(const Proxy& proxy, bool cluster) {
  const auto label = [&](std::string_view key, std::string_view otherwise) {
    const auto it = proxy.labels.find(key);
    return it == proxy.labels.end() || it->second.empty() ? otherwise : std::string_view(it->second);
  };
  const auto text = [](const std::string& value, std::string_view otherwise) {
    return value.empty() ? otherwise : std::string_view(value);
  };
  std::vector<NamedTag> out = {
      LiteralTag("istio.canonical_revision", label("service.istio.io/canonical-revision", "latest")),
      LiteralTag("istio.canonical_service", label("service.istio.io/canonical-name", "unknown"))};
  if (cluster) out.push_back(LiteralTag("istio.cluster_id", text(proxy.metadata.cluster_id.str(), "unknown")));
  out.push_back(LiteralTag("istio.mesh_id", text(proxy.metadata.mesh_id, "unknown")));
  out.push_back(LiteralTag("istio.namespace", text(proxy.metadata.ns, "default")));
  return out;
}

void AddCustomTags(const CustomTags& tags, bool formatters, std::vector<NamedTag>& out) {
  using TagKind = config::Telemetry::CustomTag::Kind;
  for (const auto& [name, tag] : tags) {
    TagPb to;
    to.set_tag(name);
    switch (tag.kind) {
      case TagKind::kNone:
        continue;
      case TagKind::kFormatter:
        if (!formatters) continue;
        to.set_value(tag.value);
        break;
      case TagKind::kLiteral:
        to.mutable_literal()->set_value(tag.value);
        break;
      case TagKind::kEnvironment:
        to.mutable_environment()->set_name(tag.name);
        to.mutable_environment()->set_default_value(tag.default_value);
        break;
      case TagKind::kHeader:
        to.mutable_request_header()->set_name(tag.name);
        to.mutable_request_header()->set_default_value(tag.default_value);
        break;
    }
    out.emplace_back(name, Serialize(to));
  }
}

// The proxy's own settings; the mesh's defaultConfig counts only for proxies that brought none.
config::ProxyTracing OldSettings(const Proxy& proxy, const config::MeshConfig& mesh) {
  if (proxy.metadata.raw->is_object() && proxy.metadata.raw->contains("PROXY_CONFIG")) {
    const nlohmann::json* own = ProxyConfigOf(proxy, mesh);
    return own == nullptr ? config::ProxyTracing() : config::ReadProxyTracing(*own);
  }
  config::ProxyTracing out;
  out.sampling = mesh.tracing_sampling;
  out.enable_istio_tags = mesh.tracing_istio_tags;
  out.custom_tags = mesh.tracing_custom_tags;
  out.max_path_tag_length = mesh.tracing_max_path_tag_length;
  return out;
}

// Per cent of requests that start a trace, where no Telemetry says. istiod: tracing.go, proxyConfigSamplingValue
double OldSampling(const config::ProxyTracing& settings, double of_istiod) {
  const double sampling = settings.sampling.value_or(0.0);
  if (sampling == 0.0) return of_istiod;
  return sampling > 100.0 ? 1.0 : sampling;
}

struct Parts {
  const std::string* provider = nullptr;  // encoded
  double random_sampling = 0;
  uint32_t max_path_tag_length = 0;
  const CustomTags* tags = nullptr;
  bool cluster_tag = false, istio_tags = true, formatter_tags = false, upstream_spans = false;
};

std::string EncodeTracing(const Parts& parts, const Proxy& proxy) {
  return wire::Encode([&](wire::Writer& w) {
    const auto percent = [&](int field, double value) {
      w.Message(field, [&] {
        if (value != 0) w.Double(1, value);
      });
    };
    percent(TracingPb::kRandomSamplingFieldNumber, parts.random_sampling);
    percent(TracingPb::kClientSamplingFieldNumber, 100);
    percent(TracingPb::kOverallSamplingFieldNumber, 100);
    if (parts.max_path_tag_length != 0) {
      w.UInt32Value(TracingPb::kMaxPathTagLengthFieldNumber, parts.max_path_tag_length);
    }
    if (parts.provider != nullptr) w.Bytes(TracingPb::kProviderFieldNumber, *parts.provider);
    if (parts.upstream_spans) w.BoolValue(TracingPb::kSpawnUpstreamSpanFieldNumber, true);
    const auto write = [&](const std::vector<NamedTag>& tags) {
      for (const auto& [name, tag] : tags) w.Bytes(TracingPb::kCustomTagsFieldNumber, tag);
    };
    // In one piece, by name, which those that every proxy has are already.
    std::vector<NamedTag> all;
    if (parts.istio_tags) {
      std::vector<NamedTag> own = ServiceTags(proxy, parts.cluster_tag);
      if (parts.tags->empty()) {
        write(DryRunTags());
        return write(own);
      }
      all = DryRunTags();
      all.insert(all.end(), own.begin(), own.end());
    }
    AddCustomTags(*parts.tags, parts.formatter_tags, all);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    write(all);
  });
}

}  // namespace

HttpTracing MakeHttpTracing(const WorkloadTelemetry& telemetry, ListenerClass listener_class, const Proxy& proxy,
                            const PushContext& push) {
  const std::optional<TracingSpec> spec = telemetry.Tracing(SideOf(listener_class));
  const config::ProxyTracing old = OldSettings(proxy, push.mesh());
  HttpTracing out;
  Parts parts;
  parts.tags = &old.custom_tags;
  parts.max_path_tag_length = old.max_path_tag_length;
  parts.istio_tags = push.env().features.istio_tags;
  parts.cluster_tag = push.profile().Has(Change::kTracesTellCluster);
  if (!spec) {
    if (!push.mesh().enable_tracing) return out;
    parts.random_sampling = OldSampling(old, push.env().features.trace_sampling);
    if (push.profile().Has(Change::kOptionalIstioTags) && old.enable_istio_tags) {
      parts.istio_tags = *old.enable_istio_tags;
    }
    out.config = EncodeTracing(parts, proxy);
    return out;
  }
  if (spec->disabled) return out;
  const std::optional<TracingProvider> provider = MakeTracingProvider(*spec->provider, proxy, push);
  if (!provider) return out;
  parts.provider = &provider->config;
  if (provider->max_path_tag_length != 0) parts.max_path_tag_length = provider->max_path_tag_length;
  const bool share_of_mesh = !spec->sampling_said && push.profile().Has(Change::kTraceShareOfMesh);
  parts.random_sampling =
      share_of_mesh ? OldSampling(old, push.env().features.trace_sampling) : spec->random_sampling_percentage;
  parts.istio_tags = spec->istio_tags || !push.profile().Has(Change::kOptionalIstioTags);
  parts.formatter_tags = DoneFor(proxy, push.profile(), Change::kFormatterTags);
  if (spec->custom_tags != nullptr) parts.tags = spec->custom_tags;
  // istiod: configureFromProviderConfig, buildHCMTracing.
  const bool spans = provider->start_child_span || (proxy.IsRouter() && push.profile().Has(Change::kGatewaysMakeSpans));
  parts.upstream_spans = spans && push.profile().Has(Change::kUpstreamSpans);
  out.config = EncodeTracing(parts, proxy);
  out.start_child_span = spans && !parts.upstream_spans;
  out.use_request_id_for_sampling = spec->use_request_id_for_trace_sampling;
  return out;
}

}  // namespace wavetank::pilot
