// What a script asks of the request or answer that it is called about. Registered with the interpreter for the prelude.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

struct lua_State;

namespace wavetank::envoysim {

using LuaHeaders = std::vector<std::pair<std::string, std::string>>;

// One request or one answer. Names in lower case.
class LuaStream {
 public:
  virtual ~LuaStream() = default;
  virtual bool is_request() const = 0;
  virtual LuaHeaders Headers() const = 0;  // pseudo-headers first
  virtual void Add(const std::string& name, const std::string& value) = 0;
  virtual void Replace(const std::string& name, const std::string& value) = 0;
  virtual void Remove(const std::string& name) = 0;
  // The script ends with it. False: it is too late for an answer.
  virtual bool Respond(LuaHeaders headers, std::string body) = 0;
  // Sends a request of the script's own. False: there is no such cluster. The script waits for LuaVm::Resume() unless
  // it is asynchronous.
  virtual bool Call(const std::string& cluster, LuaHeaders headers, const std::string& body, int64_t timeout_ms,
                    bool asynchronous) = 0;
  virtual void Log(std::string_view level, const std::string& text) = 0;
  virtual std::optional<std::string> Body() const = 0;  // nothing: none
  virtual void SetBody(std::string body) = 0;
  virtual nlohmann::json RouteMetadata() const = 0;                               // an object
  virtual nlohmann::json DynamicMetadataOf(const std::string& filter) const = 0;  // null: none
  virtual nlohmann::json AllDynamicMetadata() const = 0;
  virtual void SetDynamicMetadata(const std::string& filter, const std::string& key, nlohmann::json value) = 0;
  // "protocol", "routeName", ...; nothing: nil.
  virtual std::optional<std::string> Info(std::string_view what) const = 0;
  virtual int64_t NowMicroseconds() const = 0;
  virtual double Random() = 0;  // in [0, 1)
};

// A table of primitives on top of the stack. They serve the stream that the interpreter's owner has set.
void PushPrimitives(lua_State* state);
// The stream that scripts are called about from here on; nullptr: none.
void SetCurrent(lua_State* state, LuaStream* stream);

}  // namespace wavetank::envoysim
