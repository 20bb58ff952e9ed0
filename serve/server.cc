#include "serve/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/status.h"
#include "core/base/text/file_name.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "serve/istio_resources.h"
#include "serve/kube/kubernetes_service.h"

namespace wavetank::serve {

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::unique_ptr<Session> session, const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server);
  server->session_ = std::move(session);
  Loop& loop = server->session_->loop();
  server->frontend_ = std::make_unique<Frontend>(loop, options.limits);
  server->secrets_ = std::make_unique<WorkloadSecrets>(*server->frontend_, options.secrets);
  if (!options.kube.listen.empty()) {
    if (absl::Status status = DefineIstioResources(loop.world()); !status.ok()) return status;
    if (absl::Status status = DefineKubernetesService(loop.world()); !status.ok()) return status;
    server->pods_ = std::make_unique<PodAccess>(loop, server->session_->held(), server->session_->logs());
    server->pods_->SetMetrics(options.metrics);
  }
  server->session_->GoLive();
  const bool real = !options.control_plane.program.empty();
  if (real) {
    ControlPlaneOptions control_plane = options.control_plane;
    if (!options.listen.empty()) control_plane.listen = options.listen;
    absl::StatusOr<std::unique_ptr<ControlPlanes>> planes = ControlPlanes::Start(loop, std::move(control_plane));
    if (!planes.ok()) return planes.status();
    server->control_planes_ = *std::move(planes);
  }
  std::vector<std::string> primaries;
  size_t index = 0;
  for (const scenario::ClusterSpec& cluster : server->session_->scenario().clusters) {
    if (!cluster.primary()) continue;
    primaries.push_back(cluster.name);
    GrpcListeners where;
    where.cluster = cluster.name;
    where.plaintext = real ? "127.0.0.1:0" : ListenAddress(options.listen, index);
    where.secure = real ? "" : ListenAddress(options.secure_listen, index);
    if (!options.unix_socket.empty())
      where.unix_socket = options.unix_socket + (index == 0 ? "" : "." + FileName(cluster.name));
    ++index;
    absl::StatusOr<std::unique_ptr<GrpcServer>> grpc = GrpcServer::Listen(*server->frontend_, *server->secrets_, where);
    if (!grpc.ok()) return grpc.status();
    server->grpc_.push_back(*std::move(grpc));
  }
  if (!options.debug_listen.empty()) {
    absl::StatusOr<std::unique_ptr<DebugPorts>> debug =
        DebugPorts::Start(loop, primaries, options.debug_listen, options.metrics);
    if (!debug.ok()) return debug.status();
    server->debug_ = *std::move(debug);
  }
  if (!options.kube.listen.empty()) {
    std::vector<std::string> clusters;
    for (const scenario::ClusterSpec& cluster : server->session_->scenario().clusters) clusters.push_back(cluster.name);
    server->pods_->SetListeners([listeners = server.get()](const std::string& cluster, uint16_t port) {
      const GrpcListeners* const where = listeners->ListenersOf(cluster);
      return where == nullptr ? "" : port == 15012 ? where->secure : where->plaintext;
    });
    KubeOptions kube_options = options.kube;
    kube_options.before = [pods = server->pods_.get()](sim::World& world, const std::string& cluster,
                                                       const fakekube::http::Request& request) {
      return pods->Answer(world, cluster, request);
    };
    absl::StatusOr<std::unique_ptr<KubeFrontend>> kube = KubeFrontend::Start(loop, clusters, kube_options);
    if (!kube.ok()) return kube.status();
    server->kube_ = *std::move(kube);
  }
  return server;
}

Server::~Server() { Stop().IgnoreError(); }

absl::Status Server::Stop() {
  if (stopped_) return absl::OkStatus();
  stopped_ = true;
  if (kube_ != nullptr) kube_->Stop();
  if (debug_ != nullptr) debug_->Stop();
  if (control_planes_ != nullptr) control_planes_->Stop();
  frontend_->ShutDown();
  grpc_.clear();
  // What the loop still holds may know of the frontend, which therefore goes after it.
  absl::Status status = session_->Finish();
  secrets_ = nullptr;
  frontend_ = nullptr;
  return status;
}

const GrpcListeners* Server::ListenersOf(std::string_view cluster) {
  const scenario::ClusterSpec* spec = session_->scenario().FindCluster(cluster);
  for (const auto& grpc : grpc_) {
    if (spec != nullptr && grpc->where().cluster == spec->control_plane) return &grpc->where();
  }
  return nullptr;
}

std::vector<std::string> ProxiedPods(const sim::World& world) {
  std::vector<std::string> out;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pilot::HasProxy(pod->pod()->body)) out.push_back(pod->name());
  }
  return out;
}

absl::StatusOr<nlohmann::ordered_json> BootstrapOf(const sim::World& world, std::string_view name,
                                                   const BootstrapOptions& options) {
  std::vector<scenario::PodName> all;
  for (const std::string& pod : ProxiedPods(world)) all.push_back(scenario::PodNameOf(*world.FindPod(pod)));
  const absl::StatusOr<std::string> found = scenario::FindOnePod("pod with a proxy", name, all, world);
  if (!found.ok()) return absl::NotFoundError(found.status().message());
  absl::StatusOr<pilot::ProxyBootstrap> proxy = pilot::ReadProxyBootstrap(world.FindPod(*found)->pod()->body);
  if (!proxy.ok()) return proxy.status();
  return MakeBootstrap(*proxy, options);
}

std::string ListenAddress(const std::string& base, size_t index) {
  const size_t colon = base.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(base.substr(colon + 1), &port) || port == 0) return base;
  return base.substr(0, colon + 1) + std::to_string(port + 100 * static_cast<int32_t>(index));
}

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace wavetank::serve
