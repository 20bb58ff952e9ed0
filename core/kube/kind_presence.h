// What a client of a simulated API server can tell beside kube::Client: when a cluster first has objects of a kind. A
// controller of what most clusters have none of may wait for that; its empty watch would be seen by nobody, but its
// bookmarks would draw from the random streams of the others.
#pragma once

#include "core/base/host.h"
#include "core/kube/object.h"

namespace wavetank::kube {

class KindPresence {
 public:
  virtual ~KindPresence() = default;
  // Calls back once, later: when there is an object of the kind, which may be soon.
  virtual void WhenThere(const ResourceKind& kind, Callback then) = 0;
};

}  // namespace wavetank::kube
