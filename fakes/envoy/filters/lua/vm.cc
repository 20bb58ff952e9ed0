#include "fakes/envoy/filters/lua/vm.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "fakes/envoy/filters/lua/shared.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

constexpr int kLuaInstructionsPerLook = 1000;

void* LuaAllocate(void* shared, void* old, size_t old_size, size_t new_size) {
  size_t& bytes = static_cast<LuaShared*>(shared)->bytes;
  if (old == nullptr) old_size = 0;
  if (new_size == 0) {
    std::free(old);
    bytes -= old_size;
    return nullptr;
  }
  if (new_size > old_size && bytes + (new_size - old_size) > LuaVm::kMostBytes) return nullptr;
  void* const made = std::realloc(old, new_size);
  if (made != nullptr) bytes += new_size - old_size;
  return made;
}

// Once a call has had its instructions, the next one outside every pcall() of the script's ends it.
void CountLuaInstructions(lua_State* state, lua_Debug*) {
  LuaShared& shared = SharedOf(state);
  shared.instructions -= kLuaInstructionsPerLook;
  if (shared.instructions >= 0) return;
  lua_sethook(state, CountLuaInstructions, LUA_MASKCOUNT, 1);
  luaL_error(state, "the script runs for more than %d instructions", static_cast<int>(LuaVm::kMostInstructions));
}

// Without addresses, which are other ones in each process.
int LuaToString(lua_State* state) {
  luaL_checkany(state, 1);
  if (luaL_callmeta(state, 1, "__tostring") != 0) return 1;
  switch (lua_type(state, 1)) {
    case LUA_TNUMBER:
    case LUA_TSTRING:
      lua_pushvalue(state, 1);
      lua_tolstring(state, -1, nullptr);
      return 1;
    case LUA_TBOOLEAN:
      lua_pushstring(state, lua_toboolean(state, 1) != 0 ? "true" : "false");
      return 1;
    case LUA_TNIL:
      lua_pushstring(state, "nil");
      return 1;
    default:
      lua_pushfstring(state, "%s: 0x00000000", luaL_typename(state, 1));
      return 1;
  }
}

int LuaDoNothing(lua_State*) { return 0; }

void LuaClearField(lua_State* state, const char* table, const char* field) {
  lua_getglobal(state, table);
  lua_pushnil(state);
  lua_setfield(state, -2, field);
  lua_pop(state, 1);
}

void OpenLuaLibraries(lua_State* state) {
  static constexpr luaL_Reg kLibraries[] = {{"", luaopen_base},
                                            {LUA_TABLIBNAME, luaopen_table},
                                            {LUA_STRLIBNAME, luaopen_string},
                                            {LUA_MATHLIBNAME, luaopen_math}};
  for (const luaL_Reg& library : kLibraries) {
    lua_pushcfunction(state, library.func);
    lua_pushstring(state, library.name);
    lua_call(state, 1, 0);
  }
  for (const char* name : {"dofile", "loadfile", "load", "loadstring", "require", "module", "newproxy",
                           "collectgarbage", "gcinfo", "getfenv", "setfenv"}) {
    lua_pushnil(state);
    lua_setglobal(state, name);
  }
  LuaClearField(state, LUA_STRLIBNAME, "dump");
  lua_pushcfunction(state, LuaToString);
  lua_setglobal(state, "tostring");
  lua_pushcfunction(state, LuaDoNothing);
  lua_setglobal(state, "print");
}

struct LuaSetup {
  int make = LUA_NOREF, enter = LUA_NOREF;  // of the prelude's functions
};

int SetUpLua(lua_State* state) {
  auto* const out = static_cast<LuaSetup*>(lua_touserdata(state, 1));
  OpenLuaLibraries(state);
  const std::string_view prelude = LuaPrelude();
  if (luaL_loadbuffer(state, prelude.data(), prelude.size(), "=envoy") != 0) return lua_error(state);
  PushPrimitives(state);
  lua_getglobal(state, LUA_MATHLIBNAME);
  lua_getfield(state, -2, "random");
  lua_setfield(state, -2, "random");
  lua_pushcfunction(state, LuaDoNothing);
  lua_setfield(state, -2, "randomseed");
  lua_pop(state, 1);
  for (const char* name : {"pairs", "setmetatable", "getmetatable", "type"}) lua_getglobal(state, name);
  lua_call(state, 5, 2);
  out->enter = luaL_ref(state, LUA_REGISTRYINDEX);
  out->make = luaL_ref(state, LUA_REGISTRYINDEX);
  return 0;
}

// The start of a call, on a thread of its own.
struct LuaBeginning {
  const char* function = nullptr;
  int make = LUA_NOREF;
  int thread = LUA_NOREF;
  lua_State* state = nullptr;
};

int LuaBegin(lua_State* state) {
  auto* const beginning = static_cast<LuaBeginning*>(lua_touserdata(state, 1));
  beginning->state = lua_newthread(state);
  beginning->thread = luaL_ref(state, LUA_REGISTRYINDEX);
  lua_getglobal(state, beginning->function);
  lua_rawgeti(state, LUA_REGISTRYINDEX, beginning->make);
  lua_call(state, 0, 1);
  lua_xmove(state, beginning->state, 2);
  return 0;
}

