#include "serve/pilot_discovery.h"

#include <deque>
#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "serve/kube/kube_frontend.h"

namespace wavetank::serve {
namespace {

namespace fs = std::filesystem;

// The moment from which its listener stands and all caches are synced (istiod: pilot/pkg/bootstrap/server.go, Start).
constexpr std::string_view kServing = "starting gRPC discovery service at ";

constexpr std::string_view kKubeconfig = "KUBECONFIG";

absl::Status Write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) return absl::UnavailableError(fmt::format("{}: cannot be written", path.string()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PilotDiscovery>> PilotDiscovery::Start(PilotDiscoveryOptions options) {
  if (absl::Status status = CheckProgram(options.program); !status.ok()) return status;
  std::unique_ptr<PilotDiscovery> istiod(new PilotDiscovery(std::move(options)));
  const PilotDiscoveryOptions& o = istiod->options_;
  std::error_code error;
  fs::create_directories(o.folder, error);
  const fs::path folder = fs::absolute(o.folder);
  if (absl::Status status = Write(folder / "kubeconfig", RenderKubeconfig({{o.cluster, o.kube_server}}, ""));
      !status.ok()) {
    return status;
  }
  ChildProcess::Options child;
  // Monitoring, debugging and introspection take any port of loopback: they cannot all be switched off.
  child.arguments = {fs::absolute(o.program).string(),
                     "discovery",
                     "--kubeconfig=" + (folder / "kubeconfig").string(),
                     "--domain=cluster.local",
                     "--grpcAddr=" + o.listen,
                     "--secureGRPCAddr=",
                     "--httpAddr=127.0.0.1:0",
                     "--httpsAddr=",
                     "--monitoringAddr=127.0.0.1:0",
                     "--ctrlz_address=127.0.0.1",
                     "--ctrlz_port=0"};
  if (!o.mesh_config.empty()) {
    if (absl::Status status = Write(folder / "mesh", o.mesh_config); !status.ok()) return status;
    child.arguments.push_back("--meshConfig=" + (folder / "mesh").string());
  }
  child.environment = {{"CLUSTER_ID", o.cluster},
                       {"ENABLE_CA_SERVER", "false"},
                       {"EXTERNAL_ISTIOD", o.external ? "true" : "false"},
                       {"HOME", folder.string()},
                       {"INJECTION_WEBHOOK_CONFIG_NAME", ""},
                       {"PATH", "/usr/bin:/bin"},
                       {"POD_NAME", "istiod-" + o.cluster},
                       {"POD_NAMESPACE", "istio-system"},
                       {"REVISION", "default"},
                       {"VALIDATION_WEBHOOK_CONFIG_NAME", ""},
                       {"XDS_AUTH", "false"}};
  // KUBECONFIG leads to a file of the pod's.
  for (const auto& [name, value] : o.said) {
    if (name != kKubeconfig) child.environment.emplace(name, value);
  }
  for (const auto& [name, value] : o.environment) child.environment[name] = value;
  if (!o.name_server.empty()) {
    const fs::path resolv_conf = folder / "resolv.conf";
    if (absl::Status status = Write(resolv_conf, fmt::format("nameserver {}\n", o.name_server)); !status.ok())
      return status;
    child.resolv_conf = resolv_conf.string();
  }
  child.folder = folder.string();
  child.log = o.log;
  if (absl::Status status = istiod->child_.Start(child); !status.ok()) return status;
  return istiod;
}

absl::StatusOr<bool> PilotDiscovery::Ready() {
  if (!address_.empty()) return true;
  const bool running = child_.running();
  std::ifstream log(options_.log);
  for (std::string line; std::getline(log, line);) {
    const size_t at = line.find(kServing);
    // Its last line may not be there as a whole.
    if (at == std::string::npos || log.eof()) continue;
    const size_t begin = at + kServing.size();
    address_ = line.substr(begin, line.find_first_of(" \t\r\"", begin) - begin);
    break;
  }
  if (!running) return Check();
  return !address_.empty();
}

absl::Status PilotDiscovery::Check() {
  if (child_.running()) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("the istiod of {} ended with {}; its log is {}\n{}", options_.cluster,
                                            child_.end(), options_.log, LastWords()));
}

std::string PilotDiscovery::LastWords() const {
  constexpr size_t kLines = 6, kWidth = 300;
  std::deque<std::string> last;
  std::ifstream log(options_.log);
  for (std::string line; std::getline(log, line);) {
    if (line.empty()) continue;
    if (line.size() > kWidth) line.resize(kWidth);
    last.push_back(std::move(line));
    if (last.size() > kLines) last.pop_front();
  }
  std::string out;
  for (const std::string& line : last) out += (out.empty() ? "  " : "\n  ") + line;
  return out;
}

void PilotDiscovery::Stop(Duration patience) { child_.Stop(patience); }

}  // namespace wavetank::serve
