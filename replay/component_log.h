// The logs of simulated istiods, agents and Envoys, in the formats of 1.18.2, told from the events of a run.
//
// A line is written where a real process writes one and the events say all that stands in it; what a trace does not
// hold (sizes of a push context, addresses of peers, pages of debug) is left out, and no line is made up for it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/log_line.h"
#include "replay/event_log.h"

namespace wavetank::replay {

class ComponentLog {
 public:
  using Tell = std::function<void(Time at, const std::string& line)>;

  // `component`: as traces name it: an istiod's pod ("istiod-1.cluster1") or a proxy ("sleep-1.sample@cluster1").
  // `tells_pushes`: nobody has the process's own lines, so that what events say of an istiod's pushes must do.
  ComponentLog(std::string component, Tell tell, bool tells_pushes = false)
      : component_(std::move(component)), tell_(std::move(tell)), tells_pushes_(tells_pushes) {}

  // In the order of the log.
  void Add(const LoggedEvent& event);

 private:
  void OfIstiod(const LoggedEvent& event);
  void OfProxy(const LoggedEvent& event);
  void Line(const LoggedEvent& event, std::string_view level, std::string_view scope, const std::string& text);

  struct Client {
    std::string istiod, connection;
    std::set<std::string> types;  // that it was sent since it connected
  };

  const std::string component_;
  const Tell tell_;
  const bool tells_pushes_;
  std::map<std::string, Client> clients_;  // by proxy
  // Of this istiod.
  uint64_t pushes_ = 0;
  std::set<std::string> configs_;
  bool everything_ = false;
  Time first_update_{}, last_update_{};
  bool connected_ = false;  // this proxy
};

// Whether a component may log something when such an event happens.
bool IsLoggedBySomeone(TraceKind kind);
// A line as `--log_as_json` prints it.
std::string AsJson(const std::string& line);

// What a process itself tells of its log (sim::World::on_istiod_log), as it prints it.
std::string LineOf(Time time, const LogLine& line);

// "2023-09-01T00:00:12.345678Z".
std::string LogTime(Time time);

// Names of istiods and proxies in the events of a log, sorted.
class ComponentNames {
 public:
  // One that no event tells of: a pod that never reached its istiod.
  void AddProxy(const std::string& name) { proxies_.insert(name); }
  void Add(const LoggedEvent& event);
  // "istiod" (if there is one), "istiod@cluster1", a pod's whole name or its beginning ("sleep@cluster1"). NotFound
  // lists what there is, InvalidArgument those that it may mean.
  absl::StatusOr<std::string> Find(const std::string& asked) const;

 private:
  std::set<std::string> istiods_, proxies_;
};

}  // namespace wavetank::replay
