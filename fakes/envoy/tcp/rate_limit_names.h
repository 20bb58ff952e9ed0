// How a rate limit service is asked and answers in the model, where messages' fields are headers.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_replace.h"

namespace wavetank::envoysim {

inline constexpr char kRateLimitMethod[] = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
// Of the question: the domain, and for each descriptor its pairs "key=value" with "|" between them; "%", "|" and "=" of
// keys and values, which clients choose, are written as in URLs.
inline constexpr char kRateLimitDomain[] = "ratelimit.domain";
inline constexpr char kRateLimitDescriptor[] = "ratelimit.descriptor";
inline std::string EscapedForLimiter(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"%", "%25"}, {"|", "%7C"}, {"=", "%3D"}});
}
inline std::string UnescapedByLimiter(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"%25", "%"}, {"%7C", "|"}, {"%3D", "="}});
}
// Of the answer: whether it is over the limit; for each descriptor that has one "requests/window in seconds/remaining/
// seconds to reset/name"; and, after this prefix, headers for the client.
inline constexpr char kRateLimitOver[] = "ratelimit.over";
inline constexpr char kRateLimitStatus[] = "ratelimit.status";
inline constexpr char kRateLimitReply[] = "ratelimit.reply.";

}  // namespace wavetank::envoysim
