// The conditions of access logs in CEL: Envoy's attributes of requests, responses, connections, source, destination,
// upstream, metadata and xds.
// Envoy: source/extensions/access_loggers/filters/cel/cel.cc, source/extensions/filters/common/expr/context.cc
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::cel {
class CelExpression;
struct CelValue;
}  // namespace wavetank::cel

namespace wavetank::envoysim {

struct AccessLogEntry;
class Extensions;

class LogExpression {
 public:
  // InvalidArgument in Envoy's words. Attributes that are not simulated are noted by name; a log whose filter reads one
  // writes every line.
  static absl::StatusOr<std::shared_ptr<const LogExpression>> Make(std::string_view text, const Extensions& extensions);
  ~LogExpression();

  // False also where it fails, as over an attribute that is not there.
  bool Holds(const AccessLogEntry& entry) const;
  // What it comes to, as text; "unknown" where it fails, or reads what is not simulated.
  // istio/proxy: istio_stats.cc, StreamOverrides
  std::string Text(const AccessLogEntry& entry) const;

 private:
  LogExpression(cel::CelExpression expression, bool blind);
  cel::CelValue Evaluate(const AccessLogEntry& entry) const;

  const std::unique_ptr<const cel::CelExpression> expression_;
  const bool blind_;  // what it reads is not simulated
};

}  // namespace wavetank::envoysim
