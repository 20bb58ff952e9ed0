#include "fakes/kube/store/faults.h"

#include <algorithm>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {
namespace {

constexpr uint8_t Bit(ApiCall call) { return static_cast<uint8_t>(1U << static_cast<unsigned>(call)); }
constexpr uint8_t kRequests =
    Bit(ApiCall::kRead) | Bit(ApiCall::kWatch) | Bit(ApiCall::kWrite) | Bit(ApiCall::kTokenReview);
constexpr uint8_t kEverything = kRequests | Bit(ApiCall::kWatchEvent);
constexpr uint8_t kNone = 0;

// A request is let in (authentication) before it is counted (priority and fairness), as in kube-apiserver's chain of
// handlers (apiserver: pkg/server/config.go, DefaultBuildHandlerChain).
constexpr FaultRow kTable[] = {
    {.name = "unreachable",
     .does = "nothing answers; watches end",
     .start =
         [](ApiServer& server, Duration) {
           server.faults().unreachable = true;
           server.DropWatches(absl::UnavailableError("connection lost"));
         },
     .touch = [](const Faults& faults, CallFate* fate) { fate->answered = !faults.unreachable; },
     .calls = kRequests},
    {.name = "slow",
     .does = "answers and events come later",
     .parameter = "latencyNs",
     .otherwise = 500ms,
     .start = [](ApiServer& server, Duration amount) { server.faults().extra_latency = amount; },
     .touch = [](const Faults& faults, CallFate* fate) { fate->delay += faults.extra_latency; },
     .calls = kEverything},
    {.name = "unauthorized",
     .does = "401 to every request; watches end",
     .start =
         [](ApiServer& server, Duration) {
           server.faults().unauthorized = true;
           server.DropWatches(absl::UnauthenticatedError("Unauthorized"));
         },
     .touch =
         [](const Faults& faults, CallFate* fate) {
           if (faults.unauthorized) fate->refusal = absl::UnauthenticatedError("Unauthorized");
         },
     .calls = kRequests},
    {.name = "too-many-requests",
     .does = "429 with Retry-After to every request",
     .parameter = "retryAfterNs",
     .otherwise = 1s,
     .start = [](ApiServer& server, Duration amount) { server.faults().retry_after = amount; },
     .touch =
         [](const Faults& faults, CallFate* fate) {
           if (faults.retry_after <= Duration::zero() || !fate->refusal.ok()) return;
           fate->refusal = absl::ResourceExhaustedError("Too many requests, please try again later.");
           fate->retry_after = faults.retry_after;
         },
     .calls = kRequests},
    {.name = "watches-dropped",
     .does = "every watch ends once",
     .start = [](ApiServer& server, Duration) { server.DropWatches(absl::UnavailableError("connection lost")); },
     .touch = nullptr,
     .calls = kNone},
    {.name = "history-gone",
     .does = "every watch ends once, and none goes on from a version before now (410)",
     .start =
         [](ApiServer& server, Duration) {
           server.ForgetHistory();
           server.DropWatches(absl::OutOfRangeError("too old resource version"));
         },
     .touch = nullptr,
     .calls = kNone},
    {.name = "stale-reads",
     .does = "lists and watches stand still",
     .start = [](ApiServer& server, Duration) { server.SetStaleReads(true); },
     .touch = nullptr,
     .calls = kNone},
    {.name = "clock-skew",
     .does = "the server's clock is ahead, or behind: timestamps and lifetimes of tokens",
     .parameter = "skewNs",
     .start = [](ApiServer& server, Duration amount) { server.faults().clock_skew = amount; },
     .touch = nullptr,
     .calls = kNone},
};

}  // namespace

std::span<const FaultRow> FaultTable() { return kTable; }

const FaultRow* FindFault(std::string_view name) {
  const auto* const row =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const FaultRow& each) { return each.name == name; });
  return row == std::end(kTable) ? nullptr : row;
}

CallFate FateOf(const Faults& faults, ApiCall call) {
  CallFate fate;
  for (const FaultRow& row : kTable) {
    if ((row.calls & Bit(call)) != 0) row.touch(faults, &fate);
    if (!fate.answered) break;
  }
  return fate;
}

void EndFaults(ApiServer& server) {
  server.faults() = {};
  server.SetStaleReads(false);
}

}  // namespace wavetank::fakekube
