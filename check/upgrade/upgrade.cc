#include "check/upgrade/upgrade.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "check/game_day/fork_pool.h"
#include "check/mesh/mesh.h"
#include "check/traffic/flows.h"
#include "check/upgrade/attribution.h"
#include "check/upgrade/rehearsal.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/profile/releases.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

// Worst last: what is stuck, what was refused (and so stays as it was until a restart), what failed, what moved.
auto Loss(const ordered_json& rehearsal) {
  return std::tuple(!rehearsal["stuck"].get_ref<const std::string&>().empty(), rehearsal["refused"].get<int64_t>(),
                    rehearsal["failed"].get<int64_t>(), rehearsal["moved"].get<int64_t>());
}

// What proxies of one release refuse of istiods of another, over all orders; and the pairs that got on.
ordered_json Skews(const ordered_json& orders) {
  using Pair = std::pair<std::string, std::string>;
  std::map<Pair, std::map<std::pair<std::string, std::string>, std::set<std::string>>> refused;
  std::set<Pair> seen;
  for (const ordered_json& order : orders) {
    for (const ordered_json& pair : order["skews"])
      seen.insert({pair["proxy"].get<std::string>(), pair["istiod"].get<std::string>()});
    for (const ordered_json& step : order["steps"]) {
      for (const ordered_json& row : step["refused"]) {
        auto& groups = refused[{row["proxy"].get<std::string>(), row["istiod"].get<std::string>()}]
                              [{row["type"].get<std::string>(), row["words"].get<std::string>()}];
        for (const ordered_json& group : row["groups"]) groups.insert(group.get<std::string>());
      }
    }
  }
  for (const auto& [pair, rows] : refused) seen.insert(pair);
  ordered_json out = ordered_json::array();
  for (const auto& [proxy, istiod] : seen) {
    ordered_json& each = out.emplace_back();
    each["proxy"] = proxy;
    each["istiod"] = istiod;
    each["refused"] = ordered_json::array();
    const auto found = refused.find({proxy, istiod});
    if (found == refused.end()) continue;
    for (const auto& [what, groups] : found->second) {
      each["refused"].push_back({{"type", what.first}, {"words", what.second}, {"groups", groups}});
    }
  }
  return out;
}

// What is another for the whole mesh once it is through, by change.
ordered_json Behaviours(const Attribution& attribution) {
  ordered_json out;
  ordered_json& changes = out["changes"] = ordered_json::array();
  std::map<std::string, std::map<std::string, int64_t>> resources;
  std::map<std::string, std::set<std::string>> groups;
  ordered_json unexplained = ordered_json::array();
  for (const auto& [group, changed] : attribution.groups) {
    for (const auto& [key, behind] : changed) {
      if (behind.empty()) {
        unexplained.push_back({{"group", group}, {"type", key.first}, {"name", key.second}});
      }
      for (const std::string& change : behind) {
        ++resources[change][key.first];
        groups[change].insert(group);
      }
    }
  }
  ordered_json silent = ordered_json::array();
  for (const pilot::ProfileRow& row : pilot::ProfileRows()) {
    const std::string name(row.name);
    if (std::find(attribution.changes.begin(), attribution.changes.end(), name) == attribution.changes.end()) continue;
    if (!groups.contains(name)) {
      silent.push_back(name);
      continue;
    }
    changes.push_back({{"change", name},
                       {"what", row.what},
                       {"since", row.since},
                       {"issue", row.issue},
                       {"groups", groups[name].size()},
                       {"resources", resources[name]}});
  }
  out["withoutEffect"] = std::move(silent);
  out["unexplained"] = std::move(unexplained);
  out["groups"] = attribution.groups.size();
  return out;
}

absl::StatusOr<ordered_json> ReadAnswer(const std::string& answer) {
  ordered_json read = ordered_json::parse(answer);  // our own fork wrote it
  if (read.contains("error")) return absl::InvalidArgumentError(read["error"].get<std::string>());
  return read;
}

}  // namespace

