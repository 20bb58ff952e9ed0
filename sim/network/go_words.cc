#include "sim/network/go_words.h"

#include <vector>

#include "core/base/ip.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::sim {

namespace {

// Go: crypto/x509/verify.go, matchHostnames.
bool IsFor(const std::vector<std::string>& names, std::string_view host) {
  for (const std::string_view name : names) {
    if (name == host) return true;
    const size_t dot = host.find('.');
    if (name.starts_with("*.") && dot != host.npos && name.substr(1) == host.substr(dot)) return true;
  }
  return false;
}

// Empty: it is in force.
std::string OutOfDate(const x509::Certificate& certificate, Time now) {
  const bool over = now >= certificate.not_after();
  if (!over && now >= certificate.not_before()) return "";
  return fmt::format("certificate has expired or is not yet valid: current time {} is {} {}", x509::Rfc3339(now),
                     over ? "after" : "before",
                     x509::Rfc3339(over ? certificate.not_after() : certificate.not_before()));
}

// In Go's order: the leaf's time, its names, then its issuers.
std::string WhyRefused(const std::vector<x509::CertificateRef>& chain, std::string_view server_name, bool san_mismatch,
                       Time now) {
  if (std::string why = OutOfDate(*chain.front(), now); !why.empty()) return why;
  const std::vector<std::string>& names = chain.front()->sans().dns_names;
  if (san_mismatch || !IsFor(names, server_name)) {
    // Go: crypto/x509/verify.go, HostnameError. Istio's certificates name no addresses.
    if (IpAddress::Parse(server_name).ok()) {
      return fmt::format("cannot validate certificate for {} because it doesn't contain any IP SANs", server_name);
    }
    if (names.empty())
      return fmt::format("certificate is not valid for any names, but wanted to match {}", server_name);
    return fmt::format("certificate is valid for {}, not {}", fmt::join(names, ", "), server_name);
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (std::string why = OutOfDate(*chain[i], now); !why.empty()) return why;
  }
  return "certificate signed by unknown authority";
}

}  // namespace

std::string GoTlsRefusal(const envoysim::TlsServer& server, std::string_view server_name, bool san_mismatch, Time now) {
  if (server.certificate == nullptr || server.certificate->certificates.empty())
    return "tls: server did not present a certificate";
  return "tls: failed to verify certificate: x509: " +
         WhyRefused(server.certificate->certificates, server_name, san_mismatch, now);
}

std::string GrpcDialFailure(const SocketAddress& to, std::string_view what) {
  return fmt::format("connection error: desc = \"transport: Error while dialing: dial tcp {}: {}\"", to.ToString(),
                     what);
}

std::string GrpcHandshakeFailure(std::string_view what) {
  return fmt::format("connection error: desc = \"transport: authentication handshake failed: {}\"", what);
}

}  // namespace wavetank::sim
