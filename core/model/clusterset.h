// Names of Kubernetes multi-cluster services: a Service of the clusterset is known beside that of the cluster.
#pragma once

#include <string_view>

namespace wavetank::pilot {

// "web.shop.svc.clusterset.local" ends so.
inline constexpr std::string_view kClusterSetDomain = ".clusterset.local";

}  // namespace wavetank::pilot
