// Waits until an API server serves an API group of custom resources: until a definition of it, or an object of one of
// its kinds, is there. (Definitions need not be applied here: any kind is kept.)
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/observers.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class ServedGroup {
 public:
  // `kinds`: of the group. `served` is called once: at once, or within the write that brings the first of them.
  ServedGroup(ApiServer& server, const std::string& group, const std::vector<std::string>& kinds,
              std::function<void()> served);

 private:
  void Tell();

  std::function<void()> served_;
  Subscriptions watched_;
};

}  // namespace wavetank::fakekube
