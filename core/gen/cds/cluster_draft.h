// A cluster in the making. What every cluster has in common, and what is deep (metadata, TLS contexts), never becomes
// message objects: it is encoded straight away, or once for all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/typed_config.h"
#include "core/gen/eds/eds_load_assignment.h"
#include "core/model/endpoint.h"
#include "core/model/service.h"
#include "core/xds/generator.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/protocol.pb.h"

namespace wavetank::pilot {

namespace envoy_cluster = ::envoy::config::cluster::v3;

// Endpoints that are part of the cluster itself: those of DNS clusters. `instances` keeps what `assignment` points to.
struct InlineEndpoints {
  std::vector<ServiceInstance> instances;
  LoadAssignment assignment;
};

struct ClusterDraft {
  // kNone: HTTP/1.1, which is told only beside other HTTP options, as Envoy wants a protocol then.
  enum class UpstreamProtocol : uint8_t { kNone, kHttp2, kDownstream };

  envoy_cluster::Cluster cluster;
  UpstreamProtocol upstream_protocol = UpstreamProtocol::kNone;
  std::unique_ptr<::envoy::config::core::v3::HttpProtocolOptions> common_http;  // see CommonHttp()
  std::unique_ptr<InlineEndpoints> endpoints;

  // Metadata "istio"; what is pointed to must live until Finish().
  std::optional<std::vector<const Service*>> services;
  const config::ConfigMeta* rule = nullptr;
  std::string_view subset;
  bool mesh_external = false;   // told to telemetry
  bool tells_v1_paths = false;  // of Istio's configuration (Change::kConfigPathsOfV1)
  bool keeps_alpn = false;      // the filter istio.alpn leaves the cluster's ALPN alone

  uint32_t max_concurrent_streams = 0;  // of HTTP/2; 0: as many as Envoy wants

  // Of a cluster that resolves the names of requests (envoy.clusters.dynamic_forward_proxy); empty: it is none.
  std::string dns_cache;
  bool allows_insecure = false;  // without the check of names that Envoy asks such a cluster for

  // upstream_http_protocol_options: server name, and the names of those that may answer, from the request.
  bool auto_sni = false, auto_san_validation = false;

  std::string encoded;  // further fields of the cluster, in wire format

  ::envoy::config::core::v3::HttpProtocolOptions& CommonHttp();
  bool IsHttp2() const { return upstream_protocol == UpstreamProtocol::kHttp2; }
  bool IsOriginalDst() const { return cluster.type() == envoy_cluster::Cluster::ORIGINAL_DST; }

  // The encoded cluster. EDS clusters get their eds_cluster_config here.
  Resource Finish() const;
};

}  // namespace wavetank::pilot
