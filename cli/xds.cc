#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "cli/mesh_arguments.h"
#include "cli/proxy_config.h"
#include "cli/verb.h"
#include "core/base/time.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "oracles/golden/case.h"
#include "oracles/golden/case_istiod.h"
#include "oracles/golden/fetch.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/runner/runner.h"
#include "scenarios/runner/xds_snapshot.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

struct XdsArguments {
  std::string source, proxy, at, type, output = "table", profile;
  std::vector<std::string> settings;
  std::optional<size_t> step;
};

const std::map<std::string, pilot::XdsType>& Types() {
  static const auto* const types = new std::map<std::string, pilot::XdsType>{
      {"cds", pilot::XdsType::kCds},  {"eds", pilot::XdsType::kEds}, {"lds", pilot::XdsType::kLds},
      {"rds", pilot::XdsType::kRds},  {"sds", pilot::XdsType::kSds}, {"nds", pilot::XdsType::kNds},
      {"ecds", pilot::XdsType::kEcds}};
  return *types;
}

using Snapshots = std::map<std::string, scenario::XdsSnapshot>;  // by proxy

// `none`: why no proxy was sent anything, if none was.
absl::StatusOr<Snapshots> OfScenario(const XdsArguments& a, std::string* none) {
  absl::StatusOr<scenario::Scenario> scenario = LoadScenarioWith(a.source, {}, a.settings);
  if (!scenario.ok()) return scenario.status();
  scenario::RunOptions options;
  options.profile = a.profile;
  options.until_step = a.step;
  if (!a.at.empty()) {
    absl::StatusOr<scenario::Moment> at = ParseMomentOf("--at", a.at, &*scenario);
    if (!at.ok()) return at.status();
    options.until = *std::move(at);
  }
  Snapshots proxies;
  Subscriptions responses;
  options.on_world = [&](sim::World& world) {
    responses = world.commons().OnEitherXds(
        [&](const std::string& proxy, const auto& response) { proxies[proxy].Apply(response); });
  };
  options.on_end = [&](sim::World& world) {
    if (proxies.empty()) *none = scenario::WhyNoProxies(world);
  };
  Progress progress;
  options.progress = [&](std::string_view what) { progress.Say(what); };
  absl::StatusOr<scenario::RunResult> result = scenario::Run(*scenario, options);
  if (!result.ok()) return result.status();
  return proxies;
}

// What the proxies of a golden case are answered when they connect after the step.
absl::StatusOr<Snapshots> OfCase(const XdsArguments& a) {
  if (!a.at.empty()) return absl::InvalidArgumentError("a golden case has no clock; take --step instead of --at");
  if (!a.settings.empty()) return absl::InvalidArgumentError("a golden case is what was recorded; leave out --set");
  if (a.type == "sds" || a.type == "nds") {
    return absl::InvalidArgumentError("the proxies of golden cases ask for cds, eds, lds, rds and ecds only");
  }
  absl::StatusOr<golden::Case> spec = golden::LoadCase(a.source);
  if (!spec.ok()) return spec.status();
  const size_t steps = a.step.value_or(spec->steps.size());
  if (steps > spec->steps.size()) {
    return absl::InvalidArgumentError(fmt::format("{}: --step {}: it has {}", a.source, steps, spec->steps.size()));
  }
  golden::IstiodSettings settings;
  if (!a.profile.empty()) {
    absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(a.profile);
    if (!profile.ok()) return profile.status();
    settings.profile = *profile;
  }
  golden::CaseIstiod istiod(*spec, settings);
  for (size_t i = 0; i < steps; ++i) {
    if (absl::Status status = istiod.Step(i); !status.ok()) return status;
  }
  const std::vector<std::unique_ptr<golden::Fetch>> fetched = istiod.FetchAll();
  Snapshots proxies;
  for (size_t i = 0; i < fetched.size(); ++i) {
    if (!fetched[i]->status().ok()) return fetched[i]->status();
    scenario::XdsSnapshot& snapshot = proxies[spec->proxies[i].name];
    for (const auto& [type, resources] : fetched[i]->resources()) {
      pilot::DiscoveryResponse response;
      response.type = Types().at(type);
      response.resources = resources;
      snapshot.Apply(response);
    }
  }
  return proxies;
}

int PrintXds(const XdsArguments& a) {
  std::vector<pilot::XdsType> types;
  if (a.type.empty()) {
    types = {pilot::XdsType::kCds, pilot::XdsType::kEds, pilot::XdsType::kLds, pilot::XdsType::kRds};
  } else {
    types = {Types().at(a.type)};
  }
  std::error_code ignored;
  const bool is_case = std::filesystem::exists(std::filesystem::path(a.source) / "case.yaml", ignored);
  std::string none;
  absl::StatusOr<Snapshots> made = is_case ? OfCase(a) : OfScenario(a, &none);
  if (!made.ok()) return Complain(made.status());
  if (made->empty() && !none.empty()) {
    return Complain(absl::InvalidArgumentError(
        fmt::format("{}: no proxy was sent anything, for there is none: {}", a.source, none)));
  }
  Snapshots& proxies = *made;
  std::vector<scenario::PodName> names;
  for (const auto& [name, snapshot] : proxies) names.push_back(scenario::PodNameOf(name));
  const absl::StatusOr<std::string> found = scenario::FindOnePod("proxy", a.proxy, names);
  if (!found.ok()) return Complain(found.status());
  const scenario::XdsSnapshot& snapshot = proxies[*found];
  // istiod: pkg/istio-agent/agent.go, initLocalDNSServer.
  if (a.type == "nds" && snapshot.of(pilot::XdsType::kNds).empty()) {
    std::cerr << "note: " << *found
              << " was sent no name table: a sidecar's agent asks for one if its pod has ISTIO_META_DNS_CAPTURE=true "
                 "(proxyMetadata)\n";
  }
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
  CLI::App* verb = app.add_subcommand(
      "xds", "What a proxy of a scenario or golden case was sent, as `istioctl proxy-config` shows it");
  auto a = std::make_shared<XdsArguments>();
  verb->add_option("source", a->source, "Scenario file, or folder with a scenario.yaml or a golden case's case.yaml")
      ->required();
  verb->add_option("--proxy", a->proxy,
                   "sleep@cluster1, sleep-0@cluster1, deploy/sleep.sample@cluster1, a pod's full name or, in a case, "
                   "the proxy's")
      ->required();
  verb->add_option(
      "--at", a->at,
      "As it is at this virtual time since the world's beginning (30s), or after a step (\"'scaled to 3'+2s\")");
  verb->add_option("--step", a->step, "Run this many steps (default: all); 0 only brings the mesh up");
  verb->add_option("--type", a->type, "Default: the first four")
      ->check(CLI::IsMember({"cds", "eds", "lds", "rds", "sds", "nds", "ecds"}));
  verb->add_option("-o,--output", a->output, "table or json")->check(CLI::IsMember({"table", "json"}));
  verb->add_option("--profile", a->profile, "Behaviour profile");
  AddSettings(verb, &a->settings);
  verb->callback([a, &outcome] { outcome.code = PrintXds(*a); });
}

}  // namespace wavetank::cli
