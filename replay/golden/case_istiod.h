// One istiod over the API servers of a golden case, in virtual time.
//
// Composed as the recordings were: XDS_AUTH and the CA off, no injection, else defaults (golden/FORMAT.md,
// "Environment").
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/config/crd_client.h"
#include "core/config/mesh_watcher.h"
#include "core/profile/profile.h"
#include "core/registry/registries.h"
#include "replay/golden/case.h"
#include "replay/golden/case_server.h"
#include "sim/kernel.h"

namespace wavetank::golden {

struct IstiodSettings {
  pilot::Profile profile;
  uint64_t seed = 1;
  Duration debounce_after = 20ms;
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

  pilot::Registries& registries() { return *registries_; }
  const pilot::EndpointIndex& endpoints() const;
  bool IsClusterLocal(const pilot::Service& service) const;
  sim::Kernel& kernel() { return kernel_; }

 private:
  class Resolver;
  class Updater;

  absl::Status ApplyConfigMap(const char* key, const nlohmann::json& value);

  const Case& case_;
  const IstiodSettings settings_;
  sim::Kernel kernel_;
  Host& host_;
  std::map<std::string, std::unique_ptr<CaseServer>> servers_;
  CaseClientFactory factory_;
  nlohmann::json config_map_;

  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<Updater> updater_;
  config::ConfigStore store_;
  std::unique_ptr<config::MeshWatcher> mesh_;
  std::unique_ptr<config::CrdClient> configs_;
  std::unique_ptr<pilot::Registries> registries_;
};

}  // namespace wavetank::golden
