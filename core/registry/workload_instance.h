// A workload that services of either registry may select: a pod, or a WorkloadEntry
// (istiod: pilot/pkg/model/service.go, WorkloadInstance).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/containers/named_refs.h"
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

struct WorkloadNames {
  static std::string_view NamespaceOf(const WorkloadRef& workload) { return workload->ns; }
  static std::string_view NameOf(const WorkloadRef& workload) { return workload->name; }
};
using WorkloadSet = NamedRefs<WorkloadRef, WorkloadNames>;

}  // namespace wavetank::pilot
