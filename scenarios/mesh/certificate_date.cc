#include "scenarios/mesh/certificate_date.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/json/json_read.h"
#include "core/x509/x509.h"
#include "scenarios/language/date.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

// PEM in one entry of a Secret.
std::string PemOf(const json& value, bool encoded) {
  std::string text = TextOf(value), decoded;
  if (!encoded) return text;
  return absl::Base64Unescape(text, &decoded) ? decoded : std::string();
}

}  // namespace

void Validity::Add(const json& object) {
  if (Text(object, "kind") != "Secret") return;
  for (const char* section : {"data", "stringData"}) {
    for (const auto& [key, value] : Members(At(object, section))) {
      const std::string pem = PemOf(value, section[0] == 'd');
      if (pem.find("-----BEGIN CERTIFICATE-----") == std::string::npos) continue;
      const auto certificates = x509::ParseCertificates(pem, key);
      if (!certificates.ok()) continue;  // whoever reads it says what is wrong
      for (const x509::CertificateRef& certificate : *certificates) {
        begin = std::max(begin.value_or(certificate->not_before()), certificate->not_before());
        end = std::min(end.value_or(certificate->not_after()), certificate->not_after());
      }
    }
  }
}

std::optional<Time> Validity::DateBeside(Time usual) const {
  if (!begin || (*begin <= usual && *end > usual + 1h)) return std::nullopt;
  const Time date = std::chrono::floor<std::chrono::seconds>(*begin) + 1s;
  if (date < Time{} || date > Time{} + kLastStart) return std::nullopt;
  return date;
}

}  // namespace wavetank::scenario
