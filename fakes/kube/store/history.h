// An API server's changes, kept for watches that start in the past.
//
// A version that was written over is hardly ever asked for again, yet there are many: it is kept as what differs in
// the version after it, which for most writes is a status.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class ApiServer::History {
 public:
  // Keeps the last `most` changes.
  History(size_t most, int64_t floor) : most_(most), floor_(floor) {}

  // Changes come in order of their versions. `change.previous` is the object of an earlier one, or of none.
  void Add(const Change& change);
  // Up to this version changes may be missing.
  int64_t floor() const { return floor_; }
  void Forget(int64_t up_to);
  // In order, those after one version and up to another. `visit` may not write.
  void ForEach(int64_t after, int64_t up_to, absl::FunctionRef<void(const Change&)> visit) const;

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};
  // A version that was written over: the whole body, or the way back to it from the one after it. CBOR.
  struct Packed {
    std::string bytes;
    uint64_t to = kNothing;  // the number of the entry that brought the one after it
  };
  struct Version {
    ObjectRef in_force;  // or the last of an object that is gone
    std::shared_ptr<const Packed> packed;
  };
  struct Entry {
    int64_t resource_version = 0;
    kube::WatchEventType type{};
    Version object;
    std::shared_ptr<const Packed> previous;  // null: there was none
  };
  struct Brought {
    uint64_t by = 0;       // the number of an entry
    uint64_t version = 0;  // of the object, from its first in this history
  };

  ObjectRef Unpack(const std::shared_ptr<const Packed>& version) const;

  const size_t most_;
  int64_t floor_;
  std::deque<Entry> entries_;
  uint64_t first_ = 0;  // number of the first entry; they are numbered as they come
  absl::flat_hash_map<const kube::Object*, Brought> brought_;  // versions that are in force
};

}  // namespace wavetank::fakekube
