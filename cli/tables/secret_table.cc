#include "absl/strings/escaping.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"
#include "core/kube/time_format.h"
#include "core/x509/x509.h"

namespace wavetank::cli::tables {
namespace {

// Certificate chain or authorities, in PEM; empty: neither is inlined.
std::string PemOf(const json& secret) {
  for (const auto& [part, field] :
       {std::pair("tls_certificate", "certificate_chain"), std::pair("validation_context", "trusted_ca")}) {
    const json& source = Field(Field(secret, part), field);
    if (std::string text = TextField(source, "inline_string"); !text.empty()) return text;
    std::string pem;
    if (absl::Base64Unescape(TextField(source, "inline_bytes"), &pem) && !pem.empty()) return pem;
  }
  return "";
}

std::string Date(Time time) {
  return kube::FormatRfc3339(kWorldEpochUnixSeconds + time.time_since_epoch() / std::chrono::seconds(1));
}

}  // namespace

absl::StatusOr<std::string> SecretTable(const EnvoyDump& dump, Time now, Output output) {
  const json& section = dump.SecretSection();
  if (section.is_null()) return absl::NotFoundError("sidecar doesn't support secrets: the config dump has none");
  if (output != Output::kShort) {
    return Document(AsPrinted(section, "envoy.admin.v3.SecretsConfigDump"), output);
  }
  const std::vector<DumpedSecret> secrets = dump.Secrets();
  if (secrets.empty()) return "No active or warming secrets found.\n";
  std::vector<Row> rows = {
      {"RESOURCE NAME", "TYPE", "STATUS", "VALID CERT", "SERIAL NUMBER", "NOT AFTER", "NOT BEFORE"}};
  for (const DumpedSecret& secret : secrets) {
    const std::string pem = PemOf(secret.secret);
    const absl::StatusOr<x509::CertificateRef> leaf = x509::Certificate::FromPem(pem, secret.name);
    if (!leaf.ok()) {
      rows.push_back({secret.name, "", secret.state, "false", "", "", ""});
      continue;
    }
    const x509::Certificate& certificate = **leaf;
    const bool valid = certificate.not_before() < now && now < certificate.not_after();
    rows.push_back({secret.name, certificate.is_ca() ? "CA" : "Cert Chain", secret.state, valid ? "true" : "false",
                    certificate.serial(), Date(certificate.not_after()), Date(certificate.not_before())});
  }
  return TableText(rows, 5);
}

}  // namespace wavetank::cli::tables
