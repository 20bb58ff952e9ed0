#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "check/upgrade/upgrade.h"
#include "cli/mesh_arguments.h"
#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/profile/releases.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct UpgradeArguments {
  MeshSourceArguments mesh;
  check::UpgradeOptions options;
  bool json = false, unexplained = false;
};

int PrintUpgrade(const UpgradeArguments& a) {
  absl::StatusOr<check::MeshSource> source = a.mesh.Source();
  if (!source.ok()) return Complain(source.status());
  check::UpgradeOptions options = a.options;
  options.attribute = !a.unexplained;
  if (options.processes <= 0) options.processes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const absl::StatusOr<nlohmann::ordered_json> report = [&] {
    Progress progress;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return check::RehearseUpgrade(*source, options);
  }();
  if (!report.ok()) return Complain(report.status());
  std::cout << (a.json ? JsonText(*report, 1) + "\n" : check::UpgradeText(*report));
  return check::LosesNothing(*report) ? kOk : kNo;
}

}  // namespace

void AddUpgrade(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "upgrade",
      "What another release of Istio does to a mesh, step by step under traffic, and the order that loses nothing");
  auto a = std::make_shared<UpgradeArguments>();
  a->mesh.AddTo(verb);
  a->options.to = pilot::Releases().back().name;
  verb->add_option("--from", a->options.from, "The profile of now; the scenario's or log's own if left out");
  verb->add_option("--to", a->options.to, "The profile to come")->capture_default_str();
  verb->add_option("--method", a->options.orders.methods,
                   "canary, in-place or proxies-first, several; all that the mesh allows if left out");
  verb->add_option("--gateways", a->options.orders.gateways, "first or last of a cluster's proxies; both if left out");
  verb->add_option("--clusters", a->options.orders.clusters,
                   "In this order: a,b,c; as they are and backwards if left out")
      ->delimiter(',');
  verb->add_option("--revision", a->options.revision, "The canary's name; 1-30-3 and the like if left out");
  verb->add_option("--rate", a->options.rate, "Requests of each flow, per second")->capture_default_str();
  verb->add_option("--flows", a->options.flow_limit, "At most so many flows, where the scenario has none of its own")
      ->capture_default_str();
  verb->add_option("-j,--jobs", a->options.processes, "Worlds at a time; 0: as many as there are processors");
  verb->add_flag("--unexplained", a->unexplained,
                 "Count what changes in proxies, and leave out which behaviour change is behind it (much faster)");
  verb->add_flag("--json", a->json, "As JSON (docs/upgrade.md)");
  verb->callback([a, &outcome] { outcome.code = PrintUpgrade(*a); });
}

}  // namespace wavetank::cli
