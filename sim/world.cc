#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "core/profile/releases.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/world_site.h"

namespace wavetank::sim {

std::string ApiServerUrl(std::string_view cluster) {
  return fmt::format("https://{}.kubernetes.example:6443", cluster);
}

namespace {

class CostsOfTiming final : public CostModel {
 public:
  explicit CostsOfTiming(const Timing& timing) : timing_(timing) {}
  Duration Cost(const Work& work) const override { return timing_.Cost(work); }

 private:
  const Timing& timing_;
};

}  // namespace

World::World(const WorldOptions& options) : options_(options), kernel_(options.seed) {}

void World::CollectAccessLogs(std::function<void(const PodProcess& pod, const envoysim::AccessLogLine& line)> tell) {
  if (tell == nullptr) return plane_->CollectAccessLogs(nullptr);
  // No other Envoys stand on a world's plane but its pods'.
  plane_->CollectAccessLogs([tell = std::move(tell)](envoysim::EnvoyContext& by, const envoysim::AccessLogLine& line) {
    tell(static_cast<const PodProcess&>(by), line);
  });
}

absl::StatusOr<std::unique_ptr<World>> World::Create(const WorldOptions& options) {
  std::unique_ptr<World> world(new World(options));
  world->kernel_.RunUntil(options.start);
  for (const auto& [name, value] : options.timing) {
    if (absl::Status status = world->timing_.Set(name, value); !status.ok()) return status;
  }
  absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(options.profile);
  if (!profile.ok()) return profile.status();
  world->profile_ = *profile;
  world->commons_.proxy_version = profile->istio;
  world->costs_ = std::make_unique<CostsOfTiming>(world->timing_);
  world->host_ = &world->kernel_.NewHost("world", 0, nullptr);
  const Timing& t = world->timing_;
  const LineQuality inside{t.line_inside, {}, 0, false}, between{t.line_between, {}, 0, false};
  for (const LineQuality& quality : {inside, between}) {
    if (absl::Status status = CheckQuality(quality); !status.ok()) return status;
  }
  world->links_ = std::make_unique<Links>(options.seed, inside, between);
  world->network_ = std::make_unique<MeshNetwork>(*world->links_);
  absl::StatusOr<Underlay> underlay = Underlay::Create(options.Physical());
  if (!underlay.ok()) return underlay.status();
  world->network_->SetUnderlay(*std::move(underlay));
  envoysim::DataPlane::Options plane;
  // What runs a stock Envoy runs one of today.
  if (!profile->Has(pilot::Change::kUpstreamEnvoy))
    plane.release.minor = static_cast<uint32_t>(pilot::MinorOf(profile->envoy));
  plane.seed = options.seed;
  plane.trace_requests = plane.trace_connections = options.trace_requests;
  world->plane_ = std::make_unique<envoysim::DataPlane>(*world->host_, *world->network_, plane);
  world->network_->on_address_gone = [w = world.get()](const IpAddress& ip) { w->plane_->fabric().ResetDialled(ip); };
  world->channels_ = std::make_unique<Channels>(*world->host_, world->plane_->fabric(), world->plane_->tls(),
                                                *world->network_, *world->links_);
  world->issuers_ = std::make_unique<TokenIssuers>(options.seed);
  Commons& commons = world->commons_;
  commons.seed = options.seed;
  commons.host = world->host_;
  commons.links = world->links_.get();
  commons.network = world->network_.get();
  commons.plane = world->plane_.get();
  commons.channels = world->channels_.get();
  world->outside_ = std::make_unique<OutsideClients>(
      *world->host_, [w = world.get()](std::string_view cluster, const kube::TokenClaims& claims) {
        const kube::TokenAuthority* authority = w->tokens(cluster);
        if (authority == nullptr) {
          return absl::StatusOr<std::string>(
              absl::NotFoundError(fmt::format("no cluster of this world is named '{}'", cluster)));
        }
        return absl::StatusOr<std::string>(authority->Issue(claims));
      });
  commons.xds_retry_base = t.xds_retry_base;
  commons.xds_retry_max = t.xds_retry_max;
  commons.delta_for_all = options.delta_xds;
  commons.profile = world->profile_;
  world->kernel_.AddObserver([w = world.get()](const TraceEvent& event) {
    if (event.record.kind < TraceKind::kRequest) w->last_control_ = event.time;
    if (event.record.kind == TraceKind::kClusterRejected) {
      w->rejected_[w->kernel_.names().Text(event.record.subject)] =
          fmt::format("remote Secret {}: {}", w->kernel_.names().Text(event.record.object), event.record.detail);
    } else if (event.record.kind == TraceKind::kClusterAdded || event.record.kind == TraceKind::kClusterRemoved) {
      w->rejected_.erase(w->kernel_.names().Text(event.record.object));
    }
  });
  for (const WorldCluster& cluster : options.clusters) {
    world->sites_.push_back(std::make_unique<Site>(*world, cluster, world->links_->AddSite(cluster.name)));
  }
  for (const WorldCluster& cluster : options.clusters) {
    const Site* control_plane = world->FindSite(cluster.control_plane);
    if (control_plane == nullptr || !control_plane->config().primary()) {
      return absl::InvalidArgumentError(
          fmt::format("cluster '{}' names '{}' as its control plane, which is no primary cluster of this world",
                      cluster.name, cluster.control_plane));
    }
  }
  for (const WorldLink& link : options.links) {
    Site *a = world->FindSite(link.a), *b = world->FindSite(link.b);
    if (a == nullptr || b == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("a link ends at '{}', which is no cluster of this world", a == nullptr ? link.a : link.b));
    }
    const LineQuality quality{link.latency, link.jitter, link.loss_ppm, false};
    if (absl::Status status = CheckQuality(quality); !status.ok()) return status;
    world->links_->Between(a->place().site, b->place().site).set_quality(quality);
  }
  return world;
}

