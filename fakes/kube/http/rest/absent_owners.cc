#include "fakes/kube/http/rest/absent_owners.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wavetank::fakekube::http {
namespace {

constexpr Duration kFoundOut = 500ms;  // the collector's own watches and queue

bool Absent(const ApiServer& server, const kube::Object& dependent, const kube::OwnerReference& reference) {
  const GroupKind kind{reference.kind, GroupOf(reference.api_version)};
  const std::string ns = server.IsClusterScoped(kind) ? std::string() : dependent.meta.ns;
  const ObjectRef owner = server.Get(Qualified(kind), {ns, reference.name});
  return owner == nullptr || owner->meta.uid != reference.uid;
}

bool AllAbsent(const ApiServer& server, const kube::Object& dependent) {
  const std::vector<kube::OwnerReference>& owners = dependent.meta.owner_references;
  return !owners.empty() && std::all_of(owners.begin(), owners.end(), [&](const kube::OwnerReference& owner) {
    return Absent(server, dependent, owner);
  });
}

}  // namespace

void CollectIfOwnersAreAbsent(ApiServer& server, const kube::Object& made, std::weak_ptr<const void> alive) {
  if (!AllAbsent(server, made)) return;
  server.host().RunAfter(kFoundOut, [&server, alive = std::move(alive), kind = Qualified(GroupKindOf(made)),
                                     name = NamespacedName{made.meta.ns, made.meta.name}, uid = made.meta.uid] {
    if (alive.expired()) return;
    const ObjectRef now = server.Get(kind, name);
    if (now != nullptr && now->meta.uid == uid && !now->meta.deleting && AllAbsent(server, *now))
      server.Delete(kind, name).IgnoreError();
  });
}

}  // namespace wavetank::fakekube::http
