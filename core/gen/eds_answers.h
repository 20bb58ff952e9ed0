// Answers of EDS that one proxy got and the next one with the same view gets again, whole: in a push thousands of
// proxies ask for the same endpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/model/proxy.h"
#include "core/model/push_request.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class PushContext;
class SidecarScope;
class XdsCache;

// Two kinds of answers are kept, each as long as the cache says the same, so that what is counted (hits, costs) is what
// it would be without this: those that came from the cache entirely; and, until the cache is cleared of anything (as it
// is with every change of endpoints), those of which it took nothing, for requests from which it will take nothing
// either. The latter are those of a full push after which the cache was cleared once more, as happens all the time
// while pods start.
class EdsAnswers {
 public:
  explicit EdsAnswers(XdsCache* cache) : cache_(cache) {}

  // Null if there is none.
  const GeneratedResources* Find(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) const;
  // `cache_version`: before the answer was generated.
  void Add(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request, uint64_t cache_version,
           const GeneratedResources& generated);

 private:
  struct Answer {
    uint64_t cache_version = 0, clearings = 0;
    bool all_cached = false;
    std::weak_ptr<const PushContext> push;
    std::weak_ptr<const SidecarScope> scope;
    SharedVector<std::string> names;
    bool full = false;
    std::set<ConfigKey> configs_updated;
    bool router = false;
    ClusterId cluster;
    NetworkId network;
    ProxyLocality locality;
    std::vector<std::string> requested_network_view;
    GeneratedResources generated;
  };
  static constexpr size_t kMax = 32;

  XdsCache* cache_;
  std::vector<Answer> answers_;
  size_t oldest_ = 0;
};

}  // namespace wavetank::pilot
