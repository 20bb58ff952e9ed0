// HTTP filters that a connection manager leaves to ECDS, and what comes for them.
// Envoy: source/common/filter/config_discovery_impl.cc, source/common/http/filter_chain_helper.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/config/http_filter.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/hash128.h"

namespace envoy::config::core::v3 {
class ExtensionConfigSource;
class TypedExtensionConfig;
}  // namespace envoy::config::core::v3

namespace wavetank::envoysim {

// An envoy.config.core.v3.TypedExtensionConfig, compiled as an HTTP filter: a resource of ECDS, or a default.
struct ExtensionFilter {
  Hash128 hash;       // of its configuration
  std::string bytes;  // encoded
  std::string type;   // the message that configures it
  HttpFilterLink link;
  bool terminal = false;
  Extensions::Notes without_effect;
};
inline const std::string& NameOf(const ExtensionFilter& e) { return e.link.name; }

// For a connection manager of this statistics' prefix. InvalidArgument: Envoy would refuse it; the message is what its
// NACK says.
absl::StatusOr<std::shared_ptr<const ExtensionFilter>> CompileExtension(
    const envoy::config::core::v3::TypedExtensionConfig& config, std::string_view stat_prefix,
    const Extensions& extensions);

// One place in a chain that ECDS fills, over ADS.
struct DiscoveredFilter {
  uint64_t id = 0;                                   // of no other place: each makes filters of its own
  std::string name;                                  // of the resource, too
  std::string stat_prefix;                           // of its connection manager
  std::vector<std::string> types;                    // messages that may come
  bool waits = true;                                 // its listener does not accept before an answer came
  Duration initial_fetch_timeout = 15s;              // 0: for good
  size_t place = 0;                                  // among HttpConnectionManager::filters
  bool last = false;                                 // of its chain, which it has to end
  std::shared_ptr<const ExtensionFilter> otherwise;  // default_config; null: none

  // InvalidArgument in Envoy's words if this place cannot take a message of that type, or `filter`.
  absl::Status TakesType(std::string_view type) const;
  absl::Status Takes(const ExtensionFilter& filter) const;
};

// InvalidArgument: Envoy would refuse the listener.
absl::StatusOr<DiscoveredFilter> CompileDiscovered(std::string_view name, std::string_view stat_prefix,
                                                   const envoy::config::core::v3::ExtensionConfigSource& source,
                                                   bool last, const Extensions& extensions);

// What stands where nothing has come: it answers 500.
std::shared_ptr<const HttpFilter> MissingFilter();

}  // namespace wavetank::envoysim
