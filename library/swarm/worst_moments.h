// Faults at the worst moment: not at a time that was drawn, but when the control plane is in the middle of something.
//
// A history's events come at their times and so mostly meet a mesh that rests or has just begun to move. These wait for
// a state of the code (a push under way, a cluster that is being added, an ACK that is owed) to be there for the n-th
// time, and strike then. They are inputs like all others: a log of the run holds them, and a replay needs no seed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/world.h"
#include "wavetank/arbitrary.h"

namespace wavetank::swarm {

struct MomentRow {
  std::string_view name, says;
  bool (*is)(const sim::TraceEvent& event);
};
const std::vector<MomentRow>& MomentRows();

// What happens when `moment` is seen for the `nth` time since the history began. It may be refused then: nothing is
// left to kill.
struct WorstMoment {
  std::string moment;
  int64_t nth = 1;
  Action action;
  friend bool operator==(const WorstMoment&, const WorstMoment&) = default;
  // "{"kill": ...} at the 3rd push-dequeued", for a person.
  std::string Print() const;
};

// Up to three, of the faults and waves that may happen to the mesh.
std::vector<WorstMoment> ArbitraryMoments(Choices& choices, const Mesh& mesh, const Sizes& sizes);

// Counts, and says which moments have come.
class MomentWatch {
 public:
  // `world` must outlive this.
  MomentWatch(sim::World& world, std::vector<WorstMoment> moments);
  MomentWatch(const MomentWatch&) = delete;
  MomentWatch& operator=(const MomentWatch&) = delete;

  // Counting begins.
  void Begin() { begun_ = true; }
  bool Waiting() const { return came_ < waits_.size(); }
  // Those that came since the last call, in order.
  std::vector<WorstMoment> Take() { return std::exchange(due_, {}); }

 private:
  struct Wait {
    WorstMoment moment;
    const MomentRow* row;
    int64_t seen = 0;
  };
  std::vector<Wait> waits_;
  std::vector<WorstMoment> due_;
  size_t came_ = 0;
  bool begun_ = false;
};

}  // namespace wavetank::swarm
