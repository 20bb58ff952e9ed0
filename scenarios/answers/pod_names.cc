#include "scenarios/answers/pod_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

// Kubernetes' names of generated parts have neither vowels nor the digits that look like them, but those of this
// world's pods and of other clusters' need not: what counts is the length and that there are only small letters and
// digits.
bool Generated(std::string_view part, size_t least, size_t most) {
  return part.size() >= least && part.size() <= most &&
         std::all_of(part.begin(), part.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

// "sleep" of "sleep-jsdn7bjgc5-x2nxx"; empty if it looks otherwise.
std::string DeploymentOf(std::string_view pod) {
  const size_t suffix = pod.rfind('-');
  if (suffix == pod.npos || !Generated(pod.substr(suffix + 1), 5, 5)) return {};
  const size_t hash = pod.substr(0, suffix).rfind('-');
  if (hash == pod.npos || hash == 0 || !Generated(pod.substr(hash + 1, suffix - hash - 1), 6, 10)) return {};
  return std::string(pod.substr(0, hash));
}

struct Said {
  std::string_view kind;  // "", "deploy", "pod", "app"
  std::string_view name, ns, cluster;
};

Said Parse(std::string_view text) {
  Said said;
  if (const size_t at = text.rfind('@'); at != text.npos) {
    said.cluster = text.substr(at + 1);
    text = text.substr(0, at);
  }
  if (const size_t slash = text.find('/'); slash != text.npos) {
    said.kind = text.substr(0, slash);
    if (said.kind == "deployment" || said.kind == "deployments") said.kind = "deploy";
    if (said.kind == "pods") said.kind = "pod";
    text = text.substr(slash + 1);
  }
  if (const size_t dot = text.rfind('.'); dot != text.npos) {
    said.ns = text.substr(dot + 1);
    text = text.substr(0, dot);
  }
  said.name = text;
  return said;
}

bool InPlace(const Said& said, const PodName& pod) {
  return (said.cluster.empty() || said.cluster == pod.cluster) && (said.ns.empty() || said.ns == pod.ns);
}

bool OfWorkload(std::string_view kind, std::string_view name, const PodName& pod) {
  if (name.empty()) return false;
  const bool deployment = !pod.deployment.empty() && name == pod.deployment;
  if (kind == "deploy") return deployment;
  if (kind == "app") return name == pod.app;
  return kind.empty() && (deployment || name == pod.app);
}

// "sleep-0": the workload's name and a number.
std::optional<std::pair<std::string_view, size_t>> Indexed(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == name.npos || dash + 1 == name.size()) return std::nullopt;
  size_t index = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + dash + 1, end, index);
  if (error != std::errc() || at != end) return std::nullopt;
  return std::pair(name.substr(0, dash), index);
}

template <class Holds>
std::vector<PodName> Select(const std::vector<PodName>& all, const Holds& holds) {
  std::vector<PodName> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), holds);
  return out;
}

}  // namespace

std::string PodName::Full() const {
  return pod + (ns.empty() ? "" : "." + ns) + (cluster.empty() ? "" : "@" + cluster);
}

PodName PodNameOf(std::string_view full) {
  const Said said = Parse(full);
  PodName out{std::string(said.name), std::string(said.ns), std::string(said.cluster), {}, DeploymentOf(said.name)};
  out.app = out.deployment;
  return out;
}

PodName PodNameOf(const sim::PodProcess& pod) {
  PodName out = PodNameOf(pod.name());
  if (!pod.app().empty()) out.app = pod.app();
  return out;
}

std::vector<PodName> PodNames(const sim::World& world) {
  std::vector<PodName> out;
  for (const sim::PodProcess* pod : world.Pods()) out.push_back(PodNameOf(*pod));
  std::sort(out.begin(), out.end(), [](const PodName& a, const PodName& b) { return a.Full() < b.Full(); });
  return out;
}

