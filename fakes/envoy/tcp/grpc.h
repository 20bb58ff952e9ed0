// gRPC over HTTP, as far as a proxy knows it.
// Envoy: source/common/grpc/common.cc, status.cc, source/common/http/utility.cc (sendLocalReply)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace wavetank::envoysim {

struct RequestSpec;

// Whether its client wants gRPC's kind of answers.
bool IsGrpc(const RequestSpec& request);
// What a local reply of that HTTP status says as gRPC's.
uint16_t GrpcStatusOfHttp(uint16_t code);
// And back: what an answer with that grpc-status counts as.
uint16_t HttpStatusOfGrpc(uint16_t status);
// "Unavailable" of 14, as grpc-go calls it; empty: there is no such status.
std::string_view GrpcStatusName(uint16_t status);
// The header grpc-timeout; nothing: there is none, or it cannot be read.
std::optional<Duration> GrpcTimeout(const RequestSpec& request);
// The lines "grpc-status" and, unless there is no message, "grpc-message".
std::string GrpcStatusLines(uint16_t status, std::string_view message);

}  // namespace wavetank::envoysim
