// The agent's way to its istiod: found by DNS, dialled over the network, authenticated by the pod's token. Carries ADS
// streams for the Envoy and certificate requests for the agent itself.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/security/authenticator.h"
#include "core/security/ca_client.h"
#include "fakes/envoy/process/ads_transport.h"
#include "sim/cluster_site.h"

namespace wavetank::sim {

struct IstiodAddress {
  std::string host;  // "istiod.istio-system.svc"
  uint16_t port = 15012;
};

class IstiodClient final : public security::CaClient {
 public:
  struct Options {
    WorkloadId workload{};
    Host* host = nullptr;  // of the pod
    std::string proxy;     // as traces name it
    std::string ns;        // of the pod: its search list
    std::string address;   // of the pod, for istiod's messages
    IstiodAddress istiod;
    std::string server_name;     // that istiod's certificate must have
    bool xds_plaintext = false;  // controlPlaneAuthPolicy NONE
    std::function<absl::StatusOr<std::string>()> roots_pem;
    std::shared_ptr<const pilot::Node> node;  // as the Envoy would name itself
    // Made anew for each connection: tokens expire.
    std::function<security::PeerCredentials()> credentials;
  };
  IstiodClient(ClusterSite& site, Options options) : site_(site), options_(std::move(options)) {}

  // `done` once, later: an open channel, or why there is none.
  void Dial(std::function<void(absl::StatusOr<ChannelRef>)> done);

  void CreateCertificate(std::string csr_pem, Duration ttl,
                         absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) override;

  // ADS for one Envoy; outlived by this.
  std::unique_ptr<envoysim::AdsTransport> NewAdsTransport();

  // Ends the ADS stream to this world's istiod, if there is one, as if the server had gone: its Envoy opens another.
  void BreakAds(const absl::Status& why) {
    if (break_ads_) break_ads_(why);
  }

  ClusterSite& site() { return site_; }
  const Options& options() const { return options_; }

  // What the last attempt at it came to; OK while it goes well.
  const absl::Status& ads_status() const { return ads_status_; }
  const absl::Status& ca_status() const { return ca_status_; }
  void set_ads_status(const absl::Status& status) { ads_status_ = status; }

 private:
  void DialWithTls(std::function<void(absl::StatusOr<ChannelRef>)> done);

  friend class AdsTransportToIstiod;

  ClusterSite& site_;
  Options options_;
  std::function<void(const absl::Status&)> break_ads_;  // of the last stream that was opened
  absl::Status ads_status_, ca_status_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::sim
