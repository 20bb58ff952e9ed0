// Which of Istio's objects a resource comes from, as istiod writes it into the resource's metadata.
#pragma once

#include <string>

namespace envoy::config::core::v3 {
class Metadata;
}

namespace wavetank::envoysim {

// "/apis/networking.istio.io/v1alpha3/namespaces/sample/virtual-service/reviews"; empty: it says none.
// istiod: pilot/pkg/networking/util, BuildConfigInfoMetadata.
std::string ConfigPath(const envoy::config::core::v3::Metadata& metadata);

}  // namespace wavetank::envoysim
