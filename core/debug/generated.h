// What istiod would generate for a proxy now, from the push context that the proxy was last served from. Nothing of it
// enters a cache, so looking changes no later push.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/proxy.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {
class Connection;
class Istiod;
}  // namespace wavetank::pilot

namespace wavetank::debug {

// In the form of Envoy's admin interface. Private keys and credentials of Wasm images are redacted.
nlohmann::ordered_json ConfigDump(const pilot::Istiod& istiod, const pilot::Connection& connection, bool include_eds);
// Resources of one type alone, each with its "@type".
nlohmann::ordered_json DumpOfType(const pilot::Istiod& istiod, const pilot::Connection& connection,
                                  pilot::XdsType type);
// The name table; null: there is none.
nlohmann::ordered_json Ndsz(const pilot::Istiod& istiod, const pilot::Connection& connection);
// Of the push context in force: clusters without any endpoint, by metric and name. Other metrics of istiod's page are
// not kept.
nlohmann::ordered_json PushStatus(const pilot::Istiod& istiod);
// Names by type, or their size by type and in all.
nlohmann::ordered_json Cachez(const pilot::Istiod& istiod);
nlohmann::ordered_json CacheSizes(const pilot::Istiod& istiod);

// What a generator made, encoded and as JSON.
struct Generated {
  std::string name;
  nlohmann::ordered_json json;
};
std::vector<Generated> Generate(const pilot::Istiod& istiod, const pilot::Connection& connection, pilot::XdsType type);

// The same as if there were no EnvoyFilters: what their patches meet. Making one takes O(services + configs).
class Unpatched {
 public:
  explicit Unpatched(const pilot::Istiod& istiod);
  ~Unpatched();
  std::vector<Generated> Generate(const pilot::Connection& connection, pilot::XdsType type) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wavetank::debug
