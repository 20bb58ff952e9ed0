#include "core/registry/services_by_selector.h"

#include <algorithm>
#include <tuple>

#include "core/kube/types.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

std::vector<kube::ObjectRef> ServicesBySelector::Selecting(const std::string& ns, const kube::Labels& labels) {
  if (const uint64_t now = services_.informer().revision(); now != revision_) {
    namespaces_.clear();
    revision_ = now;
  }
  const auto [it, unknown] = namespaces_.try_emplace(ns);
  if (unknown) {
    // Whether a namespace is looked at may change without a Service doing so, hence unfiltered.
    for (const kube::ObjectRef& service : services_.ListUnfiltered(ns)) {
      const kube::Labels& selector = kube::ParseService(*service).selector;
      if (!selector.empty()) it->second[*selector.begin()].push_back(service);
    }
  }
  std::vector<kube::ObjectRef> out;
  for (const auto& [key, value] : labels) {
    const auto found = it->second.find({key, value});
    if (found == it->second.end()) continue;
    for (const kube::ObjectRef& service : found->second) {
      if (SelectorMatches(kube::ParseService(*service).selector, labels) && services_.Passes(*service)) {
        out.push_back(service);
      }
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(a->meta.ns, a->meta.name) < std::tie(b->meta.ns, b->meta.name);
  });
  return out;
}

}  // namespace wavetank::pilot
