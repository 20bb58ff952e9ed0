#include "serve/control_planes.h"

#include <stdlib.h>

#include <filesystem>
#include <thread>
#include <utility>

#include "core/base/status.h"
#include "fakes/kube/http/message/message.h"
#include "fmt/format.h"
#include "serve/istio_resources.h"
#include "serve/kube/kube_frontend.h"
#include "serve/remote_secret_view.h"
#include "serve/server.h"
#include "sim/inputs/kinds/kube_request.h"

namespace wavetank::serve {
namespace {

namespace fs = std::filesystem;
namespace http = fakekube::http;

constexpr Duration kReadyLook = 20ms;

// As time.ParseDuration of Go reads it.
std::string GoDuration(Duration duration) { return fmt::format("{}ns", duration.count()); }

}  // namespace

absl::StatusOr<std::unique_ptr<ControlPlanes>> ControlPlanes::Start(Loop& loop, ControlPlaneOptions options) {
  if (absl::Status status = CheckProgram(options.program); !status.ok()) return status;
  if (!IsLoopback(options.listen)) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': a real istiod asks nobody in plaintext who he is, so it listens on loopback only", options.listen));
  }
  std::unique_ptr<ControlPlanes> planes(new ControlPlanes(loop, std::move(options)));
  if (absl::Status status = planes->Begin(); !status.ok()) {
    planes->keep_ = !planes->istiods_.empty();
    return status;
  }
  return planes;
}

ControlPlanes::~ControlPlanes() { Stop(); }

