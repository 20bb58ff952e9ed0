// A proxy that connects, asks for everything once, and goes (docs/golden-cases.md, "Proxies").
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/istiod/istiod.h"
#include "oracles/golden/case.h"

namespace wavetank::golden {

// What the proxy says of itself.
std::shared_ptr<const pilot::Node> NodeOf(const ProxySpec& proxy);

class Fetch final : public pilot::AdsStream {
 public:
  // Connects and sends the first request. `istiod` must outlive it.
  Fetch(pilot::Istiod& istiod, const ProxySpec& proxy);

  bool done() const { return done_; }
  const absl::Status& status() const { return status_; }
  // By type ("cds", ...), in the order in which they came.
  const std::map<std::string, std::vector<pilot::Resource>>& resources() const { return resources_; }

  // AdsStream
  void Send(std::shared_ptr<const pilot::DiscoveryResponse> response) override;
  void SendDelta(std::shared_ptr<const pilot::DeltaDiscoveryResponse>) override {}
  void Close(const absl::Status& status) override;

 private:
  void Ask(pilot::XdsType type, std::vector<std::string> names);
  void AskExtensions();

  std::shared_ptr<const pilot::Node> node_;
  std::map<std::string, std::vector<pilot::Resource>> resources_;
  std::vector<std::string> extensions_;  // that the listeners name
  bool done_ = false;
  absl::Status status_;
  std::unique_ptr<pilot::AdsConnection> connection_;  // last: it goes first
};

}  // namespace wavetank::golden
