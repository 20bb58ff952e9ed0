// Names by number, in order of first use.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "core/base/trace.h"

namespace wavetank {

class NameTable {
 public:
  NameTable() : names_(1) {}  // kNoName
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  NameId Intern(std::string_view name) {
    if (name.empty()) return kNoName;
    if (const auto it = ids_.find(absl::string_view(name.data(), name.size())); it != ids_.end()) return it->second;
    names_.emplace_back(name);  // a deque: views into its strings stay valid
    const auto id = NameId(static_cast<uint32_t>(names_.size() - 1));
    ids_.emplace(absl::string_view(names_.back()), id);
    return id;
  }
  const std::string& Text(NameId id) const { return names_[static_cast<uint32_t>(id)]; }
  size_t size() const { return names_.size(); }

 private:
  std::deque<std::string> names_;
  absl::flat_hash_map<absl::string_view, NameId> ids_;
};

}  // namespace wavetank
