#include "fakes/envoy/http/cookies.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {

std::optional<std::string_view> NamedCookie(std::string_view cookies, std::string_view name) {
  const absl::string_view wanted(name.data(), name.size());
  for (const absl::string_view pair : absl::StrSplit(absl::string_view(cookies.data(), cookies.size()), ';')) {
    const size_t equals = pair.find('=');
    if (equals == pair.npos || absl::StripLeadingAsciiWhitespace(pair.substr(0, equals)) != wanted) continue;
    absl::string_view value = pair.substr(equals + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (value.empty()) return std::nullopt;
    return std::string_view(value.data(), value.size());
  }
  return std::nullopt;
}

std::optional<std::string> FindCookie(const RequestSpec& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    if (key != "cookie") continue;
    if (const std::optional<std::string_view> found = NamedCookie(value, name)) return std::string(*found);
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
