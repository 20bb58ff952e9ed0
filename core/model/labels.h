// The labels and annotations of Kubernetes objects that istiod reads, by their names.
#pragma once

#include <string_view>

namespace wavetank::pilot {

inline constexpr std::string_view kNetworkLabel = "topology.istio.io/network";
inline constexpr std::string_view kClusterLabel = "topology.istio.io/cluster";
inline constexpr std::string_view kSubzoneLabel = "topology.istio.io/subzone";
inline constexpr std::string_view kRegionLabel = "topology.kubernetes.io/region";
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
inline constexpr std::string_view kGatewayPortLabel = "networking.istio.io/gatewayPort";
inline constexpr std::string_view kLocalityLabel = "istio-locality";
inline constexpr std::string_view kTlsModeLabel = "security.istio.io/tlsMode";
inline constexpr std::string_view kPersistentSessionLabel = "istio.io/persistent-session";
inline constexpr std::string_view kDrainingLabel = "istio.io/draining";
inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kMcsServiceNameLabel = "multicluster.kubernetes.io/service-name";
inline constexpr std::string_view kNodeSelectorAnnotation = "traffic.istio.io/nodeSelector";
inline constexpr std::string_view kConnectStrategyAnnotation = "istio.io/connect-strategy";
inline constexpr std::string_view kTrafficDistributionAnnotation = "networking.istio.io/traffic-distribution";

}  // namespace wavetank::pilot
