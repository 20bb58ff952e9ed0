#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <set>

#include "cli/proxy_config.h"
#include "cli/verb.h"
#include "fmt/format.h"
#include "scenarios/runner.h"
#include "scenarios/xds_snapshot.h"
#include "scenarios/yaml_reader.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

struct Arguments {
  std::string scenario, proxy, at, type, output = "table", profile;
  std::optional<size_t> step;
};

// The proxies whose name begins with `wanted` ("sleep" finds "sleep-6d4f8-x2x7p.sample").
std::vector<std::string> Matching(const std::map<std::string, scenario::XdsSnapshot>& all, const std::string& wanted) {
  if (all.count(wanted) != 0) return {wanted};
  std::vector<std::string> out;
  for (const auto& [name, snapshot] : all) {
    if (name.rfind(wanted, 0) == 0) out.push_back(name);
  }
  return out;
}

int PrintXds(const Arguments& a) {
  std::vector<pilot::XdsType> types;
  static const std::map<std::string, pilot::XdsType> kTypes = {
      {"cds", pilot::XdsType::kCds}, {"eds", pilot::XdsType::kEds}, {"lds", pilot::XdsType::kLds},
      {"rds", pilot::XdsType::kRds}, {"sds", pilot::XdsType::kSds}, {"nds", pilot::XdsType::kNds}};
  if (a.type.empty()) {
    types = {pilot::XdsType::kCds, pilot::XdsType::kEds, pilot::XdsType::kLds, pilot::XdsType::kRds};
  } else {
    types = {kTypes.at(a.type)};
  }
  absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(a.scenario);
  if (!scenario.ok()) return Complain(scenario.status());
  scenario::RunOptions options;
  options.profile = a.profile;
  options.until_step = a.step;
  if (!a.at.empty()) {
    options.until = scenario::ParseDuration(a.at);
    if (!options.until) return Complain(absl::InvalidArgumentError("--at '" + a.at + "' is no duration; write 10s"));
  }
  std::map<std::string, scenario::XdsSnapshot> proxies;
  options.on_world = [&](sim::World& world) {
    world.commons().on_xds = [&](const std::string& proxy, const pilot::DiscoveryResponse& r) {
      proxies[proxy].Apply(r);
    };
    world.commons().on_delta_xds = [&](const std::string& proxy, const pilot::DeltaDiscoveryResponse& r) {
      proxies[proxy].Apply(r);
    };
  };
  absl::StatusOr<scenario::RunResult> result = [&] {
    Progress progress;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return scenario::Run(*scenario, options);
  }();
  if (!result.ok()) return Complain(result.status());
  const std::vector<std::string> found = Matching(proxies, a.proxy);
  if (found.size() != 1) {
    std::vector<std::string> names = found;
    if (found.empty()) {
      for (const auto& [name, snapshot] : proxies) names.push_back(name);
    }
    return Complain(absl::InvalidArgumentError(fmt::format("{} proxy is named '{}'; take one of: {}",
                                                           found.empty() ? "no" : "more than one", a.proxy,
                                                           fmt::join(names, ", "))));
  }
  const scenario::XdsSnapshot& snapshot = proxies[found.front()];
  for (size_t i = 0; i < types.size(); ++i) {
    if (a.output == "json") {
      absl::StatusOr<std::string> json = ProxyConfigJson(types[i], snapshot);
      if (!json.ok()) return Complain(json.status());
      const bool several = types.size() > 1;
      if (several) std::cout << (i == 0 ? "{" : ",") << "\"" << pilot::ShortTypeName(types[i]) << "\": ";
      std::cout << *json << (several ? "" : "\n");
      if (several && i + 1 == types.size()) std::cout << "}\n";
      continue;
    }
    absl::StatusOr<Rows> rows = ProxyConfigTable(types[i], snapshot);
    if (!rows.ok()) return Complain(rows.status());
    if (i > 0) std::cout << "\n";
    PrintTable(*rows);
  }
  return kOk;
}

}  // namespace

void AddXds(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("xds", "What a proxy of a scenario was sent, as `istioctl proxy-config` shows it");
  auto a = std::make_shared<Arguments>();
  verb->add_option("scenario", a->scenario, "Scenario file, or folder with a scenario.yaml")->required();
  verb->add_option("--proxy", a->proxy, "pod.namespace, or how it begins")->required();
  verb->add_option("--at", a->at, "Stop before the first step that would begin after this time, e.g. 30s");
  verb->add_option("--step", a->step, "Run this many steps; 0 only brings the mesh up");
  verb->add_option("--type", a->type, "Default: the first four")
      ->check(CLI::IsMember({"cds", "eds", "lds", "rds", "sds", "nds"}));
  verb->add_option("-o,--output", a->output, "table or json")->check(CLI::IsMember({"table", "json"}));
  verb->add_option("--profile", a->profile, "Behaviour profile");
  verb->callback([a, &outcome] { outcome.code = PrintXds(*a); });
}

}  // namespace wavetank::cli
