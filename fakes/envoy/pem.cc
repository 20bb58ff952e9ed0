#include "fakes/envoy/pem.h"

#include "absl/strings/escaping.h"

namespace wavetank::envoysim {

std::vector<std::string> CertificatesFromPem(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> out;
  while (true) {
    const size_t begin = pem.find(kBegin);
    if (begin == std::string_view::npos) return out;
    pem.remove_prefix(begin + kBegin.size());
    const size_t end = pem.find(kEnd);
    if (end == std::string_view::npos) return out;
    std::string der;
    if (absl::Base64Unescape(absl::string_view(pem.data(), end), &der) && !der.empty()) out.push_back(std::move(der));
    pem.remove_prefix(end + kEnd.size());
  }
}

}  // namespace wavetank::envoysim
