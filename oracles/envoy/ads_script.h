// The ADS server of a case, without its transport: what it knows, what it answers, what it was told. The same script
// serves the simulated and the real Envoy, so that versions and nonces agree as long as the messages do.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "envoy/service/discovery/v3/discovery.pb.h"
#include "oracles/envoy/case.h"

namespace wavetank::envoydiff {

class AdsScript {
 public:
  using Request = envoy::service::discovery::v3::DiscoveryRequest;
  using Response = envoy::service::discovery::v3::DiscoveryResponse;
  using DeltaRequest = envoy::service::discovery::v3::DeltaDiscoveryRequest;
  using DeltaResponse = envoy::service::discovery::v3::DeltaDiscoveryResponse;

  // `any_secret`: secrets that the world lacks are made up (SecretForAnyName).
  explicit AdsScript(World world, bool any_secret) : world_(std::move(world)), any_secret_(any_secret) {}

  void StreamOpened();  // subscriptions of an earlier stream are void
  // A request: what is to be sent at once. The first of a type and every one with new names are answered; all else is
  // taken as acknowledgement or refusal.
  std::vector<Response> OnRequest(const Request& request);
  std::vector<DeltaResponse> OnDeltaRequest(const DeltaRequest& request);
  // Changes the world; what is to be sent, in the order CDS, EDS, LDS, RDS, of types that changed and are subscribed.
  std::vector<Response> Change(const Push& push);
  std::vector<DeltaResponse> ChangeDelta(const Push& push);

  const std::vector<std::string>& log() const { return log_; }

 private:
  struct Subscription {
    bool active = false;
    std::set<std::string> names;  // of EDS and RDS
  };
  static bool Wildcard(envoysim::XdsType type) {
    return type == envoysim::XdsType::kCds || type == envoysim::XdsType::kLds;
  }
  std::set<envoysim::XdsType> Apply(const Push& push);
  Response Full(envoysim::XdsType type);
  void MakeUp(envoysim::XdsType type, const std::set<std::string>& names);

  World world_;
  bool any_secret_;
  std::map<envoysim::XdsType, Subscription> subscriptions_;
  int count_ = 0;
  std::vector<std::string> log_;
};

}  // namespace wavetank::envoydiff
