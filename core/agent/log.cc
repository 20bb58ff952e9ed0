#include "core/agent/log.h"

#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::agent {

std::string LogLine(Time time, Level level, std::string_view scope, std::string_view text) {
  static constexpr const char* kNames[] = {"debug", "info", "warn", "error"};
  std::string at = x509::Rfc3339(time);  // of whole seconds
  if (!at.empty() && at.back() == 'Z') at.pop_back();
  const int64_t micros = ((time.time_since_epoch() % std::chrono::seconds(1)) / std::chrono::microseconds(1));
  return fmt::format("{}.{:06}Z\t{}\t{}{}{}", at, micros, kNames[static_cast<int>(level)], scope,
                     scope.empty() ? "" : "\t", text);
}

}  // namespace wavetank::agent
