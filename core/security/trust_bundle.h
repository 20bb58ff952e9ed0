// Further roots that workloads shall trust, gathered from where they may be stated (istiod: pilot/pkg/trustbundle).
//
// Only with ISTIO_MULTIROOT_MESH, which is off in 1.18.2, does istiod send them to agents (PCDS, a ProxyConfig with
// caCertificatesPem); agents add them to the roots that came with their certificate (Agent::UpdateConfigTrustBundle).
// What SPIFFE endpoints serve comes from spiffe_bundle.h.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/host.h"

namespace wavetank::security {

class TrustBundleSources {
 public:
  enum class Source : uint8_t { kIstioCa, kMeshConfig, kIstioRa, kSpiffeEndpoints };

  // Replaces what this source says; PEM texts, one root each. InvalidArgument if one is no CA certificate: then all
  // stays as it was.
  absl::Status Update(Source source, std::vector<std::string> roots);

  // Of all sources, sorted, each once.
  const std::vector<std::string>& roots() const { return merged_; }
  // After a change; not when an update says what was known.
  void OnChanged(Callback handler) { on_changed_ = std::move(handler); }

 private:
  std::array<std::vector<std::string>, 4> by_source_;
  std::vector<std::string> merged_;
  Callback on_changed_;
};

}  // namespace wavetank::security
