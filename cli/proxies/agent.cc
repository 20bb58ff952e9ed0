#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "core/agent/log.h"
#include "serve/agent/agent_run.h"

namespace wavetank::cli {
namespace {

Time CalendarNow() {
  const auto unix_time = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
  return Time(unix_time - std::chrono::seconds(kWorldEpochUnixSeconds));
}

int Agent(const serve::AgentRun& run) {
  // Waited for by the agent itself; to be blocked before any thread is there.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<int> code = serve::RunAgent(run);
  if (!code.ok()) return Complain(code.status());
  std::cout.flush();
  // gRPC's threads may still be at the end of a call; nothing of them is wanted any more.
  _exit(*code == 0 ? kOk : kNo);
}

}  // namespace

void AddAgent(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "agent", "Starts a real Envoy as pilot-agent 1.18.2 does: certificates, secrets, ADS, DNS and probes for it");
  auto run = std::make_shared<serve::AgentRun>();
  serve::AgentArguments& a = run->arguments;
  auto words = std::make_shared<std::vector<std::string>>();
  verb->add_option("type", *words, "sidecar (default) or router; `proxy` in front of it is pilot-agent's own verb")
      ->expected(0, -1);
  verb->add_option("--domain", a.domain, "DNS domain suffix (default: $POD_NAMESPACE.svc.cluster.local)");
  verb->add_option("--proxyLogLevel", a.log_level, "Envoy's log level, with levels of components")
      ->capture_default_str();
  verb->add_option("--proxyComponentLogLevel", a.component_log_level, "Levels of components, if those have none");
  verb->add_option("--outlierLogPath", a.outlier_log_path, "Where Envoy logs outliers");
  verb->add_option("--concurrency", a.concurrency, "Worker threads, before what the proxy's configuration says");
  verb->add_option("--stsPort", a.sts_port, "Exchanges tokens (STS) at this port of loopback; 0: nowhere")
      ->capture_default_str();
  verb->add_option("--tokenManagerPlugin", a.token_manager, "Who exchanges them; any other name is nobody")
      ->capture_default_str();
  verb->add_flag("--log_as_json", a.log_as_json, "Envoy logs JSON");
  verb->add_flag("--upstream-envoy", a.upstream_envoy,
                 "The Envoy is not Istio's: its bootstrap leaves out what only Istio's knows");
  verb->add_flag("--bootstrap", run->bootstrap_only, "Print Envoy's bootstrap and end");
  // Arguments of an injected container that have no effect here (pilot-agent takes unknown ones, too).
  verb->allow_extras();
  verb->footer(
      "It reads pilot-agent's environment variables, and its files below the working folder.\n"
      "Example: wavetank serve SCENARIO --profile upstream-envoy --pod-folders /tmp/pods &\n"
      "  cd /tmp/pods/POD; env -i sh -c 'set -a; . ./env; exec wavetank agent sidecar --upstream-envoy'");
  verb->callback([run, verb, words, &outcome] {
    // The first word behind `proxy` is the type; what follows is of flags that pilot-agent does not know either
    // (istiod: pilot/cmd/pilot-agent/app/cmd.go, initProxy).
    std::vector<std::string> rest = *words;
    if (!rest.empty() && rest.front() == "proxy") rest.erase(rest.begin());
    if (!rest.empty()) {
      run->arguments.type = rest.front();
      rest.erase(rest.begin());
      if (run->arguments.type != "sidecar" && run->arguments.type != "router") {
        outcome.code = Complain(absl::InvalidArgumentError("Invalid proxy Type: " + run->arguments.type));
        return;
      }
    }
    for (const std::string& word : rest) std::cerr << "note: " << word << " has no effect\n";
    run->environment = serve::ProcessEnvironment();
    run->log = [](agent::Level level, std::string_view scope, std::string_view text) {
      if (level != agent::Level::kDebug) std::cout << agent::LogLine(CalendarNow(), level, scope, text) << std::endl;
    };
    for (const std::string& extra : verb->remaining()) {
      std::cerr << "note: " << extra << " has no effect\n";
    }
    outcome.code = Agent(*run);
  });
}

}  // namespace wavetank::cli
