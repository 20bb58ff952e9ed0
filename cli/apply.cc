#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/mesh_tables.h"
#include "cli/verb.h"
#include "fmt/format.h"
#include "scenarios/mesh_survey.h"

namespace wavetank::cli {
namespace {

struct Arguments {
  std::vector<std::string> folders, clusters, control_planes;
  std::string ns, profile = "istio-1.18";
  uint64_t seed = 1;
  int requests = 20;
  bool json = false, no_remote_secrets = false, all_endpoints = false;
};

std::string Counts(const std::map<std::string, int64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
  return out.empty() ? "-" : out;
}

void Print(const scenario::Survey& survey, const Arguments& a) {
  PrintServices(survey.services);
  PrintEndpoints(survey.endpoints, a.all_endpoints);

  std::vector<std::vector<std::string>> rows;
  std::cout << "\n";
  rows = {{"CLIENT", "IN", "SERVICE", "ANSWERED BY", "FAILED"}};
  for (const auto& r : survey.reachability) {
    rows.push_back({r.client, r.client_cluster, r.service, Counts(r.answered_by), Counts(r.failed)});
  }
  PrintTable(rows);
  for (const std::string& note : survey.notes) std::cout << "note: " << note << "\n";
}

// "NAME=VALUE".
absl::StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(fmt::format("{} '{}' is not NAME=VALUE", option, text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

int ApplyManifests(const Arguments& a) {
  scenario::SurveyOptions options;
  options.seed = a.seed;
  options.profile = a.profile;
  options.requests = a.requests;
  options.remote_secrets = !a.no_remote_secrets;
  const auto cluster = [&](const std::string& name) -> scenario::SurveyCluster& {
    const auto it =
        std::find_if(options.clusters.begin(), options.clusters.end(), [&](const auto& c) { return c.name == name; });
    if (it != options.clusters.end()) return *it;
    options.clusters.push_back({name, {}, "", a.ns});
    return options.clusters.back();
  };
  for (const std::string& folder : a.folders) {
    const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
    const std::string name = (path.has_filename() ? path : path.parent_path()).filename().stem().string();
    cluster(name).paths.push_back(folder);
  }
  std::string last;
  for (const std::string& text : a.clusters) {
    // `--cluster c1=a.yaml b.yaml`: what follows without a name belongs to the same cluster.
    if (text.find('=') == std::string::npos && !last.empty()) {
      cluster(last).paths.push_back(text);
      continue;
    }
    const auto pair = SplitPair(text, "--cluster");
    if (!pair.ok()) return Complain(pair.status());
    last = pair->first;
    cluster(last).paths.push_back(pair->second);
  }
  for (const std::string& text : a.control_planes) {
    const auto pair = SplitPair(text, "--control-plane");
    if (!pair.ok()) return Complain(pair.status());
    cluster(pair->first).control_plane = pair->second;
  }
  if (options.clusters.empty()) {
    return Complain(absl::InvalidArgumentError("no manifests; give a folder per cluster, or --cluster NAME=FILE..."));
  }
  absl::StatusOr<scenario::Survey> survey = [&] {
    Progress progress;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return scenario::SurveyMesh(options);
  }();
  if (!survey.ok()) return Complain(survey.status());
  if (a.json) {
    std::cout << scenario::SurveyJson(*survey).dump(1) << "\n";
  } else {
    Print(*survey, a);
  }
  return kOk;
}

}  // namespace

void AddApply(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "apply", "Builds a mesh from manifests and shows its Services, each proxy's endpoints and who reaches what");
  auto a = std::make_shared<Arguments>();
  verb->add_option("folder", a->folders, "A folder (or file) of manifests per cluster, which it names");
  verb->add_option("--cluster", a->clusters, "NAME=FILE..., any number of times");
  verb->add_option("--control-plane", a->control_planes, "NAME=PRIMARY for a cluster without an istiod of its own");
  verb->add_option("-n,--namespace", a->ns, "Of objects that name none");
  verb->add_option("--profile", a->profile, "Behaviour profile");
  verb->add_option("--seed", a->seed, "Of the world");
  verb->add_option("--requests", a->requests, "Per client, Service and port")->check(CLI::Range(0, 100000));
  verb->add_flag("--no-remote-secrets", a->no_remote_secrets, "Only those that the manifests bring");
  verb->add_flag("--all-endpoints", a->all_endpoints, "Inbound and agent endpoints too");
  verb->add_flag("--json", a->json, "As JSON");
  verb->callback([a, &outcome] { outcome.code = ApplyManifests(*a); });
}

}  // namespace wavetank::cli
