#include "fakes/envoy/config/config_path.h"

#include "envoy/config/core/v3/base.pb.h"
#include "google/protobuf/struct.pb.h"

namespace wavetank::envoysim {

std::string ConfigPath(const envoy::config::core::v3::Metadata& metadata) {
  const auto istio = metadata.filter_metadata().find("istio");
  if (istio == metadata.filter_metadata().end()) return {};
  const auto path = istio->second.fields().find("config");
  return path == istio->second.fields().end() ? std::string() : path->second.string_value();
}

}  // namespace wavetank::envoysim
