#include "sim/apps/retry.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace wavetank::sim {
namespace {

bool IsMeant(std::string_view reason, uint16_t code) {
  if (reason == "no-answer") return code == 0;
  if (reason == "5xx") return code >= 500;
  if (reason == "4xx") return code >= 400 && code < 500;
  if (reason == "gateway-error") return code == 502 || code == 503 || code == 504;
  int number = 0;
  return absl::SimpleAtoi(std::string(reason), &number) && number == code;
}

}  // namespace

bool IsRetryReason(std::string_view text) {
  if (text == "no-answer" || text == "5xx" || text == "4xx" || text == "gateway-error") return true;
  int number = 0;
  return absl::SimpleAtoi(std::string(text), &number) && number >= 200 && number <= 599;
}

bool RetryRule::Again(int64_t tried, const envoysim::RequestRecord& record) const {
  if (tried >= attempts) return false;
  return std::any_of(on.begin(), on.end(), [&](const std::string& reason) { return IsMeant(reason, record.code); });
}

Duration RetryRule::Wait(int64_t tried) const {
  Duration wait = back_off;
  for (int64_t i = 1; i < tried && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

}  // namespace wavetank::sim
