#include "check/upgrade/attribution.h"

#include "check/game_day/fork_pool.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/profile/releases.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/kinds/install.h"

namespace wavetank::check {
namespace {

using nlohmann::json;
using Pictures = std::map<std::string, ResourceHashes>;  // by group

json ToJson(const std::map<std::string, ProxyGroup>& groups) {
  json out = json::object();
  for (const auto& [name, group] : groups) {
    json& each = out[name] = json::array();
    for (const auto& [key, hash] : group.resources) each.push_back({key.first, key.second, hash});
  }
  return out;
}

absl::StatusOr<Pictures> PicturesOf(const std::string& answer, std::vector<std::string>* restless) {
  const json read = ParseJson(answer);  // our own fork wrote it
  if (read.contains("error")) return absl::InvalidArgumentError(read["error"].get<std::string>());
  if (const auto why = read.find("restless"); why != read.end()) restless->push_back(why->get<std::string>());
  Pictures out;
  for (const auto& [name, list] : read["groups"].items()) {
    for (const json& row : list) {
      out[name][{row[0].get<std::string>(), row[1].get<std::string>()}] = row[2].get<uint64_t>();
    }
  }
  return out;
}

constexpr Duration kSettleLimit = 5min;

// In a fork: all istiods are of a profile, and what they send.
std::string Look(sim::World& world, const pilot::Profile& profile) {
  Held held;
  held.Watch(world);
  json out;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    if (!cluster.primary()) continue;
    const absl::Status status = world.Do(sim::inputs::Upgrade{cluster.name, profile.Name(), "", "istiod"});
    if (status.ok()) continue;
    out["error"] = fmt::format("cluster {}: {}", cluster.name, Message(status));
    break;
  }
  if (!out.contains("error")) {
    if (!world.RunUntilSettled(world.Now() + kSettleLimit)) {
      out["restless"] = fmt::format("istiods of {} did not come to rest in {} min: {}", profile.Name(),
                                    kSettleLimit / 1min, fmt::join(world.AtWork(), "; "));
    }
    out["groups"] = ToJson(held.Groups(world));
  }
  return JsonText(out);
}

// Endpoints of istiod's own Services are its pods, and each fork has made them anew.
bool IsOfIstiod(const ResourceKey& key) {
  const size_t host = key.second.rfind('|');
  return key.first == "eds" && host != std::string::npos && key.second.compare(host + 1, 6, "istiod") == 0;
}

// The keys at which two pictures of a group differ.
std::set<ResourceKey> Differences(const ResourceHashes& a, const ResourceHashes& b) {
  std::set<ResourceKey> out;
  for (const auto& [key, hash] : a) {
    const auto other = b.find(key);
    if (other == b.end() || other->second != hash) out.insert(key);
  }
  for (const auto& [key, hash] : b) {
    if (!a.contains(key)) out.insert(key);
  }
  return out;
}

const ResourceHashes& Of(const Pictures& pictures, const std::string& group) {
  static const auto* const kNone = new ResourceHashes;
  const auto found = pictures.find(group);
  return found == pictures.end() ? *kNone : found->second;
}

}  // namespace

absl::StatusOr<Attribution> Attribute(sim::World& world, const AttributionOptions& options) {
  Attribution out;
  std::vector<pilot::Profile> profiles = {options.from};
  if (options.explain) profiles.push_back(options.to);
  for (const pilot::ProfileRow& row : pilot::ProfileRows()) {
    if (!options.explain) break;
    const bool to_has = options.to.Has(row.change);
    if (options.from.Has(row.change) == to_has) continue;
    out.changes.emplace_back(row.name);
    profiles.push_back(options.from);
    profiles.back().Set(row.change, to_has);
    profiles.push_back(options.to);
    profiles.back().Set(row.change, !to_has);
  }
  size_t done = 0;
  absl::StatusOr<std::vector<std::string>> answers = InForks(
      profiles.size(), options.processes, [&](size_t i) { return Look(world, profiles[i]); },
      [&](size_t) {
        if (options.progress) options.progress(fmt::format("changes: {} of {} tried", ++done, profiles.size()));
      });
  if (!answers.ok()) return answers.status();
  std::vector<Pictures> pictures;
  for (const std::string& answer : *answers) {
    absl::StatusOr<Pictures> read = PicturesOf(answer, &out.restless);
    if (!read.ok()) return read.status();
    pictures.push_back(*std::move(read));
  }
  out.before = pictures[0];
  if (!options.explain) return out;
  std::set<std::string> groups;
  for (const auto* of : {&pictures[0], &pictures[1]}) {
    for (const auto& [group, resources] : *of) groups.insert(group);
  }
  for (const std::string& group : groups) {
    ChangesOfResources& changed = out.groups[group];
    for (const ResourceKey& key : Differences(Of(pictures[0], group), Of(pictures[1], group))) {
      if (!IsOfIstiod(key)) changed[key];
    }
    for (size_t i = 0; i < out.changes.size(); ++i) {
      for (const size_t base : {0, 1}) {
        const Pictures& alone = pictures[2 + 2 * i + base];
        for (const ResourceKey& key : Differences(Of(pictures[base], group), Of(alone, group))) {
          if (const auto row = changed.find(key); row != changed.end()) row->second.insert(out.changes[i]);
        }
      }
    }
  }
  return out;
}

}  // namespace wavetank::check
