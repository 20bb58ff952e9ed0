#include "sim/signing/istio_csr_settings.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/bounds.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/signing/istio_csr_flags.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kImage = "cert-manager-istio-csr";

// The container's entry point is the program; a `command` takes its place.
std::vector<std::string> WordsOf(const json& container) {
  std::vector<std::string> out;
  for (const json& word : Items(At(container, "command"))) out.push_back(TextOf(word));
  if (!out.empty()) out.erase(out.begin());
  for (const json& word : Items(At(container, "args"))) out.push_back(TextOf(word));
  return out;
}

// What net.Listen says of an address (Go: net/dial.go, net/port.go); empty: it listens, at `port`.
std::string ListenComplaint(const std::string& address, uint16_t* port, std::string* host) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return fmt::format("listen tcp: address {}: missing port in address", address);
  *host = address.substr(0, colon);
  const std::string said = address.substr(colon + 1);
  if (host->starts_with('[') && host->ends_with(']')) {
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != host->npos) {
    return fmt::format("listen tcp: address {}: too many colons in address", address);
  }
  const bool number = said.find_first_not_of("0123456789", said.starts_with('-') || said.starts_with('+')) == said.npos;
  uint32_t parsed = 0;
  if (!number) {
    // The names that Go knows without a file of services.
    static const std::map<std::string, uint16_t, std::less<>> kNames = {
        {"domain", 53}, {"ftp", 21}, {"http", 80}, {"https", 443}, {"imaps", 993}, {"smtp", 25}, {"ssh", 22}};
    const auto named = kNames.find(said);
    if (named == kNames.end()) return fmt::format("listen tcp: lookup tcp/{}: unknown port", said);
    parsed = named->second;
  } else if (!said.empty() && (!absl::SimpleAtoi(said, &parsed) || parsed > 65535)) {
    return fmt::format("listen tcp: address {}: invalid port", said);
  }
  if (!host->empty() && *host != "localhost" && !IpAddress::Parse(*host).ok())
    return fmt::format("listen tcp: lookup {}: no such host", *host);
  *port = static_cast<uint16_t>(parsed);
  return {};
}

// As it checks them before it begins, in that order (istio-csr: cmd/app/options/options.go, Complete;
// cmd/app/app.go; pkg/istiodcert/options.go, Validate).
std::string WhyItEnds(const IstioCsrFlags& flags, const IstioCsrSettings& is) {
  const std::string format = absl::AsciiStrToLower(flags.Text("log-format", "text"));
  if (!format.empty() && format != "json" && format != "text")
    return "invalid log-format; must be either \"text\" or \"json\"";
  if (is.serving_names.empty()) return "the list of DNS names to add to the serving certificate is empty";
  if (const int64_t at_once = flags.Integer("max-concurrent-reconciles", 1); at_once < 1)
    return fmt::format("max-concurrent-reconciles must be at least 1, got {}", at_once);
  if (is.makes_istiod_certificate) {
    std::vector<std::string> errors;
    if (is.istiod_renew_before >= is.istiod_lifetime) {
      errors.push_back(fmt::format("istiod certificate renew-before {} must be smaller than the requested duration {}",
                                   GoDurationText(is.istiod_renew_before / 1ns),
                                   GoDurationText(is.istiod_lifetime / 1ns)));
    }
    const std::string algorithm = absl::AsciiStrToUpper(flags.Text("istiod-cert-key-algorithm", "RSA"));
    const int64_t size = flags.Integer("istiod-cert-key-size", 2048);
    if (algorithm == "RSA" && size != 0 && size < 2048) {
      errors.push_back(fmt::format("istio certificate RSA key size must be at least 2048 bits, but got {}", size));
    } else if (algorithm == "ECDSA" && size != 0 && size != 256 && size != 384) {
      errors.emplace_back("istio certificate private key of type ECDSA must have 'size' equal to either 256 or 384");
    } else if (algorithm != "RSA" && algorithm != "ECDSA") {
      errors.push_back(fmt::format("invalid key algorithm \"{}\"; valid values are RSA and ECDSA", algorithm));
    }
    if (!errors.empty()) return fmt::format("{}", fmt::join(errors, "\n"));
  }
  const bool named = is.issuer && !(is.issuer->name.empty() && is.issuer->kind.empty() && is.issuer->group.empty());
  for (const auto& [field, said] :
       {std::pair("Name", is.issuer ? is.issuer->name : ""), std::pair("Kind", is.issuer ? is.issuer->kind : ""),
        std::pair("Group", is.issuer ? is.issuer->group : "")}) {
    if (!named || !said.empty()) continue;
    return fmt::format(
        "failed to initialise cert-manager manager: invalid issuerRef passed at startup: issuerRef.{} is a required "
        "field if any field is set for issuerRef",
        field);
  }
  if (!named && is.issuer_map.empty()) {
    return "failed to initialise cert-manager manager: runtime configuration parameters for name and namespace are "
           "required if no issuerRef is provided on startup";
  }
  uint16_t port = 0;
  std::string host;
  const std::string probes = fmt::format("0.0.0.0:{}", flags.Integer("readiness-probe-port", 6060));
  if (const std::string why = ListenComplaint(probes, &port, &host); !why.empty())
    return fmt::format("failed to create manager: error listening on {}: {}", probes, why);
  const std::string tls = flags.Text("serving-tls-min-version", "");
  if (tls == "VersionTLS10" || tls == "VersionTLS11")
    return "failed to create tls provider: serving tls min version must be VersionTLS12 or higher";
  if (!tls.empty() && tls != "VersionTLS12" && tls != "VersionTLS13")
    return fmt::format("failed to create tls provider: serving tls min version: unknown tls version \"{}\"", tls);
  const std::string metrics = fmt::format("0.0.0.0:{}", flags.Integer("metrics-port", 9402));
  std::string why = ListenComplaint(metrics, &port, &host);
  if (why.empty() && metrics == probes) why = fmt::format("listen tcp {}: bind: address already in use", metrics);
  return why.empty() ? "" : fmt::format("failed to start metrics server: failed to create listener: {}", why);
}

