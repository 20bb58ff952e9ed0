// What containers of simulated pods have logged in a live world, as `kubectl logs` prints it: istiod's lines, those of
// agents and Envoys, and access logs that go to a terminal. The last 1,000 of each are kept.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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

  // How far somebody has read a container's log.
  struct Place {
    uint64_t printed = 0, agent = 0;  // lines of either source
  };
  // What has come after `place`, which then is the log's end: oldest first, each with its end of line. Containers that
  // print nothing here have none.
  std::vector<std::pair<Time, std::string>> After(Place* place, const sim::PodProcess& pod,
                                                  std::string_view container) const;

 private:
  struct Printed {
    std::deque<std::pair<Time, std::string>> lines;
    uint64_t forgotten = 0;  // lines before those
    void Add(Time at, std::string line);
  };
  void OfIstiods(const sim::World& world, const replay::LoggedEvent& event);
  void OfIstiod(const sim::World& world, const std::string& istiod, Time at, const std::string& line);
  void OfProxy(const replay::LoggedEvent& event);

  std::map<std::string, Printed> istiods_, proxies_;  // by their names in traces
  std::map<std::string, replay::ComponentLog> logs_;
};

}  // namespace wavetank::serve
