#include "core/base/cause_table.h"

#include <algorithm>
#include <iterator>

#include "core/base/assert.h"

namespace wavetank {

CauseId CauseTable::Intern(std::vector<uint64_t> inputs) {
  WAVETANK_ASSERT(!inputs.empty());  // that is kNoCause
  WAVETANK_ASSERT(std::is_sorted(inputs.begin(), inputs.end()), inputs.size());
  WAVETANK_ASSERT(sets_.size() < UINT32_MAX, sets_.size());
  const auto [it, fresh] = ids_.try_emplace(std::move(inputs), CauseId(static_cast<uint32_t>(sets_.size())));
  if (fresh) sets_.push_back(it->first);
  WAVETANK_ASSERT(static_cast<uint32_t>(it->second) < sets_.size(), it->second, sets_.size());
  return it->second;
}

CauseId CauseTable::Merge(CauseId a, CauseId b) {
  if (a == b || b == kNoCause) return a;
  if (a == kNoCause) return b;
  const std::pair<CauseId, CauseId> key = std::minmax(a, b);
  if (const auto it = merged_.find(key); it != merged_.end()) return it->second;
  std::vector<uint64_t> all;
  std::set_union(Inputs(a).begin(), Inputs(a).end(), Inputs(b).begin(), Inputs(b).end(), std::back_inserter(all));
  WAVETANK_ASSERT(all.size() >= std::max(Inputs(a).size(), Inputs(b).size()), all.size());  // no cause is lost
  return merged_[key] = Intern(std::move(all));
}

bool CauseTable::Contains(CauseId cause, uint64_t input) const {
  const std::vector<uint64_t>& inputs = Inputs(cause);
  return std::binary_search(inputs.begin(), inputs.end(), input);
}

}  // namespace wavetank
