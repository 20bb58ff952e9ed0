#include "sim/remote/watched_namespace.h"

namespace wavetank::sim {

kube::ListOptions WatchedNamespace::Limited(const kube::ResourceKind& kind, kube::ListOptions options) const {
  if (kind.namespaced && options.ns.empty()) options.ns = ns_;
  return options;
}

void WatchedNamespace::List(const kube::ResourceKind& kind, const kube::ListOptions& options,
                            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) {
  client_->List(kind, Limited(kind, options), std::move(done));
}

std::unique_ptr<kube::Watch> WatchedNamespace::StartWatch(const kube::ResourceKind& kind,
                                                          const kube::ListOptions& options, int64_t resource_version,
                                                          kube::WatchCallbacks callbacks) {
  return client_->StartWatch(kind, Limited(kind, options), resource_version, std::move(callbacks));
}

void WatchedNamespace::Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) {
  client_->Apply(std::move(object), std::move(done));
}

void WatchedNamespace::Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
                              absl::AnyInvocable<void(absl::Status)> done) {
  client_->Delete(kind, name, std::move(done));
}

void WatchedNamespace::WhenServed(const std::string& group, const std::vector<std::string>& kinds,
                                  std::function<void()> served) {
  kube::WhenServed(*client_, group, kinds, std::move(served));
}

}  // namespace wavetank::sim