absl::Status ControlPlanes::Begin() {
  std::error_code error;
  if (options_.folder.empty()) {
    std::string name = (fs::temp_directory_path(error) / "wavetank-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return absl::UnavailableError("no temporary folder can be made");
    options_.folder = name;
    own_folder_ = true;
  }
  fs::create_directories(options_.folder, error);
  options_.folder = fs::absolute(options_.folder).string();

  struct World {
    sim::WorldOptions options;
    sim::Timing timing;
    std::map<std::string, bool> configured;  // cluster -> it has a ConfigMap `istio`
    absl::Status status;
  };
  const std::optional<World> world = loop_.Call([](sim::World& w) {
    World out{w.options(), w.timing(), {}, DefineIstioResources(w)};
    for (const sim::WorldCluster& cluster : out.options.clusters) {
      out.configured[cluster.name] =
          w.cluster(cluster.name).api().Get("ConfigMap", {"istio-system", "istio"}) != nullptr;
    }
    return out;
  });
  if (!world) return absl::CancelledError("the loop has stopped");
  if (!world->status.ok()) return world->status;
  const std::vector<sim::WorldCluster>& clusters = world->options.clusters;
  if (absl::Status status = ServeApis(clusters); !status.ok()) return status;

  for (const sim::WorldCluster& cluster : clusters) {
    if (!cluster.primary()) continue;
    PilotDiscoveryOptions o;
    o.program = options_.program;
    o.cluster = cluster.name;
    o.kube_server = servers_.at({cluster.name, cluster.name});
    o.listen = ListenAddress(options_.listen, istiods_.size());
    o.folder = (fs::path(options_.folder) / cluster.name).string();
    o.log = (fs::path(options_.folder) / (cluster.name + ".log")).string();
    for (const sim::WorldCluster& other : clusters)
      o.external = o.external || (!other.primary() && other.control_plane == cluster.name);
    // A file would win over the ConfigMap; in the world it is the other way round.
    if (!world->configured.at(cluster.name)) o.mesh_config = world->options.mesh_config;
    const sim::Timing& t = world->timing;
    o.environment = {{"PILOT_DEBOUNCE_AFTER", GoDuration(t.debounce_after)},
                     {"PILOT_DEBOUNCE_MAX", GoDuration(t.debounce_max)},
                     {"PILOT_PUSH_THROTTLE", std::to_string(t.push_throttle)},
                     {"PILOT_MAX_REQUESTS_PER_SECOND", std::to_string(t.connections_per_second)}};
    for (const auto& [name, value] : options_.environment) o.environment[name] = value;
    absl::StatusOr<std::unique_ptr<PilotDiscovery>> istiod = PilotDiscovery::Start(std::move(o));
    if (!istiod.ok()) return istiod.status();
    istiods_.push_back(*std::move(istiod));
  }
  if (absl::Status status = Await(); !status.ok()) return status;

  std::map<std::string, std::string> addresses;
  for (const sim::WorldCluster& cluster : clusters) addresses[cluster.name] = Of(cluster.control_plane)->address();
  ads_ = std::make_unique<AdsDial>(loop_, std::move(addresses));
  loop_.Call([this](sim::World& w) {
    w.MoveAds(ads_.get());
    return true;
  });
  return absl::OkStatus();
}

absl::Status ControlPlanes::ServeApis(const std::vector<sim::WorldCluster>& clusters) {
  apis_ = std::make_unique<http::Server>(http::ServerOptions(), RunOn(loop_));
  // Each istiod has ports of its own, since its remote Secrets name them.
  for (const sim::WorldCluster& istiod : clusters) {
    if (!istiod.primary()) continue;
    auto view = std::make_shared<std::shared_ptr<const http::ObjectView>>();
    std::map<std::string, std::string> urls;
    for (const sim::WorldCluster& cluster : clusters) {
      const absl::StatusOr<uint16_t> port =
          apis_->Listen("127.0.0.1", 0, [&loop = loop_, cluster = cluster.name, view](const http::Request& request) {
            http::Request seen = request;
            seen.view = *view;
            return sim::AskKube(loop.world(), cluster, seen, /*of_real_istiod=*/true);
          });
      if (!port.ok()) return port.status();
      urls[cluster.name] = servers_[{istiod.name, cluster.name}] = fmt::format("http://127.0.0.1:{}", *port);
    }
    *view = MakeRemoteSecretView(istiod.name, std::move(urls));
  }
  apis_->Start();
  return absl::OkStatus();
}

void ControlPlanes::Pass(Duration real) {
  if (loop_.OnLoopThread()) {
    loop_.RunUntil(loop_.world().Now() + real);
  } else {
    std::this_thread::sleep_for(real);
  }
}

absl::Status ControlPlanes::Await() {
  const auto start = std::chrono::steady_clock::now();
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_) {
    while (true) {
      const absl::StatusOr<bool> ready = istiod->Ready();
      if (!ready.ok()) return ready.status();
      if (*ready) break;
      if (std::chrono::steady_clock::now() - start > options_.ready_limit) {
        return absl::DeadlineExceededError(fmt::format("the istiod of {} is not ready after {} s; its log is {}\n{}",
                                                       istiod->options().cluster, options_.ready_limit / 1s,
                                                       istiod->options().log, istiod->LastWords()));
      }
      Pass(kReadyLook);
    }
  }
  return absl::OkStatus();
}

absl::Status ControlPlanes::Check() {
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_) {
    if (absl::Status status = istiod->Check(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<ControlPlanes::Where> ControlPlanes::where() const {
  std::vector<Where> out;
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_)
    out.push_back({istiod->options().cluster, istiod->address(), istiod->options().log, istiod->pid()});
  return out;
}

const PilotDiscovery* ControlPlanes::Of(const std::string& cluster) const {
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_) {
    if (istiod->options().cluster == cluster) return istiod.get();
  }
  return nullptr;
}

void ControlPlanes::Stop() {
  if (std::exchange(stopped_, true)) return;
  // A driven loop cannot wait for others while it is waited for: it ends here.
  if (loop_.OnLoopThread()) loop_.Stop();
  const auto leave = [](sim::World& w) {
    w.commons().ads_elsewhere = nullptr;
    return true;
  };
  if (!loop_.Call(leave)) leave(loop_.world());
  ads_ = nullptr;
  istiods_.clear();
  if (apis_ != nullptr) apis_->Stop();
  std::error_code ignored;
  if (own_folder_ && !keep_) fs::remove_all(options_.folder, ignored);
}

}  // namespace wavetank::serve
