// The conditions of access logs in CEL, as far as meshes use it: Envoy's attributes of requests, responses,
// connections, source, destination, upstream and xds; == != < <= > >= && || ! ?: in; has(), size(), startsWith,
// endsWith, contains, matches; numbers, strings, booleans, lists.
// Envoy: source/extensions/access_loggers/filters/cel/cel.cc, source/extensions/filters/common/expr/context.cc
#pragma once

#include <memory>
#include <string_view>

namespace wavetank::envoysim {

struct AccessLogEntry;

class LogExpression {
 public:
  // Null: it says something that is not modelled here (or nothing at all). A log with such a filter writes every line.
  static std::shared_ptr<const LogExpression> Parse(std::string_view text);
  virtual ~LogExpression() = default;
  // False also where it fails, as over an attribute that is not there.
  virtual bool Holds(const AccessLogEntry& entry) const = 0;
};

}  // namespace wavetank::envoysim
