#include "core/gen/view/destination_cluster.h"

#include "core/gen/view/cluster_names.h"
#include "core/gen/view/listener_types.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"
#include "envoy/config/core/v3/base.pb.h"
#include "google/protobuf/struct.pb.h"

namespace wavetank::pilot {
namespace {

// "DestinationRule" as "destination-rule".
std::string KebabCase(std::string_view kind) {
  std::string out;
  for (const char c : kind) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out.push_back('-');
    out.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

}  // namespace

std::string DestinationCluster(const config::Destination& destination, const Service* service, int listener_port) {
  return DestinationCluster(destination, service, [&] { return listener_port; });
}

std::string DestinationCluster(const config::Destination& destination, const Service* service,
                               absl::FunctionRef<int()> listener_port) {
  if (destination.host.empty()) return "UnknownService";
  const bool only = service != nullptr && service->ports.size() == 1;
  const int port = destination.port != 0 ? static_cast<int>(destination.port)
                   : only                ? service->ports[0].port
                                         : listener_port();
  // Of an alias of an alias istiod goes one step only.
  const bool alias = service != nullptr && service->resolution == Resolution::kAlias;
  return BuildSubsetKey(TrafficDirection::kOutbound, destination.subset,
                        alias ? service->attributes.external_name : destination.host, port);
}

std::string OutboundCatchAllCluster(const Proxy& proxy) {
  if (!IsAllowAnyOutbound(proxy)) return std::string(kBlackHoleCluster);
  const auto& egress_proxy = proxy.sidecar_scope->outbound_traffic_policy.egress_proxy;
  return egress_proxy ? DestinationCluster(*egress_proxy, nullptr, 0) : std::string(kPassthroughCluster);
}

std::string ConfigInfoMetadata(const config::ConfigMeta& meta, const PushContext& push) {
  const kube::ResourceKind& kind = config::ResourceKindOf(meta.kind);
  // istiod names the version that its code works with, which for the networking group was long the oldest one.
  const bool v1 = push.profile().Has(Change::kConfigPathsOfV1);
  const std::string_view version = kind.group != "networking.istio.io" ? std::string_view(kind.version)
                                   : v1                                ? "v1"
                                                                       : "v1alpha3";
  const std::string resource = KebabCase(config::KindName(meta.kind));
  // Metadata{filter_metadata: {"istio": Struct{fields: {"config": Value{string_value: path}}}}}.
  return wire::Encode([&](wire::Writer& w) {
    w.Message(envoy::config::core::v3::Metadata::kFilterMetadataFieldNumber, [&] {
      w.Bytes(wire::kMapKey, "istio");
      w.Message(wire::kMapValue, [&] {
        w.Message(google::protobuf::Struct::kFieldsFieldNumber, [&] {
          w.Bytes(wire::kMapKey, "config");
          w.Message(wire::kMapValue, [&] {
            w.Joined(google::protobuf::Value::kStringValueFieldNumber,
                     {"/apis/", kind.group, "/", version, "/namespaces/", meta.ns, "/", resource, "/", meta.name});
          });
        });
      });
    });
  });
}

}  // namespace wavetank::pilot
