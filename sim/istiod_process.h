// One istiod as a process of the world: the core composed, on a host with processors of its own, listening in its pod
// on 15012 (ADS and certificates) and 15017 (injection).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/random.h"
#include "core/istiod/istiod.h"
#include "sim/network/channel.h"

namespace wavetank::sim {

// What a client is told whose certificate the server does not believe: TLS 1.3 tells it when the handshake is over
// (grpc-go, Go: crypto/tls, alertBadCertificate).
absl::Status ClientCertificateRefused();

class IstiodProcess {
 public:
  // How long connections live: gRPC's MaxConnectionAge, to which it adds up to a tenth or takes it off, and how long
  // what is still open then may go on. No age: for ever.
  struct ConnectionAge {
    uint64_t seed = 0;
    Duration age{}, grace{};
  };

  // `host` is the istiod's own. `workload` is its pod.
  IstiodProcess(Channels& channels, Host& host, WorkloadId workload, pilot::IstiodSurroundings surroundings,
                pilot::IstiodOptions options, const ConnectionAge& age);
  ~IstiodProcess();  // the process dies: connections are reset

  // `ready`: whether the pod's readiness probe succeeds; called whenever that changes. Why it does not start goes to
  // failure().
  void Start(std::function<void(bool)> ready);
  const absl::Status& failure() const { return failure_; }
  // It never starts.
  void Fail(const absl::Status& why) { failure_ = why; }

  pilot::Istiod& istiod() { return *istiod_; }
  const pilot::Istiod& istiod() const { return *istiod_; }
  Host& host() { return host_; }

  // Ports that the pod listens on.
  envoysim::Acceptor* grpc() { return &grpc_; }        // 15012
  envoysim::Acceptor* webhook() { return &webhook_; }  // 15017

  // Server's half of a new ADS stream on `channel`; the client's half gets the responses.
  class AdsSink {
   public:
    virtual ~AdsSink() = default;
    virtual void OnResponse(std::shared_ptr<const pilot::DiscoveryResponse> response) = 0;
    virtual void OnDeltaResponse(std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) = 0;
    virtual void OnStreamClosed(const absl::Status& status) = 0;
  };
  // What runs at istiod, called by what clients Send() on a channel.
  void OpenAds(const ChannelRef& channel, security::PeerCredentials peer, std::string address,
               std::weak_ptr<AdsSink> client);
  static void AdsRequest(const ChannelRef& channel, pilot::DiscoveryRequest request);
  static void AdsDeltaRequest(const ChannelRef& channel, pilot::DeltaDiscoveryRequest request);

 private:
  class AdsSession;

  std::shared_ptr<const envoysim::TlsServer> Tls();

  void EndWithAge(const ChannelRef& channel);

  Host& host_;
  const ConnectionAge age_;
  RandomStream ages_;
  std::unique_ptr<pilot::Istiod> istiod_;
  absl::Status failure_;
  std::shared_ptr<const envoysim::TlsServer> tls_;
  const void* tls_of_ = nullptr;  // leaf certificate that tls_ was made of
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  ChannelServer grpc_, webhook_;
};

}  // namespace wavetank::sim
