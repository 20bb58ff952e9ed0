// Certificate requests of a real agent, by gRPC (istiod: security/pkg/nodeagent/caclient/providers/citadel/client.go).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/security/ca_client.h"
#include "serve/agent/real_host.h"

namespace grpc {
class Channel;
class ChannelCredentials;
class ClientContext;
}  // namespace grpc

namespace wavetank::serve {

// Where a connection leads and how it is secured.
struct DialOptions {
  std::string address;  // "istiod.istio-system.svc:15012"
  bool plaintext = false;
  std::string server_name;  // that the certificate must carry; empty: the address's own
  // Read for every new connection: roots and, if there is one, the client's certificate with its key.
  std::function<absl::StatusOr<std::string>()> roots_pem;                    // empty text: the system's
  std::function<std::pair<std::string, std::string>()> certificate_and_key;  // may be empty
  // The token for each call; empty: none.
  std::function<std::string()> token;
  std::string cluster_id;
  std::map<std::string, std::string> headers;
  std::string cert_signer;  // ISTIO_META_CERT_SIGNER: said in requests for certificates
};

// A new connection. An error of the roots' file is told.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DialOptions& options);
// The call's metadata.
void AddCallMetadata(const DialOptions& options, grpc::ClientContext& context);

class CaDial final : public security::CaClient {
 public:
  // `host` outlives it, and answers come on its thread.
  CaDial(RealHost& host, DialOptions options);
  ~CaDial() override;
  void CreateCertificate(std::string csr_pem, Duration ttl,
                         absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) override;

 private:
  struct Calls;
  RealHost& host_;
  const DialOptions options_;
  std::shared_ptr<Calls> calls_;
};

}  // namespace wavetank::serve
