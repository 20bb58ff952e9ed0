// A cluster's Endpoints in the shape of EndpointSlices, for an istiod that reads those
// (PILOT_USE_ENDPOINT_SLICE=false; istiod: pilot/pkg/serviceregistry/kube/controller/endpoints.go).
//
// A slice has one list of ports for all its addresses, so each subset becomes a slice: of Endpoints `web` they are
// `web`, `web-2`, ... Everything that is not of EndpointSlices goes through as it is.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/kube/client.h"

namespace wavetank::pilot {

// As many as the Endpoints have subsets, but at least one, so that a service without addresses is known to have none.
std::vector<kube::ObjectRef> SlicesOf(const kube::Object& endpoints);

class EndpointsClient final : public kube::Client {
 public:
  explicit EndpointsClient(kube::Client& client) : client_(client) {}

  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override;
  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                          int64_t resource_version, kube::WatchCallbacks callbacks) override;
  void Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) override {
    client_.Apply(std::move(object), std::move(done));
  }
  void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override {
    client_.Delete(kind, name, std::move(done));
  }

 private:
  using Counts = std::map<kube::NamespacedName, size_t>;  // how many slices it is

  kube::Client& client_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();  // watches may outlive this
};

}  // namespace wavetank::pilot
