// A workload that services of either registry may select: a pod, or a WorkloadEntry
// (istiod: pilot/pkg/model/service.go, WorkloadInstance).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/endpoint.h"

namespace wavetank::pilot {

struct WorkloadInstance {
  enum class Kind : uint8_t { kPod, kWorkloadEntry };
  std::string name, ns;
  Kind kind = Kind::kPod;
  IstioEndpoint endpoint;
  std::map<std::string, uint32_t> port_map;  // named ports
  bool dns_service_entry_only = false;       // a WorkloadEntry with a host name for its address
};
using WorkloadRef = std::shared_ptr<const WorkloadInstance>;

// By namespace, then name; each name once. Many registries know the same pods, so they hold no copies.
struct WorkloadOrder {
  using is_transparent = void;
  using Key = std::pair<std::string_view, std::string_view>;
  static Key Of(const WorkloadRef& workload) { return {workload->ns, workload->name}; }
  static Key Of(const Key& key) { return key; }
  bool operator()(const auto& a, const auto& b) const { return Of(a) < Of(b); }
};
using WorkloadSet = std::set<WorkloadRef, WorkloadOrder>;

}  // namespace wavetank::pilot
