// Which Services select a pod: asked for every proxy at every full push.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/kube/filtered_informer.h"
#include "core/kube/object.h"

namespace wavetank::pilot {

// An index of an informer's Services, made anew when they have changed.
class ServicesBySelector {
 public:
  explicit ServicesBySelector(const kube::FilteredInformer& services) : services_(services) {}

  // Those of a namespace whose selector the labels satisfy, by name. A Service without a selector selects no pod.
  std::vector<kube::ObjectRef> Selecting(const std::string& ns, const kube::Labels& labels);

 private:
  // By the first label of their selectors, text of the Services themselves: only these can match.
  using Index = absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, std::vector<kube::ObjectRef>>;

  const kube::FilteredInformer& services_;
  uint64_t revision_ = 0;
  std::map<std::string, Index, std::less<>> namespaces_;
};

}  // namespace wavetank::pilot
