// Values that nobody meant: a JSON value with one place changed into something of another type, size or sense.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "nlohmann/json.hpp"

namespace wavetank {

// Every place of `value`, itself included.
inline void Places(nlohmann::json& value, std::vector<nlohmann::json*>* out) {
  out->push_back(&value);
  if (value.is_structured()) {
    for (nlohmann::json& child : value) Places(child, out);
  }
}

inline nlohmann::json HostileValue(RandomStream& random) {
  using nlohmann::json;
  switch (random.Below(18)) {
    case 0:
      return nullptr;
    case 1:
      return 5;
    case 2:
      return -1;
    case 3:
      return INT64_MAX;
    case 4:
      return UINT64_MAX;
    case 5:
      return INT64_MIN;
    case 6:
      return 1e300;
    case 7:
      return std::string(1, '\xff');
    case 8:
      return "";
    case 9:
      return "x";
    case 10:
      return json::array();
    case 11:
      return json::object();
    case 12:
      return json::array({5, nullptr, json::array()});
    case 13:
      return {{"x", nullptr}, {"", 5}};
    case 14:
      return true;
    case 15:
      return std::string("a\0b", 3);
    case 16:
      return -0.0;
    default: {
      json deep = 1;
      for (int i = 0; i < 60; ++i) deep = json::array({deep});
      return deep;
    }
  }
}

// One or two places of `value` changed.
inline nlohmann::json Mutated(nlohmann::json value, RandomStream& random) {
  for (uint64_t left = 1 + random.Below(2); left > 0; --left) {
    std::vector<nlohmann::json*> places;
    Places(value, &places);
    nlohmann::json& at = *places[random.Below(places.size())];
    if (at.is_object() && !at.empty() && random.Chance(300'000)) {
      auto it = at.begin();
      std::advance(it, static_cast<long>(random.Below(at.size())));
      at.erase(it);
    } else {
      at = HostileValue(random);
    }
  }
  return value;
}

}  // namespace wavetank
