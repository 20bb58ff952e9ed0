#include "fakes/kube/control/pod_maker.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "fakes/kube/validation/defaults.h"

namespace wavetank::fakekube {

using nlohmann::json;

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
  if (OwnerOf(order) == nullptr) return order.done(false);
  const absl::Status status = admitted.ok() ? api_.Create(*std::move(admitted)).status() : admitted.status();
  if (status.ok() || absl::IsAlreadyExists(status)) return order.done(true);
  // As Kubernetes' controllers: again, after 5 ms doubling up to 82 s (the default rate limiter's steps, capped).
  WAVETANK_ASSERT(attempt >= 0, attempt);
  const Duration delay = Duration(5ms) * (int64_t{1} << std::min(attempt, 14));
  pending_.After(delay, [this, order = std::move(order), attempt]() mutable {
    const ObjectRef owner = OwnerOf(order);
    if (owner == nullptr || !order.wanted(*owner)) return order.done(false);
    Attempt(std::move(order), attempt + 1);
  });
}

}  // namespace wavetank::fakekube
