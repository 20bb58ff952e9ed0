// What one proxy holds of each type after the responses it got: a config dump of what istiod sent, byte for byte.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/xds/messages.h"

namespace wavetank::scenario {

class XdsSnapshot {
 public:
  using Resources = std::map<std::string, BytesRef, std::less<>>;  // name -> encoded resource

  void Apply(const pilot::DiscoveryResponse& response);
  void Apply(const pilot::DeltaDiscoveryResponse& response);

  const Resources& of(pilot::XdsType type) const;
  const std::string& version(pilot::XdsType type) const;
  bool empty() const { return types_.empty(); }

 private:
  struct Held {
    Resources resources;
    std::string version;
  };
  std::map<pilot::XdsType, Held> types_;
};

}  // namespace wavetank::scenario
