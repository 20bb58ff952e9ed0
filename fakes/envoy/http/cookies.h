// The cookies of a request's head.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank::envoysim {

struct RequestSpec;

// The value of the first cookie of that name in a header's value `cookies`, without quotes around it; nothing if it is
// empty. Envoy: source/common/http/utility.cc, forEachCookie and parseCookieValue
std::optional<std::string_view> NamedCookie(std::string_view cookies, std::string_view name);

// The same of all headers `cookie` of a request.
std::optional<std::string> FindCookie(const RequestSpec& request, std::string_view name);

}  // namespace wavetank::envoysim
