#include "cli/proxies/one_proxy.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "cli/verb.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::cli {

absl::StatusOr<const sim::PodProcess*> FindProxy(sim::World& world, const std::string& name) {
  std::vector<scenario::PodName> names;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->bootstrap().has_value()) names.push_back(scenario::PodNameOf(*pod));
  }
  const absl::StatusOr<std::string> found = scenario::FindOnePod("proxy", name, names, world);
  if (!found.ok()) return found.status();
  return world.FindPod(*found);
}

void ServerArguments::AddTo(CLI::App* verb) {
  verb->add_option("--server", url, "Kubernetes API of a running `serve --kube`, http://127.0.0.1:8901");
  verb->add_option("--token-file", token_file, "The token that the server demands, if it does");
  OnlyWith(verb, {"--token-file"}, "--server");
}

absl::StatusOr<std::string> AdminPage(const ServerArguments& server, const std::string& proxy, const std::string& path,
                                      const std::string& method) {
  const size_t dot = proxy.find('.'), at = proxy.find('@');
  if (dot == std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("--proxy '{}': with --server write POD.NAMESPACE", proxy));
  }
  const std::string pod = proxy.substr(0, dot), ns = proxy.substr(dot + 1, at == std::string::npos ? at : at - dot - 1);
  std::string token;
  if (!server.token_file.empty()) {
    absl::StatusOr<std::string> read = ReadToken(server.token_file);
    if (!read.ok()) return read.status();
    token = *std::move(read);
  }
  absl::StatusOr<fakekube::http::Answer> answer =
      fakekube::http::Send({.server = server.url,
                            .method = method,
                            .path = fmt::format("/api/v1/namespaces/{}/pods/{}:15000/proxy/{}", ns, pod, path),
                            .token = token},
                           std::chrono::seconds(30));
  if (!answer.ok()) return answer.status();
  if (answer->status != 200) {
    return absl::NotFoundError(fmt::format("{}: {} of {}.{}: {}", server.url, path, pod, ns, answer->body));
  }
  return std::move(answer->body);
}

}  // namespace wavetank::cli
