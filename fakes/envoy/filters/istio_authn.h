// istio-proxy's filters istio_authn: the identity of a connection's peer, and what a verified token said, where
// AuthorizationPolicies and routes by claims look for it. Istio: istio/proxy src/envoy/http/authn/authn_utils.cc,
// src/envoy/utils/authn.cc
#pragma once

#include <string>
#include <vector>

#include "fakes/envoy/config/filter_registry.h"
#include "fakes/envoy/match/dynamic_metadata.h"

namespace istio::envoy::config::filter::http::authn::v2alpha1 {
class FilterConfig;
}

namespace wavetank::envoysim {

struct IstioAuthn {
  std::vector<std::string> issuers;  // the first of them whose token was verified counts
  bool principal = false;            // from the token
  bool clear_route_cache = true;

  static IstioAuthn Make(const istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig& message);
  // Adds request.auth.principal, .audiences, .presenter and .claims, if there is such a token.
  void Note(DynamicMetadata* notes) const;
};

HttpFilterType IstioAuthnFilterType();
NetworkFilterType NetworkIstioAuthnType();

}  // namespace wavetank::envoysim
