#include "core/validation/names.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/config/schema/proto_json.h"
#include "fmt/format.h"

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
  const bool authority = host || absl::EqualsIgnoreCase(name, ":authority");
  if (use == HeaderUse::kOther && host) return fmt::format("invalid header {}: cannot set Host header", Quoted(name));
  const bool allowed = (use == HeaderUse::kRequest && authority) || (use == HeaderUse::kDestination && host);
  if (IsInternal(name) && !allowed)
    return fmt::format("invalid header {}: header cannot have \":\" prefix", Quoted(name));
  return "";
}

std::string HeaderValue(const std::string& value) {
  const bool bad = std::any_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
  return bad ? fmt::format("header value configuration {} is invalid", value) : "";
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

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
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

bool IsIp(const std::string& text) { return IpAddress::Parse(text).ok(); }

std::string IpSubnet(const std::string& subnet) {
  if (std::count(subnet.begin(), subnet.end(), '/') == 1) {
    return IpPrefix::Parse(subnet).ok() ? "" : subnet + " is not a valid CIDR block";
  }
  return IsIp(subnet) ? "" : subnet + " is not a valid IP";
}

std::string DurationText(const json& duration) {
  if (duration.is_null()) return "";
  const std::optional<Duration> value = config::ParseGoDuration(TextOf(duration));
  if (!value.has_value()) return "";  // the decoder refuses it before
  if (*value < 1ms) return "duration must be greater than 1ms";
  return *value % 1ms != Duration::zero() ? "only durations to ms precision are supported" : "";
}

std::string Percent(int64_t value) {
  return value < 0 || value > 100 ? fmt::format("percentage {} is not in range 0..100", value) : "";
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
  const re2::RE2 compiled(text, re2::RE2::Quiet);
  if (compiled.ok()) return "";
  return fmt::format(
      "{}: error parsing regexp: {}; Istio uses RE2 style regex-based match "
      "(https://github.com/google/re2/wiki/Syntax)",
      Quoted(where), compiled.error());
}

void GatewayNames(const json& names, Problems& out) {
  for (const json& entry : Items(names)) {
    const std::string name = TextOf(entry);
    const size_t slash = name.find('/');
    if (slash == std::string::npos) return out.Add(Fqdn(name));  // 1.18.2 looks no further
    const std::string ns = name.substr(0, slash), gateway = name.substr(slash + 1);
    if (ns.empty() || gateway.empty()) out.Add("config namespace and gateway name cannot be empty");
    if (!IsDnsLabel(ns)) out.Add("invalid value for namespace: " + Quoted(ns));
    if (!IsDnsLabel(gateway)) out.Add("invalid value for gateway name: " + Quoted(gateway));
  }
}

void ExportTo(const std::string& ns, const json& export_to, bool rule_with_selector, Problems& out) {
  std::set<std::string> seen;
  for (const json& entry : Items(export_to)) {
    const std::string said = TextOf(entry), key = said == "." ? ns : said;
    if (seen.contains(key)) {
      out.Add(key != said ? "duplicate entries in exportTo: . and current namespace " + ns
                          : "duplicate entries in exportTo for entry " + said);
    } else if (key == "~") {
      out.Add("exportTo ~ (none) is not allowed for Istio configuration objects");
    } else if (key != "*" && key != "." && !IsDnsLabel(key)) {
      out.Add("only .,*, or a valid DNS 1123 label is allowed as exportTo entry");
    } else {
      seen.insert(key);
    }
  }
  if (rule_with_selector && !seen.empty()) {
    if (!seen.contains(ns)) {
      out.Add("destination rule with workload selector cannot have exportTo beyond current namespace");
    } else if (seen.size() > 1) {
      out.Add("destination rule with workload selector cannot have multiple entries in exportTo");
    }
  }
  if (seen.contains("*") && Items(export_to).size() > 1) {
    out.Add("cannot have both public (*) and non-public exportTo values for a resource");
  }
}

void LabelMap(const json& labels, Problems& out) {
  static const auto* const kTag = new re2::RE2(
      "([a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?"
      "((?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])");
  static const auto* const kValue = new re2::RE2("((?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
  if (!labels.is_object()) return;
  for (const auto& [name, value] : labels.items()) {
    if (!re2::RE2::FullMatch(name, *kTag)) out.AddToList("invalid tag key: " + Quoted(name));
    const std::string text = TextOf(value);
    if (!re2::RE2::FullMatch(text, *kValue)) out.AddToList("invalid tag value: " + Quoted(text));
  }
}

}  // namespace wavetank::validation
