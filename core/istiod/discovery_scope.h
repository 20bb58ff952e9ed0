// What of the config cluster exists for an istiod that has discoverySelectors, Istio's own objects included (istiod:
// pkg/kube/namespace/filter.go; the clients of all kinds ask it, Change::kSelectorsScopeConfiguration).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "core/kube/informer.h"
#include "core/registry/kube/discovery_namespaces.h"

namespace wavetank::pilot {

class DiscoveryScope {
 public:
  using Selectors = std::function<nlohmann::json()>;
  using Changed = std::function<void(const std::vector<std::string>& namespaces)>;

  // Both references must outlive it. `selectors`: discoverySelectors as they stand. `changed` hears of the namespaces
  // that begin or cease to be read, once they do.
  DiscoveryScope(kube::Client& client, Host& host, Selectors selectors, Changed changed);

  // `synced` runs once, when it knows the namespaces there are; before that all are read.
  void Start(Callback synced);
  bool Contains(std::string_view ns) const { return !namespaces_.HasSynced() || read_.Contains(ns); }
  void OnMeshConfigChanged();

 private:
  void Tell(const DiscoveryNamespaces::Change& change) const;

  Selectors selectors_;
  Changed changed_;
  DiscoveryNamespaces read_;
  kube::Informer namespaces_;
};

}  // namespace wavetank::pilot
