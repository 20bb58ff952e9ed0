// Access logs: what an Envoy writes about a request or connection when it is over.
// Envoy: source/common/access_log/access_log_impl.cc, source/extensions/access_loggers/common/file_access_log_impl.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/tcp/response_flags.h"

namespace envoy::config::core::v3 {
class SubstitutionFormatString;
}
namespace envoy::config::accesslog::v3 {
class AccessLog;
class AccessLogFilter;
}  // namespace envoy::config::accesslog::v3

namespace wavetank::envoysim {

struct AccessLogEntry;
class LogExpression;
class Extensions;

// envoy.config.accesslog.v3.AccessLogFilter. Runtime filters know no runtime but their defaults; traces are never
// forced, health checks not told from other requests.
class AccessLogFilter {
 public:
  // InvalidArgument: a filter within is not known, or its pattern or expression cannot be compiled.
  static absl::StatusOr<AccessLogFilter> Make(const envoy::config::accesslog::v3::AccessLogFilter& filter,
                                              const Extensions& extensions);
  bool Passes(const AccessLogEntry& entry) const;

 private:
  enum class Kind : uint8_t { kAlways, kNever, kCode, kDuration, kAnd, kOr, kHeader, kFlags, kExpression };
  enum class Comparison : uint8_t { kEqual, kAtLeast, kAtMost };
  bool Compare(uint64_t value) const;

  Kind kind_ = Kind::kAlways;
  Comparison comparison_ = Comparison::kEqual;
  uint64_t bound_ = 0;
  ResponseFlags flags_ = kNoFlags;  // kFlags; none: any flag
  std::optional<HeaderMatch> header_;
  std::shared_ptr<const LogExpression> expression_;
  std::vector<AccessLogFilter> parts_;
};

struct AccessLog {
  std::string path;
  AccessLogFormat format;
  AccessLogFilter filter;
};

// Those of one listener, connection manager or tcp_proxy that write to a file. Others (gRPC, OpenTelemetry) send what
// no server here receives and are left out.
using AccessLogs = std::vector<AccessLog>;

// A line as it is written, with its end. The views are valid during the call that hands it over.
struct AccessLogLine {
  Time at{};              // when it is written; not before the host's now
  std::string_view path;  // the file's, e.g. /dev/stdout
  std::string_view text;
};

// A text or JSON with command operators. InvalidArgument with Envoy's words.
absl::StatusOr<AccessLogFormat> CompileLogFormat(const envoy::config::core::v3::SubstitutionFormatString& proto,
                                                 const Extensions& extensions);

// Adds what `log` configures to *logs, which is made with the first that writes to a file. InvalidArgument with Envoy's
// words.
absl::Status AddAccessLog(const envoy::config::accesslog::v3::AccessLog& log, const Extensions& extensions,
                          std::shared_ptr<AccessLogs>* logs);

// The same for a list of them.
template <typename List>
absl::Status AddAccessLogs(const List& list, const Extensions& extensions, std::shared_ptr<const AccessLogs>* out) {
  std::shared_ptr<AccessLogs> logs;
  for (const auto& log : list) {
    if (absl::Status s = AddAccessLog(log, extensions, &logs); !s.ok()) return s;
  }
  *out = std::move(logs);
  return absl::OkStatus();
}

// Calls `write` with the line of each log that takes the entry. Keys and tokens are masked.
template <typename Write>
void WriteAccessLogs(const AccessLogs& logs, const AccessLogEntry& entry, Time at, Write write) {
  std::string text;
  for (const AccessLog& log : logs) {
    if (!log.filter.Passes(entry)) continue;
    text.clear();
    log.format.Write(entry, &text);
    write(AccessLogLine{at, log.path, text});
  }
}

}  // namespace wavetank::envoysim
