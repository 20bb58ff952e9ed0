// EnvoyFilters' patches to clusters (istiod: pilot/pkg/networking/core/v1alpha3/envoyfilter/cluster_patch.go).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/push/policies/envoy_filters.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

// For one proxy and one context.
class ClusterPatcher {
 public:
  // `patches`: the proxy's; may be null.
  ClusterPatcher(std::shared_ptr<const EnvoyPatches> patches, config::EnvoyFilter::Context context);

  // There are patches to clusters.
  bool active() const { return list_ != nullptr; }
  // nullopt: a patch removed it. `hosts`: of an inbound cluster the services behind it.
  std::optional<Resource> Patch(Resource cluster, absl::Span<const std::string> hosts = {}) const;
  std::vector<Resource> Inserted() const;

 private:
  std::shared_ptr<const EnvoyPatches> patches_;
  const EnvoyPatches::List* list_ = nullptr;
  config::EnvoyFilter::Context context_;
};

}  // namespace wavetank::pilot
