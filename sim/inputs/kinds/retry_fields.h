// The fields of a client's own retries, which several inputs have.
#pragma once

#include "sim/apps/retry.h"
#include "sim/inputs/fields.h"

namespace wavetank::sim::inputs {

// As a mapping "retries"; a rule that tries once is left out.
inline void VisitRetry(FieldVisitor& visitor, RetryRule& rule) {
  bool present = rule.attempts > 1;
  visitor.Mapping("retries", &present, [&rule](FieldVisitor& v) {
    v.Visit("attempts", Need::kRequired, rule.attempts);
    if (rule.attempts < 1 || rule.attempts > 100) v.Refuse("attempts", "is no number from 1 to 100");
    v.Visit("backOffNs", Need::kLenient, rule.back_off);
    v.Visit("mostNs", Need::kLenient, rule.most);
    if (rule.back_off < Duration::zero() || rule.most < Duration::zero()) v.Refuse("backOffNs", "is negative");
    v.Visit("on", Need::kLenient, rule.on);
    for (const std::string& reason : rule.on) {
      if (!IsRetryReason(reason)) v.Refuse("on", "holds what is no 5xx, 4xx, gateway-error, no-answer or status");
    }
  });
}

}  // namespace wavetank::sim::inputs
