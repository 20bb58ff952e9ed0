#include "core/gen/cds/cluster_draft.h"

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/wire/wire.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"

namespace wavetank::pilot {
namespace {

using Cluster = envoy_cluster::Cluster;
using ::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
using UpstreamProtocol = ClusterDraft::UpstreamProtocol;

// Field numbers of google/protobuf/struct.proto and of map entries.
constexpr int kStringValue = 3, kBoolValue = 4, kStructValue = 5, kListValue = 6, kFields = 1, kValues = 1;

void WriteString(std::string_view key, std::string_view text, wire::Writer& out) {
  out.Message(kFields, [&] {
    out.Bytes(wire::kMapKey, key);
    out.Message(wire::kMapValue, [&] { out.Bytes(kStringValue, text); });
  });
}

// Telemetry's labels for requests to the cluster. istiod: buildServiceMetadata.
void WriteServices(const std::vector<const Service*>& services, wire::Writer& out) {
  out.Message(kFields, [&] {
    out.Bytes(wire::kMapKey, "services");
    out.Message(wire::kMapValue, [&] {
      out.Message(kListValue, [&] {
        for (const Service* service : services) {
          out.Message(kValues, [&] {
            out.Message(kStructValue, [&] {
              WriteString("host", service->hostname, out);
              WriteString("name", service->attributes.name, out);
              WriteString("namespace", service->attributes.ns, out);
            });
          });
        }
      });
    });
  });
}

void WriteTrue(std::string_view key, wire::Writer& out) {
  out.Message(kFields, [&] {
    out.Bytes(wire::kMapKey, key);
    out.Message(wire::kMapValue, [&] { out.Bool(kBoolValue, true); });
  });
}

void WriteMetadata(const ClusterDraft& draft, wire::Writer& out) {
  if (!draft.services && draft.rule == nullptr && !draft.mesh_external) return;
  out.Message(Cluster::kMetadataFieldNumber, [&] {
    out.Message(::envoy::config::core::v3::Metadata::kFilterMetadataFieldNumber, [&] {
      out.Bytes(wire::kMapKey, "istio");
      out.Message(wire::kMapValue, [&] {
        if (draft.keeps_alpn) WriteString("alpn_override", "false", out);  // istiod: util.AddALPNOverrideToMetadata
        if (draft.rule != nullptr) {                                       // istiod: util.AddConfigInfoMetadata
          WriteString("config",
                      absl::StrCat("/apis/networking.istio.io/", draft.tells_v1_paths ? "v1" : "v1alpha3",
                                   "/namespaces/", draft.rule->ns, "/destination-rule/", draft.rule->name),
                      out);
        }
        if (draft.mesh_external) WriteTrue("external", out);
        if (draft.services) WriteServices(*draft.services, out);
        if (!draft.subset.empty()) WriteString("subset", draft.subset, out);
      });
    });
  });
}

HttpProtocolOptions HttpOptionsFor(UpstreamProtocol protocol) {
  HttpProtocolOptions out;
  switch (protocol) {
    case UpstreamProtocol::kNone:
      out.mutable_explicit_http_config()->mutable_http_protocol_options();
      break;
    case UpstreamProtocol::kHttp2:
      out.mutable_explicit_http_config()->mutable_http2_protocol_options();
      break;
    case UpstreamProtocol::kDownstream:
      out.mutable_use_downstream_protocol_config()->mutable_http_protocol_options();
      out.mutable_use_downstream_protocol_config()->mutable_http2_protocol_options();
  }
  return out;
}

std::string EncodeHttpOptions(const HttpProtocolOptions& options) {
  return wire::Encode([&](wire::Writer& out) {
    out.Message(Cluster::kTypedExtensionProtocolOptionsFieldNumber, [&] {
      out.Bytes(wire::kMapKey, "envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
      out.Any(wire::kMapValue, TypeUrlOf(options), Serialize(options));
    });
  });
}

void WriteHttpOptions(const ClusterDraft& draft, wire::Writer& out) {
  if (draft.common_http != nullptr || draft.auto_sni || draft.auto_san_validation) {
    HttpProtocolOptions options = HttpOptionsFor(draft.upstream_protocol);
    if (draft.common_http != nullptr) *options.mutable_common_http_protocol_options() = *draft.common_http;
    if (draft.max_concurrent_streams > 0) {
      options.mutable_explicit_http_config()
          ->mutable_http2_protocol_options()
          ->mutable_max_concurrent_streams()
          ->set_value(draft.max_concurrent_streams);
    }
    if (draft.auto_sni) options.mutable_upstream_http_protocol_options()->set_auto_sni(true);
    if (draft.auto_san_validation) options.mutable_upstream_http_protocol_options()->set_auto_san_validation(true);
    out.Append(EncodeHttpOptions(options));
    return;
  }
  static const std::string* const kHttp2 = new std::string(EncodeHttpOptions(HttpOptionsFor(UpstreamProtocol::kHttp2)));
  static const std::string* const kDownstream =
      new std::string(EncodeHttpOptions(HttpOptionsFor(UpstreamProtocol::kDownstream)));
  if (draft.upstream_protocol == UpstreamProtocol::kHttp2) out.Append(*kHttp2);
  if (draft.upstream_protocol == UpstreamProtocol::kDownstream) out.Append(*kDownstream);
}

void WriteEdsConfig(const std::string& name, wire::Writer& out) {
  static const std::string* const kFromAds = [] {
    Cluster::EdsClusterConfig eds;
    eds.mutable_eds_config()->mutable_ads();
    eds.mutable_eds_config()->mutable_initial_fetch_timeout();  // 0: wait for ever
    eds.mutable_eds_config()->set_resource_api_version(::envoy::config::core::v3::V3);
    return new std::string(Serialize(eds));
  }();
  out.Message(Cluster::kEdsClusterConfigFieldNumber, [&] {
    out.Append(*kFromAds);
    out.Bytes(Cluster::EdsClusterConfig::kServiceNameFieldNumber, name);
  });
}

// Encoded by hand: nothing else here knows the message (Envoy:
// extensions/clusters/dynamic_forward_proxy/v3/cluster.proto).
void WriteDynamicType(const ClusterDraft& draft, wire::Writer& out) {
  constexpr int kDnsCacheConfig = 1, kAllowInsecure = 2;
  out.Message(Cluster::kClusterTypeFieldNumber, [&] {
    out.Bytes(Cluster::CustomClusterType::kNameFieldNumber, "envoy.clusters.dynamic_forward_proxy");
    out.Any(Cluster::CustomClusterType::kTypedConfigFieldNumber,
            "type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig",
            wire::Encode([&](wire::Writer& config) {
              config.Bytes(kDnsCacheConfig, DnsCacheConfig(draft.dns_cache));
              if (draft.allows_insecure) config.Bool(kAllowInsecure, true);
            }));
  });
}

}  // namespace

::envoy::config::core::v3::HttpProtocolOptions& ClusterDraft::CommonHttp() {
  if (common_http == nullptr) common_http = std::make_unique<::envoy::config::core::v3::HttpProtocolOptions>();
  return *common_http;
}

Resource ClusterDraft::Finish() const {
  std::string bytes;
  constexpr size_t kUsual = 640;
  bytes.reserve(kUsual + encoded.size());
  cluster.AppendToString(&bytes);  // no maps in there
  wire::Writer out(&bytes);
  if (cluster.type() == Cluster::EDS) WriteEdsConfig(cluster.name(), out);
  if (endpoints != nullptr) {
    out.Bytes(Cluster::kLoadAssignmentFieldNumber, endpoints->assignment.Encode(cluster.name()));
  }
  if (!dns_cache.empty()) WriteDynamicType(*this, out);
  WriteMetadata(*this, out);
  WriteHttpOptions(*this, out);
  out.Append(encoded);
  return {cluster.name(), bytes};
}

}  // namespace wavetank::pilot
