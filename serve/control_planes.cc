#include "serve/control_planes.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/status.h"
#include "core/base/text/file_name.h"
#include "core/base/text/temporary_folder.h"
#include "core/istiod/istiod.h"
#include "core/settings/istiod_settings.h"
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
        "'{}': a real istiod authenticates no client in plaintext, so it listens on loopback only", options.listen));
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
    absl::StatusOr<std::string> folder = MakeTemporaryFolder("control-plane");
    if (!folder.ok()) return folder.status();
    options_.folder = *std::move(folder);
    own_folder_ = true;
  }
  fs::create_directories(options_.folder, error);
  options_.folder = fs::absolute(options_.folder).string();

  struct World {
    std::vector<sim::WorldCluster> clusters;
    absl::Status status;
  };
  const std::optional<World> world = loop_.Call([](sim::World& w) {
    return World{w.options().clusters, DefineIstioResources(w)};
  });
  if (!world) return absl::CancelledError("the loop has stopped");
  if (!world->status.ok()) return world->status;
  const std::vector<sim::WorldCluster>& clusters = world->clusters;
  if (absl::Status status = ServeApis(clusters); !status.ok()) return status;

  if (absl::Status status = ServeNames(clusters); !status.ok()) return status;

  for (const sim::WorldCluster& cluster : clusters) {
    if (!cluster.primary()) continue;
    std::optional<PilotDiscoveryOptions> its = loop_.Call([&](sim::World& w) {
      const std::vector<std::string> pods = Pods(w, cluster.name);
      return OptionsFor(w, cluster, pods.empty() ? "" : pods.front());
    });
    if (!its) return absl::CancelledError("the loop has stopped");
    its->listen = ListenAddress(options_.listen, istiods_.size());
    // By this thread, not the loop's: a child ends with the one that started it.
    absl::StatusOr<std::unique_ptr<PilotDiscovery>> istiod = PilotDiscovery::Start(*std::move(its));
    if (!istiod.ok()) return istiod.status();
    istiods_.push_back(*std::move(istiod));
  }
  if (absl::Status status = Await(); !status.ok()) return status;

  std::map<std::string, std::string> served_by;
  for (const sim::WorldCluster& cluster : clusters) served_by[cluster.name] = cluster.control_plane;
  ads_ = std::make_unique<AdsDial>(
      loop_, [this, served_by = std::move(served_by)](const std::string& cluster, const std::string& proxy) {
        const auto by = served_by.find(cluster);
        return by == served_by.end() ? "" : AddressFor(by->second, proxy);
      });
  loop_.Call([this](sim::World& w) {
    for (const sim::WorldCluster& cluster : w.options().clusters) {
      if (sim::IstiodProcess* istiod = w.IstiodOf(cluster.name)) istiod->istiod().LeaveStatusesToOthers();
    }
    w.MoveAds(ads_.get());
    return true;
  });
  return absl::OkStatus();
}

std::vector<std::string> ControlPlanes::Pods(sim::World& world, const std::string& cluster) {
  std::vector<std::string> out;
  for (const sim::IstiodProcess* istiod : world.Istiods()) {
    const std::string& name = istiod->istiod().options().name;
    if (absl::EndsWith(name, "." + cluster) && istiod->failure().ok()) out.push_back(name);
  }
  return out;
}

PilotDiscoveryOptions ControlPlanes::OptionsFor(sim::World& world, const sim::WorldCluster& cluster,
                                                const std::string& pod) {
  const std::vector<sim::WorldCluster>& clusters = world.options().clusters;
  const fakekube::ApiServer& api = world.cluster(cluster.name).api();
  PilotDiscoveryOptions o;
  o.program = options_.program;
  o.cluster = cluster.name;
  o.pod = pod;
  if (const auto dns = dns_.find(cluster.name); dns != dns_.end()) o.name_server = dns->second;
  o.kube_server = servers_.at({cluster.name, cluster.name});
  // The first of a cluster has its name.
  const std::string name =
      FileName(Of(cluster.name) == nullptr ? cluster.name : fmt::format("{}-{}", cluster.name, started_));
  ++started_;
  o.folder = (fs::path(options_.folder) / name).string();
  o.log = (fs::path(options_.folder) / (name + ".log")).string();
  for (const sim::WorldCluster& other : clusters)
    o.external = o.external || (!other.primary() && other.control_plane == cluster.name);
  // A file would win over the ConfigMap; in the world it is the other way round.
  if (api.Get("ConfigMap", {"istio-system", "istio"}) == nullptr) o.mesh_config = world.options().mesh_config;
  if (const kube::ObjectRef object =
          api.Get("Pod", {"istio-system", pod.substr(0, pod.size() - std::min(pod.size(), cluster.name.size() + 1))})) {
    if (auto settings = pilot::ReadContainerSettings(object->body, "discovery", nullptr); settings.ok())
      o.said = std::move(settings->variables);
  }
  const sim::Timing& t = world.timing();
  // What the world was told expressly holds; else what the pod says (sim/world_site.cc, SettingsOf).
  const auto timed = [&](const char* variable, const char* quantity, std::string value) {
    if (world.options().timing.contains(quantity) || !o.said.contains(variable))
      o.environment[variable] = std::move(value);
  };
  timed("PILOT_DEBOUNCE_AFTER", "istiod.debounce_after", GoDuration(t.debounce_after));
  timed("PILOT_DEBOUNCE_MAX", "istiod.debounce_max", GoDuration(t.debounce_max));
  timed("PILOT_PUSH_THROTTLE", "istiod.push_throttle", std::to_string(t.push_throttle));
  timed("PILOT_MAX_REQUESTS_PER_SECOND", "istiod.connections_per_second", std::to_string(t.connections_per_second));
  for (const auto& [variable, value] : options_.environment) o.environment[variable] = value;
  return o;
}

