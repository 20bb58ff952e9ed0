// Names that are easily confused, as types of their own. All are UTF-8 text at the borders and compare by value.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <utility>

namespace wavetank::pilot {

template <class Tag>
class Name {
 public:
  Name() = default;
  explicit Name(std::string value) : value_(std::move(value)) {}
  explicit Name(std::string_view value) : value_(value) {}
  explicit Name(const char* value) : value_(value) {}

  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend auto operator<=>(const Name&, const Name&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Name& n) {
    return H::combine(std::move(h), n.value_);
  }

 private:
  std::string value_;
};

using ClusterId = Name<struct ClusterTag>;
using NetworkId = Name<struct NetworkTag>;

}  // namespace wavetank::pilot
