// The gRPC stream between an Envoy and its ADS server, as both ends see it. The World implements AdsTransport (which
// server, over which links, behind which gateway); an Envoy's AdsClient implements AdsStreamObserver.
#pragma once

#include <memory>

#include "absl/status/status.h"

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

// Called by the transport, in order of sending. Responses are shared: the same object may go to any number of Envoys.
class AdsStreamObserver {
 public:
  virtual ~AdsStreamObserver() = default;
  virtual void OnResponse(std::shared_ptr<const DiscoveryResponse> response) = 0;
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