std::vector<PodName> FindPods(std::string_view text, const std::vector<PodName>& all) {
  if (text.empty()) return {};
  std::vector<PodName> found = Select(all, [&](const PodName& pod) { return pod.Full() == text; });
  if (!found.empty()) return found;
  const Said said = Parse(text);
  if (said.kind.empty() || said.kind == "pod") {
    found = Select(all, [&](const PodName& pod) { return InPlace(said, pod) && said.name == pod.pod; });
    if (!found.empty()) return found;
  }
  found = Select(all, [&](const PodName& pod) { return InPlace(said, pod) && OfWorkload(said.kind, said.name, pod); });
  if (!found.empty()) return found;
  if (const auto indexed = Indexed(said.name)) {
    const std::vector<PodName> pods = Select(
        all, [&](const PodName& pod) { return InPlace(said, pod) && OfWorkload(said.kind, indexed->first, pod); });
    // A number counts within one workload of one cluster.
    const bool one = std::all_of(pods.begin(), pods.end(), [&](const PodName& pod) {
      return pod.cluster == pods.front().cluster && pod.ns == pods.front().ns;
    });
    if (one && indexed->second < pods.size()) return {pods[indexed->second]};
    if (!one) return pods;
  }
  return Select(all, [&](const PodName& pod) { return pod.Full().starts_with(text); });
}

absl::StatusOr<std::string> FindOnePod(std::string_view what, std::string_view said, const std::vector<PodName>& all) {
  const std::vector<PodName> found = FindPods(said, all);
  if (found.size() == 1) return found.front().Full();
  if (all.empty())
    return absl::InvalidArgumentError(fmt::format("no {} is named '{}': there is none at all", what, said));
  const std::vector<PodName>& there = found.empty() ? all : found;
  constexpr size_t kMost = 20;  // a mesh has thousands
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMost, there.size()); ++i) names.push_back(there[i].Full());
  if (there.size() > kMost) names.push_back(fmt::format("... ({} in all)", there.size()));
  return absl::InvalidArgumentError(fmt::format("{} {} is named '{}'; take one of: {}",
                                                found.empty() ? "no" : "more than one", what, said,
                                                fmt::join(names, ", ")));
}

absl::StatusOr<std::string> FindOnePod(std::string_view what, std::string_view said, const std::vector<PodName>& all,
                                       const sim::World& world) {
  absl::StatusOr<std::string> found = FindOnePod(what, said, all);
  if (found.ok() || !all.empty()) return found;
  return absl::InvalidArgumentError(
      fmt::format("no {} is named '{}', for there is none: {}", what, said, WhyNoProxies(world)));
}

std::string WhyNoProxies(const sim::World& world) {
  constexpr size_t kMost = 3;
  std::vector<std::string> why = world.Complaints();
  for (std::string& line : world.LeftOut()) why.push_back(std::move(line));
  if (why.empty()) why = world.Unready();
  if (!why.empty()) {
    const size_t more = why.size() > kMost ? why.size() - kMost : 0;
    why.resize(why.size() - more);
    return fmt::format("{}{}", fmt::join(why, "; "), more == 0 ? "" : fmt::format("; and {} more", more));
  }
  std::set<std::string> places;  // of pods without a sidecar
  size_t pods = 0;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->bootstrap()) return "none of its proxies has been sent anything by then";
    ++pods;
    const PodName name = PodNameOf(*pod);
    places.insert(fmt::format("{} in {}", name.ns, name.cluster));
  }
  if (pods == 0) return "no pod runs in the mesh by then";
  return fmt::format(
      "none of the {} pods that run has a sidecar; label their namespaces istio-injection=enabled before the pods are "
      "made ({})",
      pods, fmt::join(places, ", "));
}

std::string ShortName(const std::string& full, const std::vector<PodName>& all) {
  const auto pod = std::find_if(all.begin(), all.end(), [&](const PodName& each) { return each.Full() == full; });
  if (pod == all.end() || pod->app.empty()) return full;
  const auto means = [&](const std::string& said) {
    const std::vector<PodName> found = FindPods(said, all);
    return found.size() == 1 && found[0].Full() == full;
  };
  for (const std::string& place : {"@" + pod->cluster, fmt::format(".{}@{}", pod->ns, pod->cluster)}) {
    if (means(pod->app + place)) return pod->app + place;
    const size_t copies = FindPods(pod->app + place, all).size();
    for (size_t i = 0; i < copies && copies < 100; ++i) {
      if (std::string said = fmt::format("{}-{}{}", pod->app, i, place); means(said)) return said;
    }
  }
  return full;
}

}  // namespace wavetank::scenario
