// The border between the discovery server and whatever carries its streams: the simulated network, the golden runner,
// a gRPC server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/xds/messages.h"

namespace wavetank::pilot {

// The peer of a stream, as far as the transport knows it.
struct Peer {
  std::string address;                  // for messages only
  bool authenticated = false;           // false: plaintext, or XDS_AUTH off
  std::vector<std::string> identities;  // SPIFFE identities of an authenticated peer
};

// Finds out the peer's identity, once, when the stream has passed the rate limit. Unauthenticated ends the stream.
using AuthenticatePeer =
    absl::AnyInvocable<void(absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>> identities)> done)>;

// The transport's half. The server calls it, never from inside a call of the transport. After Close() the server
// calls nothing more; the transport need not call OnClose().
class AdsStream {
 public:
  virtual ~AdsStream() = default;
  virtual void Send(std::shared_ptr<const DiscoveryResponse> response) = 0;
  virtual void SendDelta(std::shared_ptr<const DeltaDiscoveryResponse> response) = 0;
  // The server ends the stream: ResourceExhausted (rate limit), Unavailable (not ready), InvalidArgument (node),
  // Unauthenticated, PermissionDenied.
  virtual void Close(const absl::Status& status) = 0;
};

// The server's half. Messages arrive in order; a stream is either state of the world or delta, as its first request
// says. Destroying the handle is the client's hanging up: the AdsStream is not touched afterwards.
class AdsConnection {
 public:
  virtual ~AdsConnection() = default;
  virtual void OnRequest(DiscoveryRequest request) = 0;
  virtual void OnDeltaRequest(DeltaDiscoveryRequest request) = 0;
};

}  // namespace wavetank::pilot
