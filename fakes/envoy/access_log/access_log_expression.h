// The conditions of access logs, and the tags and values of Istio's metrics, in CEL: Envoy's attributes of requests,
// responses, connections, source, destination, upstream, metadata and xds. Envoy:
// source/extensions/access_loggers/filters/cel/cel.cc, source/extensions/filters/common/expr/context.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // Of a metric, which knows more: string(), concatenation and macros; whose proxy is at the other end (upstream_peer,
  // downstream_peer). InvalidArgument: it is no expression. FailedPrecondition: it asks for a function that is none.
  // istio/proxy: istio_stats.cc, getOrCreateExpression, FindValue
  static absl::StatusOr<std::shared_ptr<const LogExpression>> MakeOfMetric(std::string_view text,
                                                                           const Extensions& extensions);
  ~LogExpression();

  // False also where it fails, as over an attribute that is not there.
  bool Holds(const AccessLogEntry& entry) const;
  // What it comes to, as text; nothing where it fails, or reads what is not simulated.
  std::optional<std::string> Text(const AccessLogEntry& entry) const;

 private:
  enum class Use : uint8_t { kFilter, kMetric, kMetricOfPeersByName };  // peers as since Istio 1.24
  LogExpression(cel::CelExpression expression, bool blind, Use use);
  static bool Blind(const cel::CelExpression& expression, Use use, const Extensions& extensions);
  cel::CelValue Evaluate(const AccessLogEntry& entry) const;

  const std::unique_ptr<const cel::CelExpression> expression_;
  const bool blind_;  // what it reads is not simulated
  const Use use_;
};

}  // namespace wavetank::envoysim
