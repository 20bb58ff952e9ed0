// What containers of simulated pods have logged in a live world, as `kubectl logs` prints it: istiod's lines, those of
// agents and Envoys, and access logs that go to a terminal. The last 1,000 of each are kept.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "replay/component_log.h"

namespace wavetank::sim {
class PodProcess;
class World;
}  // namespace wavetank::sim

namespace wavetank::serve {

class PodLogs {
 public:
  // Follows a world from now on, which it must outlive. Without, nothing was printed.
  void Watch(sim::World& world);

  // Oldest first, each with its end of line. Containers that print nothing here have none.
  std::vector<std::string> Of(const sim::PodProcess& pod, std::string_view container) const;

 private:
  struct Printed {
    std::deque<std::pair<Time, std::string>> lines;
    void Add(Time at, std::string line);
  };
  void OfIstiods(const replay::LoggedEvent& event);
  void OfProxy(const replay::LoggedEvent& event);

  std::map<std::string, Printed> istiods_, proxies_;  // by their names in traces
  std::map<std::string, replay::ComponentLog> logs_;
};

}  // namespace wavetank::serve
