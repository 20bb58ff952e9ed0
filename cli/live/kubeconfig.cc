#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "serve/kube/kube_frontend.h"

namespace wavetank::cli {
namespace {

struct KubeconfigArguments {
  std::string kube = "127.0.0.1:8901", token_file;
};

int Kubeconfig(const KubeconfigArguments& a) {
  std::string token;
  if (!a.token_file.empty()) {
    absl::StatusOr<std::string> read = ReadToken(a.token_file);
    if (!read.ok()) return Complain(read.status());
    token = *std::move(read);
  }
  const absl::StatusOr<std::string> answer =
      fakekube::http::Fetch("http://" + a.kube, std::string(serve::kClustersPath), 5s);
  if (absl::IsFailedPrecondition(answer.status())) {
    return Complain(absl::FailedPreconditionError(
        fmt::format("{}; if it speaks TLS, its kubeconfig is what `wavetank serve --kubeconfig FILE` has written",
                    std::string(answer.status().message()))));
  }
  if (!answer.ok()) {
    return Complain(absl::UnavailableError(
        fmt::format("{}; is `wavetank serve --kube {}` running?", std::string(answer.status().message()), a.kube)));
  }
  const nlohmann::json listing = ParseJson(*answer);
  std::vector<serve::KubeListener> clusters;
  for (const nlohmann::json& entry : listing.is_array() ? listing : nlohmann::json::array())
    clusters.push_back({entry.value("cluster", ""), entry.value("server", "")});
  if (clusters.empty())
    return Complain(absl::FailedPreconditionError(fmt::format("what answers at {} is no wavetank", a.kube)));
  std::cout << serve::RenderKubeconfig(clusters, token);
  return kOk;
}

}  // namespace

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!(file >> token)) return absl::NotFoundError(fmt::format("{}: cannot be read, or holds no token", path));
  return token;
}

void AddKubeconfig(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "kubeconfig", "Writes the kubeconfig of a running `wavetank serve --kube`: one context per cluster");
  auto a = std::make_shared<KubeconfigArguments>();
  verb->add_option("--kube", a->kube, "Where it listens")->capture_default_str();
  verb->add_option("--token-file", a->token_file,
                   "The token that the server demands, if it does (serve --kube-token-file)");
  verb->footer(
      "Example: wavetank kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig --context cluster1 get pods -A");
  verb->callback([a, &outcome] { outcome.code = Kubeconfig(*a); });
}

}  // namespace wavetank::cli
