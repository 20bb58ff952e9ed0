// Cipher suites that objects may name (istiod: pkg/config/security, ValidCipherSuites): what Envoy's BoringSSL would
// not refuse.
#pragma once

#include <string_view>

namespace wavetank::config {

// Also of "" and "ALL", and of what begins with neither letter nor digit, which are expressions.
bool IsKnownCipherSuite(std::string_view suite);

}  // namespace wavetank::config
