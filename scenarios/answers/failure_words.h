// Why a request or a try failed, in words, from what Envoy itself writes about it: response flags, response code
// details and the transport failure reason.
#pragma once

#include <string>
#include <string_view>

#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/response_flags.h"

namespace wavetank::scenario {

struct FailureFacts {
  uint16_t code = 0;
  envoysim::ResponseFlags flags = envoysim::kNoFlags;
  std::string_view details;            // %RESPONSE_CODE_DETAILS%
  std::string_view transport_failure;  // %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string_view cluster;            // the upstream cluster, where one was chosen
  std::string_view reset;              // of a try alone: why it was reset, "remote connection failure"
  std::string_view closer;             // what the next proxy said that answered or closed in the application's place
  std::string_view tls_finding;        // what was wrong with a certificate, in plain words (TlsOutcome::finding)
  uint16_t grpc_status = envoysim::kNoGrpcStatus;  // `code` is what it counts as
};

// Of a try that another followed, and of a request's end.
FailureFacts FactsOf(const envoysim::FailedTry& tried, std::string_view cluster);
FailureFacts FactsOf(const envoysim::RequestRecord& record);

// "TLS alert unknown_ca: the far side does not believe our certificate's root". Never empty.
std::string FailureInWords(const FailureFacts& facts);

}  // namespace wavetank::scenario
