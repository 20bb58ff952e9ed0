// EnvoyFilters whose patches reach nothing, or may not do what they seem to.
#include <algorithm>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "re2/re2.h"

namespace wavetank::check {
namespace {

using config::EnvoyFilter;
using ApplyTo = EnvoyFilter::ApplyTo;
using Operation = EnvoyFilter::Operation;

template <class Fn>
void EachPatch(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    for (const config::EnvoyFilterRef& filter : cluster->configs.EnvoyFilters()) {
      for (size_t i = 0; i < filter->spec.config_patches.size(); ++i)
        fn(*cluster, *filter, filter->spec.config_patches[i], i + 1);
    }
  }
}

Operation OperationOf(const EnvoyFilter::ConfigPatch& patch) {
  return patch.patch ? patch.patch->operation : Operation::kInvalid;
}

// Proxies for which the filter counts, by namespace, selector and the patch's context.
std::vector<const sim::PodProcess*> Proxies(const Mesh& mesh, const MeshCluster& cluster,
                                            const config::TypedConfig<EnvoyFilter>& filter,
                                            const EnvoyFilter::ConfigPatch& patch) {
  std::vector<const sim::PodProcess*> out;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    if (pod->envoy() == nullptr) continue;
    if (!HoldsFor(cluster, filter.meta.ns, filter.spec.workload_selector, *pod)) continue;
    const auto context = patch.match.context;
    if (context == EnvoyFilter::Context::kGateway && !pod->router()) continue;
    if ((context == EnvoyFilter::Context::kSidecarInbound || context == EnvoyFilter::Context::kSidecarOutbound) &&
        pod->router())
      continue;
    out.push_back(pod);
  }
  return out;
}

// Releases that the cluster's proxies call themselves; without proxies, that which the profile installs.
std::set<std::string> ProxyVersions(const Mesh& mesh, const MeshCluster& cluster) {
  std::set<std::string> out;
  for (const sim::PodProcess* pod : mesh.ServedPods(cluster)) {
    if (pod->bootstrap()) out.insert(Text(pod->node().metadata, "ISTIO_VERSION"));
  }
  if (out.empty()) out.emplace(mesh.world().profile().istio);
  return out;
}

bool VersionFits(const EnvoyFilter::Match& match, const std::set<std::string>& versions) {
  if (!match.proxy || match.proxy->proxy_version.empty()) return true;
  const re2::RE2 regex(match.proxy->proxy_version, re2::RE2::Quiet);
  return regex.ok() && std::any_of(versions.begin(), versions.end(),
                                   [&](const std::string& version) { return re2::RE2::PartialMatch(version, regex); });
}

bool ClusterFits(const EnvoyFilter::ClusterMatch& match, const std::string& name) {
  if (!match.name.empty()) return match.name == name;
  const auto key = pilot::ParseSubsetKey(name);
  if (!key) return false;
  if (!match.service.empty() && match.service != key->hostname) return false;
  if (!match.subset.empty() && match.subset != key->subset) return false;
  return match.port_number == 0 || static_cast<int>(match.port_number) == key->port;
}

// What the patch looks for and no proxy has; empty: some proxy has it, or it cannot be told from outside.
std::string Missing(const EnvoyFilter::ConfigPatch& patch, const std::vector<const sim::PodProcess*>& proxies) {
  const auto none = [&](auto has) { return std::none_of(proxies.begin(), proxies.end(), has); };
  if (const auto* match = std::get_if<EnvoyFilter::ClusterMatch>(&patch.match.object); match != nullptr) {
    if (match->name.empty() && match->service.empty() && match->subset.empty() && match->port_number == 0) return {};
    const bool missing = none([&](const sim::PodProcess* pod) {
      const auto names = pod->envoy()->ClusterNames();
      return std::any_of(names.begin(), names.end(), [&](const auto& name) { return ClusterFits(*match, name); });
    });
    if (missing)
      return fmt::format("no proxy has a cluster {}{}{}", match->name, match->service,
                         match->subset.empty() ? "" : " subset " + match->subset) +
             (match->port_number == 0 ? "" : fmt::format(" port {}", match->port_number));
  }
  if (const auto* match = std::get_if<EnvoyFilter::ListenerMatch>(&patch.match.object); match != nullptr) {
    if (!match->name.empty()) {
      const bool missing = none([&](const sim::PodProcess* pod) {
        const auto names = pod->envoy()->ListenerNames();
        return std::find(names.begin(), names.end(), match->name) != names.end();
      });
      if (missing) return fmt::format("no proxy has a listener {}", match->name);
    }
  }
  return {};
}

