// What every xDS generator offers the discovery server (istiod: pilot/pkg/model/context.go, XdsResourceGenerator).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/model/proxy.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

// One resource, serialised once (deterministically) and shared by every response that carries it.
struct Resource {
  Resource() = default;
  // Copies both, into memory of its own.
  Resource(std::string_view its_name, std::string_view its_bytes);

  std::string_view name;  // stands beside the bytes, which keep it
  BytesRef bytes;         // the encoded resource, without its Any
  friend bool operator==(const Resource& a, const Resource& b) {
    return a.name == b.name && (a.bytes == b.bytes || *a.bytes == *b.bytes);
  }
};

// Makes the resources of one answer. Small ones share blocks of memory, each larger than the one before, so that an
// answer of many takes few allocations and an answer of one no more memory than it needs. A block lives as long as any
// of its resources.
class ResourceMaker {
 public:
  Resource Make(std::string_view name, std::string_view bytes);

 private:
  // Of a resource's memory, which begins with the view of its bytes.
  struct alignas(std::string_view) Unit {
    std::byte bytes[sizeof(std::string_view)];
  };
  std::shared_ptr<Unit[]> block_;
  size_t size_ = 0, used_ = 0;  // of the block, in units
};

// The resources of a response, in order. Copies share them; one that is changed gets its own.
class ResourceList {
 public:
  using value_type = Resource;
  using const_iterator = std::vector<Resource>::const_iterator;

  ResourceList() = default;
  ResourceList(std::vector<Resource> items) {  // NOLINT: a vector is one
    if (!items.empty()) Own().items = std::move(items);
  }

  const std::vector<Resource>& list() const;
  operator const std::vector<Resource>&() const { return list(); }  // NOLINT
  const_iterator begin() const { return list().begin(); }
  const_iterator end() const { return list().end(); }
  size_t size() const { return shared_ == nullptr ? 0 : shared_->items.size(); }
  bool empty() const { return size() == 0; }
  const Resource& operator[](size_t i) const { return list()[i]; }
  const Resource& front() const { return list().front(); }
  const Resource& back() const { return list().back(); }

  void reserve(size_t n) { Own().items.reserve(n); }
  void push_back(Resource resource) { Own().items.push_back(std::move(resource)); }
  void Replace(size_t i, Resource resource) { Own().items[i] = std::move(resource); }

  // Of all of them; counted once.
  int64_t Bytes() const;

  // What a transport made of this list, for the next proxy that is sent the same. Null: nothing yet.
  const std::shared_ptr<const void>& wire() const;
  void set_wire(std::shared_ptr<const void> wire) const;  // the list must not be empty

 private:
  friend class ResourcePool;
  struct Shared {
    std::vector<Resource> items;
    int64_t bytes = -1;
    std::shared_ptr<const void> wire;
  };
  Shared& Own();

  std::shared_ptr<Shared> shared_;
};

struct GeneratedResources {
  bool send = true;  // false: the type is not concerned and no response is sent at all
  ResourceList resources;
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
