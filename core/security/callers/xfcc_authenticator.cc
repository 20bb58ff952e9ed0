#include "core/security/callers/xfcc_authenticator.h"

#include <optional>
#include <utility>

#include "core/base/ip.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

// Cuts at `separator` outside of quotes; nothing if a quote is not closed.
std::optional<std::vector<std::string>> SplitOutsideQuotes(std::string_view text, char separator) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quoted && i + 1 < text.size()) {
      out.back().append(text.substr(i++, 2));
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (c == separator && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return quoted ? std::nullopt : std::optional(std::move(out));
}

std::string Unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::string(value);
  value = value.substr(1, value.size() - 2);
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    out += value[i];
  }
  return out;
}

// CN of a distinguished name, written "CN=a,O=b" or "/CN=a/O=b".
std::string CommonNameOf(std::string_view subject) {
  for (const std::string_view separator : {",", "/"}) {
    size_t begin = 0;
    while (begin <= subject.size()) {
      size_t end = subject.find(separator, begin);
      if (end == std::string_view::npos) end = subject.size();
      std::string_view part = subject.substr(begin, end - begin);
      while (part.starts_with(' ')) part.remove_prefix(1);
      if (part.starts_with("CN=")) return std::string(part.substr(3));
      begin = end + 1;
    }
  }
  return "";
}

absl::Status BadHeader(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("error in parsing xfcc header: {}", what));
}

}  // namespace

absl::StatusOr<std::vector<ForwardedCertificate>> ParseForwardedClientCert(std::string_view header) {
  std::vector<ForwardedCertificate> out;
  const auto elements = SplitOutsideQuotes(header, ',');
  if (!elements) return BadHeader("a quotation mark is not closed");
  for (const std::string& element : *elements) {
    ForwardedCertificate one;
    const std::vector<std::string> pairs = SplitOutsideQuotes(element, ';').value();  // quotes were balanced
    for (const std::string& pair : pairs) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) return BadHeader(fmt::format("\"{}\" is no pair key=value", pair));
      const std::string key = pair.substr(0, equals), value = Unquoted(std::string_view(pair).substr(equals + 1));
      if (key == "URI") {
        one.uri = value;
      } else if (key == "DNS") {
        one.dns_names.push_back(value);
      } else if (key == "Subject") {
        one.common_name = CommonNameOf(value);
      } else if (key != "By" && key != "Hash" && key != "Cert" && key != "Chain") {
        return BadHeader(fmt::format("unknown key \"{}\"", key));
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

bool XfccAuthenticator::Trusts(std::string_view address) const {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;  // no port
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(host);
  if (!ip.ok()) return false;
  for (const std::string& range : trusted_) {
    if (range.find('/') == std::string::npos) continue;
    const absl::StatusOr<IpPrefix> prefix = IpPrefix::Parse(range);
    if (prefix.ok() && prefix->Contains(*ip)) return true;
  }
  return ip->is_loopback();
}

void XfccAuthenticator::Authenticate(const PeerCredentials& peer, AuthenticateCallback done) {
  if (peer.address.empty() || peer.forwarded_client_cert.empty()) return done(Caller{});  // it has nothing to say
  if (!Trusts(peer.address)) {
    return done(absl::UnauthenticatedError(
        fmt::format("caller from {} is not in the trusted network. XfccAuthenticator can not be used", peer.address)));
  }
  const auto certificates = ParseForwardedClientCert(peer.forwarded_client_cert);
  if (!certificates.ok()) return done(absl::UnauthenticatedError(std::string(Message(certificates.status()))));
  Caller caller;
  caller.source = AuthSource::kClientCertificate;
  for (const ForwardedCertificate& one : *certificates) {
    caller.identities.push_back(one.uri);
    caller.identities.insert(caller.identities.end(), one.dns_names.begin(), one.dns_names.end());
    if (!one.common_name.empty()) caller.identities.push_back(one.common_name);
  }
  done(std::move(caller));
}

}  // namespace wavetank::security