// Of a tag v0.N...; what is none is taken for a new one.
bool IsBefore(const std::string& tag, int minor) {
  int said = 0;
  const std::vector<std::string> parts = absl::StrSplit(tag, '.');
  return parts.size() > 1 && parts[0] == "v0" && absl::SimpleAtoi(parts[1], &said) && said < minor;
}

// istio-csr: pkg/tls/tls.go, fetchCertificate(), and istio: security/pkg/pki/util/generate_csr.go.
std::string WhyNoRequest(const IstioCsrFlags& flags, const std::string& tag) {
  const std::string algorithm = flags.Text("serving-signature-algorithm", "RSA");
  const int64_t size = flags.Integer("serving-certificate-key-size", 2048);
  if (algorithm == "RSA") {
    if (size >= 2048) return {};
    return fmt::format(
        "failed to generate serving private key and CSR: requested key size does not meet the minimum requied size of "
        "2048 (requested: {})",
        size);
  }
  if (algorithm != "ECDSA")
    return fmt::format("unknown signature algorithm (supported: \"RSA\", \"ECDSA\"): {}", algorithm);
  if (size == 256 || size == 384 || IsBefore(tag, 9)) return {};
  return fmt::format("unsupported serving certificate key size (supported: 256, 384): {}", size);
}

}  // namespace

std::optional<IstioCsrSettings> IstioCsrSettings::Of(const json& pod) {
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    std::string image = Text(container, "image");
    image = image.substr(image.rfind('/') + 1);
    const size_t end = image.find_first_of(":@");
    if (image.substr(0, end) != kImage) continue;
    const std::string tag = end == image.npos ? "" : image.substr(end + 1);
    IstioCsrSettings out;
    out.container = Text(container, "name");
    const absl::StatusOr<IstioCsrFlags> read = IstioCsrFlags::Parse(WordsOf(container));
    if (!read.ok()) {
      out.ends = std::string(Message(read.status()));
      return out;
    }
    const IstioCsrFlags& flags = *read;
    const auto span = [&flags](std::string_view name, Duration usual) {
      return std::clamp<Duration>(flags.Span(name, usual), -bounds::kInputDuration, bounds::kInputDuration);
    };
    out.certificate_namespace = flags.Text("certificate-namespace", out.certificate_namespace);
    out.issuer = IssuerName{flags.Text("issuer-name", out.issuer->name), flags.Text("issuer-kind", out.issuer->kind),
                            flags.Text("issuer-group", out.issuer->group)};
    if (!flags.Truth("issuer-enabled", true)) out.issuer = std::nullopt;
    out.issuer_map_namespace = flags.Text("runtime-issuance-config-map-namespace", "");
    // Both are needed (istio-csr: pkg/certmanager/certmanager.go, HasRuntimeConfiguration).
    if (!out.issuer_map_namespace.empty()) out.issuer_map = flags.Text("runtime-issuance-config-map-name", "");
    out.preserve_requests = flags.Truth("preserve-certificate-requests", false);
    out.trust_domain = flags.Text("trust-domain", out.trust_domain);
    out.roots_file = flags.Text("root-ca-file", "");
    out.serving_names = flags.List("serving-certificate-dns-names", {"cert-manager-istio-csr.cert-manager.svc"});
    out.serving_lifetime = span("serving-certificate-duration", out.serving_lifetime);
    out.max_client_lifetime = span("max-client-certificate-duration", out.max_client_lifetime);
    out.cluster_id = flags.Text("cluster-id", out.cluster_id);
    out.client_certificates = flags.Truth("enable-client-cert-authenticator", false);
    out.leader_namespace = flags.Text("leader-election-namespace", out.leader_namespace);
    out.makes_istiod_certificate = flags.Truth("istiod-cert-enabled", false);
    out.istiod_certificate = flags.Text("istiod-cert-name", out.istiod_certificate);
    out.istiod_namespace = flags.Text("istiod-cert-namespace", out.istiod_namespace);
    out.istiod_lifetime = span("istiod-cert-duration", out.istiod_lifetime);
    out.istiod_renew_before = span("istiod-cert-renew-before", out.istiod_renew_before);
    out.istiod_revisions = flags.List("istiod-cert-istio-revisions", out.istiod_revisions);
    out.istiod_more_names = flags.List("istiod-cert-additional-dns-names", {});
    for (const char* name : {"configmap-namespace-selector", "ca-trusted-node-accounts"}) {
      if (!flags.Text(name, "").empty()) out.unheeded.push_back(fmt::format("--{}", name));
    }
    out.ends = WhyItEnds(flags, out);
    out.no_request = WhyNoRequest(flags, tag);
    const std::string address = flags.Text("serving-address", "0.0.0.0:6443");
    std::string host;
    if (const std::string why = ListenComplaint(address, &out.port, &host); !why.empty())
      out.ends_when_serving = fmt::format("failed to listen {}: {}", address, why);
    const absl::StatusOr<IpAddress> at = IpAddress::Parse(host);
    out.serves_itself = host == "localhost" || (at.ok() && at->is_loopback());
    return out;
  }
  return std::nullopt;
}

std::string EndsWith(const std::string& container, const std::string& error) {
  std::string quoted;
  for (const char c : error) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? "\\n" : std::string(1, c);
  }
  return fmt::format("container {} ends: \"error running cert-manager-istio-csr\" err=\"{}\"", container, quoted);
}

}  // namespace wavetank::sim
