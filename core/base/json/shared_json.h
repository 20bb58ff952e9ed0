// JSON that many hold and nobody changes: copies share it.
#pragma once

#include <memory>
#include <utility>

#include "core/base/json_access.h"
#include "nlohmann/json.hpp"

namespace wavetank {

class SharedJson {
 public:
  SharedJson() = default;           // null
  SharedJson(nlohmann::json value)  // NOLINT: JSON is one
      : value_(std::make_shared<const nlohmann::json>(std::move(value))) {}
  // `part` lives as long as `owner`, which is kept.
  template <class Owner>
  SharedJson(const std::shared_ptr<Owner>& owner, const nlohmann::json& part) : value_(owner, &part) {}

  const nlohmann::json& operator*() const { return value_ == nullptr ? Null() : *value_; }
  const nlohmann::json* operator->() const { return &**this; }

 private:
  std::shared_ptr<const nlohmann::json> value_;
};

}  // namespace wavetank
