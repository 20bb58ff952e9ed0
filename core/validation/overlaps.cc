// Routes of a VirtualService that no request reaches, of which istiod warns (istiod: validation.go,
// analyzeUnreachable*Rules, coveredValidation).
#include <map>
#include <optional>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/proto_json_name.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

// A match as one text for all that mean the same: its name and what says nothing left out.
std::string SameText(const json& match) {
  json out = json::object();
  for (const auto& [name, value] : Mapping(match).items()) {
    const std::string field = ProtoJsonName(name);
    const bool nothing =
        value.is_null() || value == "" || value == 0 || value == false || (value.is_array() && value.empty());
    const bool empty_map =
        value.is_object() && value.empty() &&
        (field == "headers" || field == "withoutHeaders" || field == "queryParams" || field == "sourceLabels");
    if (field == "name" || nothing || empty_map) continue;
    out[field] = value;
  }
  return JsonText(out);
}

std::string NameOf(const json& in, size_t number) {
  const std::string name = MemberText(in, "name");
  return name.empty() ? fmt::format("#{}", number) : Quoted(name);
}

// A match of a prefix, as far as the look for overlaps goes.
struct PrefixMatch {
  std::string route, match, prefix, method, authority;
  int64_t port = 0;
  std::map<std::string, std::string> headers, parameters, without;
};

std::string ExactOrPrefix(const json& match) {
  if (const std::string exact = MemberText(match, "exact"); !exact.empty()) return "exact:" + exact;
  const std::string prefix = MemberText(match, "prefix");
  return prefix.empty() ? "" : "prefix:" + prefix;
}

std::map<std::string, std::string> ExactsOrPrefixes(const json& matches) {
  std::map<std::string, std::string> out;
  for (const auto& [name, match] : Mapping(matches).items()) out[name] = ExactOrPrefix(match);
  return out;
}

std::optional<PrefixMatch> ReadPrefixMatch(const json& route, size_t route_number, const json& match, size_t number) {
  PrefixMatch out;
  // Of a oneof the field that is declared last counts: a regex hides the prefix.
  const json& uri = Member(match, "uri");
  if (Has(uri, "regex")) return std::nullopt;
  out.prefix = MemberText(uri, "prefix");
  if (out.prefix.empty()) return std::nullopt;
  out.route = NameOf(route, route_number);
  out.match = NameOf(match, number);
  out.port = MemberNumber(match, "port");
  out.method = ExactOrPrefix(Member(match, "method"));
  if (out.method.empty()) out.method = "exact:GET";
  out.authority = ExactOrPrefix(Member(match, "authority"));
  out.headers = ExactsOrPrefixes(Member(match, "headers"));
  out.parameters = ExactsOrPrefixes(Member(match, "queryParams"));
  out.without = ExactsOrPrefixes(Member(match, "withoutHeaders"));
  return out;
}

bool CoversAll(const std::map<std::string, std::string>& earlier, const std::map<std::string, std::string>& later) {
  if (earlier.size() != later.size()) return false;
  for (const auto& [name, value] : earlier) {
    const auto found = later.find(name);
    if (found == later.end() || !value.starts_with(found->second)) return false;
  }
  return true;
}

bool Covers(const PrefixMatch& earlier, const PrefixMatch& later) {
  return later.prefix.starts_with(earlier.prefix) && earlier.port == later.port &&
         earlier.method.starts_with(later.method) && earlier.authority.starts_with(later.authority) &&
         CoversAll(earlier.headers, later.headers) && CoversAll(earlier.parameters, later.parameters) &&
         CoversAll(earlier.without, later.without);
}

void CheckRoutes(const json& routes, bool http, Problems& out) {
  const auto name = [&](const json& in, size_t number) {
    return http ? NameOf(in, number) : fmt::format("#{}", number);
  };
  const auto unused = [&](const std::string& rule, std::string_view why) {
    out.Warn(fmt::format("virtualService rule {} not used ({})", rule, why));
  };
  const auto ineffective = [&](const std::string& rule, const std::string& match, const std::string& other) {
    out.Warn(fmt::format("virtualService rule {} match {} is not used (duplicate/overlapping match in rule {})", rule,
                         match, other));
  };
  std::map<std::string, size_t> seen;
  std::vector<PrefixMatch> prefixes;
  bool any_empty = false;
  for (size_t i = 0; i < routes.size(); ++i) {
    const json& matches = Items(Member(routes[i], "match"));
    if (matches.empty()) {
      if (any_empty) unused(name(routes[i], i), "only the last rule can have no matches");
      any_empty = true;
      continue;
    }
    size_t twice = 0;
    for (size_t j = 0; j < matches.size(); ++j) {
      const auto [entry, added] = seen.emplace(SameText(matches[j]), i);
      if (!added) {
        ineffective(name(routes[i], i), name(matches[j], j), name(routes[entry->second], entry->second));
        ++twice;
      } else if (http) {
        std::optional<PrefixMatch> prefix = ReadPrefixMatch(routes[i], i, matches[j], j);
        if (prefix) prefixes.push_back(*std::move(prefix));
      }
    }
    if (twice == matches.size()) unused(name(routes[i], i), "all matches used by prior rules");
  }
  for (size_t i = 0; i < prefixes.size(); ++i) {
    for (size_t j = i + 1; j < prefixes.size(); ++j) {
      const PrefixMatch &earlier = prefixes[i], &later = prefixes[j];
      if (earlier.prefix == later.prefix || !Covers(earlier, later)) continue;
      ineffective(later.route, later.match + " of prefix " + later.prefix,
                  fmt::format("{} of prefix {} on {}", earlier.match, earlier.prefix, earlier.route));
    }
  }
}

}  // namespace

void WarnOfUnreachable(const json& spec, Problems& out) {
  CheckRoutes(Items(Member(spec, "http")), true, out);
  CheckRoutes(Items(Member(spec, "tcp")), false, out);
  CheckRoutes(Items(Member(spec, "tls")), false, out);
}

}  // namespace wavetank::validation
