// Clients from outside the world, which a real server lets in: their ADS streams and certificate requests at the
// world's istiods. They reach them directly, not over the simulated network; whatever they do is an input of the world,
// so a recorded run has the same pushes again when it is replayed, without a listener.
//
// What they say are inputs (sim/inputs/kinds/outside.h). A client is a number that the server chose, never used twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/security/authenticator.h"
#include "core/security/ca_server.h"
#include "core/xds/messages.h"
#include "core/xds/stream.h"

namespace wavetank::sim {

class IstiodProcess;

// A client, in a form that may be written down. A token itself is in no input: one with the same claims is issued again
// where it is needed.
struct OutsidePeer {
  bool tls = false;
  std::string certificate_pem;  // verified leaf; empty: none
  enum class Token : uint8_t { kNone, kUnknown, kIssued } token = Token::kNone;
  std::string issuer;  // cluster that issued the token
  kube::TokenClaims claims;
  std::string cluster_id;  // the "ClusterID" header
};

class OutsideClients {
 public:
  // Hears what the istiods say, never from within an input.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnResponse(uint64_t client, std::shared_ptr<const pilot::DiscoveryResponse> response) = 0;
    virtual void OnDeltaResponse(uint64_t client, std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) = 0;
    // The istiod ended the stream, or itself. Nothing follows for that client.
    virtual void OnClosed(uint64_t client, const absl::Status& status) = 0;
    // The answer to a certificateRequest.
    virtual void OnCertificate(uint64_t client, absl::StatusOr<std::vector<std::string>> chain) = 0;
  };
  // The token with these claims, or NotFound for a cluster that is not of this world.
  using IssueToken = std::function<absl::StatusOr<std::string>(std::string_view cluster, const kube::TokenClaims&)>;

  OutsideClients(Host& host, IssueToken issue);
  ~OutsideClients();

  // Null: there is none. The listener must outlive the world, or take itself off.
  void set_listener(Listener* listener) { listener_ = listener; }

  // `istiod`: serves the client's cluster; null: none runs there, which the client hears as Unavailable.
  // InvalidArgument: the number is in use, or the certificate or the token's issuer cannot be read.
  absl::Status Open(uint64_t client, const OutsidePeer& peer, const std::string& address, IstiodProcess* istiod);
  // A stream that its istiod has just closed hears nothing of them.
  void Request(uint64_t client, const pilot::DiscoveryRequest& request);
  void DeltaRequest(uint64_t client, const pilot::DeltaDiscoveryRequest& request);
  void Close(uint64_t client);
  // As Open().
  absl::Status RequestCertificate(uint64_t client, const OutsidePeer& peer,
                                  const security::CertificateRequestMessage& request, IstiodProcess* istiod);

  // The process has ended: its streams break.
  void IstiodGone(const IstiodProcess* istiod);

  size_t streams() const { return streams_.size(); }

 private:
  class Stream;

  absl::StatusOr<security::PeerCredentials> CredentialsOf(const OutsidePeer& peer) const;
  void Refuse(uint64_t client, absl::Status status);

  Host& host_;
  IssueToken issue_;
  Listener* listener_ = nullptr;
  std::map<uint64_t, std::unique_ptr<Stream>> streams_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::sim
