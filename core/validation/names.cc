#include "core/validation/names.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/config/schema/cipher_suites.h"
#include "core/profile/changes.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::validation {
namespace {

std::string LabelsOf(const std::string& domain) {
  const std::vector<std::string> parts = absl::StrSplit(domain, '.');
  int64_t number = 0;
  if (absl::SimpleAtoi(parts.back(), &number)) {
    return fmt::format("domain name {} invalid (top level domain {} cannot be all-numeric)", Quoted(domain),
                       Quoted(parts.back()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 == parts.size() && parts[i].empty()) return "";  // "istio.io."
    if (!IsDnsLabel(parts[i])) {
      return fmt::format("domain name {} invalid (label {} invalid)", Quoted(domain), Quoted(parts[i]));
    }
  }
  return "";
}

std::string Preconditions(const std::string& domain) {
  if (domain.size() > 255) return fmt::format("domain name {} too long (max 255)", Quoted(domain));
  return domain.empty() ? "empty domain name not allowed" : "";
}

bool IsInternal(const std::string& name) { return name.starts_with(':') || absl::EqualsIgnoreCase(name, "host"); }

std::string UsedHeader(const std::string& name, HeaderUse use) {
  if (name.empty()) return "header name cannot be empty";
  const bool host = absl::EqualsIgnoreCase(name, "host");
  if (use == HeaderUse::kOther && host) return fmt::format("invalid header {}: cannot set Host header", Quoted(name));
  const bool allowed =
      (use == HeaderUse::kRequest && IsAuthorityHeader(name)) || (use == HeaderUse::kDestination && host);
  if (IsInternal(name) && !allowed)
    return fmt::format("invalid header {}: header cannot have \":\" prefix", Quoted(name));
  return "";
}

void OneSide(const json& operations, HeaderUse use, Problems& out) {
  for (const char* list : {"add", "set"}) {
    const json& values = Member(operations, list);
    if (!values.is_object()) continue;
    for (const auto& [name, value] : values.items()) {
      out.Add(UsedHeader(name, use));
      out.Add(HeaderValue(TextOf(value)));
    }
  }
  for (const json& name : Items(Member(operations, "remove"))) out.Add(UsedHeader(TextOf(name), HeaderUse::kOther));
}

}  // namespace

std::string Problems::Text() const {
  if (all_.empty()) return "";
  if (all_.size() == 1 && !listed_) return all_.front();
  std::string out = all_.size() == 1 ? "1 error occurred:\n" : fmt::format("{} errors occurred:\n", all_.size());
  for (const std::string& one : all_) out += "\t* " + one + "\n";
  return out + "\n";
}

const json& Member(const json& in, std::string_view camel) {
  const json& found = At(in, camel);
  if (!found.is_null()) return found;
  std::string snake;
  for (const char c : camel) {
    if (c >= 'A' && c <= 'Z') snake += '_';
    snake += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return At(in, snake);
}
std::string MemberText(const json& in, std::string_view camel) { return TextOf(Member(in, camel)); }
double MemberDouble(const json& in, std::string_view camel) {
  const json& value = Member(in, camel);
  double number = 0;
  if (value.is_string()) return absl::SimpleAtod(value.get_ref<const std::string&>(), &number) ? number : 0;
  return value.is_number() ? value.get<double>() : 0;
}
int MemberEnum(const json& in, std::string_view camel, absl::Span<const std::string_view> names) {
  const json& value = Member(in, camel);
  if (value.is_string()) {
    const auto* const found = std::find(names.begin(), names.end(), value.get_ref<const std::string&>());
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
  }
  return static_cast<int>(std::clamp<int64_t>(NumberOf(value), -1, 1000));
}
const json& Mapping(const json& in) {
  static const auto* const empty = new json(json::object());
  return in.is_object() ? in : *empty;
}
bool Has(const json& in, std::string_view camel) { return !Member(in, camel).is_null(); }
int64_t MemberNumber(const json& in, std::string_view camel) {
  const json& value = Member(in, camel);
  int64_t number = 0;
  if (value.is_string()) return absl::SimpleAtoi(value.get_ref<const std::string&>(), &number) ? number : 0;
  return NumberOf(value);
}

bool IsDnsLabel(std::string_view text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

std::string WildcardDomain(const std::string& domain) {
  if (std::string problem = Preconditions(domain); !problem.empty()) return problem;
  const size_t dot = domain.find('.');
  const std::string first = domain.substr(0, dot);
  // "*", "*suffix", "*-suffix", or a label.
  const bool wildcard = first == "*" || (first.size() <= 63 && first.starts_with('*') &&
                                         IsDnsLabel(std::string_view(first).substr(first.starts_with("*-") ? 2 : 1)));
  if (!wildcard && !IsDnsLabel(first)) {
    return fmt::format("domain name {} invalid (label {} invalid)", Quoted(domain), Quoted(first));
  }
  return dot == std::string::npos ? "" : LabelsOf(domain.substr(dot + 1));
}

std::string Fqdn(const std::string& domain) {
  std::string problem = Preconditions(domain);
  return problem.empty() ? LabelsOf(domain) : problem;
}

std::string PortNumber(int64_t port) {
  return port >= 1 && port <= 65535 ? "" : fmt::format("port number {} must be in the range 1..65535", port);
}

bool IsIp(const std::string& text) { return AddressError(text).empty(); }
std::string Ip(const std::string& address) { return IsIp(address) ? "" : address + " is not a valid IP"; }

std::string IpSubnet(const std::string& subnet) {
  if (std::count(subnet.begin(), subnet.end(), '/') != 1) return Ip(subnet);
  return PrefixError(subnet).empty() ? "" : subnet + " is not a valid CIDR block";
}

std::string UnixAddress(std::string_view path) {
  if (path.empty()) return "unix address must not be empty";
  if (path.starts_with('@')) return "";  // an abstract socket
  return path.starts_with('/') && !path.ends_with('/') ? "" : fmt::format("{} is not an absolute path to a file", path);
}

std::string PartialWildcard(const std::string& host) {
  if (host.find('*') == std::string::npos || host == "*" || host.starts_with("*.")) return "";
  return fmt::format("partial wildcard {} not allowed", Quoted(host));
}

std::string PortName(const std::string& name) { return IsDnsLabel(name) ? "" : "invalid port name: " + name; }

pilot::Protocol ProtocolOf(const std::string& name) {
  const pilot::Protocol protocol = pilot::ParseProtocol(name);
  return protocol == pilot::Protocol::kHbone ? pilot::Protocol::kUnsupported : protocol;
}

std::string ProtocolName(const std::string& protocol) {
  const bool known = protocol.empty() || ProtocolOf(protocol) != pilot::Protocol::kUnsupported;
  return known ? "" : "unsupported protocol: " + protocol;
}

std::string DurationText(const json& duration) {
  if (duration.is_null()) return "";
  const std::optional<Duration> value = ParseGoDuration(TextOf(duration));
  if (!value.has_value()) return "";  // the decoder refuses it before
  if (*value < 1ms) return "duration must be greater than 1ms";
  return *value % 1ms != Duration::zero() ? "only durations to ms precision are supported" : "";
}

std::string Percent(int64_t value) {
  return value < 0 || value > 100 ? fmt::format("percentage {} is not in range 0..100", value) : "";
}

bool IsAuthorityHeader(const std::string& name) {
  return absl::EqualsIgnoreCase(name, "host") || absl::EqualsIgnoreCase(name, ":authority");
}

std::string HeaderName(const std::string& name) { return name.empty() ? "header name cannot be empty" : ""; }

void Headers(const json& headers, HeaderUse request, Problems& out) {
  OneSide(Member(headers, "request"), request, out);
  OneSide(Member(headers, "response"), HeaderUse::kOther, out);
}

std::string Regex(const json& match, const std::string& where) {
  const json& regex = Member(match, "regex");
  if (!regex.is_string()) return "";
  const std::string& text = regex.get_ref<const std::string&>();
  if (text.empty()) return fmt::format("{}: regex string match should not be empty", Quoted(where));
  if (text.size() > 1024) return fmt::format("{}: regex is too large, max length allowed is 1024", Quoted(where));
  const std::string error = RegexError(text);
  if (error.empty()) return "";
  return fmt::format("{}: {}; Istio uses RE2 style regex-based match (https://github.com/google/re2/wiki/Syntax)",
                     Quoted(where), error);
}

void GatewayNames(const json& names, Problems& out) {
  for (const json& entry : Items(names)) {
    const std::string name = TextOf(entry);
    const size_t slash = name.find('/');
    if (slash == std::string::npos) {
      if (const size_t dot = name.find('.'); dot != std::string::npos) {
        const size_t next = name.find('.', dot + 1);
        const std::string better =
            name.substr(dot + 1, next == std::string::npos ? next : next - dot - 1) + "/" + name.substr(0, dot);
        out.Warn(fmt::format("using legacy gatewayName format {}; prefer the <namespace>/<name> format: {}",
                             Quoted(name), Quoted(better)));
      }
      return out.Add(Fqdn(name));  // 1.18.2 looks no further
    }
    const std::string ns = name.substr(0, slash), gateway = name.substr(slash + 1);
    if (ns.empty() || gateway.empty()) out.Add("config namespace and gateway name cannot be empty");
    if (!IsDnsLabel(ns)) out.Add("invalid value for namespace: " + Quoted(ns));
    if (!IsDnsLabel(gateway)) out.Add("invalid value for gateway name: " + Quoted(gateway));
  }
}

void ExportTo(const std::string& ns, const json& export_to, Exported what, Problems& out) {
  std::set<std::string> seen;
  const size_t entries = Items(export_to).size();
  for (const json& entry : Items(export_to)) {
    const std::string said = TextOf(entry), key = said == "." ? ns : said;
    if (seen.contains(key)) {
      out.Add(key != said ? "duplicate entries in exportTo: . and current namespace " + ns
                          : "duplicate entries in exportTo for entry " + said);
    } else if (key == "~" && what != Exported::kServiceEntry) {
      out.Add("exportTo ~ (none) is not allowed for Istio configuration objects");
    } else if (key != "*" && key != "." && key != "~" && !IsDnsLabel(key)) {
      out.Add("only .,*, or a valid DNS 1123 label is allowed as exportTo entry");
    } else {
      seen.insert(key);
    }
  }
  if (what == Exported::kRuleWithSelector && !seen.empty()) {
    if (!seen.contains(ns)) {
      out.Add("destination rule with workload selector cannot have exportTo beyond current namespace");
    } else if (seen.size() > 1) {
      out.Add("destination rule with workload selector cannot have multiple entries in exportTo");
    }
  }
  if (seen.contains("*") && entries > 1) {
    out.Add("cannot have both public (*) and non-public exportTo values for a resource");
  }
  if (seen.contains("~") && entries > 1) out.Add("cannot export service entry to no one (~) and someone");
}

void LabelMap(const json& labels, Problems& out) {
  constexpr size_t kLongestPrefix = 253, kLongestName = 63;
  static const auto* const kTag = new re2::RE2(
      "([a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?"
      "((?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])");
  static const auto* const kValue = new re2::RE2("((?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
  for (const auto& [name, value] : Mapping(labels).items()) {
    std::string prefix, plain;
    if (!re2::RE2::FullMatch(name, *kTag, &prefix, &plain)) {
      out.AddToList("invalid tag key: " + Quoted(name));
    } else if (prefix.size() > kLongestPrefix + 1) {
      out.AddToList(fmt::format("invalid tag key: {} (DNS prefix is too long)", Quoted(name)));
    } else if (plain.size() > kLongestName) {
      out.AddToList(fmt::format("invalid tag key: {} (name is too long)", Quoted(name)));
    }
    const std::string text = TextOf(value);
    if (!re2::RE2::FullMatch(text, *kValue)) out.AddToList("invalid tag value: " + Quoted(text));
  }
}

void Selector(const json& selector, std::string_view field, const std::string& before, const std::string& after,
              Problems& out) {
  if (!selector.is_object()) return;
  const json& labels = Mapping(Member(selector, field));
  for (const auto& [name, value] : labels.items()) {
    const std::string text = TextOf(value), both = Quoted(fmt::format("{}={}", name, text));
    if (name.empty()) out.Add("empty key is not supported in selector: " + both);
    if (name.find('*') != std::string::npos || text.find('*') != std::string::npos) {
      out.Add("wildcard is not supported in selector: " + both);
    }
  }
  if (labels.empty()) out.Warn(before + "workload selector specified without labels" + after);
}

void HostInNamespace(const std::string& text, bool gateway, Problems& out) {
  std::string host = text;
  if (const size_t slash = text.find('/'); slash != std::string::npos) {
    const std::string ns = text.substr(0, slash);
    host = text.substr(slash + 1);
    if (ns.empty() || host.empty()) out.Add("config namespace and dnsName in host entry cannot be empty");
    if (ns != "*" && ns != "." && (ns != "~" || gateway) && !IsDnsLabel(ns)) {
      out.Add(fmt::format("invalid namespace value {} in {}", Quoted(ns), gateway ? "gateway" : "sidecar"));
    }
  } else if (!gateway) {
    return out.Add("host must be of form namespace/dnsName");
  }
  if (host != "*" && host.find('.') == std::string::npos) out.Add("short names (non FQDN) are not allowed");
  if (const std::string problem = WildcardDomain(host); !problem.empty()) {
    if (!gateway) out.Add(problem);  // 1.18.2 says it twice
    if (!IsIp(host)) out.Add(problem);
  }
  out.Add(PartialWildcard(host));
}

ServerTlsMode ModeOf(const json& tls) {
  return static_cast<ServerTlsMode>(MemberEnum(
      tls, "mode", {"PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"}));
}
std::string_view ModeName(ServerTlsMode mode) {
  switch (mode) {
    case ServerTlsMode::kPassthrough:
      return "PASSTHROUGH";
    case ServerTlsMode::kSimple:
      return "SIMPLE";
    case ServerTlsMode::kMutual:
      return "MUTUAL";
    case ServerTlsMode::kAutoPassthrough:
      return "AUTO_PASSTHROUGH";
    case ServerTlsMode::kIstioMutual:
      return "ISTIO_MUTUAL";
    case ServerTlsMode::kOptionalMutual:
      return "OPTIONAL_MUTUAL";
  }
  return "";
}

void ServerTls(const json& tls, Problems& out) {
  if (!tls.is_object()) return;
  const ServerTlsMode mode = ModeOf(tls);
  const int least = MemberEnum(tls, "minProtocolVersion", {"TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"});
  const json& suites = Items(Member(tls, "cipherSuites"));
  if ((least == 1 || least == 2) && suites.empty()) {
    out.Warn(
        "TLS version below TLSV1_2 require setting compatible ciphers as by default they no longer include compatible "
        "ciphers.");
  }
  std::set<std::string> invalid, valid, twice;
  for (const json& entry : suites) {
    const std::string suite = TextOf(entry);
    if (!config::IsKnownCipherSuite(suite)) {
      invalid.insert(suite);
    } else if (!valid.insert(suite).second) {
      twice.insert(suite);
    }
  }
  if (!invalid.empty()) out.Warn(fmt::format("ignoring invalid cipher suites: [{}]", fmt::join(invalid, " ")));
  if (!twice.empty()) out.Warn(fmt::format("ignoring duplicate cipher suites: [{}]", fmt::join(twice, " ")));
  const auto given = [&](const char* name) { return !MemberText(tls, name).empty(); };
  const auto listed = [&](const char* name) { return !Items(Member(tls, name)).empty(); };
  const bool several = out.Has(pilot::Change::kSeveralCertificates);
  if (mode == ServerTlsMode::kIstioMutual) {
    if (given("serverCertificate")) out.Add("ISTIO_MUTUAL TLS cannot have associated server certificate");
    if (given("privateKey")) out.Add("ISTIO_MUTUAL TLS cannot have associated private key");
    if (given("caCertificates")) out.Add("ISTIO_MUTUAL TLS cannot have associated CA bundle");
    if (several && listed("tlsCertificates")) out.Add("ISTIO_MUTUAL TLS cannot have associated tlsCertificates");
    if (given("credentialName")) out.Add("ISTIO_MUTUAL TLS cannot have associated credentialName");
    if (several && listed("credentialNames")) out.Add("ISTIO_MUTUAL TLS cannot have associated credentialNames");
    return;
  }
  const bool names_list = several && listed("credentialNames"), files_list = several && listed("tlsCertificates");
  const bool crl = out.Has(pilot::Change::kRevocationFiles) && given("caCrl");
  if (mode == ServerTlsMode::kPassthrough || mode == ServerTlsMode::kAutoPassthrough) {
    if (given("serverCertificate") || given("privateKey") || given("caCertificates") || given("credentialName") ||
        names_list || files_list || crl) {
      out.Warn(fmt::format("{} mode does not use certificates, they will be ignored", ModeName(mode)));
    }
    return;
  }
  if (several &&
      given("credentialName") + names_list + files_list + (given("serverCertificate") && given("privateKey")) > 1) {
    out.Add(
        "only one of credential_name, credential_names, server_certificate/private_key, tls_certificates should be "
        "specified");
  }
  if (given("credentialName") || names_list) return;
  const bool mutual = mode == ServerTlsMode::kMutual || mode == ServerTlsMode::kOptionalMutual;
  // istiod: validateTLSOptions. A release that knows OPTIONAL_MUTUAL asks for the CA first, and says MUTUAL of both.
  const bool ca_first = out.Has(pilot::Change::kOptionalMutual);
  const std::string_view called = mutual ? "MUTUAL" : "SIMPLE";
  const auto ask_for_ca = [&] {
    if (mutual && !given("caCertificates")) out.Add("MUTUAL TLS requires a client CA bundle");
  };
  if (ca_first) ask_for_ca();
  const json& files = Items(Member(tls, "tlsCertificates"));
  if (files_list && files.size() > 2) {
    out.Warn(fmt::format("{} TLS can support up to 2 server certificates", called));
  }
  const auto ask_for_pair = [&](const json& in) {
    if (MemberText(in, "serverCertificate").empty())
      out.Add(fmt::format("{} TLS requires a server certificate", called));
    if (MemberText(in, "privateKey").empty()) out.Add(fmt::format("{} TLS requires a private key", called));
  };
  if (files_list) {
    for (const json& pair : files) ask_for_pair(pair);
  } else {
    ask_for_pair(tls);
  }
  if (!ca_first) ask_for_ca();
  if (crl && mode == ServerTlsMode::kSimple) out.Add("CRL is not supported with SIMPLE TLS");
}

void Destination(const json& destination, Problems& out) {
  if (!destination.is_object()) return;
  const std::string host = MemberText(destination, "host");
  out.Add(host == "*" ? "invalid destination host *" : WildcardDomain(host));
  const std::string subset = MemberText(destination, "subset");
  if (!subset.empty() && !IsDnsLabel(subset)) out.Add("subset name is invalid: " + subset);
  if (const json& port = Member(destination, "port"); port.is_object()) {
    out.Add(PortNumber(MemberNumber(port, "number")));
  }
}

}  // namespace wavetank::validation
