// envoy.filters.http.lua.
// Envoy: source/extensions/filters/http/lua/lua_filter.cc
#pragma once

#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {

HttpFilterType LuaFilterType();

}  // namespace wavetank::envoysim
