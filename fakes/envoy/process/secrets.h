// The secrets that one Envoy's clusters and listeners wait for and use, by SDS or over ADS.
// Envoy: source/common/secret/sds_api.cc
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/envoy/process/process.h"
#include "fakes/envoy/tls/secret.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

class Secrets {
 public:
  // `on_change` is called whenever one has come.
  Secrets(Process& process, std::function<void()> on_change) : process_(process), on_change_(std::move(on_change)) {}

  void Begin();
  void End();

  // Subscribes to those that are new. `has_ads`: Istio's names of Secrets in Kubernetes are asked for over ADS.
  void Need(const std::vector<std::string>& names, bool has_ads);
  // Sorted names of all over ADS, if there are more than at the last call; else null.
  ResourceNames NewOverAds();
  // An answer over ADS.
  void Take(const std::string& name, Secret secret);

  bool Ready(const std::vector<std::string>& names) const;
  // One side of a handshake that begins now.
  TlsParty Party(const std::shared_ptr<const TlsContext>& context) const;
  // Grows with every change.
  uint32_t epoch() const { return epoch_; }

 private:
  struct State {
    std::string name;
    Secret secret;
    bool ready = false;
  };
  // Guards callbacks that may outlive this object or this life.
  struct Life {
    Secrets* secrets;
  };
  const State* Find(std::string_view name) const;

  Process& process_;
  const std::function<void()> on_change_;
  std::shared_ptr<Life> life_;
  std::vector<State> secrets_;
  bool more_over_ads_ = false;  // than are asked for
  bool asks_agent_ = false;     // for any
  uint32_t epoch_ = 1;
};

}  // namespace wavetank::envoysim
