#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/recorder.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "fmt/format.h"
#include "record/kubeconfig_file.h"
#include "replay/kept_secrets.h"

namespace wavetank::cli {
namespace {

struct RecordArguments {
  std::string kubeconfig, log, duration;
  std::vector<std::string> contexts, namespaces;
  bool keep_secrets = false, quiet = false;
};

int Record(const RecordArguments& a) {
  std::optional<Duration> length;
  if (!a.duration.empty()) {
    length = ParseDuration(a.duration);
    if (!length) {
      return Complain(absl::InvalidArgumentError("--for '" + a.duration + "' is no duration; write 10m or 30s"));
    }
  }
  absl::StatusOr<std::vector<kube::KubeConfig>> configs = record::LoadKubeConfigFile(a.kubeconfig, a.contexts);
  if (!configs.ok()) return Complain(configs.status());
  ClustersToRecord what{*std::move(configs), a.namespaces, a.keep_secrets, a.log, length};
  const absl::StatusOr<RecordedClusters> recorded = RecordClusters(what);
  if (!recorded.ok()) return Complain(recorded.status());
  std::cout << fmt::format("{}: {} inputs in {}\n", a.log, recorded->inputs,
                           FormatDuration(std::chrono::duration_cast<std::chrono::milliseconds>(recorded->took)));
  std::vector<std::vector<std::string>> rows = {{"CONTEXT", "CLUSTER", "NETWORK", "CONTROL PLANE"}};
  for (size_t i = 0; i < what.configs.size(); ++i) {
    const sim::WorldCluster& cluster = recorded->clusters[i];
    rows.push_back({what.configs[i].context, cluster.name, cluster.network, cluster.control_plane});
  }
  PrintTable(rows);
  if (a.keep_secrets) std::cout << "note: " << replay::KeptSecretsNote(a.log) << "\n";
  return kOk;
}

}  // namespace

void AddRecord(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "record", "Records real clusters' Services, endpoints, pods and Istio configuration, for replay, why and run");
  auto a = std::make_shared<RecordArguments>();
  verb->add_option("--kubeconfig", a->kubeconfig, "File with the clusters' contexts")->required();
  verb->add_option("--context", a->contexts, "Only these contexts; each is a cluster of the mesh");
  verb->add_option("-n,--namespace", a->namespaces, "Only these namespaces, and istio-system");
  verb->add_option("--for", a->duration, "How long, from the first full picture on, e.g. 10m; 0s: only that picture");
  verb->add_flag("--keep-secrets", a->keep_secrets,
                 "Store remote Secrets and cacerts with their keys and tokens: the log is then as secret as they are");
  verb->add_option("-o,--log", a->log, "Event log to write")->required();
  verb->footer(
      "Reads only. Ends with --for or SIGINT; the log is whole then. Private keys, tokens and the data of Secrets are "
      "not stored: digests stand in their place. docs/record.md has what is stored, and what rights it takes.");
  verb->callback([a, &outcome] { outcome.code = Record(*a); });
}

}  // namespace wavetank::cli
