// Rare states that a swarm must have reached: a row each, and whether a run did. A state that no seed reaches is a
// state in which nothing was tested.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "sim/traffic.h"
#include "sim/world.h"

namespace wavetank::swarm {

struct SometimesRow {
  std::string_view name, says;
};
const std::vector<SometimesRow>& SometimesRows();

class Sometimes {
 public:
  // To be called before anything happens in `world`, which must outlive this.
  explicit Sometimes(sim::World& world);
  Sometimes(const Sometimes&) = delete;
  Sometimes& operator=(const Sometimes&) = delete;

  void Request(const sim::TrafficRecord& record);
  const std::set<std::string_view>& reached() const { return reached_; }

 private:
  void Observe(const sim::TraceEvent& event);

  sim::World& world_;
  std::set<std::pair<NameId, NameId>> warming_;    // proxy, type: received and not in force
  std::set<std::pair<NameId, NameId>> syncing_;    // istiod, cluster
  std::map<NameId, bool> queued_;                  // proxies with a push waiting
  std::map<std::pair<NameId, NameId>, int> owed_;  // by proxy and type: responses without an ACK
  std::set<std::string_view> reached_;
};

}  // namespace wavetank::swarm
