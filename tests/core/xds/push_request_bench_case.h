// What istiod's benchmark of merged push requests works on (docs/istiod-benchmarks.md; istiod:
// pilot/pkg/xds/bench_test.go). The benchmark measures it, a test checks it.
#pragma once

#include <utility>

#include "core/base/host.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

// Ten requests for one service, each for another reason, merged as they come.
inline PushRequest MergedPushRequest(Host& host) {
  static constexpr TriggerReason kReasons[] = {
      TriggerReason::kEndpoint, TriggerReason::kConfig,      TriggerReason::kService, TriggerReason::kProxy,
      TriggerReason::kGlobal,   TriggerReason::kUnknown,     TriggerReason::kDebug,   TriggerReason::kSecret,
      TriggerReason::kNetworks, TriggerReason::kProxyRequest};
  PushRequest out;
  for (const TriggerReason reason : kReasons) {
    PushRequest next;
    next.reasons = Reason(reason);
    next.configs_updated = {{ConfigKind::kServiceEntry, "0", "default"}};
    if (out.reasons == 0) {
      out = std::move(next);
    } else {
      out.Merge(std::move(next), host);
    }
  }
  return out;
}

}  // namespace wavetank::pilot
