#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "fmt/format.h"
#include "record/http_transport.h"
#include "record/kubeconfig_file.h"
#include "record/recording.h"
#include "replay/kept_secrets.h"
#include "sim/kernel/kernel.h"

namespace wavetank::cli {
namespace {

struct RecordArguments {
  std::string kubeconfig, log, duration;
  std::vector<std::string> contexts, namespaces;
  bool keep_secrets = false, quiet = false;
};

volatile sig_atomic_t stop_asked = 0;
void AskToStop(int) { stop_asked = 1; }

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

  using Clock = std::chrono::steady_clock;
  const int64_t unix_now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()) /
      std::chrono::seconds(1);
  // Timers, at the pace of the real clock.
  sim::Kernel kernel(1);
  Host& host = kernel.NewHost("record", 0, nullptr);
  record::HttpLoop loop;
  std::vector<std::unique_ptr<record::Transport>> transports;
  record::RecordingOptions options;
  for (const kube::KubeConfig& config : *configs) {
    absl::StatusOr<std::unique_ptr<record::Transport>> transport = loop.Connect(config);
    if (!transport.ok()) return Complain(transport.status());
    transports.push_back(*std::move(transport));
    options.clusters.push_back({config.context, transports.back().get()});
  }
  options.namespaces = a.namespaces;
  options.keep_secrets = a.keep_secrets;
  options.log = a.log;
  options.program_version = WAVETANK_VERSION;
  options.started = kube::FormatRfc3339(unix_now);
  // Real certificates are valid in their own time only.
  if (a.keep_secrets) options.world_start = Time{} + std::chrono::seconds(unix_now - kWorldEpochUnixSeconds);

  struct sigaction action {};
  action.sa_handler = AskToStop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<record::Recording>> started = record::Recording::Start(host, std::move(options));
  if (!started.ok()) return Complain(started.status());
  record::Recording& recording = **started;
  Progress progress;
  recording.on_note = [&](const std::string& note) {
    progress.Say("");
    std::cerr << "note: " << note << "\n";
  };
  const Clock::time_point begin = Clock::now();
  std::optional<Time> end;
  while (stop_asked == 0 && recording.status().ok()) {
    if (recording.recording() && !end && length) end = kernel.Now() + *length;
    if (end && kernel.Now() >= *end) break;
    Duration wait = 500ms;
    if (const std::optional<Time> next = kernel.NextTime()) wait = std::min(wait, *next - kernel.Now());
    if (end) wait = std::min(wait, *end - kernel.Now());
    loop.Wait(std::max(wait, Duration::zero()));
    kernel.RunUntil(Time{} + std::chrono::duration_cast<Duration>(Clock::now() - begin));
    loop.Deliver();
    kernel.RunUntil(kernel.Now());
    if (recording.recording()) {
      progress.Say(fmt::format("recording: {} inputs", recording.inputs()));
    } else {
      const auto [have, of] = recording.Progress();
      progress.Say(fmt::format("listing: {} of {}", have, of));
    }
  }
  if (absl::Status status = recording.Finish(); !status.ok()) return Complain(status);
  progress.Say("");
  std::vector<std::string> clusters;
  std::cout << fmt::format(
      "{}: {} inputs in {}\n", a.log, recording.inputs(),
      FormatDuration(std::chrono::duration_cast<std::chrono::milliseconds>(kernel.Now() - Time{})));
  std::vector<std::vector<std::string>> rows = {{"CONTEXT", "CLUSTER", "NETWORK", "CONTROL PLANE"}};
  for (size_t i = 0; i < configs->size(); ++i) {
    const sim::WorldCluster& cluster = recording.world().clusters[i];
    rows.push_back({(*configs)[i].context, cluster.name, cluster.network, cluster.control_plane});
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
