// An interpreter with one script, in a sandbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/envoy/filters/lua/primitives.h"

namespace wavetank::envoysim {

class LuaVm {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr int64_t kMostInstructions = 5'000'000;  // of one call

  // InvalidArgument with Envoy's words: "script load error: ...".
  static absl::StatusOr<std::unique_ptr<LuaVm>> Load(const std::string& code);
  ~LuaVm();
  LuaVm(const LuaVm&) = delete;
  LuaVm& operator=(const LuaVm&) = delete;

  bool Has(const char* function) const;  // "envoy_on_request"

  // A call of one of the script's functions, under way until it has ended.
  struct Run {
    enum class State : uint8_t { kEnded, kWaits, kFailed };
    State state = State::kEnded;
    std::string error;  // kFailed
    int thread = 0;     // of a call that waits
  };
  Run Start(const char* function, LuaStream& stream);
  // The answer that a waiting call waits for.
  Run Resume(int thread, LuaStream& stream, const LuaHeaders& headers, const std::string& body);
  // Forgets a call that waits.
  void Drop(int thread);

 private:
  struct State;
  explicit LuaVm(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Lua source of the objects of Envoy's stream API; prelude.cc.
std::string_view LuaPrelude();

}  // namespace wavetank::envoysim
