// What a request's head says of its body.
#pragma once

#include <cstdint>
#include <optional>

namespace wavetank::envoysim {

struct RequestSpec;

// Whether something follows the head: what has a length above 0 or comes in chunks, and calls of gRPC.
// Envoy: source/common/http/http1/codec_impl.cc, onHeadersCompleteBase (deferred_end_stream_headers_)
bool HasBody(const RequestSpec& request);
// Nothing: the head does not say.
std::optional<uint64_t> BodyLength(const RequestSpec& request);

}  // namespace wavetank::envoysim
