// References to things that have a namespace and a name, found by these: what caches of one kind of Kubernetes object
// are. Many caches hold the same objects, so a cache copies no names: they are read in what it refers to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "core/base/assert.h"

namespace wavetank {

// `Ref` is a pointer of any kind; `Names` has `static std::string_view NamespaceOf(const Ref&)` and `NameOf`, which do
// not change while the thing is in here. Finding, putting and erasing are O(1); lists are sorted when they are asked
// for.
template <class Ref, class Names>
class NamedRefs {
 public:
  // Null if there is none; valid until the next change.
  const Ref* Find(std::string_view ns, std::string_view name) const {
    const auto space = spaces_.find(ns);
    if (space == spaces_.end()) return nullptr;
    const auto it = space->second.find(name);
    return it == space->second.end() ? nullptr : &*it;
  }
  bool Contains(std::string_view ns, std::string_view name) const { return Find(ns, name) != nullptr; }

  // Returns what stood under these names before; null if nothing did.
  Ref Put(Ref ref) {
    WAVETANK_ASSERT(ref != nullptr);
    Space& space = spaces_.try_emplace(std::string(Names::NamespaceOf(ref))).first->second;
    const auto [it, added] = space.insert(ref);
    if (added) {
      ++size_;
      return nullptr;
    }
    // The names hash alike, so the slot may refer to the other thing; its own names are read from there on.
    return std::exchange(const_cast<Ref&>(*it), std::move(ref));
  }

  // Returns what was taken out; null if there was nothing.
  Ref Erase(std::string_view ns, std::string_view name) {
    const auto space = spaces_.find(ns);
    if (space == spaces_.end()) return nullptr;
    const auto it = space->second.find(name);
    if (it == space->second.end()) return nullptr;
    Ref out = *it;
    space->second.erase(it);
    if (space->second.empty()) spaces_.erase(space);
    WAVETANK_ASSERT(size_ > 0);
    --size_;
    return out;
  }

  // By name. O(n log n) in the namespace's things.
  std::vector<Ref> In(std::string_view ns) const {
    const auto space = spaces_.find(ns);
    if (space == spaces_.end()) return {};
    std::vector<Ref> out(space->second.begin(), space->second.end());
    std::sort(out.begin(), out.end(), [](const Ref& a, const Ref& b) { return Names::NameOf(a) < Names::NameOf(b); });
    return out;
  }
  // By namespace, then name. O(n log n).
  std::vector<Ref> All() const {
    std::vector<Ref> out;
    out.reserve(size_);
    for (const auto& [ns, space] : spaces_)  // order: sorted below
      out.insert(out.end(), space.begin(), space.end());
    std::sort(out.begin(), out.end(), [](const Ref& a, const Ref& b) {
      return std::pair(Names::NamespaceOf(a), Names::NameOf(a)) < std::pair(Names::NamespaceOf(b), Names::NameOf(b));
    });
    return out;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return absl::Hash<std::string_view>{}(name); }
    size_t operator()(const Ref& ref) const { return absl::Hash<std::string_view>{}(Names::NameOf(ref)); }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view Of(std::string_view name) { return name; }
    static std::string_view Of(const Ref& ref) { return Names::NameOf(ref); }
    bool operator()(const auto& a, const auto& b) const { return Of(a) == Of(b); }
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return absl::Hash<std::string_view>{}(text); }
  };
  using Space = absl::flat_hash_set<Ref, Hash, Equal>;

  absl::flat_hash_map<std::string, Space, TextHash, std::equal_to<>> spaces_;
  size_t size_ = 0;
};

}  // namespace wavetank
