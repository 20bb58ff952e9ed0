// What most clusters hold nothing of: custom resources, whose definitions somebody installs, and kinds that few use.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/kube/client.h"

namespace wavetank::kube {

// A client that is one of these too hears when a group is used. One that is not serves what it serves, and none that
// istiod could be without (istiod: pkg/kube/kclient, delayed informers, which wait for definitions). A controller of
// what is not there waits here, too: nobody would see its empty watch, but its bookmarks would draw from others'
// streams.
class DefinitionWatcher {
 public:
  virtual ~DefinitionWatcher() = default;
  // Calls back once, later: when a definition of the group, or an object of one of these kinds, is there. (Servers here
  // keep objects of any kind.)
  virtual void WhenServed(const std::string& group, const std::vector<std::string>& kinds,
                          std::function<void()> served) = 0;
};

// Calls back when it is served; at once if the client cannot tell.
inline void WhenServed(Client& client, const std::string& group, const std::vector<std::string>& kinds,
                       std::function<void()> served) {
  auto* const definitions = dynamic_cast<DefinitionWatcher*>(&client);
  if (definitions == nullptr) return served();
  definitions->WhenServed(group, kinds, std::move(served));
}

}  // namespace wavetank::kube
