// A hash that an object keeps of itself.
#pragma once

#include <compare>
#include <cstdint>

namespace wavetank::pilot {

// Worked out when first asked for, by when the object must be complete. A copy has none yet, as it may be changed; two
// objects do not differ by it. Of one thread at a time.
class KeptHash {
 public:
  KeptHash() = default;
  KeptHash(const KeptHash&) {}
  KeptHash& operator=(const KeptHash&) {
    value_ = 0;
    return *this;
  }

  template <typename Make>
  uint64_t Get(Make make) const {
    if (value_ == 0) value_ = make();
    return value_;
  }
  friend std::strong_ordering operator<=>(const KeptHash&, const KeptHash&) { return std::strong_ordering::equal; }
  friend bool operator==(const KeptHash&, const KeptHash&) { return true; }

 private:
  mutable uint64_t value_ = 0;
};

}  // namespace wavetank::pilot