absl::StatusOr<ordered_json> RehearseUpgrade(const MeshSource& given, const UpgradeOptions& options) {
  const absl::StatusOr<pilot::Profile> to = pilot::ParseProfile(options.to);
  if (!to.ok()) return to.status();
  if (!options.from.empty()) {
    if (auto from = pilot::ParseProfile(options.from); !from.ok()) return from.status();
  }
  if (options.rate < 1) return absl::InvalidArgumentError("--rate: at least one request a second");
  MeshSource source = given;
  if (!options.from.empty()) source.profile = options.from;
  source.progress = options.progress;
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  if (!settled.ok()) return settled.status();
  Mesh mesh(*std::move(settled));
  sim::World& world = mesh.world();
  const pilot::Profile from = world.profile();
  if (from == *to) {
    return absl::InvalidArgumentError(fmt::format("the mesh is {} already; --from or --to another", to->Name()));
  }
  const std::string revision = !options.revision.empty()
                                   ? options.revision
                                   : RevisionNameOf(to->istio) + (from.istio == to->istio ? "-next" : "");
  ordered_json out;
  out["from"] = from.Name();
  out["to"] = to->Name();
  std::vector<std::string> notes = mesh.notes();
  absl::StatusOr<std::vector<UpgradeOrder>> orders = OrdersOf(world.options().clusters, options.orders, &notes);
  if (!orders.ok()) return orders.status();
  const std::vector<scenario::FlowSpec> flows = FlowsOf(mesh, options.flow_limit);
  if (flows.empty()) notes.emplace_back("no application reaches another here: nothing can fail");

  absl::StatusOr<Attribution> attribution = Attribute(world, {.from = from,
                                                              .to = *to,
                                                              .explain = options.attribute,
                                                              .processes = options.processes,
                                                              .progress = options.progress});
  if (!attribution.ok()) return attribution.status();
  notes.insert(notes.end(), attribution->restless.begin(), attribution->restless.end());
  const auto rehearse = [&](const UpgradeOrder& order) -> absl::StatusOr<ordered_json> {
    Held held;
    held.Watch(world, attribution->before);
    RehearsalOptions how;
    how.order = order;
    how.to = to->Name();
    how.revision = revision;
    how.rate = options.rate;
    how.attribution = options.attribute ? &*attribution : nullptr;
    return Rehearse(world, flows, held, how);
  };
  size_t done = 0;
  absl::StatusOr<std::vector<std::string>> answers = InForks(
      orders->size(), options.processes,
      [&](size_t i) {
        const absl::StatusOr<ordered_json> report = rehearse((*orders)[i]);
        return JsonText(report.ok() ? *report : ordered_json{{"error", Message(report.status())}});
      },
      [&](size_t) {
        if (options.progress) options.progress(fmt::format("orders: {} of {} tried", ++done, orders->size()));
      });
  if (!answers.ok()) return answers.status();
  ordered_json rehearsals = ordered_json::array();
  for (const std::string& answer : *answers) {
    absl::StatusOr<ordered_json> read = ReadAnswer(answer);
    if (!read.ok()) return read.status();
    rehearsals.push_back(*std::move(read));
  }
  const auto best = std::min_element(rehearsals.begin(), rehearsals.end(),
                                     [](const auto& a, const auto& b) { return Loss(a) < Loss(b); });
  const size_t best_index = static_cast<size_t>(best - rehearsals.begin());

  out["revision"] = revision;
  out["rate"] = options.rate;
  out["notes"] = notes;
  out["flows"] = ordered_json::array();
  for (const scenario::FlowSpec& flow : flows) out["flows"].push_back(flow.name);
  out["skews"] = Skews(rehearsals);
  out["behaviours"] = options.attribute ? Behaviours(*attribution) : ordered_json();
  out["best"] = best_index;
  out["orders"] = std::move(rehearsals);
  return out;
}

bool LosesNothing(const ordered_json& report) {
  const auto& [stuck, refused, failed, moved] = Loss(report["orders"][report["best"].get<size_t>()]);
  (void)moved;
  return !stuck && failed == 0 && refused == 0;
}

}  // namespace wavetank::check
