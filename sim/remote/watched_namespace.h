// A client whose lists and watches of all namespaces are of one: what ISTIO_WATCH_NAMESPACE makes of each informer of
// istiod's, in each cluster. Kinds without namespaces are read as ever, and so is what names a namespace itself.
// istiod: pkg/kube/kclient/client.go, ToOpts() (since 1.19)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kube/client.h"
#include "core/kube/definitions.h"

namespace wavetank::sim {

class WatchedNamespace final : public kube::Client, public kube::DefinitionWatcher {
 public:
  WatchedNamespace(std::unique_ptr<kube::Client> client, std::string ns)
      : client_(std::move(client)), ns_(std::move(ns)) {}

  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override;
  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                          int64_t resource_version, kube::WatchCallbacks callbacks) override;
  void Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) override;
  void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override;
  void WhenServed(const std::string& group, const std::vector<std::string>& kinds,
                  std::function<void()> served) override;

 private:
  kube::ListOptions Limited(const kube::ResourceKind& kind, kube::ListOptions options) const;

  const std::unique_ptr<kube::Client> client_;
  const std::string ns_;
};

}  // namespace wavetank::sim
