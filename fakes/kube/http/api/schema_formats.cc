#include "fakes/kube/http/api/schema_formats.h"

#include <re2/re2.h>

#include <map>
#include <memory>

#include "core/base/ip.h"
#include "core/kube/time_format.h"
#include "fakes/kube/objects/base64.h"

namespace wavetank::fakekube::http {
namespace {

bool IsCidr(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || text.size() - slash > 4) return false;
  uint32_t length = 0;
  if (!RE2::FullMatch(text.substr(slash + 1), "([0-9]+)", &length)) return false;
  return IpPrefix::Make(text.substr(0, slash), length).ok();
}

bool IsAddress(const std::string& text, bool v4) {
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
  return ip.ok() && ip->is_v4() == v4;
}

// The formats that an expression decides.
const RE2* ExpressionOf(std::string_view format) {
  static const auto* const kExpressions = [] {
    auto* out = new std::map<std::string, std::unique_ptr<RE2>, std::less<>>;
    const auto add = [&](const char* name, const char* expression) {
      (*out)[name] = std::make_unique<RE2>(expression, RE2::Quiet);
    };
    add("date", R"([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))");
    add("duration", R"(-?([0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|m|h|d|w|second|minute|hour|day|week)s?\s*)+|0)");
    add("email", R"([^@\s<>]+@[^@\s<>]+)");
    add("hostname",
        R"(([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?)");
    add("mac", R"(([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2})");
    add("uri", R"(([a-zA-Z][a-zA-Z0-9+.-]*:[^\s]+|/[^\s]*))");
    add("uuid", R"((?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})");
    add("uuid3", R"((?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12})");
    add("uuid4", R"((?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})");
    add("uuid5", R"((?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})");
    add("hexcolor", R"(#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6}))");
    add("bsonobjectid", R"([0-9a-fA-F]{24})");
    return out;
  }();
  const auto it = kExpressions->find(format);
  return it == kExpressions->end() ? nullptr : it->second.get();
}

}  // namespace

bool HasFormat(std::string_view format, const std::string& text) {
  if (format == "date-time" || format == "datetime") return kube::ParseRfc3339(text).has_value();
  if (format == "byte") return Base64Decode(text).has_value();
  if (format == "ipv4") return IsAddress(text, true);
  if (format == "ipv6") return IsAddress(text, false);
  if (format == "cidr") return IsCidr(text);
  const RE2* expression = ExpressionOf(format);
  return expression == nullptr || RE2::FullMatch(text, *expression);
}

}  // namespace wavetank::fakekube::http
