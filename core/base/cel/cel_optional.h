// Values that may be there or not: optional.of(x), a.?b. cel-go: common/types/optional.go, cel/library.go
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/base/cel/cel_functions.h"
#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

class CelOptional final : public CelMap {
 public:
  CelOptional() = default;
  explicit CelOptional(CelValue value) : has_(true), value_(std::move(value)) {}
  bool has() const { return has_; }
  const CelValue& value() const { return value_; }  // has()
  CelValue Get(const CelValue&) const override { return {}; }
  std::optional<int64_t> size() const override { return std::nullopt; }

 private:
  const bool has_ = false;
  const CelValue value_{};
};

CelValue MakeOptional(CelValue value);
CelValue NoOptional();
// Null: it is none.
const CelOptional* OptionalIn(const CelValue& value);

// Of its functions.
CelValue OptionalCall(CelFunction function, const std::vector<CelValue>& of);

}  // namespace wavetank::cel
