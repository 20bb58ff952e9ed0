// istio-proxy's HTTP filter istio_authn: what a verified token said, where AuthorizationPolicies and routes by claims
// look for it. Istio: istio/proxy src/envoy/http/authn/authn_utils.cc, src/envoy/utils/authn.cc
#pragma once

#include <string>
#include <vector>

#include "fakes/envoy/dynamic_metadata.h"

namespace istio::envoy::config::filter::http::authn::v2alpha1 {
class FilterConfig;
}

namespace wavetank::envoysim {

struct IstioAuthnFilter {
  std::vector<std::string> issuers;  // the first of them whose token was verified counts
  bool principal = false;            // from the token
  bool clear_route_cache = true;

  static IstioAuthnFilter Make(const istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig& message);
  // Adds request.auth.principal, .audiences, .presenter and .claims, if there is such a token.
  void Note(DynamicMetadata* notes) const;
};

}  // namespace wavetank::envoysim