void WithoutEffect(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (const auto versions = ProxyVersions(mesh, cluster); !VersionFits(patch.match, versions)) {
      return findings.Add(cluster, filter.meta,
                          fmt::format("patch {}: proxyVersion '{}' fits no proxy of this release ({})", number,
                                      patch.match.proxy->proxy_version, fmt::join(versions, ", ")));
    }
    const auto proxies = Proxies(mesh, cluster, filter, patch);
    if (proxies.empty()) {
      // Without any pod for its selector at all it is IST0127.
      const auto pods = mesh.ServedPods(cluster);
      const bool selected =
          !filter.spec.workload_selector || std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
            return Selects(*filter.spec.workload_selector, pod->pod()->meta.labels);
          });
      if (selected)
        findings.Add(cluster, filter.meta, fmt::format("patch {}: no proxy of its context is selected", number));
      return;
    }
    if (const std::string missing = Missing(patch, proxies); !missing.empty())
      findings.Add(cluster, filter.meta, fmt::format("patch {}: {}", number, missing));
  });
}

void RelativeOperation(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    const Operation op = OperationOf(patch);
    const bool relative = op == Operation::kInsertBefore || op == Operation::kInsertAfter || op == Operation::kReplace;
    if (!relative || filter.spec.priority != 0) return;
    const bool versioned = patch.match.proxy && !patch.match.proxy->proxy_version.empty();
    if (versioned) return;
    findings.Add(
        cluster, filter.meta,
        fmt::format("patch {} is relative to another filter, and the EnvoyFilter has no priority: if that one is "
                    "added later, it is not there yet",
                    number));
  });
}

void ReplaceMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) != Operation::kReplace) return;
    if (patch.apply_to == ApplyTo::kHttpFilter || patch.apply_to == ApplyTo::kNetworkFilter) return;
    findings.Add(cluster, filter.meta,
                 fmt::format("patch {}: REPLACE is for HTTP_FILTER and NETWORK_FILTER only", number));
  });
}

// istiod passes ADD and REMOVE over for these.
bool WithoutAddAndRemove(ApplyTo kind) { return kind == ApplyTo::kRouteConfiguration || kind == ApplyTo::kHttpRoute; }

void AddMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) == Operation::kAdd && WithoutAddAndRemove(patch.apply_to))
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: ADD is ignored for ROUTE_CONFIGURATION and HTTP_ROUTE", number));
  });
}

void RemoveMisused(const Mesh& mesh, Findings& findings) {
  EachPatch(mesh, [&](const MeshCluster& cluster, const auto& filter, const auto& patch, size_t number) {
    if (OperationOf(patch) == Operation::kRemove && WithoutAddAndRemove(patch.apply_to))
      findings.Add(cluster, filter.meta,
                   fmt::format("patch {}: REMOVE is ignored for ROUTE_CONFIGURATION and HTTP_ROUTE", number));
  });
}

}  // namespace

const std::vector<Rule>& EnvoyFilterRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT531", "EnvoyFilterWithoutEffect", Level::kWarning, "istiod passes such a patch over without a word",
       "mend the match: version, context, cluster, listener", "istio/istio#19185", WithoutEffect},
      {"IST0151", "EnvoyFilterUsesRelativeOperation", Level::kWarning, "EnvoyFilters are applied by priority, then age",
       "set a priority, or use INSERT_FIRST or ADD", "istio/istio#38214", RelativeOperation},
      {"IST0152", "EnvoyFilterUsesReplaceOperationIncorrectly", Level::kError, "the patch does nothing",
       "use MERGE, or REMOVE and ADD", "", ReplaceMisused},
      {"IST0153", "EnvoyFilterUsesAddOperationIncorrectly", Level::kError, "the patch does nothing",
       "use MERGE, or patch a VIRTUAL_HOST", "", AddMisused},
      {"IST0154", "EnvoyFilterUsesRemoveOperationIncorrectly", Level::kError, "the patch does nothing",
       "patch a VIRTUAL_HOST instead", "", RemoveMisused},
  };
  return *rules;
}

}  // namespace wavetank::check
