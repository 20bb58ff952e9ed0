// How a recording reaches an API server: GET requests whose answers come in pieces.
//
// Fault model: an answer may fail at any time, end early or never end, and hold anything. An implementation
// reports each of these as the end of the call; a caller believes nothing of what came.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace wavetank::record {

class Transport {
 public:
  // A request under way. Destroying it ends it, and no callback runs afterwards; allowed inside its callbacks.
  class Call {
   public:
    virtual ~Call() = default;
  };
  struct Callbacks {
    absl::AnyInvocable<void(int code)> on_code;  // of HTTP; once, before the first piece
    absl::AnyInvocable<void(std::string_view piece)> on_data;
    // OK: the whole answer has come, whatever its code. Unavailable: the connection failed or broke. Unauthenticated:
    // the peer has another identity than it should. Nothing follows.
    absl::AnyInvocable<void(absl::Status)> on_end;
  };

  virtual ~Transport() = default;

  // `target`: path and query, percent-encoded. Callbacks come later, never from inside this call. `endless`: an answer
  // that may be silent for long (a watch).
  virtual std::unique_ptr<Call> Get(const std::string& target, bool endless, Callbacks callbacks) = 0;
};

}  // namespace wavetank::record
