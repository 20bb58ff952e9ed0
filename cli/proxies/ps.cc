// wavetank ps, proxy-status: what istiods sent and proxies ACKed, in istioctl's table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/proxies/mesh_view.h"
#include "cli/tables/status_table.h"
#include "cli/tables/yaml_text.h"
#include "cli/verb.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/debug/clients.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "sim/istiod_process.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

struct PsArguments {
  MeshViewArguments mesh;
  std::string proxy, output = "short";
  std::vector<std::string> debug;
};

using Syncz = std::map<std::string, nlohmann::json>;

void Print(const PsArguments& a, const Syncz& syncz) {
  if (a.output == "short") {
    std::cout << tables::StatusTable(syncz, a.proxy);
    return;
  }
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [istiod, statuses] : syncz) {
    nlohmann::json& list = out[istiod] = nlohmann::json::array();
    for (const nlohmann::json& status : statuses) {
      if (Text(status, "proxy").find(a.proxy) != std::string::npos) list.push_back(status);
    }
  }
  std::cout << (a.output == "yaml" ? tables::YamlText(out) : JsonText(out, 4) + "\n");
}

// Of the debug ports of a running `serve`.
absl::StatusOr<Syncz> OfServer(const PsArguments& a) {
  Syncz out;
  for (const std::string& address : a.debug) {
    const std::string server = address.find("://") == std::string::npos ? "http://" + address : address;
    const absl::StatusOr<std::string> body = fakekube::http::Fetch(server, "/debug/syncz", std::chrono::seconds(30));
    if (!body.ok()) return body.status();
    nlohmann::json statuses = ParseJson(*body);
    if (!statuses.is_array()) return absl::InvalidArgumentError(fmt::format("{}: /debug/syncz is no list", address));
    out[address] = std::move(statuses);
  }
  return out;
}

absl::StatusOr<Syncz> OfMesh(const PsArguments& a) {
  Syncz out;
  std::string none;
  const absl::Status status = LookAtMesh(a.mesh, [&](sim::World& world, const serve::HeldConfig&) {
    for (const sim::IstiodProcess* process : world.Istiods()) {
      if (process->istiod().Ready()) out[process->istiod().options().name] = debug::Syncz(process->istiod());
    }
    const bool any = std::any_of(out.begin(), out.end(), [](const auto& each) { return !each.second.empty(); });
    if (!any) none = scenario::WhyNoProxies(world);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (!none.empty()) std::cerr << "note: no proxy is connected: " << none << "\n";
  return out;
}

}  // namespace

void AddPs(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("ps", "What istiods sent and proxies ACKed, as `istioctl proxy-status` shows it");
  verb->alias("proxy-status");
  auto a = std::make_shared<PsArguments>();
  verb->add_option("source", a->mesh.source, "Scenario or event log");
  verb->add_option("--proxy", a->proxy, "Part of the proxies' names, pod.namespace");
  verb->add_option("--debug", a->debug, "Debug interface of a running `serve --debug`, 127.0.0.1:15014; repeatable");
  a->mesh.AddTo(verb);
  NotWith(verb, {"--at", "--step", "--profile"}, "--debug");
  verb->add_option("-o,--output", a->output, "short, json or yaml")
      ->check(CLI::IsMember({"short", "json", "yaml"}))
      ->capture_default_str();
  verb->callback([a, &outcome] {
    if (a->debug.empty() == a->mesh.source.empty()) {
      outcome.code = Complain(absl::InvalidArgumentError(
          "what to look at: a scenario or an event log, or --debug ADDRESS of a running serve"));
      return;
    }
    const absl::StatusOr<Syncz> syncz = a->debug.empty() ? OfMesh(*a) : OfServer(*a);
    if (!syncz.ok()) {
      outcome.code = Complain(syncz.status());
      return;
    }
    Print(*a, *syncz);
    outcome.code = kOk;
  });
}

}  // namespace wavetank::cli
