#include "capacity/fleet/service_graph.h"

#include <algorithm>
#include <numeric>

#include "core/base/assert.h"
#include "core/base/random.h"

namespace wavetank::capacity {
namespace {

// `count` of [first, last) of `order`, each once; all if there are no more.
std::vector<int64_t> Draw(RandomStream& random, const std::vector<int64_t>& order, size_t first, size_t last,
                          int64_t count) {
  std::vector<int64_t> out(order.begin() + static_cast<std::ptrdiff_t>(first),
                           order.begin() + static_cast<std::ptrdiff_t>(last));
  const size_t wanted = std::min(out.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < wanted; ++i) std::swap(out[i], out[i + random.Below(out.size() - i)]);
  out.resize(wanted);
  return out;
}

// Which Services have an endpoint in every cluster.
std::vector<bool> Answering(const Fleet& fleet) {
  std::vector<bool> out(static_cast<size_t>(fleet.services), true);
  using Kind = EndpointsSpec::Kind;
  const EndpointsSpec& spec = fleet.endpoints;
  const bool may_be_none =
      (spec.kind == Kind::kFixed && spec.fixed == 0) || (spec.kind == Kind::kRange && spec.least == 0);
  if (!may_be_none) return out;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    const std::vector<int64_t> endpoints = DrawEndpoints(fleet, cluster);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] && endpoints[i] > 0;
  }
  return out;
}

}  // namespace

ServiceGraph DrawServiceGraph(const Fleet& fleet) {
  ServiceGraph out;
  const ServiceGraphSpec& spec = fleet.traffic;
  if (spec.entries == 0) return out;
  RandomStream random(fleet.seed, "service graph");
  std::vector<int64_t> order(static_cast<size_t>(fleet.services));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[i + random.Below(order.size() - i)]);
  const std::vector<bool> answers = Answering(fleet);
  std::erase_if(order, [&](int64_t service) { return !answers[static_cast<size_t>(service)]; });

  const auto called_from = [&](int64_t ns, int64_t service) {
    out.callers[service].insert(ns);
    if (service % fleet.namespaces != ns) out.abroad[ns].insert(service);
  };
  // The first are the entries; the others are spread evenly over the layers below.
  const size_t entries = std::min(static_cast<size_t>(spec.entries), order.size());
  const size_t others = order.size() - entries, depth = static_cast<size_t>(spec.depth);
  const auto begin_of = [&](size_t layer) { return entries + others * (layer - 1) / depth; };
  out.entries.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(entries));
  for (const int64_t entry : out.entries) called_from(0, entry);
  std::vector<int64_t> callers = out.entries;
  for (size_t layer = 1; layer <= depth; ++layer) {
    std::set<int64_t> called;
    for (const int64_t caller : callers) {
      std::vector<int64_t> calls = Draw(random, order, begin_of(layer), begin_of(layer + 1), spec.calls);
      if (calls.empty()) continue;
      for (const int64_t service : calls) called_from(caller % fleet.namespaces, service);
      called.insert(calls.begin(), calls.end());
      const bool first = out.calls.try_emplace(caller, std::move(calls)).second;
      WAVETANK_ASSERT(first, caller, layer);  // each stands in one layer
    }
    callers.assign(called.begin(), called.end());
  }
  return out;
}

}  // namespace wavetank::capacity
