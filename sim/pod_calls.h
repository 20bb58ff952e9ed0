// The calls of a pod's application to other services: through its own sidecar, with time limits and retries of its own.
//
// Fault model. A call may be refused, reset, time out or be answered with an error; it is tried again as its rule says,
// and then is the caller's failure. The pod may be gone before an answer comes: then nobody is told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/traffic.h"

namespace wavetank::sim {

class PodCalls {
 public:
  // Deeper than this is a circle of calls: the request is answered with 508 (Loop Detected).
  static constexpr uint16_t kDeepest = 16;

  explicit PodCalls(PodProcess& pod) : pod_(pod) {}

  // Makes the calls of `behaviour` that `due` lists, for a request of that depth; `done` once, later: whether all that
  // had to were answered. The behaviour may change meanwhile.
  void Make(const AppBehaviour& behaviour, std::vector<size_t> due, uint16_t depth, std::function<void(bool ok)> done);
  // The pod behaves otherwise: requests of before are not made any more.
  void Forget() { prepared_.clear(); }

 private:
  struct Prepared;
  struct Round;
  std::shared_ptr<const Prepared> Prepare(const AppBehaviour& behaviour, size_t index, uint16_t depth);
  void Next(const std::shared_ptr<Round>& round);
  void Begin(const std::shared_ptr<Round>& round, const std::shared_ptr<const Prepared>& call);
  void Attempt(const std::shared_ptr<Round>& round, const std::shared_ptr<const Prepared>& call, Time first,
               int64_t attempt);
  void Ended(const std::shared_ptr<Round>& round, const Prepared& call, Time first, int64_t attempts,
             const envoysim::RequestRecord& record);

  PodProcess& pod_;
  // One for each call and depth: proxies remember requests that they have seen.
  std::map<std::pair<size_t, uint16_t>, std::shared_ptr<const Prepared>> prepared_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::sim
