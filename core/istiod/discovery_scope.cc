#include "core/istiod/discovery_scope.h"

#include <utility>

namespace wavetank::pilot {

DiscoveryScope::DiscoveryScope(kube::Client& client, Host& host, Selectors selectors, Changed changed)
    : selectors_(std::move(selectors)),
      changed_(std::move(changed)),
      namespaces_(client, host, kube::kinds::kNamespace) {
  read_.SetSelectors(selectors_(), {});
  namespaces_.AddHandler(
      {.on_add =
           [this](const kube::ObjectRef& ns) {
             if (read_.Added(*ns) && namespaces_.HasSynced()) Tell({{ns->meta.name}, {}});
           },
       .on_update = [this](const kube::ObjectRef&, const kube::ObjectRef& ns) { Tell(read_.Updated(*ns)); },
       .on_delete = [this](const kube::ObjectRef& ns) { read_.Deleted(*ns); }});
}

void DiscoveryScope::Start(Callback synced) {
  namespaces_.OnSynced([this, synced = std::move(synced)]() mutable {
    // What was read while nothing was known.
    DiscoveryNamespaces::Change change;
    for (const kube::ObjectRef& ns : namespaces_.List()) {
      if (!read_.Contains(ns->meta.name)) change.deselected.push_back(ns->meta.name);
    }
    Tell(change);
    synced();
  });
  namespaces_.Start();
}

void DiscoveryScope::OnMeshConfigChanged() { Tell(read_.SetSelectors(selectors_(), namespaces_.List())); }

void DiscoveryScope::Tell(const DiscoveryNamespaces::Change& change) const {
  std::vector<std::string> names = change.selected;
  names.insert(names.end(), change.deselected.begin(), change.deselected.end());
  if (!names.empty()) changed_(names);
}

}  // namespace wavetank::pilot
