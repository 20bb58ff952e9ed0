// Delegate VirtualServices merged into the roots that name them (istiod: pilot/pkg/model/virtualservice.go,
// mergeVirtualServicesIfNeeded).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/config/kinds/virtual_service.h"
#include "core/model/push_request.h"
#include "core/push/export_to_defaults.h"

namespace wavetank::pilot {

struct MergedVirtualServices {
  // Those without delegates in their order, then the roots in theirs. Delegates are not among them.
  std::vector<config::VirtualServiceRef> list;
  std::map<std::pair<std::string, std::string>, std::vector<ConfigKey>> delegates;  // by namespace, name of the root
};

// Names are resolved already.
MergedVirtualServices MergeDelegates(const std::vector<config::VirtualServiceRef>& sorted,
                                     const ExportTo& default_export_to);

// A delegate's routes as they serve below `root`; routes whose matches contradict the root's are left out.
std::vector<config::HttpRoute> MergeHttpRoutes(const config::HttpRoute& root,
                                               const std::vector<config::HttpRoute>& delegate);

}  // namespace wavetank::pilot
