#include "fakes/envoy/filters/lua/primitives.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fakes/envoy/filters/lua/shared.h"

namespace wavetank::envoysim {
namespace {

constexpr int kDepth = 32;  // of tables that become metadata and back

LuaStream& StreamOf(lua_State* state) {
  LuaStream* const stream = SharedOf(state).current;
  if (stream == nullptr) luaL_error(state, "object used outside of proper scope");
  return *stream;
}

// An argument as text of the shared part, in lower case if it is a header's name.
const std::string& LuaText(lua_State* state, int at) {
  size_t size = 0;
  const char* const text = luaL_checklstring(state, at, &size);
  return SharedOf(state).text.assign(text, size);
}
const std::string& LuaName(lua_State* state, int at) {
  LuaText(state, at);
  absl::AsciiStrToLower(&SharedOf(state).text);
  return SharedOf(state).text;
}

int LuaPushText(lua_State* state, const std::string& text) {
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int LuaGet(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  LuaName(state, 1);
  bool found = false;
  {
    std::string all;
    for (const auto& [name, value] : stream.Headers()) {
      if (name != shared.text) continue;
      all += (found ? "," : "") + value;
      found = true;
    }
    shared.text = std::move(all);
  }
  return found ? LuaPushText(state, shared.text) : 0;
}

int LuaGetAt(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  LuaName(state, 1);
  const auto index = static_cast<int64_t>(luaL_checknumber(state, 2));
  bool found = false;
  {
    int64_t at = 0;
    std::string value_at;
    for (const auto& [name, value] : stream.Headers()) {
      if (name != shared.text || at++ != index) continue;
      value_at = value;
      found = !value.empty();
    }
    shared.text = std::move(value_at);
  }
  return found ? LuaPushText(state, shared.text) : 0;
}

int LuaCount(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  const std::string& wanted = LuaName(state, 1);
  int count = 0;
  for (const auto& [name, value] : stream.Headers()) count += name == wanted ? 1 : 0;
  lua_pushinteger(state, count);
  return 1;
}

int LuaPushHeaders(lua_State* state) {
  const LuaHeaders& headers = SharedOf(state).headers;
  lua_createtable(state, static_cast<int>(2 * headers.size()), 0);
  int at = 0;
  for (const auto& [name, value] : headers) {
    LuaPushText(state, name);
    lua_rawseti(state, -2, ++at);
    LuaPushText(state, value);
    lua_rawseti(state, -2, ++at);
  }
  return 1;
}

int LuaList(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  SharedOf(state).headers = stream.Headers();
  return LuaPushHeaders(state);
}

int LuaAdd(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  size_t size = 0;
  const char* const value = luaL_checklstring(state, 2, &size);
  stream.Add(LuaName(state, 1), std::string(value, size));
  return 0;
}

int LuaReplace(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  size_t size = 0;
  const char* const value = luaL_checklstring(state, 2, &size);
  stream.Replace(LuaName(state, 1), std::string(value, size));
  return 0;
}

int LuaRemove(lua_State* state) {
  StreamOf(state).Remove(LuaName(state, 1));
  return 0;
}

// A flat list of names and values.
void LuaReadHeaders(lua_State* state, int at) {
  luaL_checktype(state, at, LUA_TTABLE);
  SharedOf(state).headers.clear();
  const int size = static_cast<int>(lua_objlen(state, at));
  for (int i = 1; i < size; i += 2) {
    lua_rawgeti(state, at, i);
    lua_rawgeti(state, at, i + 1);
    size_t name_size = 0, value_size = 0;
    const char* const name = luaL_checklstring(state, -2, &name_size);
    const char* const value = luaL_checklstring(state, -1, &value_size);
    auto& header = SharedOf(state).headers.emplace_back(std::string(name, name_size), std::string(value, value_size));
    absl::AsciiStrToLower(&header.first);
    lua_pop(state, 2);
  }
}

int LuaRespond(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  LuaShared& shared = SharedOf(state);
  if (!stream.is_request()) return luaL_error(state, "respond not currently supported in the response path");
  LuaReadHeaders(state, 1);
  LuaText(state, 2);
  int status = 0;
  for (const auto& [name, value] : shared.headers) {
    if (name == ":status") status = std::atoi(value.c_str());
  }
  if (status < 200 || status >= 600) return luaL_error(state, ":status must be between 200-599");
  if (!stream.Respond(std::move(shared.headers), std::move(shared.text))) {
    return luaL_error(state, "respond() cannot be called if headers have been continued");
  }
  return 0;
}

int LuaCall(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  LuaShared& shared = SharedOf(state);
  size_t cluster_size = 0, body_size = 0;
  const char* const cluster = luaL_checklstring(state, 1, &cluster_size);
  LuaReadHeaders(state, 2);
  const char* const body = luaL_checklstring(state, 3, &body_size);
  const double timeout = luaL_checknumber(state, 4);
  if (timeout < 0) return luaL_error(state, "http call timeout must be >= 0");
  const bool asynchronous = lua_toboolean(state, 5) != 0;
  if (!stream.is_request() && !asynchronous) {
    return luaL_error(state, "the simulation cannot wait for httpCall() in envoy_on_response");
  }
  const bool sent = stream.Call(std::string(cluster, cluster_size), std::move(shared.headers),
                                std::string(body, body_size), static_cast<int64_t>(timeout), asynchronous);
  if (!sent) return luaL_error(state, "http call cluster invalid. Must be configured");
  return 0;
}

int LuaLog(lua_State* state) {
  LuaStream& stream = StreamOf(state);
  const char* const level = luaL_checkstring(state, 1);
  stream.Log(level, LuaText(state, 2));
  return 0;
}

int LuaBody(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  bool there = false;
  {
    std::optional<std::string> body = stream.Body();
    there = body.has_value();
    if (there) shared.text = *std::move(body);
  }
  return there ? LuaPushText(state, shared.text) : 0;
}

int LuaSetBody(lua_State* state) {
  StreamOf(state).SetBody(LuaText(state, 1));
  return 0;
}

void LuaPushJson(lua_State* state, const nlohmann::json& value, int depth) {
  luaL_checkstack(state, 4, "metadata");
  if (value.is_object() && depth > 0) {
    lua_newtable(state);
    for (auto it = value.begin(); it != value.end(); ++it) {
      lua_pushlstring(state, it.key().data(), it.key().size());
      LuaPushJson(state, it.value(), depth - 1);
      lua_rawset(state, -3);
    }
  } else if (value.is_array() && depth > 0) {
    lua_newtable(state);
    int at = 0;
    for (auto it = value.begin(); it != value.end(); ++it) {
      LuaPushJson(state, *it, depth - 1);
      lua_rawseti(state, -2, ++at);
    }
  } else if (value.is_string()) {
    LuaPushText(state, value.get_ref<const std::string&>());
  } else if (value.is_number()) {
    lua_pushnumber(state, value.get<double>());
  } else if (value.is_boolean()) {
    lua_pushboolean(state, value.get<bool>() ? 1 : 0);
  } else {
    lua_pushnil(state);
  }
}

// Of the value on top of the stack.
void LuaReadJson(lua_State* state, nlohmann::json* out, int depth) {
  luaL_checkstack(state, 4, "metadata");
  switch (lua_type(state, -1)) {
    case LUA_TBOOLEAN:
      *out = lua_toboolean(state, -1) != 0;
      return;
    case LUA_TNUMBER:
      *out = lua_tonumber(state, -1);
      return;
    case LUA_TSTRING: {
      size_t size = 0;
      const char* const text = lua_tolstring(state, -1, &size);
      *out = std::string(text, size);
      return;
    }
    case LUA_TTABLE:
      break;
    default:
      *out = nullptr;
      return;
  }
  if (depth == 0) luaL_error(state, "tables are nested too deeply");
  const int size = static_cast<int>(lua_objlen(state, -1));
  if (size > 0) {
    *out = nlohmann::json::array();
    for (int i = 1; i <= size; ++i) {
      lua_rawgeti(state, -1, i);
      out->push_back(nullptr);
      LuaReadJson(state, &out->back(), depth - 1);
      lua_pop(state, 1);
    }
    return;
  }
  *out = nlohmann::json::object();
  lua_pushnil(state);
  while (lua_next(state, -2) != 0) {
    if (lua_type(state, -2) == LUA_TSTRING) {
      size_t key_size = 0;
      const char* const key = lua_tolstring(state, -2, &key_size);
      LuaReadJson(state, &(*out)[std::string(key, key_size)], depth - 1);
    }
    lua_pop(state, 1);
  }
}

int LuaMetadata(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  shared.value = StreamOf(state).RouteMetadata();
  LuaPushJson(state, shared.value, kDepth);
  return 1;
}

int LuaDynamicOf(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  shared.value = stream.DynamicMetadataOf(LuaText(state, 1));
  LuaPushJson(state, shared.value, kDepth);
  return 1;
}

int LuaAllDynamic(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  shared.value = StreamOf(state).AllDynamicMetadata();
  LuaPushJson(state, shared.value, kDepth);
  return 1;
}

int LuaSetDynamic(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  size_t size = 0;
  const char* const filter = luaL_checklstring(state, 1, &size);
  luaL_checkstring(state, 2);
  lua_pushvalue(state, 3);
  LuaReadJson(state, &shared.value, kDepth);
  stream.SetDynamicMetadata(std::string(filter, size), LuaText(state, 2), std::move(shared.value));
  return 0;
}

int LuaInfo(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaStream& stream = StreamOf(state);
  LuaText(state, 1);
  bool there = false;
  {
    std::optional<std::string> found = stream.Info(shared.text);
    there = found.has_value();
    if (there) shared.text = *std::move(found);
  }
  return there ? LuaPushText(state, shared.text) : 0;
}

int LuaNow(lua_State* state) {
  lua_pushnumber(state, static_cast<double>(StreamOf(state).NowMicroseconds()));
  return 1;
}

int LuaBase64(lua_State* state) {
  LuaShared& shared = SharedOf(state);
  LuaText(state, 1);
  shared.text = absl::Base64Escape(shared.text);
  return LuaPushText(state, shared.text);
}

// math.random, from the world's seed.
int LuaRandom(lua_State* state) {
  const double random = StreamOf(state).Random();
  const int arguments = lua_gettop(state);
  if (arguments == 0) {
    lua_pushnumber(state, random);
    return 1;
  }
  const double low = arguments > 1 ? luaL_checknumber(state, 1) : 1;
  const double high = luaL_checknumber(state, arguments > 1 ? 2 : 1);
  if (low > high) return luaL_argerror(state, arguments > 1 ? 2 : 1, "interval is empty");
  lua_pushnumber(state, std::floor(random * (high - low + 1)) + low);
  return 1;
}

}  // namespace

void PushPrimitives(lua_State* state) {
  static constexpr luaL_Reg kPrimitives[] = {
      {"get", LuaGet},
      {"get_at", LuaGetAt},
      {"count", LuaCount},
      {"list", LuaList},
      {"add", LuaAdd},
      {"replace", LuaReplace},
      {"remove", LuaRemove},
      {"respond", LuaRespond},
      {"call", LuaCall},
      {"log", LuaLog},
      {"body", LuaBody},
      {"set_body", LuaSetBody},
      {"metadata", LuaMetadata},
      {"dynamic", LuaDynamicOf},
      {"all_dynamic", LuaAllDynamic},
      {"set_dynamic", LuaSetDynamic},
      {"info", LuaInfo},
      {"now", LuaNow},
      {"base64", LuaBase64},
      {"random", LuaRandom},
  };
  lua_newtable(state);
  for (const luaL_Reg& one : kPrimitives) {
    lua_pushcfunction(state, one.func);
    lua_setfield(state, -2, one.name);
  }
}

void SetCurrent(lua_State* state, LuaStream* stream) { SharedOf(state).current = stream; }

}  // namespace wavetank::envoysim
