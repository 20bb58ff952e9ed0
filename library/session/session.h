// A world that another program drives: one request a line, one answer a line, both JSON (docs/library.md has the page).
// The C++ library and the Python package speak this, so that a world is a process of its own: it can be forked while it
// runs, worlds know nothing of each other, and one that dies of an assertion takes no test program with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/xds/messages.h"
#include "library/session/live_world.h"
#include "library/session/log_view.h"
#include "library/session/truth.h"
#include "nlohmann/json.hpp"
#include "replay/event_log.h"
#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::session {

// Resources as JSON, in the form of protobuf's mapping; DataLoss: a resource is no message of its type.
using ConfigPrinter = std::function<absl::StatusOr<std::string>(pilot::XdsType, const scenario::XdsSnapshot&)>;

class Session {
 public:
  explicit Session(ConfigPrinter print) : print_(std::move(print)) {}

  // The answer to one request. Errors are about the request: what is wrong and what to do. `fork` is not for here.
  absl::StatusOr<nlohmann::ordered_json> Answer(const nlohmann::json& request);
  // Virtual time since the world's beginning; negative: none is open.
  int64_t NowNs() const;

 private:
  using Reply = absl::StatusOr<nlohmann::ordered_json>;
  Reply Open(const nlohmann::json& request);
  static Reply Outline(const nlohmann::json& request);
  static Reply Story(const nlohmann::json& request);
  Reply Settle(const nlohmann::json& request);
  Reply Start(const nlohmann::json& request);
  Reply Finish(const nlohmann::json& request);
  Reply Endpoints(const nlohmann::json& request) const;
  Reply Config(const nlohmann::json& request) const;
  Reply Check() const;
  Reply Trace(const nlohmann::json& request) const;
  Reply Inputs() const;
  // Of the open world's clock, which a date of its scenario sets.
  Time Beginning() const;

  ConfigPrinter print_;
  LogView log_view_;
  std::unique_ptr<LiveWorld> live_;
  std::unique_ptr<Watch> watch_;
  std::map<std::string, scenario::XdsSnapshot> sent_;  // by proxy
  Subscriptions responses_;
  bool traced_ = false;
  std::vector<replay::LoggedEvent> trace_;
};

// Answers what comes in on `in` until it ends; 0, or 1 if it cannot be read or written. A request {"op": "fork"} brings
// a socket along (SCM_RIGHTS), on which a copy of this process answers from then on: `in` must be a socket for that.
int Serve(int in, int out, ConfigPrinter print);

}  // namespace wavetank::session
