#include "core/base/cause_table.h"

#include <algorithm>
#include <iterator>

namespace wavetank {

CauseId CauseTable::Intern(std::vector<uint64_t> inputs) {
  const auto [it, fresh] = ids_.try_emplace(std::move(inputs), CauseId(static_cast<uint32_t>(sets_.size())));
  if (fresh) sets_.push_back(it->first);
  return it->second;
}

CauseId CauseTable::Merge(CauseId a, CauseId b) {
  if (a == b || b == kNoCause) return a;
  if (a == kNoCause) return b;
  const std::pair<CauseId, CauseId> key = std::minmax(a, b);
  if (const auto it = merged_.find(key); it != merged_.end()) return it->second;
  std::vector<uint64_t> all;
  std::set_union(Inputs(a).begin(), Inputs(a).end(), Inputs(b).begin(), Inputs(b).end(), std::back_inserter(all));
  return merged_[key] = Intern(std::move(all));
}

bool CauseTable::Contains(CauseId cause, uint64_t input) const {
  const std::vector<uint64_t>& inputs = Inputs(cause);
  return std::binary_search(inputs.begin(), inputs.end(), input);
}

}  // namespace wavetank
