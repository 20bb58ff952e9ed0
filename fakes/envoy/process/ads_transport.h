// The gRPC stream between an Envoy and its ADS server, as both ends see it. The World implements AdsTransport (which
// server, over which links, behind which gateway); an Envoy's AdsClient implements AdsStreamObserver.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/bytes.h"

namespace envoy::service::discovery::v3 {
class DeltaDiscoveryRequest;
class DeltaDiscoveryResponse;
class DiscoveryRequest;
class DiscoveryResponse;
}  // namespace envoy::service::discovery::v3

namespace wavetank::envoysim {

using DiscoveryRequest = envoy::service::discovery::v3::DiscoveryRequest;
using DiscoveryResponse = envoy::service::discovery::v3::DiscoveryResponse;
using DeltaDiscoveryRequest = envoy::service::discovery::v3::DeltaDiscoveryRequest;
using DeltaDiscoveryResponse = envoy::service::discovery::v3::DeltaDiscoveryResponse;

// What a state-of-the-world response carries but for its version and nonce: the same object may go to any number of
// Envoys of one world.
struct ResponseBody {
  std::string type_url;
  // Encoded, each without its Any, whose type is type_url but for those in other_types.
  std::vector<BytesRef> resources;
  std::vector<std::pair<size_t, std::string>> other_types;
  size_t bytes = 0;  // of all resources

  // What receivers worked out of it, for the next one.
  struct Meaning {
    virtual ~Meaning() = default;
  };
  mutable std::unique_ptr<Meaning> meaning;
};

struct SotwResponse {
  std::shared_ptr<const ResponseBody> body;
  std::string version, nonce;
  // Shares the message's bytes.
  static SotwResponse Of(const std::shared_ptr<const DiscoveryResponse>& message);
};

// Names that many streams subscribe to; sorted. Null: everything.
using ResourceNames = std::shared_ptr<const std::vector<std::string>>;

// Called by the transport, in order of sending.
class AdsStreamObserver {
 public:
  virtual ~AdsStreamObserver() = default;
  virtual void OnResponse(SotwResponse response) = 0;
  void OnResponse(const std::shared_ptr<const DiscoveryResponse>& response) { OnResponse(SotwResponse::Of(response)); }
  virtual void OnDeltaResponse(std::shared_ptr<const DeltaDiscoveryResponse> response) = 0;
  // The stream is gone: refused, reset, or ended by the server (kResourceExhausted: istiod's rate limit). Called at
  // most once, never from within Open() or Send(), and not after the client destroyed its AdsStream.
  virtual void OnClose(const absl::Status& status) = 0;
};

// Destroying it cancels the stream.
class AdsStream {
 public:
  virtual ~AdsStream() = default;
  virtual void Send(DiscoveryRequest request) = 0;
  // Whether the transport itself tells the client's identity: then no first request needs its node.
  virtual bool KnowsNode() const { return false; }
  // Send() of a request without node and error, which nearly all are.
  struct Subscription {
    std::string_view type_url;
    std::string version, nonce;
    ResourceNames names;
  };
  virtual void SendPlain(Subscription request);
  virtual void SendDelta(DeltaDiscoveryRequest request) = 0;
};

class AdsTransport {
 public:
  enum class Protocol { kSotw, kDelta };
  virtual ~AdsTransport() = default;
  // Starts a stream; never nullptr. What is sent before the connection stands is delivered once it does.
  virtual std::unique_ptr<AdsStream> Open(Protocol protocol, AdsStreamObserver* observer) = 0;
};

}  // namespace wavetank::envoysim
