#include "check/upgrade/order.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/inputs/kinds/install.h"

namespace wavetank::check {
namespace {

constexpr UpgradeMethod kMethods[] = {UpgradeMethod::kCanary, UpgradeMethod::kInPlace, UpgradeMethod::kProxiesFirst};

// Why a mesh cannot have a second istiod beside the first; empty: it can.
std::string NoCanary(const std::vector<sim::WorldCluster>& clusters) {
  for (const sim::WorldCluster& cluster : clusters) {
    if (cluster.observed) return fmt::format("cluster '{}' is a record, which makes no new pods", cluster.name);
    if (cluster.primary()) continue;
    return fmt::format("remote cluster '{}' reaches one istiod of '{}', through its gateway", cluster.name,
                       cluster.control_plane);
  }
  return {};
}

// Primaries before the clusters that they serve, otherwise as they come.
std::vector<std::string> Ordered(const std::vector<sim::WorldCluster>& clusters, bool reverse) {
  std::vector<std::string> primaries, remotes;
  for (const sim::WorldCluster& cluster : clusters) {
    (cluster.primary() ? primaries : remotes).push_back(cluster.name);
  }
  if (reverse) {
    std::reverse(primaries.begin(), primaries.end());
    std::reverse(remotes.begin(), remotes.end());
  }
  primaries.insert(primaries.end(), remotes.begin(), remotes.end());
  return primaries;
}

absl::StatusOr<std::vector<UpgradeMethod>> MethodsOf(const std::vector<sim::WorldCluster>& clusters,
                                                     const OrdersWanted& wanted, std::vector<std::string>* notes) {
  const std::string no_canary = NoCanary(clusters);
  const bool recorded = std::any_of(clusters.begin(), clusters.end(), [](const auto& c) { return c.observed; });
  std::vector<UpgradeMethod> out;
  for (const std::string& name : wanted.methods) {
    const auto found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                    [&](UpgradeMethod method) { return NameOf(method) == name; });
    if (found == std::end(kMethods)) {
      return absl::InvalidArgumentError(
          fmt::format("no way to upgrade is called '{}'; one of canary, in-place, proxies-first", name));
    }
    if (*found == UpgradeMethod::kCanary && !no_canary.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: a canary is not simulated there; try --method in-place", no_canary));
    }
    out.push_back(*found);
  }
  if (!out.empty()) return out;
  for (const UpgradeMethod method : kMethods) {
    if (method == UpgradeMethod::kCanary && !no_canary.empty()) {
      notes->push_back(fmt::format("no canary was tried: {}", no_canary));
      continue;
    }
    out.push_back(method);
  }
  if (recorded) {
    notes->emplace_back(
        "pods of a recorded cluster are exchanged where they stand, all of a kind at once: what fails while they start "
        "is worse than a rollout");
  }
  return out;
}

}  // namespace

std::string_view NameOf(UpgradeMethod method) {
  switch (method) {
    case UpgradeMethod::kCanary:
      return "canary";
    case UpgradeMethod::kInPlace:
      return "in-place";
    case UpgradeMethod::kProxiesFirst:
      return "proxies-first";
  }
  return {};
}

std::string UpgradeOrder::Name() const {
  return fmt::format("{}, gateways {}, {}", NameOf(method), gateways_first ? "first" : "last",
                     fmt::join(clusters, " then "));
}

std::string RevisionNameOf(std::string_view istio) {
  std::string out(istio);
  std::replace(out.begin(), out.end(), '.', '-');
  return out;
}

std::vector<UpgradeStep> StepsOf(const UpgradeOrder& order, const std::string& to, const std::string& revision) {
  std::vector<UpgradeStep> out;
  const std::string of = order.method == UpgradeMethod::kCanary ? revision : "";
  for (const std::string& cluster : order.clusters) {
    const auto add = [&](std::string name, std::string part) {
      UpgradeStep& step = out.emplace_back();
      step.inputs.emplace_back(sim::inputs::Upgrade{cluster, to, of, part});
      step.cluster = cluster;
      step.part = std::move(part);
      step.name = std::move(name);
    };
    const auto add_proxies = [&] {
      const auto gateways = [&] { add(fmt::format("gateways of {}", cluster), "gateways"); };
      if (order.gateways_first) gateways();
      add(fmt::format("workloads of {}", cluster), "workloads");
      if (!order.gateways_first) gateways();
    };
    switch (order.method) {
      case UpgradeMethod::kCanary:
        add(fmt::format("istiod of revision {} in {}, beside the old one", revision, cluster), "istiod");
        add_proxies();
        add(fmt::format("the old istiod of {} is removed", cluster), "oldIstiod");
        break;
      case UpgradeMethod::kInPlace:
        add(fmt::format("istiod of {}, in place", cluster), "istiod");
        add_proxies();
        break;
      case UpgradeMethod::kProxiesFirst:
        add(fmt::format("the injector of {}, without istiod", cluster), "injector");
        add_proxies();
        add(fmt::format("istiod of {}, in place", cluster), "istiod");
        break;
    }
  }
  return out;
}

absl::StatusOr<std::vector<UpgradeOrder>> OrdersOf(const std::vector<sim::WorldCluster>& clusters,
                                                   const OrdersWanted& wanted, std::vector<std::string>* notes) {
  absl::StatusOr<std::vector<UpgradeMethod>> methods = MethodsOf(clusters, wanted, notes);
  if (!methods.ok()) return methods.status();
  if (!wanted.gateways.empty() && wanted.gateways != "first" && wanted.gateways != "last") {
    return absl::InvalidArgumentError(
        fmt::format("gateways come 'first' or 'last', not '{}'; left out, both are tried", wanted.gateways));
  }
  std::vector<std::vector<std::string>> sequences;
  if (wanted.clusters.empty()) {
    sequences = {Ordered(clusters, false), Ordered(clusters, true)};
    if (sequences[0] == sequences[1]) sequences.pop_back();
  } else {
    std::vector<std::string> known = Ordered(clusters, false), asked = wanted.clusters;
    const std::string all = fmt::format("{}", fmt::join(known, ","));
    std::sort(known.begin(), known.end());
    std::sort(asked.begin(), asked.end());
    if (known != asked) {
      return absl::InvalidArgumentError(
          fmt::format("--clusters {}: name each cluster of the mesh once: {}", fmt::join(wanted.clusters, ","), all));
    }
    sequences = {wanted.clusters};
  }
  std::vector<UpgradeOrder> out;
  for (const UpgradeMethod method : *methods) {
    for (const bool first : {true, false}) {
      if (!wanted.gateways.empty() && (wanted.gateways == "first") != first) continue;
      for (const auto& sequence : sequences) out.push_back({method, first, sequence});
    }
  }
  return out;
}

}  // namespace wavetank::check
