// The ADS stream of a simulated Envoy, as it passes through its agent: core/agent/xds_relay.h over the messages that
// both ends exchange in virtual time.
#pragma once

#include <memory>

#include "fakes/envoy/process/ads_transport.h"

namespace wavetank::agent {
struct OwnRequest;
class XdsRelay;
}  // namespace wavetank::agent

namespace wavetank::sim {

class RelayStream;

// The stream that is open, if one is, for what the agent says of its own accord.
class OpenRelay {
 public:
  // Not before the Envoy has asked for its listeners; what comes earlier is said then (XdsRelay).
  void Send(const agent::OwnRequest& own);

 private:
  friend class RelayStream;
  RelayStream* stream_ = nullptr;
};

class RelayTransport final : public envoysim::AdsTransport {
 public:
  // `relay` outlives it and its streams.
  RelayTransport(agent::XdsRelay& relay, std::unique_ptr<envoysim::AdsTransport> upstream,
                 std::shared_ptr<OpenRelay> open)
      : relay_(relay), upstream_(std::move(upstream)), open_(std::move(open)) {}
  std::unique_ptr<envoysim::AdsStream> Open(Protocol protocol, envoysim::AdsStreamObserver* observer) override;

 private:
  agent::XdsRelay& relay_;
  std::unique_ptr<envoysim::AdsTransport> upstream_;
  const std::shared_ptr<OpenRelay> open_;
};

}  // namespace wavetank::sim
