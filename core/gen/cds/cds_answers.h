// Outbound clusters that one proxy got and the next one with the same view gets again: of all services together, and
// service by service where the cache changed in between.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/push/push_context.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class XdsCache;

// The outbound clusters of one service, in order.
struct ServiceClusters {
  std::vector<Resource> clusters;
  int64_t cached = 0;  // of them
  // A DestinationRule shaped them, which may look at more of a proxy than its view.
  bool ruled = false;
};

// The outbound clusters of one push context, one Sidecar scope and one view of a proxy (what of its own metadata is in
// the cache's keys). What is counted (hits, costs) and what enters the cache is what it would be without this: a
// service's clusters are taken as they are where generating them once more would find them in the cache, or would
// neither find them there nor put them there.
class OutboundClusters {
 public:
  using Generate = absl::FunctionRef<ServiceClusters(const Service&)>;
  struct Now {
    bool takes = false;          // the cache takes what is generated
    bool same_for_view = false;  // what no DestinationRule shapes depends on nothing but the view
  };

  // `services` must always be the same. Of clusters with one name (services whose definitions conflict can claim it)
  // there is the first. Valid until the next call.
  const GeneratedResources& UpToDate(const std::vector<ServiceRef>& services, XdsCache& cache, const Now& now,
                                     Generate generate);

  // The outbound clusters with what follows them, as proxies got them since the former last changed.
  std::vector<GeneratedResources>& whole() { return whole_; }

 private:
  struct Part {
    size_t first = 0, count = 0;  // of the resources
    int64_t cached = 0;
    bool ruled = false, stale = false;
  };
  using Parts = std::vector<std::pair<size_t, ServiceClusters>>;  // by place among the services

  // What has to be generated once more; false: everything.
  bool MarkStale(const XdsCache& cache);
  void GenerateAll(const std::vector<ServiceRef>& services, Generate generate);
  void Take(Parts fresh);
  void Assemble(Parts all);

  bool separable_ = false;  // made_ consists of parts_
  uint64_t mark_ = 0;       // of the cache, when made_ was up to date
  std::vector<Part> parts_;
  absl::flat_hash_map<std::string, size_t> part_of_;  // by the service's host name
  GeneratedResources made_;
  std::vector<GeneratedResources> whole_;
};

}  // namespace wavetank::pilot