void ControlPlanes::Follow(Assign assign) {
  assign_ = std::move(assign);
  if (!std::exchange(follows_, true)) LookAgain();
}

void ControlPlanes::LookAgain() {
  constexpr Duration kLook = 100ms;
  loop_.PostAfter(kLook, [this, alive = std::weak_ptr<int>(alive_)](sim::World& world) {
    if (alive.expired() || stopped_) return;
    Look(world);
    LookAgain();
  });
}

void ControlPlanes::Look(sim::World& world) {
  // Its streams end with it, and it has nobody to say farewell to.
  constexpr Duration kPatience = 200ms;
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_) {
    if (!begin_.contains(istiod->options().pod)) continue;
    const absl::StatusOr<bool> ready = istiod->Ready();
    if (!ready.ok()) failure_.Update(ready.status());
    if (ready.ok() && *ready) begin_.erase(istiod->options().pod);
  }
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    if (!cluster.primary()) continue;
    const std::vector<std::string> pods = Pods(world, cluster.name);
    bool beginning = false;
    for (const std::string& pod : pods) {
      const bool there = std::any_of(istiods_.begin(), istiods_.end(),
                                     [&](const auto& istiod) { return istiod->options().pod == pod; });
      if (!there) {
        auto istiod = PilotDiscovery::Start(OptionsFor(world, cluster, pod));
        if (!istiod.ok()) return failure_.Update(istiod.status());
        istiods_.push_back(*std::move(istiod));
        begin_.insert(pod);
      }
      beginning |= begin_.contains(pod);
    }
    if (beginning) continue;
    std::erase_if(istiods_, [&](const std::unique_ptr<PilotDiscovery>& istiod) {
      if (istiod->options().cluster != cluster.name) return false;
      if (std::find(pods.begin(), pods.end(), istiod->options().pod) != pods.end()) return false;
      begin_.erase(istiod->options().pod);
      istiod->Stop(kPatience);
      return true;
    });
  }
}

bool ControlPlanes::Beginning() const { return !begin_.empty(); }

std::string ControlPlanes::AddressFor(const std::string& control_plane, const std::string& proxy) const {
  const std::string wanted = assign_ ? assign_(proxy) : "";
  const PilotDiscovery* any = nullptr;
  for (const std::unique_ptr<PilotDiscovery>& istiod : istiods_) {
    if (istiod->options().cluster != control_plane) continue;
    const bool serves = !begin_.contains(istiod->options().pod);
    if (istiod->options().pod == wanted) return serves ? istiod->address() : "";
    if (serves && any == nullptr) any = istiod.get();
  }
  return any == nullptr ? "" : any->address();
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

absl::Status ControlPlanes::ServeNames(const std::vector<sim::WorldCluster>& clusters) {
  if (options_.dns.empty()) return absl::OkStatus();
  const size_t dot = options_.dns.rfind('.');
  int last = 0;
  if (dot == std::string::npos || !absl::SimpleAtoi(options_.dns.substr(dot + 1), &last))
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no IPv4 address of loopback; write 127.0.0.53", options_.dns));
  for (const sim::WorldCluster& cluster : clusters) {
    if (!cluster.primary()) continue;
    const std::string address = fmt::format("{}.{}", options_.dns.substr(0, dot), last++);
    absl::StatusOr<std::unique_ptr<NameServer>> server = NameServer::Start(loop_, cluster.name, address);
    if (!server.ok()) return server.status();
    name_servers_.push_back(*std::move(server));
    dns_[cluster.name] = address;
  }
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
  if (!failure_.ok()) return failure_;
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
  name_servers_.clear();
  if (apis_ != nullptr) apis_->Stop();
  std::error_code ignored;
  if (own_folder_ && !keep_) fs::remove_all(options_.folder, ignored);
}

}  // namespace wavetank::serve
