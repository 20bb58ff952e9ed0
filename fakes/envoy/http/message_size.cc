#include "fakes/envoy/http/message_size.h"

#include "absl/strings/numbers.h"
#include "fakes/envoy/http/request_body.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {
namespace {

constexpr size_t kHeader = std::string_view(": \r\n").size();

}  // namespace

uint64_t MessageSize(const RequestSpec& request) {
  constexpr size_t kEnds = std::string_view("  HTTP/1.1\r\nhost: \r\n\r\n").size();
  uint64_t out = request.method.size() + request.path.size() + request.authority.size() + kEnds;
  for (const auto& [name, value] : request.headers) out += name.size() + value.size() + kHeader;
  return out + BodyLength(request).value_or(0);
}

uint64_t MessageSize(uint16_t code, std::string_view headers, std::string_view body, std::string_view trailers) {
  if (code == 0) return 0;
  uint64_t out = std::string_view("HTTP/1.1 200 OK\r\n\r\n").size(), length = body.size();
  ForEachHeader(headers, [&](std::string_view name, std::string_view value) {
    out += name.size() + value.size() + kHeader;
    uint64_t said = 0;
    if (name == "content-length" && absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &said))
      length = said;
  });
  ForEachHeader(trailers,
                [&](std::string_view name, std::string_view value) { out += name.size() + value.size() + kHeader; });
  return out + length;
}

}  // namespace wavetank::envoysim
