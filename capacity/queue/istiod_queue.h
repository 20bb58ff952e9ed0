// One istiod as a queue in virtual time: debounce, push queue, throttle and processors, with proxies as numbers. It
// says when changes are everywhere, for fleets whose whole worlds would not fit (capacity/README.md says what it leaves
// out).
//
// Debounce and merging are those of core/xds/debouncer.h and core/xds/push_queue.h; a test holds them together.
#pragma once

#include <cstdint>
#include <vector>

#include "capacity/model/cost_model.h"
#include "core/base/time.h"

namespace wavetank::capacity {

struct QueueOptions {
  double cpus = 2;  // 1.5: two processors at three quarters of their speed
  int push_throttle = 100;
  Duration debounce_after = 100ms, debounce_max = 10s;
  Duration before_debounce = 900us;  // write to registry
  Duration wire = 500us;             // response to proxy, and its apply
  // The measuring bench's clients share istiod's processors.
  double client_message_ms = 0, client_kilobyte_ms = 0;
  // As the bench's observer: when the response of this type has come. kTypes: the push's last response.
  int observed_type = CostModel::kTypes;
  // What happens over time is counted in spans of this length; zero: it is not.
  Duration bucket{};
};

// One change of the mesh.
struct ChangeEvent {
  Duration at{};
  Change change = Change::kEndpoints;
};

// When it was at half of the proxies, at 99 % and at the last, after the write.
struct Arrivals {
  Change change = Change::kEndpoints;
  Duration at{}, half{}, most{}, last{};
};

// What happened in a span of virtual time, QueueOptions::bucket long.
struct QueueBucket {
  Duration busy{};  // processor time; all buckets together have QueueResult::busy
  int64_t pushes = 0, full_pushes = 0;
  int64_t most_waiting = 0;  // proxies in the queue
  double kilobytes = 0;
};

struct QueueResult {
  std::vector<Arrivals> arrivals;  // in order of the events; those that were still under way at the end are left out
  int64_t pushes = 0, full_pushes = 0, proxy_pushes = 0, merged = 0;  // merged: proxy pushes that joined a waiting one
  int64_t most_waiting = 0;                                           // proxies in the queue
  Duration busy{};                                                    // processor time, registry events included
  Duration waited{};                                                  // in the debouncer, over all events
  double kilobytes = 0;                                               // sent
  Duration end{};
  std::vector<QueueBucket> buckets;  // from time zero on, up to the last with something in it
};

// `events` in order of time. The costs are asked for once per kind of change, of `mesh`.
QueueResult RunQueue(const CostModel& model, const MeshSize& mesh, const QueueOptions& options,
                     const std::vector<ChangeEvent>& events);

}  // namespace wavetank::capacity
