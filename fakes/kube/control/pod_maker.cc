#include "fakes/kube/control/pod_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/control/limit_ranges.h"
#include "fakes/kube/control/quotas.h"
#include "fakes/kube/store/event_store.h"
#include "fakes/kube/validation/defaults.h"

namespace wavetank::fakekube {

using nlohmann::json;

namespace {

// In the words of pkg/controller/controller_utils.go and statefulset/stateful_pod_control.go of kubernetes. `made` is
// the refusal otherwise.
void TellMade(ApiServer& api, const kube::Object& owner, const std::string& pod, const absl::Status& made) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  const std::string component = OwnComponent(owner.kind);
  const std::string error(made.ok() ? std::string_view() : Message(made));
  const bool stateful = owner.kind == "StatefulSet";
  std::string message;
  if (stateful) {
    message = fmt::format("create Pod {} in StatefulSet {} {}", pod, owner.meta.name,
                          made.ok() ? "successful" : "failed error: " + error);
  } else {
    message = made.ok() ? "Created pod: " + pod : "Error creating: " + error;
  }
  events->Tell(owner, {.component = component,
                       .warning = !made.ok(),
                       .reason = made.ok() ? "SuccessfulCreate" : "FailedCreate",
                       .message = std::move(message)});
}

// Stores it, if the namespace's limits and quotas let it.
absl::Status CreateWithinLimits(ApiServer& api, json pod) {
  absl::Status status = AdmitByLimitRanges(api, pod);
  if (status.ok()) status = CheckQuotas(api, pod);
  if (status.ok()) return api.Create(std::move(pod)).status();
  return absl::PermissionDeniedError(
      fmt::format("pods \"{}\" is forbidden: {}", Text(pod["metadata"], "name"), Message(status)));
}

}  // namespace

std::string OwnComponent(std::string_view kind) {
  return absl::AsciiStrToLower(absl::string_view(kind.data(), kind.size())) + "-controller";
}

void TellDeleted(ApiServer& api, const kube::Object& owner, const std::string& pod) {
  EventStore* events = api.listening();
  if (events == nullptr) return;
  const std::string component = OwnComponent(owner.kind);
  events->Tell(owner, {.component = component,
                       .reason = "SuccessfulDelete",
                       .message = owner.kind == "StatefulSet"
                                      ? fmt::format("delete Pod {} in StatefulSet {} successful", pod, owner.meta.name)
                                      : "Deleted pod: " + pod});
}

ObjectRef PodMaker::OwnerOf(const Order& order) const {
  ObjectRef owner = api_.Get(order.owner_kind, order.owner);
  const bool same = owner != nullptr && !owner->meta.deleting &&
                    order.pod["metadata"]["ownerReferences"][0]["uid"] == owner->meta.uid;
  return same ? owner : nullptr;
}

void PodMaker::Attempt(Order order, int attempt) {
  if (admission_ == nullptr) {
    json pod = order.pod;
    return Store(std::move(pod), std::move(order), attempt);
  }
  const ObjectRef ns = api_.Get("Namespace", {"", order.owner.ns});
  json review = order.pod;
  SetDefaults(review);
  admission_->Review(std::move(review), ns == nullptr ? kube::Labels() : ns->meta.labels,
                     [this, order = std::move(order), attempt](absl::StatusOr<json> admitted) mutable {
                       Store(std::move(admitted), std::move(order), attempt);
                     });
}

void PodMaker::Store(absl::StatusOr<json> admitted, Order order, int attempt) {
  // The owner may have gone while the webhook was asked, maybe with the whole namespace.
  const ObjectRef asking = OwnerOf(order);
  if (asking == nullptr) return order.done(false);
  const bool passed = admitted.ok();
  const absl::Status status =
      passed ? CreateWithinLimits(api_, *std::move(admitted))
             : absl::InternalError(fmt::format("Internal error occurred: {}", Message(admitted.status())));
  if (!absl::IsAlreadyExists(status)) TellMade(api_, *asking, Text(order.pod["metadata"], "name"), status);
  if (status.ok() || absl::IsAlreadyExists(status)) return order.done(true);
  if (passed && admission_ != nullptr) admission_->NotStored(order.pod, status);
  // As Kubernetes' controllers: again, after 5 ms doubling up to 82 s (the default rate limiter's steps, capped).
  WAVETANK_ASSERT(attempt >= 0, attempt);
  constexpr int kMost = 14;
  const Duration delay = Duration(5ms) * (int64_t{1} << std::min(attempt, kMost));
  auto again = [this, order = std::move(order), attempt]() mutable {
    const ObjectRef owner = OwnerOf(order);
    if (owner == nullptr || !order.wanted(*owner)) return order.done(false);
    Attempt(std::move(order), attempt + 1);
  };
  attempt < kMost ? pending_.After(delay, std::move(again)) : pending_.InVain(delay, std::move(again));
}

}  // namespace wavetank::fakekube
