// wavetank stats: what a simulated Envoy has counted, by Envoy's names.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/proxies/mesh_view.h"
#include "cli/proxies/one_proxy.h"
#include "cli/verb.h"
#include "core/base/text/percent.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "serve/admin/envoy_stats.h"
#include "sim/pod_process.h"

namespace wavetank::cli {
namespace {

using Format = serve::StatsQuery::Format;

struct StatsArguments {
  MeshViewArguments mesh;
  ServerArguments server;
  std::string proxy;
  serve::StatsQuery query;
};

absl::Status OfMesh(const StatsArguments& a) {
  return LookAtMesh(a.mesh, [&](sim::World& world, const serve::HeldConfig&) {
    const absl::StatusOr<const sim::PodProcess*> pod = FindProxy(world, a.proxy);
    if (!pod.ok()) return pod.status();
    if ((*pod)->envoy() == nullptr) {
      return absl::FailedPreconditionError(fmt::format("{}: its proxy is not running", (*pod)->name()));
    }
    const absl::StatusOr<std::string> page = serve::StatsPage((*pod)->envoy()->AllStats(), a.query);
    if (page.ok()) std::cout << *page;
    return page.status();
  });
}

absl::Status OfServer(const StatsArguments& a) {
  std::string path = a.query.format == Format::kPrometheus ? "stats/prometheus?" : "stats?";
  if (a.query.format == Format::kJson) path += "format=json&";
  if (a.query.used_only) path += "usedonly&";
  if (!a.query.filter.empty()) path += "filter=" + PercentEncoded(a.query.filter);
  const absl::StatusOr<std::string> page = AdminPage(a.server, a.proxy, path);
  if (page.ok()) std::cout << *page;
  return page.status();
}

int Run(const StatsArguments& a) {
  if (a.server.url.empty() == a.mesh.source.empty()) {
    return Complain(absl::InvalidArgumentError(
        "what to look at: one of a scenario or an event log, --server URL (of serve --kube)"));
  }
  // A wrong expression is told before a mesh is run.
  if (const auto page = serve::StatsPage({}, a.query); !page.ok()) return Complain(page.status());
  const absl::Status status = a.server.url.empty() ? OfMesh(a) : OfServer(a);
  return status.ok() ? kOk : Complain(status);
}

}  // namespace

void AddStats(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("stats", "What a proxy has counted: Envoy's counters and gauges by their names");
  auto a = std::make_shared<StatsArguments>();
  verb->add_option("source", a->mesh.source, "Scenario or event log");
  verb->add_option("--proxy", a->proxy, "sleep@cluster1, deploy/sleep.sample@cluster1, or a pod's full name")
      ->required();
  a->server.AddTo(verb);
  a->mesh.AddTo(verb);
  verb->add_option("--filter", a->query.filter, "Names in which this RE2 expression is found: 'helloworld.*_rq_'");
  verb->add_flag("--used-only", a->query.used_only, "Only what is not 0");
  verb->add_option("-o,--output", a->query.format, "text, json or prometheus")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Format>{
          {"text", Format::kText}, {"json", Format::kJson}, {"prometheus", Format::kPrometheus}}));
  NotWith(verb, {"--at", "--step", "--profile"}, "--server");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
