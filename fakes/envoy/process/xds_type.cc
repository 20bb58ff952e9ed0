#include "fakes/envoy/process/xds_type.h"

namespace wavetank::envoysim {
namespace {

constexpr std::string_view kUrls[kXdsTypes] = {
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
    "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
};
constexpr std::string_view kNames[kXdsTypes] = {"CDS", "EDS", "LDS", "RDS", "SDS", "ECDS"};

}  // namespace

std::string_view XdsTypeUrl(XdsType type) { return kUrls[static_cast<int>(type)]; }
std::string_view XdsTypeName(XdsType type) { return kNames[static_cast<int>(type)]; }

std::optional<XdsType> XdsTypeOf(std::string_view type_url) {
  for (int i = 0; i < kXdsTypes; ++i) {
    if (kUrls[i] == type_url) return static_cast<XdsType>(i);
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
