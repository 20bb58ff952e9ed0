#include "oracles/control_plane/control_plane_diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "oracles/golden/xds_json.h"
#include "scenarios/runner/runner.h"
#include "scenarios/runner/xds_snapshot.h"
#include "serve/live_run.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;
using pilot::XdsType;
using scenario::XdsSnapshot;

const std::vector<std::pair<std::string, XdsType>>& Types() {
  static const auto* const types = new std::vector<std::pair<std::string, XdsType>>{
      {"cds", XdsType::kCds}, {"eds", XdsType::kEds}, {"lds", XdsType::kLds}, {"rds", XdsType::kRds}};
  return *types;
}

std::vector<std::string_view> Bytes(const XdsSnapshot::Resources& resources) {
  std::vector<std::string_view> out;
  for (const auto& [name, bytes] : resources) out.push_back(*bytes);
  return out;
}

using Held = std::map<std::string, XdsSnapshot::Resources>;  // by type
using Mesh = std::map<std::string, Held>;                    // by proxy

// What an Envoy in the proxy's place has now: an Envoy forgets the endpoints and routes that nothing names any more.
Held HeldOf(const XdsSnapshot& snapshot) {
  Held out;
  for (const auto& [kind, type] : Types()) out[kind] = snapshot.of(type);
  const auto keep = [](XdsSnapshot::Resources& resources, const std::vector<std::string>& names) {
    const std::set<std::string> wanted(names.begin(), names.end());
    std::erase_if(resources, [&](const auto& entry) { return !wanted.contains(entry.first); });
  };
  keep(out["eds"], golden::EdsNames(Bytes(out["cds"])));
  keep(out["rds"], golden::RdsNames(Bytes(out["lds"])));
  return out;
}

// Listens to what a world's proxies are sent.
class Collector {
 public:
  void Listen(sim::World& world) {
    subscriptions_ = world.commons().OnEitherXds(
        [this](const std::string& proxy, const auto& response) { proxies_[proxy].Apply(response); });
  }
  void Forget() { proxies_.clear(); }
  // Of the proxies that run.
  Mesh Look(const sim::World& world) const {
    static const auto* const kNothing = new XdsSnapshot;
    Mesh out;
    for (const sim::PodProcess* pod : world.Pods()) {
      if (pod->envoy() == nullptr) continue;
      const auto it = proxies_.find(pod->name());
      out[pod->name()] = HeldOf(it == proxies_.end() ? *kNothing : it->second);
    }
    return out;
  }

 private:
  std::map<std::string, XdsSnapshot> proxies_;
  Subscriptions subscriptions_;
};

// A resource that cannot be read as JSON stands there as what is wrong with it.
json ToArray(const std::string& kind, const XdsSnapshot::Resources& resources) {
  json out = json::array();
  for (const auto& [name, bytes] : resources) {
    absl::StatusOr<json> resource = golden::ResourceToJson(kind, *bytes);
    if (!resource.ok()) resource = json{{"name", name}, {"unreadable", Message(resource.status())}};
    out.push_back(*std::move(resource));
  }
  return out;
}

bool SameBytes(const XdsSnapshot::Resources& a, const XdsSnapshot::Resources& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && *x.second == *y.second;
         });
}

StepDifferences CompareMeshes(const std::string& step, const Mesh& real, const Mesh& ours, const DiffOptions& options) {
  StepDifferences out;
  out.name = step;
  out.proxies = ours.size();
  for (const auto& [proxy, held] : real) {
    if (ours.contains(proxy)) continue;
    out.differences.push_back({proxy, "", {{"proxy", "is there", ""}}, ""});
  }
  for (const auto& [proxy, held] : ours) {
    const auto other = real.find(proxy);
    if (other == real.end()) {
      out.differences.push_back({proxy, "", {{"proxy", "", "is there"}}, ""});
      continue;
    }
    for (const auto& [kind, resources] : held) {
      out.resources += resources.size();
      const XdsSnapshot::Resources& theirs = other->second.at(kind);
      if (SameBytes(theirs, resources)) continue;
      const json expected = ToArray(kind, theirs), actual = ToArray(kind, resources);
      std::vector<golden::Difference> found = golden::Compare(expected, actual, options.max_differences);
      if (found.empty()) continue;
      ProxyDifferences difference{proxy, kind, std::move(found), ""};
      if (options.unified_diff) {
        const std::string name = proxy + "/" + kind;
        difference.unified_diff = golden::UnifiedDiff(JsonText(expected, 1) + "\n", JsonText(actual, 1) + "\n",
                                                      "real/" + name, "ours/" + name);
      }
      out.differences.push_back(std::move(difference));
    }
  }
  return out;
}

}  // namespace

