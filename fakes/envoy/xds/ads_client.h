// The xDS client of one Envoy: a state machine over one ADS stream, SotW or delta. It knows versions, nonces, names and
// when to reconnect; what resources mean is its handler's business.
//
// What it does is what real Envoy 1.40 was measured to do: docs/real-envoy.md 7.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "fakes/envoy/match/string_map.h"
#include "fakes/envoy/process/ads_transport.h"
#include "fakes/envoy/process/xds_type.h"

namespace envoy::config::core::v3 {
class Node;
}

namespace wavetank::envoysim {

class AdsClient final : private AdsStreamObserver {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void FillNode(envoy::config::core::v3::Node* node) = 0;
    // A response arrived. The handler calls Accept() or Reject() for it, now or later, in order of arrival.
    virtual void OnResponse(XdsType type, SotwResponse response) = 0;
    virtual void OnDeltaResponse(XdsType type, std::shared_ptr<const DeltaDiscoveryResponse> response) = 0;
    virtual void OnConnected() {}
    virtual void OnDisconnected(const absl::Status& status) { (void)status; }
  };

  struct Options {
    AdsTransport::Protocol protocol = AdsTransport::Protocol::kSotw;
    // Reconnection: uniform in [0, interval), the interval doubling from base to max.
    // Envoy: source/common/common/backoff_strategy.cc, JitteredExponentialBackOffStrategy
    Duration backoff_base = 500ms;
    Duration backoff_max = 30s;
  };

  AdsClient(Host& host, AdsTransport& transport, Handler& handler, const Options& options, RandomStream random);
  ~AdsClient() override;

  void Start();  // opens the first stream
  void Stop();   // closes for good

  // Names the present stream; a response remembers which one it came on.
  uint32_t stream() const { return serial_; }
  // The handler begins with a response: from here on its nonce is the one that requests carry, unless its stream is
  // gone. Responses that still wait to be read have no influence on what is sent.
  void Begin(XdsType type, std::string_view nonce, uint32_t stream);

  // Begins or changes a subscription. CDS and LDS: `names` is nullptr, a wildcard. `again` (SotW EDS): the request is
  // sent although the names are the same, because a changed cluster waits for its endpoints.
  void Subscribe(XdsType type, ResourceNames names, bool again = false);

  // The verdict on a response: its version and nonce become the accepted ones and are acknowledged ...
  void Accept(XdsType type, std::string_view version, std::string_view nonce);
  // ... or the last accepted version is repeated, with the error (code 13).
  void Reject(XdsType type, std::string_view nonce, std::string_view error);

  // Holds acknowledgements of a type back: while clusters warm, CDS is not acknowledged. Released in order.
  void Hold(XdsType type);
  void Release(XdsType type);

  // Delta: what the handler keeps of a type, for initial_resource_versions.
  StringMap<std::string>& resource_versions(XdsType type);

  bool connected() const { return stream_ != nullptr && answered_; }
  std::string_view version(XdsType type) const { return types_[Index(type)].version; }

 private:
  struct Ack {
    std::string version, nonce, error;
  };
  struct TypeState {
    bool subscribed = false;
    bool held = false;
    bool sent = false;  // on this stream
    std::string version;
    std::string nonce;  // of the last response read on this stream
    ResourceNames names;
    ResourceNames sent_names;                          // delta: what the server knows
    std::vector<Ack> waiting;                          // held back
    std::unique_ptr<StringMap<std::string>> versions;  // delta
  };

  static constexpr int Index(XdsType type) { return static_cast<int>(type); }

  using AdsStreamObserver::OnResponse;
  void OnResponse(SotwResponse response) override;
  void OnDeltaResponse(std::shared_ptr<const DeltaDiscoveryResponse> response) override;
  void OnClose(const absl::Status& status) override;

  void Open();
  void Send(XdsType type, const Ack* ack);
  void SendSotw(XdsType type, const Ack* ack);
  void SendDelta(XdsType type, const Ack* ack);
  void Acknowledge(XdsType type, Ack ack);

  Host& host_;
  AdsTransport& transport_;
  Handler& handler_;
  const Options options_;
  RandomStream random_;
  std::array<TypeState, kXdsTypes> types_;
  std::unique_ptr<AdsStream> stream_;
  uint32_t serial_ = 0;
  bool node_sent_ = false;
  bool answered_ = false;  // a response came on this stream
  bool stopped_ = true;
  Duration backoff_;
  TimerId timer_ = kNoTimer;
};

}  // namespace wavetank::envoysim
