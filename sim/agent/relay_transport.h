// The ADS stream of a simulated Envoy, as it passes through its agent: core/agent/xds_relay.h over the messages that
// both ends exchange in virtual time.
#pragma once

#include <memory>

#include "fakes/envoy/process/ads_transport.h"

namespace wavetank::agent {
class XdsRelay;
}

namespace wavetank::sim {

class RelayTransport final : public envoysim::AdsTransport {
 public:
  // `relay` outlives it and its streams.
  RelayTransport(agent::XdsRelay& relay, std::unique_ptr<envoysim::AdsTransport> upstream)
      : relay_(relay), upstream_(std::move(upstream)) {}
  std::unique_ptr<envoysim::AdsStream> Open(Protocol protocol, envoysim::AdsStreamObserver* observer) override;

 private:
  agent::XdsRelay& relay_;
  std::unique_ptr<envoysim::AdsTransport> upstream_;
};

}  // namespace wavetank::sim
