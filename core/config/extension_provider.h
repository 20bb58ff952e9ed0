// Of the mesh config's extensionProviders, the external authorizers that CUSTOM AuthorizationPolicies name
// (istio.io/api mesh/v1alpha1 MeshConfig.ExtensionProvider).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

struct ExtensionProvider {
  struct RequestBody {
    uint32_t max_request_bytes = 0;
    bool allow_partial_message = false, pack_as_bytes = false;
    friend bool operator==(const RequestBody&, const RequestBody&) = default;
  };
  // What the protocols of authorizers have in common.
  struct ExtAuthz {
    std::string service;  // "host" or "namespace/host"
    uint32_t port = 0;
    std::optional<Duration> timeout;
    bool fail_open = false;
    std::string status_on_error;
    std::optional<RequestBody> include_request_body;

    // Of HTTP alone.
    std::string path_prefix;
    std::vector<std::string> include_request_headers, include_headers;  // the second is the first's older name
    std::map<std::string, std::string> include_additional_headers;
    std::vector<std::string> headers_to_upstream_on_allow, headers_to_downstream_on_deny,
        headers_to_downstream_on_allow;
    friend bool operator==(const ExtAuthz&, const ExtAuthz&) = default;
  };

  std::string name;
  // At most one of them; a provider of another kind has neither.
  std::optional<ExtAuthz> ext_authz_http, ext_authz_grpc;
  friend bool operator==(const ExtensionProvider&, const ExtensionProvider&) = default;
};

// What is wrong with it, if anything. The mesh config is taken all the same; who uses the provider gets nothing.
// istiod: pkg/config/validation/extensionprovider.go.
absl::Status ValidateExtAuthz(const ExtensionProvider::ExtAuthz& authz);

// Where several have one name, the last one's provider in the place of the first. istiod: mesh.ApplyMeshConfig.
std::vector<ExtensionProvider> MergeExtensionProviders(std::vector<ExtensionProvider> providers);

// The number, if Envoy's API has a name for it: what an authorizer's failure may be answered with. A sign may stand
// before it, as for Go's ParseInt.
std::optional<int> ParseHttpStatus(std::string_view text);

}  // namespace wavetank::config
