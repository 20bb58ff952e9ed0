// What every xDS generator offers the discovery server (istiod: pilot/pkg/model/context.go, XdsResourceGenerator).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/proxy.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

// One resource, serialised once (deterministically) and shared by every response that carries it.
struct Resource {
  std::string name;
  std::shared_ptr<const std::string> bytes;  // the encoded resource, without its Any
  friend bool operator==(const Resource& a, const Resource& b) {
    return a.name == b.name && (a.bytes == b.bytes || *a.bytes == *b.bytes);
  }
};

struct GeneratedResources {
  bool send = true;  // false: the type is not concerned and no response is sent at all
  std::vector<Resource> resources;
  std::vector<std::string> removed;  // delta only
  // Delta: `resources` and `removed` are the change itself. Without it the server derives what was removed from the
  // names on record, as for state of the world. istiod: usedDelta.
  bool used_delta = false;
  bool incremental = false;  // for the log: only some of the subscribed resources were looked at
  // For the cost model and the trace.
  int64_t endpoints = 0;
  int64_t cached = 0;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // State of the world.
  virtual GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched,
                                      const PushRequest& request) = 0;
  // Delta; the default regenerates everything.
  virtual GeneratedResources GenerateDeltas(const Proxy& proxy, const WatchedResource& watched,
                                            const PushRequest& request) {
    return Generate(proxy, watched, request);
  }
};

}  // namespace wavetank::pilot
