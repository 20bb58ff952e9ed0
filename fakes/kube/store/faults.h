// What can be wrong with an API server: one row for each fault, with the calls that it touches and what it does to
// them. Whatever carries calls (client/, http/rest/, token reviews of the world) asks FateOf(), and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "core/base/time.h"

namespace wavetank::fakekube {

class ApiServer;

enum class ApiCall : uint8_t { kRead, kWatch, kWatchEvent, kWrite, kTokenReview };

struct Faults {
  bool unreachable = false;
  bool unauthorized = false;
  Duration extra_latency{};
  // 429 to every request, with this as Retry-After. Zero: none.
  Duration retry_after{};
  // The server's clock is ahead by so much, or behind: timestamps of objects, lifetimes of tokens.
  Duration clock_skew{};
};

// What one call meets.
struct CallFate {
  bool answered = true;  // false: nothing comes back, and nothing else below counts
  Duration delay{};      // before the answer, or the event
  // Unauthenticated, or ResourceExhausted (429) with `retry_after`; the call does nothing then.
  absl::Status refusal;
  Duration retry_after{};
};
CallFate FateOf(const Faults& faults, ApiCall call);

struct FaultRow {
  std::string_view name;
  std::string_view does;       // for people
  std::string_view parameter;  // of the input that starts it: nanoseconds; "": none
  Duration otherwise{};        // where the parameter is left out
  // On from now. `amount`: the parameter's.
  void (*start)(ApiServer& server, Duration amount);
  // What calls meet while it is on; null: they are served as ever.
  void (*touch)(const Faults& faults, CallFate* fate);
  uint8_t calls;  // a bit for each ApiCall that it touches
};
// In the order in which a request meets them.
std::span<const FaultRow> FaultTable();
const FaultRow* FindFault(std::string_view name);  // null: there is none of that name

// All of them are over.
void EndFaults(ApiServer& server);

}  // namespace wavetank::fakekube
