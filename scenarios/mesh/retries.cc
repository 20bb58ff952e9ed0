#include "scenarios/mesh/retries.h"

#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "scenarios/language/rows.h"

namespace wavetank::scenario {

void CheckRetries(const Field& f) {
  if (!f.present()) return;
  CheckMapping(f, RetriesRow(), nullptr);
  for (const Field& reason : f["on"].Items()) {
    if (!sim::IsRetryReason(reason.Text())) {
      reason.Fail(fmt::format("'{}' is nothing that is tried again", reason.Text()),
                  "write 5xx, 4xx, gateway-error, no-answer or a status such as 429");
    }
  }
}

sim::RetryRule RetriesOf(const nlohmann::json& retries) {
  sim::RetryRule out;
  out.attempts = Number(retries, "attempts", 1);
  const auto time = [&](const char* key, Duration otherwise) {
    return ParseDuration(Text(retries, key)).value_or(otherwise);
  };
  out.back_off = time("backOff", out.back_off);
  out.most = time("most", out.most);
  if (const nlohmann::json& on = At(retries, "on"); !on.is_null()) {
    out.on.clear();
    for (const nlohmann::json& reason : on.is_array() ? on : nlohmann::json::array({on}))
      out.on.push_back(TextOf(reason, JsonText(reason)));
  }
  return out;
}

}  // namespace wavetank::scenario
