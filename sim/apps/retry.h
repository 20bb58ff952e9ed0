// A client's own retries, apart from those of its proxy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::sim {

struct RetryRule {
  int64_t attempts = 1;      // in all; 1: none is tried again
  Duration back_off = 25ms;  // before the second, and twice as long before each that follows
  Duration most = 10s;       // but never longer
  // "5xx", "4xx", "no-answer" (refused, reset, timed out), "gateway-error" (502, 503, 504), or a status.
  std::vector<std::string> on = {"5xx", "no-answer"};

  // Whether it is tried again after `tried` attempts, the last of which came to `record`.
  bool Again(int64_t tried, const envoysim::RequestRecord& record) const;
  Duration Wait(int64_t tried) const;
};

// Whether RetryRule::on may hold it.
bool IsRetryReason(std::string_view text);

// Answered, and not with an error of the server.
inline bool Succeeded(const envoysim::RequestRecord& record) { return record.code >= 200 && record.code < 500; }

}  // namespace wavetank::sim
