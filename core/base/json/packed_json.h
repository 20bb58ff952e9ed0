// JSON in its text: what is large, held by many and seldom read takes a fifth of the memory so. Copies share it.
#pragma once

#include <memory>
#include <string>

#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank {

class PackedJson {
 public:
  PackedJson() = default;  // nothing
  explicit PackedJson(const nlohmann::json& value) : text_(std::make_shared<const std::string>(JsonText(value))) {}

  bool empty() const { return text_ == nullptr; }
  // Null: nothing. O(text), each time.
  nlohmann::json Unpack() const { return empty() ? nlohmann::json() : ParseJson(*text_); }

  friend bool operator==(const PackedJson& a, const PackedJson& b) {
    return a.text_ == b.text_ || (!a.empty() && !b.empty() && *a.text_ == *b.text_);
  }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace wavetank
