// The scopes in which an istiod of 1.18.2 logs, and from which level on each prints (istio.io/pkg/log): what
// --log_output_level says, and what ControlZ has changed since.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"

namespace wavetank::debug {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kFatal, kNone };
std::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(std::string_view text);  // nullopt: it names none

struct LogScope {
  std::string_view name, description;
  LogLevel output = LogLevel::kInfo, stack_trace = LogLevel::kNone;
  bool callers = false;
};

class LogScopes {
 public:
  LogScopes();

  // The arguments, comma-separated lists of SCOPE:LEVEL or LEVEL; `all` is every scope, unknown ones are none.
  // InvalidArgument, with which the process ends.
  absl::Status Configure(std::string_view output_levels, std::string_view stack_trace_levels, std::string_view callers);

  // In the order of their names.
  const std::vector<LogScope>& all() const { return scopes_; }
  // "" is the default scope. Null: there is no such scope.
  const LogScope* Find(std::string_view name) const;

  // From `at` on, which is not before any earlier change. False: there is no such scope.
  bool Set(Time at, std::string_view name, std::optional<LogLevel> output, std::optional<LogLevel> stack_trace,
           bool callers);
  // Whether a line of that instant was printed.
  bool Printed(Time at, std::string_view level, std::string_view scope) const;
  // The same of a line as it is printed, "TIME\tLEVEL\t[SCOPE\t]TEXT".
  bool Printed(Time at, std::string_view line) const;

 private:
  LogScope* Mutable(std::string_view name);

  std::vector<LogScope> scopes_;
  std::map<std::string, std::vector<std::pair<Time, LogLevel>>, std::less<>> changes_;  // of outputs, by scope
};

}  // namespace wavetank::debug
