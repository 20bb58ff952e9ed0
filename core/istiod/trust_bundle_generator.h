// PCDS: the proxy's configuration while it runs, which in 1.18.2 is the roots that it shall trust and nothing else
// (istiod: pilot/pkg/xds/pcds.go).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/security/trust_bundle.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

// istio.mesh.v1alpha1.ProxyConfig with caCertificatesPem alone.
std::string EncodeTrustBundle(const std::vector<std::string>& roots);
// InvalidArgument: the bytes are no such message. Its other fields are passed over.
absl::StatusOr<std::vector<std::string>> DecodeTrustBundle(std::string_view bytes);

// Only with full pushes that name no configuration. `sources` outlives it.
std::unique_ptr<Generator> MakeTrustBundleGenerator(const security::TrustBundleSources& sources);

}  // namespace wavetank::pilot
