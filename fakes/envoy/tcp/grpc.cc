#include "fakes/envoy/tcp/grpc.h"

#include <charconv>
#include <iterator>

#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

bool IsGrpc(const RequestSpec& request) {
  constexpr std::string_view kGrpc = "application/grpc";
  const std::string_view type = FindHeader(request, "content-type").value_or("");
  return type.starts_with(kGrpc) && (type.size() == kGrpc.size() || type[kGrpc.size()] == '+');
}

uint16_t GrpcStatusOfHttp(uint16_t code) {
  switch (code) {
    case 400:
      return 13;
    case 401:
      return 16;
    case 403:
      return 7;
    case 404:
      return 12;
    case 429:
    case 502:
    case 503:
    case 504:
      return 14;
    default:
      return 2;
  }
}

uint16_t HttpStatusOfGrpc(uint16_t status) {
  switch (status) {
    case 0:
      return 200;
    case 1:
      return 499;
    case 3:
    case 9:
    case 11:
      return 400;
    case 4:
      return 504;
    case 5:
      return 404;
    case 6:
    case 10:
      return 409;
    case 7:
      return 403;
    case 8:
      return 429;
    case 12:
      return 501;
    case 14:
      return 503;
    case 16:
      return 401;
    default:
      return 500;
  }
}

std::string_view GrpcStatusName(uint16_t status) {
  static constexpr std::string_view kNames[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  return status < std::size(kNames) ? kNames[status] : std::string_view();
}

std::optional<Duration> GrpcTimeout(const RequestSpec& request) {
  const std::string_view text = FindHeader(request, "grpc-timeout").value_or("");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end + 1 != text.data() + text.size() || value < 0 || text.size() > 9) {
    return std::nullopt;
  }
  switch (*end) {
    case 'H':
      return std::chrono::hours(value);
    case 'M':
      return std::chrono::minutes(value);
    case 'S':
      return std::chrono::seconds(value);
    case 'm':
      return std::chrono::milliseconds(value);
    case 'u':
      return std::chrono::microseconds(value);
    case 'n':
      return std::chrono::nanoseconds(value);
    default:
      return std::nullopt;
  }
}

std::string GrpcStatusLines(uint16_t status, std::string_view message) {
  std::string lines;
  AddHeaderLine("grpc-status", std::to_string(status), &lines);
  if (message.empty()) return lines;
  std::string escaped;
  for (const char c : message) {
    if (c >= 0x20 && c < 0x7f && c != '%') {
      escaped.push_back(c);
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  AddHeaderLine("grpc-message", escaped, &lines);
  return lines;
}

}  // namespace wavetank::envoysim
