// Endpoints as an Envoy's admin interface lists them.
#pragma once

#include <cstdint>
#include <string>

namespace wavetank::envoysim {

// One endpoint as `istioctl proxy-config endpoints` lists it.
struct EndpointStatus {
  std::string cluster;
  std::string address;
  uint32_t weight = 0;
  uint32_t priority = 0;
  std::string locality;  // "region/zone/subzone"
  bool healthy = true;
  bool outlier_ejected = false;
  bool tls = false;  // the transport socket that would be chosen is TLS
};

}  // namespace wavetank::envoysim
