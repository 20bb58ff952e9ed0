#include "fakes/envoy/http/request_body.h"

#include <string_view>

#include "absl/strings/numbers.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {

std::optional<uint64_t> BodyLength(const RequestSpec& request) {
  uint64_t bytes = 0;
  const std::optional<std::string_view> length = FindHeader(request, "content-length");
  if (!length || !absl::SimpleAtoi(absl::string_view(length->data(), length->size()), &bytes)) return std::nullopt;
  return bytes;
}

bool HasBody(const RequestSpec& request) {
  if (!request.trailers.empty()) return true;
  if (const std::optional<uint64_t> bytes = BodyLength(request)) return *bytes > 0;
  if (request.protocol == HttpProtocol::kHttp2) return IsGrpc(request);
  return FindHeader(request, "transfer-encoding") == "chunked";
}

}  // namespace wavetank::envoysim