bool DiffResult::Equal() const {
  return std::all_of(steps.begin(), steps.end(), [](const StepDifferences& step) { return step.differences.empty(); });
}

absl::StatusOr<DiffResult> DiffControlPlanes(const scenario::Scenario& scenario, const DiffOptions& options) {
  if (absl::Status status = CheckProgram(options.control_plane.program); !status.ok()) return status;
  constexpr const char* kUp = "the mesh is up";
  scenario::Scenario quiet = scenario;
  for (scenario::Step& step : quiet.steps) {
    step.meanwhile.clear();
    step.then.clear();
    step.expectations.clear();
  }
  const auto options_for = [&](std::string_view who, Collector& collector) {
    scenario::RunOptions out;
    out.profile = options.profile;
    out.on_world = [&collector](sim::World& world) { collector.Listen(world); };
    if (options.progress) {
      out.progress = [&options, who](std::string_view what) { options.progress(fmt::format("{}: {}", who, what)); };
    }
    return out;
  };

  std::vector<Mesh> ours;
  {
    Collector collector;
    scenario::RunOptions run = options_for("ours", collector);
    run.on_up = [&](sim::World& world) {
      ours.push_back(collector.Look(world));
      return absl::OkStatus();
    };
    run.on_step = [&](sim::World& world, const scenario::Step&) {
      ours.push_back(collector.Look(world));
      return absl::OkStatus();
    };
    if (auto result = scenario::Run(quiet, run); !result.ok()) return result.status();
  }

  DiffResult out;
  out.scenario = scenario.name;
  Collector collector;
  const auto judge = [&](sim::World& world, const std::string& step) {
    const Mesh& expected = ours[out.steps.size()];
    const Time deadline = world.Now() + options.patience;
    StepDifferences found = CompareMeshes(step, collector.Look(world), expected, options);
    while (!found.differences.empty() && world.Now() < deadline) {
      world.RunUntil(world.Now() + 250ms);
      found = CompareMeshes(step, collector.Look(world), expected, options);
    }
    out.steps.push_back(std::move(found));
    return absl::OkStatus();
  };
  scenario::RunOptions run = options_for("real", collector);
  run.on_up = [&](sim::World& world) { return judge(world, kUp); };
  run.on_step = [&](sim::World& world, const scenario::Step& step) { return judge(world, step.name); };
  LiveRun live(options.control_plane);
  live.on_moved = [&] { collector.Forget(); };
  live.Attach(&run);
  if (auto result = scenario::Run(quiet, run); !result.ok()) return result.status();
  return out;
}

std::string DifferencesText(const DiffResult& result) {
  const auto side = [](const std::string& text) {
    constexpr size_t kWidth = 400;
    if (text.empty()) return std::string("nothing");
    return text.size() > kWidth ? text.substr(0, kWidth) + "..." : text;
  };
  std::string out;
  for (const StepDifferences& step : result.steps) {
    for (const ProxyDifferences& proxy : step.differences) {
      out += fmt::format("{}: {}{}{}\n", step.name, proxy.proxy, proxy.type.empty() ? "" : " ", proxy.type);
      for (const golden::Difference& d : proxy.differences)
        out += fmt::format("  {}\n    real: {}\n    ours: {}\n", d.path, side(d.expected), side(d.actual));
      out += proxy.unified_diff;
    }
  }
  return out;
}

nlohmann::ordered_json ToJson(const DiffResult& result) {
  nlohmann::ordered_json out = {
      {"scenario", result.scenario}, {"equal", result.Equal()}, {"steps", nlohmann::ordered_json::array()}};
  for (const StepDifferences& step : result.steps) {
    nlohmann::ordered_json differences = nlohmann::ordered_json::array();
    for (const ProxyDifferences& proxy : step.differences) {
      for (const golden::Difference& d : proxy.differences) {
        nlohmann::ordered_json row = {{"proxy", proxy.proxy}, {"type", proxy.type}, {"path", d.path}};
        // As values, missing where that side has none.
        const auto put = [&](const char* key, const std::string& text) {
          if (!text.empty()) row[key] = nlohmann::ordered_json::parse(text, nullptr, false);
          if (!text.empty() && row[key].is_discarded()) row[key] = text;
        };
        put("real", d.expected);
        put("ours", d.actual);
        differences.push_back(std::move(row));
      }
    }
    out["steps"].push_back({{"name", step.name},
                            {"proxies", step.proxies},
                            {"resources", step.resources},
                            {"equal", step.differences.empty()},
                            {"differences", std::move(differences)}});
  }
  return out;
}

}  // namespace wavetank::serve