World::~World() {
  traffic_.clear();
  for (const auto& site : sites_) site->StopPods();
  for (const auto& site : sites_) site->StopIstiods();
  sites_.clear();
}

World::Site* World::FindSite(std::string_view cluster) const {
  for (const auto& site : sites_) {
    if (site->config().name == cluster) return site.get();
  }
  return nullptr;
}

fakekube::http::RestApi* World::KubeApi(std::string_view cluster) {
  Site* site = FindSite(cluster);
  return site == nullptr ? nullptr : &site->rest();
}

bool World::Settled() const {
  return std::all_of(sites_.begin(), sites_.end(), [](const auto& site) { return site->Settled(); });
}

bool World::SettledButForPods() const {
  return std::all_of(sites_.begin(), sites_.end(), [](const auto& site) { return site->SettledButForPods(); });
}

std::vector<std::string> World::AtWork() const {
  std::vector<std::string> out;
  for (const auto& site : sites_) site->AtWork(&out);
  return out;
}

bool World::RunUntilSettled(Time deadline, Duration quiet) {
  // Looking every 50 ms keeps the end of a step independent of how often somebody asks.
  constexpr Duration kLook = 50ms;
  while (Now() < deadline) {
    if (Settled() && Now() - last_control_ >= quiet) return true;
    RunUntil(std::min(deadline, Now() + kLook));
  }
  return Settled() && Now() - last_control_ >= quiet;
}

fakekube::Cluster& World::cluster(std::string_view name) {
  Site* site = FindSite(name);
  return site == nullptr ? sites_.front()->cluster() : site->cluster();
}

const kube::TokenAuthority* World::tokens(std::string_view cluster) const {
  const Site* site = FindSite(cluster);
  return site == nullptr ? nullptr : &site->tokens();
}

IstiodProcess* World::IstiodOf(std::string_view cluster) const {
  const Site* site = FindSite(cluster);
  if (site != nullptr && !site->config().primary()) site = FindSite(site->config().control_plane);
  return site == nullptr ? nullptr : site->Serving();
}

void World::MoveAds(AdsElsewhere* elsewhere) {
  commons_.ads_elsewhere = elsewhere;
  for (const auto& site : sites_) {
    for (const auto& [name, pod] : site->pods()) pod->BreakAds(absl::UnavailableError("the control plane has moved"));
  }
}

