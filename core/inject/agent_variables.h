// Variables of pilot-agent's environment as its env package reads them (istio.io/pkg: env/var.go): what cannot be read
// is the default, and a line of its log.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"

namespace wavetank::pilot {

class AgentVariables {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;
  // Both outlive it. `log` may be null.
  AgentVariables(const Map& all, std::vector<std::string>* log) : all_(all), log_(log) {}

  // Set, be it to an empty text, it is what it says.
  std::string Text(std::string_view name, std::string_view otherwise = {}) const;
  bool Flag(std::string_view name, bool otherwise) const;
  int64_t Integer(std::string_view name, int64_t otherwise) const;
  double Number(std::string_view name, double otherwise) const;
  Duration Length(std::string_view name, Duration otherwise) const;

 private:
  const std::string* Find(std::string_view name) const;
  void Warn(std::string_view value, std::string_view expected, std::string otherwise) const;

  const Map& all_;
  std::vector<std::string>* const log_;
};

}  // namespace wavetank::pilot
