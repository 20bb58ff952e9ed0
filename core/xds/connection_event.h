// What happens to an istiod's connections, for clients that watch that instead of configuration (istiod:
// pilot/pkg/xds/statusgen.go).
#pragma once

#include <cstdint>

namespace wavetank::pilot {

class Connection;
struct DiscoveryRequest;

struct ConnectionEvent {
  enum class Kind : uint8_t { kConnect, kDisconnect, kNack };
  Kind kind;
  const Connection& connection;
  const DiscoveryRequest* refused = nullptr;  // of kNack: what said so
};

}  // namespace wavetank::pilot