// A call that waited goes on.
struct LuaGoingOn {
  lua_State* thread = nullptr;
  const LuaHeaders* headers = nullptr;
  const std::string* body = nullptr;
};

int LuaGoOn(lua_State* state) {
  const auto* const going = static_cast<LuaGoingOn*>(lua_touserdata(state, 1));
  lua_newtable(state);
  for (const auto& [name, value] : *going->headers) {
    lua_pushlstring(state, name.data(), name.size());
    lua_pushlstring(state, value.data(), value.size());
    lua_rawset(state, -3);
  }
  going->body->empty() ? lua_pushnil(state) : lua_pushlstring(state, going->body->data(), going->body->size());
  lua_xmove(state, going->thread, 2);
  return 0;
}

std::string LuaErrorOn(lua_State* state) {
  size_t size = 0;
  const char* const text = lua_type(state, -1) == LUA_TSTRING ? lua_tolstring(state, -1, &size) : nullptr;
  return text == nullptr ? "unknown error" : std::string(text, size);
}

}  // namespace

struct LuaVm::State {
  LuaShared shared;
  lua_State* lua = nullptr;
  LuaSetup setup;

  ~State() {
    if (lua != nullptr) lua_close(lua);
  }

  // Nothing of an earlier call is usable from here on.
  void Leave() {
    SetCurrent(lua, nullptr);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, setup.enter);
    lua_pushinteger(lua, 0);
    if (lua_pcall(lua, 1, 0, 0) != 0) lua_pop(lua, 1);
  }

  Run Go(lua_State* thread, int reference, int arguments, LuaStream& stream) {
    SetCurrent(lua, &stream);
    shared.instructions = kMostInstructions;
    lua_sethook(thread, CountLuaInstructions, LUA_MASKCOUNT, kLuaInstructionsPerLook);
    Run run;
    run.thread = reference;
    const int result = lua_resume(thread, arguments);
    if (result == LUA_YIELD) {
      const std::string why = lua_gettop(thread) > 0 ? LuaErrorOn(thread) : "";
      lua_settop(thread, 0);
      if (why == "called") {
        run.state = Run::State::kWaits;
      } else if (why != "responded") {
        run.state = Run::State::kFailed;
        run.error = "script performed an unexpected yield";
      }
    } else if (result != 0) {
      run.state = Run::State::kFailed;
      run.error = LuaErrorOn(thread);
    }
    if (run.state != Run::State::kWaits) luaL_unref(lua, LUA_REGISTRYINDEX, reference);
    Leave();
    return run;
  }
};

LuaVm::LuaVm(std::unique_ptr<State> state) : state_(std::move(state)) {}
LuaVm::~LuaVm() = default;

absl::StatusOr<std::unique_ptr<LuaVm>> LuaVm::Load(const std::string& code) {
  const auto refused = [](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("script load error: {}", why));
  };
  auto state = std::make_unique<State>();
  state->lua = lua_newstate(LuaAllocate, &state->shared);
  if (state->lua == nullptr) return refused("not enough memory");
  lua_State* const lua = state->lua;
  state->shared.instructions = kMostInstructions;
  if (lua_cpcall(lua, SetUpLua, &state->setup) != 0) return refused(LuaErrorOn(lua));
  lua_sethook(lua, CountLuaInstructions, LUA_MASKCOUNT, kLuaInstructionsPerLook);
  // Bytecode begins with ESC, and is believed by the interpreter.
  if (!code.empty() && code[0] == '\033') return refused("bytecode is not taken");
  if (luaL_loadbuffer(lua, code.data(), code.size(), code.c_str()) != 0 || lua_pcall(lua, 0, 0, 0) != 0) {
    return refused(LuaErrorOn(lua));
  }
  return std::unique_ptr<LuaVm>(new LuaVm(std::move(state)));
}

bool LuaVm::Has(const char* function) const {
  lua_State* const lua = state_->lua;
  lua_pushstring(lua, function);
  lua_rawget(lua, LUA_GLOBALSINDEX);
  const bool has = lua_isfunction(lua, -1);
  lua_pop(lua, 1);
  return has;
}

LuaVm::Run LuaVm::Start(const char* function, LuaStream& stream) {
  LuaBeginning beginning{function, state_->setup.make};
  if (lua_cpcall(state_->lua, LuaBegin, &beginning) != 0) {
    Run failed{Run::State::kFailed, LuaErrorOn(state_->lua), 0};
    lua_pop(state_->lua, 1);
    luaL_unref(state_->lua, LUA_REGISTRYINDEX, beginning.thread);
    return failed;
  }
  return state_->Go(beginning.state, beginning.thread, 1, stream);
}

LuaVm::Run LuaVm::Resume(int thread, LuaStream& stream, const LuaHeaders& headers, const std::string& body) {
  lua_State* const lua = state_->lua;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, thread);
  LuaGoingOn going{lua_tothread(lua, -1), &headers, &body};
  lua_pop(lua, 1);
  if (lua_cpcall(lua, LuaGoOn, &going) != 0) {
    Run failed{Run::State::kFailed, LuaErrorOn(lua), 0};
    lua_pop(lua, 1);
    Drop(thread);
    return failed;
  }
  return state_->Go(going.thread, thread, 2, stream);
}

void LuaVm::Drop(int thread) { luaL_unref(state_->lua, LUA_REGISTRYINDEX, thread); }

}  // namespace wavetank::envoysim
