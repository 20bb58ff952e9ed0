// One istiod over the API servers of a golden case, in virtual time.
//
// As the recordings were made (docs/golden-cases.md, "Environment"), but with its CA, which no recorded output shows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/istiod/istiod.h"
#include "core/profile/profile.h"
#include "oracles/golden/case.h"
#include "oracles/golden/case_server.h"
#include "sim/kernel/kernel.h"

namespace wavetank::golden {

class Fetch;

struct IstiodSettings {
  pilot::Profile profile;
  uint64_t seed = 1;
  Duration debounce_after = 20ms;
  pilot::PushObserver* observer = nullptr;
};

class CaseIstiod {
 public:
  // Starts it and runs until it is quiet. `spec` must outlive it.
  CaseIstiod(const Case& spec, IstiodSettings settings);
  ~CaseIstiod();

  // Applies step `index` (from 0) and runs until istiod is quiet again. NotFound if it deletes what is not there.
  absl::Status Step(size_t index);
  // Runs until nothing is left to do.
  void Settle();
  // The proxy as it connects now: with the profile's release, and where istiod finds pods by name with that of its pod.
  ProxySpec Connecting(const ProxySpec& proxy) const;
  // Every proxy of the case, freshly connected, in order of the case.
  std::vector<std::unique_ptr<Fetch>> FetchAll();

  pilot::Istiod& istiod() { return *istiod_; }
  sim::Kernel& kernel() { return kernel_; }
  const CaseServer& server(const std::string& cluster) const { return *servers_.at(cluster); }

 private:
  class Costs;
  class Resolver;

  absl::Status ApplyConfigMap(const char* key, const nlohmann::json& value);

  const Case& case_;
  const IstiodSettings settings_;
  std::unique_ptr<Costs> costs_;
  sim::Kernel kernel_;
  Host& host_;
  std::map<std::string, std::unique_ptr<CaseServer>> servers_;
  CaseClientFactory factory_;
  nlohmann::json config_map_;

  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<pilot::Istiod> istiod_;
};

}  // namespace wavetank::golden
