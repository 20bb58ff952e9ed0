// What istiod's benchmarks of its cache work on (docs/istiod-benchmarks.md). The benchmarks measure it, a test checks
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/gen/rds/route_cache.h"

namespace wavetank::pilot {

// The cached routes of a sidecar that knows 100 services and 100 DestinationRules; the services' names begin with `n`.
class RouteCacheCase {
 public:
  explicit RouteCacheCase(int n) : services_(100) {
    for (int i = 0; i < 100; ++i) {
      const std::string index = std::to_string(i);
      Service& service = services_[static_cast<size_t>(i)];
      service.hostname = std::to_string(n) + "some" + index + ".example.com";
      service.attributes.ns = "test" + index;
      auto rule = std::make_shared<ConsolidatedDestRule>();
      rule->from.push_back({ConfigKind::kDestinationRule, index, index});
      rules_.push_back(std::move(rule));
    }
  }

  // Good as long as this.
  RouteCacheEntry Entry() const {
    RouteCacheEntry out;
    out.route_name = "something";
    out.cluster = "my-cluster";
    out.dns_domain = "some.domain.example.com";
    out.dns_capture = true;
    for (const Service& service : services_) out.services.push_back(&service);
    out.hash_rules = rules_;
    return out;
  }

 private:
  std::vector<Service> services_;
  std::vector<ConsolidatedDestRuleRef> rules_;
};

}  // namespace wavetank::pilot
