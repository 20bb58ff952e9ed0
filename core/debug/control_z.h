// ControlZ, istiod's port for looking at its own process (istio.io/pkg/ctrlz): topics as pages for people, and as JSON.
// What would change the process is given back to the caller.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/debug/log_scopes.h"
#include "core/debug/pages.h"

namespace wavetank::debug {

// What of a process is told.
struct ControlZProcess {
  std::string pod, ip;
  std::vector<std::string> arguments;  // without the program's name
  std::map<std::string, std::string> variables;
  int64_t user = 1337;
  std::string version;
  Time now{};
  std::string metrics;  // as Prometheus' text; empty: not here
};

struct ScopeChange {
  std::string scope;
  std::optional<LogLevel> output, stack_trace;  // nothing: as it is
  bool callers = false;
};
struct ControlZReply {
  Reply reply;
  std::optional<ScopeChange> change;
};

// `path`: percent-encoded, without a query.
ControlZReply AnswerControlZ(const LogScopes& scopes, const ControlZProcess& process, std::string_view method,
                             std::string_view path, std::string_view body);

}  // namespace wavetank::debug
