// An informer behind a filter on its objects: the cache holds everything, handlers and reads see what passes
// (istiod: pkg/kube/kclient; client-go: FilteringResourceEventHandler).
//
// The filter may change its mind about objects that are in the cache. No handler is told of that: the code that changes
// it deals with them, by ListUnfiltered.
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kube/informer.h"

namespace wavetank::kube {

class FilteredInformer {
 public:
  using Filter = std::function<bool(const Object&)>;

  FilteredInformer(Client& client, Host& host, const ResourceKind& kind, Filter filter)
      : informer_(client, host, kind), filter_(std::move(filter)) {}

  // An update that moves an object across the filter is an add or a delete to the handler. A deletion of what does not
  // pass is not delivered.
  void AddHandler(Informer::Handler handler);
  ObjectRef Get(std::string_view ns, std::string_view name) const;
  ObjectRef Get(const NamespacedName& name) const { return Get(name.ns, name.name); }
  // In key order; an empty namespace is all of them.
  std::vector<ObjectRef> List(std::string_view ns = {}) const;
  bool Passes(const Object& object) const { return filter_(object); }
  std::vector<ObjectRef> ListUnfiltered(std::string_view ns = {}) const { return informer_.List(ns); }

  // Life and synchronisation are those of the informer within.
  Informer& informer() { return informer_; }
  const Informer& informer() const { return informer_; }

 private:
  Informer informer_;
  Filter filter_;
};

}  // namespace wavetank::kube
