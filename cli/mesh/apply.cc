#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/mesh/apply_to_server.h"
#include "cli/mesh_arguments.h"
#include "cli/mesh_tables.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "scenarios/results/nacks.h"
#include "scenarios/survey/mesh_survey.h"

namespace wavetank::cli {
namespace {

struct ApplyArguments {
  MeshArguments mesh;
  std::string server, token_file;
  std::string profile = "istio-1.18", mend, date;
  uint64_t seed = 1;
  std::optional<int> requests;
  bool strict = false;
  bool json = false, no_remote_secrets = false, all_endpoints = false;
};

void Print(const scenario::Survey& survey, const ApplyArguments& a) {
  for (const scenario::Nack& nack : survey.nacks) std::cout << "NACK  " << Describe(nack) << "\n";
  if (!survey.nacks.empty()) std::cout << "\n";
  PrintServices(survey.services);
  PrintEndpoints(survey.endpoints, a.all_endpoints);

  std::cout << "\n";
  PrintReachability(survey.reachability);
  if (!survey.dead.empty()) std::cout << "\n";
  for (const scenario::DeadWay& d : survey.dead) {
    std::cout << fmt::format("DEAD PATH  {} in {} to {}, by {}: {}; all {} tries failed{}\n", d.client,
                             d.client_cluster, d.service, d.upstream, d.cause, d.tries,
                             d.reason.empty() ? "" : " (" + d.reason + ")");
  }
  if (!survey.unready.empty()) std::cout << "\n";
  for (const std::string& proxy : survey.unready) std::cout << "not ready: " << proxy << "\n";
  for (const std::string& deed : survey.mended) std::cout << deed << "\n";
  for (const std::string& note : survey.notes) std::cout << "note: " << note << "\n";
  for (const auto& without : survey.without_effect) std::cout << "note: " << Describe(without) << "\n";
}

int ApplyManifests(const ApplyArguments& a) {
  scenario::SurveyOptions options;
  options.seed = a.seed;
  options.profile = a.profile;
  options.requests = a.requests;
  options.remote_secrets = !a.no_remote_secrets;
  if (absl::Status status = TakeMending(a.mend, a.date, &options.mending, &options.date); !status.ok())
    return Complain(status);
  options.strict = a.strict;
  absl::StatusOr<std::vector<scenario::SurveyCluster>> clusters = a.mesh.Clusters();
  if (!clusters.ok()) return Complain(clusters.status());
  options.clusters = *std::move(clusters);
  if (!a.server.empty()) return ApplyToServer(options.clusters, a.server, a.token_file);
  absl::StatusOr<scenario::Survey> survey = [&] {
    Progress progress;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return scenario::SurveyMesh(options);
  }();
  if (!survey.ok()) return Complain(survey.status());
  if (a.json) {
    std::cout << JsonText(scenario::SurveyJson(*survey), 1) << "\n";
  } else {
    Print(*survey, a);
  }
  // Who does not believe the other's certificates never will, however often a retry elsewhere is answered.
  const bool apart =
      std::any_of(survey->dead.begin(), survey->dead.end(), [](const scenario::DeadWay& d) { return d.ByTls(); });
  return survey->unready.empty() && !apart ? kOk : kNo;
}

}  // namespace

void AddApply(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "apply", "Builds a mesh from manifests and shows its Services, each proxy's endpoints and who reaches what");
  auto a = std::make_shared<ApplyArguments>();
  a->mesh.AddTo(verb, "folder", "A folder (or file) of manifests per cluster, which it names");
  verb->add_option("--server", a->server,
                   "HOST:PORT of a running `wavetank serve --kube`: apply there instead, as `kubectl apply` would");
  verb->add_option("--token-file", a->token_file, "The token that the server demands, if it does");
  verb->add_option("--profile", a->profile, "Behaviour profile");
  verb->add_option("--seed", a->seed, "Of the world");
  AddMending(verb, &a->mend, &a->date);
  verb->add_flag("--strict", a->strict, "What a manifest says without effect here is an error");
  verb->add_option("--requests", a->requests, "Per client, Service and port; 20 unless told, in a large mesh fewer")
      ->check(CLI::Range(0, 100000));
  verb->add_flag("--no-remote-secrets", a->no_remote_secrets, "Only those that the manifests bring");
  verb->add_flag("--all-endpoints", a->all_endpoints, "Inbound and agent endpoints too");
  verb->add_flag("--json", a->json, "As JSON");
  OnlyWith(verb, {"--token-file"}, "--server");
  // What runs there has its own.
  NotWith(verb,
          {"--control-plane", "--profile", "--seed", "--mend", "--date", "--strict", "--requests",
           "--no-remote-secrets", "--all-endpoints", "--json"},
          "--server");
  verb->callback([a, &outcome] { outcome.code = ApplyManifests(*a); });
}

}  // namespace wavetank::cli
