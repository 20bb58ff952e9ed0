#include "scenarios/results/nacks.h"

#include <algorithm>

#include "core/base/duration.h"
#include "core/gen/cds/istiod_panics.h"
#include "core/istiod/istiod.h"
#include "core/kube/credentials/sealing.h"
#include "core/xds/discovery_server.h"
#include "fakes/envoy/proxy/data_plane.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "sim/istiod_process.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

constexpr size_t kProxiesNamed = 3;

// On one line; Envoy ends a list of listeners with a newline.
std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at)) text.replace(at, 1, "; ");
  return text;
}

}  // namespace

std::string NackTally::Said(const std::string& proxy) {
  const auto [said, fresh] = said_.try_emplace(proxy);
  if (fresh) said->second = ShortName(proxy, PodNames(world_));
  return said->second;
}

std::vector<Nack> NackTally::Since() {
  const auto& all = world_.data_plane().nacks();
  counted_.resize(all.size());
  std::vector<Nack> out;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t more = all[i].count - counted_[i];
    if (more == 0) continue;
    counted_[i] = all[i].count;
    out.push_back({Said(all[i].proxy), std::string(all[i].type), kube::SealedText(OneLine(all[i].text)),
                   all[i].first - world_.options().start, more});
  }
  return out;
}

std::vector<Nack> NackTally::All() {
  NackTally whole(world_);
  whole.said_ = said_;
  return whole.Since();
}

std::vector<WithoutEffect> WithoutEffectOf(const sim::World& world) {
  std::vector<WithoutEffect> out;
  if (world.data_plane().without_effect().empty()) return out;
  const std::vector<PodName> names = PodNames(world);
  for (const auto& [note, proxies] : world.data_plane().without_effect()) {
    WithoutEffect& without = out.emplace_back(WithoutEffect{note.kind, note.type, {}});
    for (const std::string& proxy : proxies) without.proxies.push_back(ShortName(proxy, names));
    std::sort(without.proxies.begin(), without.proxies.end());
  }
  return out;
}

std::vector<std::string> ScriptNotes(const sim::World& world) {
  constexpr size_t kMost = 10;
  std::vector<std::string> out;
  size_t more = 0;
  const std::vector<PodName> names = PodNames(world);
  for (const auto& line : world.data_plane().script_lines()) {
    if (line.level == "trace" || line.level == "debug" || line.level == "info") continue;
    if (out.size() == kMost) {
      ++more;
      continue;
    }
    out.push_back(fmt::format("Lua of {}: {}: {} ({})", ShortName(line.proxy, names), line.level,
                              kube::SealedText(OneLine(line.text)),
                              line.count == 1 ? "once" : fmt::format("{} times", line.count)));
  }
  if (more > 0) out.push_back(fmt::format("Lua: {} more lines of scripts", more));
  return out;
}

std::vector<std::string> PanicNotes(const sim::World& world) {
  std::vector<std::string> out;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    sim::IstiodProcess* const process = cluster.primary() ? world.IstiodOf(cluster.name) : nullptr;
    if (process == nullptr || !process->failure().ok()) continue;
    const pilot::DiscoveryServer& discovery = process->istiod().discovery();
    if (discovery.last_push_context() == nullptr) continue;
    for (const pilot::IstiodPanic& panic : pilot::IstiodPanics(*discovery.last_push_context())) {
      out.push_back(fmt::format("{}: {}", cluster.name, pilot::Describe(panic)));
    }
  }
  return out;
}

std::string Describe(const Nack& nack) {
  const std::string when = FormatDuration(nack.first);
  return fmt::format("{} refused {}: {} ({})", nack.proxy, nack.type, nack.text,
                     nack.count == 1 ? "at " + when : fmt::format("{} times, first at {}", nack.count, when));
}

std::string Describe(const WithoutEffect& without) {
  std::string proxies;
  for (size_t i = 0; i < without.proxies.size() && i < kProxiesNamed; ++i) {
    proxies += (i == 0 ? "" : ", ") + without.proxies[i];
  }
  if (without.proxies.size() > kProxiesNamed) {
    proxies += fmt::format(" and {} more", without.proxies.size() - kProxiesNamed);
  }
  return fmt::format("{} {} has no effect in the simulation; {} {} it", without.kind, without.type, proxies,
                     without.proxies.size() == 1 ? "has" : "have");
}

nlohmann::ordered_json ToJson(const std::vector<Nack>& nacks) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Nack& nack : nacks) {
    out.push_back({{"proxy", nack.proxy},
                   {"type", nack.type},
                   {"text", nack.text},
                   {"firstMs", std::chrono::duration<double, std::milli>(nack.first).count()},
                   {"count", nack.count}});
  }
  return out;
}

nlohmann::ordered_json ToJson(const std::vector<WithoutEffect>& all) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const WithoutEffect& without : all) {
    out.push_back({{"kind", without.kind}, {"type", without.type}, {"proxies", without.proxies}});
  }
  return out;
}

}  // namespace wavetank::scenario
