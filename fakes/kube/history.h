// An API server's changes, kept for watches that start in the past.
//
// A version that was written over is hardly ever asked for again, yet there are many: it is kept packed, once nobody
// else holds it, which takes a tenth of its memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "fakes/kube/api_server.h"

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
  // Either the object or its packed body; neither: there is none.
  struct Version {
    ObjectRef object;
    std::shared_ptr<const std::string> packed;
  };
  struct Entry {
    int64_t resource_version = 0;
    kube::WatchEventType type{};
    Version object, previous;
  };

  static ObjectRef Unpack(const Version& version);
  Entry* Find(uint64_t number);  // null if it is forgotten
  void PackPreviousOf(uint64_t number);

  const size_t most_;
  int64_t floor_;
  std::deque<Entry> entries_;
  uint64_t first_ = 0;  // number of the first entry; they are numbered as they come
  // Of versions that are in force: the number of the entry that brought them.
  absl::flat_hash_map<const kube::Object*, uint64_t> brought_by_;
  // Of versions that are written over, by the number of the entry that did it.
  absl::flat_hash_map<uint64_t, uint64_t> previous_brought_by_;
};

}  // namespace wavetank::fakekube
