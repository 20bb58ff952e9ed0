#include "core/config/schema/cipher_suites.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace wavetank::config {
namespace {

constexpr std::array<std::string_view, 15> kSuites = {
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
};

}  // namespace

bool IsKnownCipherSuite(std::string_view suite) {
  if (suite.empty() || suite == "ALL" || !absl::ascii_isalnum(static_cast<unsigned char>(suite[0]))) return true;
  return std::find(kSuites.begin(), kSuites.end(), suite) != kSuites.end();
}

}  // namespace wavetank::config
