// Failures of TLS and of connections, as programs written in Go tell them: the agent, istiod, an API server. (Envoy's
// words are of BoringSSL.)
#pragma once

#include <string>
#include <string_view>

#include "core/base/ip.h"
#include "core/base/time.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::sim {

// Why the client refused the server's certificate (Go: crypto/x509/verify.go, crypto/tls CertificateVerificationError).
std::string GoTlsRefusal(const envoysim::TlsServer& server, std::string_view server_name, bool san_mismatch, Time now);

// grpc-go: internal/transport/http2_client.go.
std::string GrpcDialFailure(const SocketAddress& to, std::string_view what);
std::string GrpcHandshakeFailure(std::string_view what);

}  // namespace wavetank::sim
