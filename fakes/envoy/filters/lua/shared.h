// What the C functions of one interpreter share. Lua's errors are exceptions (the library is lua5.1-c++), which C++
// frames survive; what they hand to Lua lives here all the same, so that the other library would leak and no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua5.1/lua.hpp>
#include <string>

#include "fakes/envoy/filters/lua/primitives.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {

struct LuaShared {
  LuaStream* current = nullptr;
  size_t bytes = 0;          // allocated
  int64_t instructions = 0;  // left of this call
  std::string text;
  LuaHeaders headers;
  nlohmann::json value;
};

// The allocator's argument, which leads from any function to what it shares.
inline LuaShared& SharedOf(lua_State* state) {
  void* shared = nullptr;
  lua_getallocf(state, &shared);
  return *static_cast<LuaShared*>(shared);
}

}  // namespace wavetank::envoysim