std::vector<const PodProcess*> World::Pods() const {
  std::vector<const PodProcess*> out;
  for (const auto& site : sites_) {
    for (const auto& [name, pod] : site->pods()) out.push_back(pod.get());
  }
  return out;
}

std::vector<const PodProcess*> World::Pods(std::string_view cluster, std::string_view ns, std::string_view app) const {
  std::vector<const PodProcess*> out;
  for (const auto& site : sites_) {
    if (!cluster.empty() && site->config().name != cluster) continue;
    for (const auto& [name, pod] : site->pods()) {
      if ((ns.empty() || name.ns == ns) && (app.empty() || pod->app() == app)) out.push_back(pod.get());
    }
  }
  return out;
}

const PodProcess* World::FindPod(std::string_view name) const {
  for (const PodProcess* pod : Pods()) {
    if (pod->name() == name) return pod;
  }
  return nullptr;
}

std::vector<const IstiodProcess*> World::Istiods() const {
  std::vector<const IstiodProcess*> out;
  for (const auto& site : sites_) site->Istiods(&out);
  return out;
}

std::vector<std::string> World::Complaints() const {
  std::vector<std::string> out;
  for (const auto& site : sites_) site->Complain(&out);
  for (const auto& [cluster, why] : rejected_) out.push_back(why);
  return out;
}

std::vector<std::string> World::MendedLines() const {
  static const std::map<Mend, std::string_view> kDeeds = {
      {Mend::kIstiod, "istiod, its Service, webhook configuration and ConfigMaps were installed"},
      {Mend::kClusterId, "istiod's Deployment says no CLUSTER_ID (1.18.2: \"Kubernetes\"); it has the cluster's own"},
      {Mend::kExternal, "istiod serves a remote cluster; EXTERNAL_ISTIOD was taken as true"},
      {Mend::kControlPlane, "namespace istio-system was annotated topology.istio.io/controlPlaneClusters"},
      {Mend::kAddress, "Service istiod and the webhook lead to the primary's east-west gateway"},
      {Mend::kServers,
       "a kubeconfig names a server of no cluster of this world; the cluster of that name stands for it, "
       "and neither CA nor token is checked"},
      {Mend::kRbac, "no role is bound to the account of the remote Secret; it reads as if istioctl's were"},
      {Mend::kRoots, "Secret istio-system/cacerts holds an intermediate CA under a common root"},
      {Mend::kTokens, "a remote Secret for each other cluster was given to istiod"},
      {Mend::kNetwork, "namespace istio-system was labelled topology.istio.io/network, as its gateway is"}};
  std::vector<std::string> out;
  for (const auto& [what, clusters] : mended_) {
    out.push_back(fmt::format("mended {} ({}): {}", MendName(what), fmt::join(clusters, ", "), kDeeds.at(what)));
  }
  return out;
}

std::vector<std::string> World::Unready() const {
  std::vector<std::string> out;
  for (const auto& site : sites_) {
    for (const auto& [name, pod] : site->pods()) {
      if (std::string why = pod->Trouble(); !why.empty()) out.push_back(fmt::format("{}: {}", pod->name(), why));
    }
    for (const std::string& why : site->Refusals()) out.push_back(fmt::format("{}: {}", site->config().name, why));
  }
  return out;
}

std::string World::WhyLeftOut(const PodProcess& pod) const {
  const Site* const site = FindSite(pod.site().name);
  return site == nullptr ? "" : site->WhyLeftOut(pod);
}

std::vector<std::string> World::LeftOut() const {
  std::vector<std::string> out;
  for (const auto& site : sites_) {
    for (std::string& line : site->LeftOut()) out.push_back(std::move(line));
  }
  return out;
}

int64_t World::requests_under_way() const {
  int64_t total = 0;
  for (const auto& [id, source] : traffic_) total += source->pending();
  return total;
}

int64_t World::TrafficPending(std::string_view id) const {
  const auto it = traffic_.find(id);
  return it == traffic_.end() ? 0 : it->second->pending();
}

bool World::TrafficDone(std::string_view id) const {
  const auto it = traffic_.find(id);
  return it == traffic_.end() || it->second->Done();
}

}  // namespace wavetank::sim
