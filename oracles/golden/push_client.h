// A proxy that stays connected and keeps its subscriptions current, as the clients of the push recordings did
// (docs/golden-pushes.md, "The client").
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/istiod/istiod.h"
#include "oracles/golden/case.h"

namespace wavetank::golden {

class PushClient final : public pilot::AdsStream {
 public:
  // Connects and asks for clusters. `istiod` and `host` must outlive it.
  PushClient(pilot::Istiod& istiod, Host& host, const ProxySpec& proxy, bool delta);

  // Why the stream ended, if it did.
  const absl::Status& status() const { return status_; }

  using Held = std::map<std::string, BytesRef, std::less<>>;
  // The resources of a type that an Envoy in its place would have now: endpoints and routes of what its clusters and
  // listeners name, all else that was not removed.
  Held Holds(pilot::XdsType type) const;

  // AdsStream
  void Send(std::shared_ptr<const pilot::DiscoveryResponse> response) override;
  void SendDelta(std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) override;
  void Close(const absl::Status& status) override { status_ = status; }

 private:
  void OnSotw(const pilot::DiscoveryResponse& response);
  void OnDelta(const pilot::DeltaDiscoveryResponse& response);
  void Request(pilot::XdsType type, std::vector<std::string> names, std::string nonce);
  void RequestDelta(pilot::XdsType type, const std::set<std::string>& add, const std::set<std::string>& remove,
                    std::string nonce);
  // The names that what the client holds of `parent` (clusters, listeners) refers to.
  std::set<std::string> Referenced(pilot::XdsType parent) const;
  void Subscribe(pilot::XdsType type, std::set<std::string> names, bool force);
  void MaybeAskListeners();

  Host& host_;
  const bool delta_;
  std::shared_ptr<const pilot::Node> node_;
  std::map<pilot::XdsType, Held> held_;
  std::map<pilot::XdsType, std::string> nonces_;
  std::map<pilot::XdsType, std::set<std::string>> subscribed_;
  bool asked_listeners_ = false;
  absl::Status status_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::unique_ptr<pilot::AdsConnection> connection_;  // last: it goes first
};

}  // namespace wavetank::golden
