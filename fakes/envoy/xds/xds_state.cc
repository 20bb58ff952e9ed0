#include "fakes/envoy/xds/xds_state.h"

namespace wavetank::envoysim {

XdsState::XdsState(Process& process, Secrets& secrets, DataPlaneView& view)
    : process_(process),
      secrets_(secrets),
      view_(view),
      host_(process.host()),
      configs_(view.plane().configs().Of(process.release())) {}

void XdsState::Begin(std::function<void()> on_live) {
  on_live_ = std::move(on_live);
  life_ = std::make_shared<Life>(Life{this});
  clusters_ = configs_.Intern<ClusterConfig>({});
  endpoints_ = configs_.Intern<EndpointTable>({});
  listeners_ = configs_.Intern<ListenerConfig>({});
}

void XdsState::Start() {
  const EnvoyOptions& options = process_.options();
  LoadBootstrap();
  if (!options.has_ads) {
    cds_received_ = lds_received_ = lds_subscribed_ = true;
    CheckLive();
    return;
  }
  AdsClient::Options ads;
  ads.protocol = options.protocol;
  ads.backoff_base = options.xds_retry_base;
  ads.backoff_max = options.xds_retry_max;
  ads_ = std::make_unique<AdsClient>(host_, process_.context().ads(), *this, ads, process_.NewStream("ads"));
  ads_->Start();
  ads_->Subscribe(XdsType::kCds, nullptr);
  if (options.initial_fetch_timeout > Duration::zero()) {
    init_timer_ = host_.RunAfter(options.initial_fetch_timeout, [this] {
      init_timer_ = kNoTimer;
      cds_received_ = true;
      ClustersMayBeWarm();
    });
  }
}

void XdsState::End(StopKind kind) {
  for (const WarmingCluster& w : warming_clusters_) {
    if (w.runtime != nullptr) w.runtime->Abort(kind);
  }
  lds_subscribed_ = lds_received_ = cds_received_ = eds_waits_ = false;
  life_.reset();
  for (TimerId* timer : {&main_thread_timer_, &init_timer_, &warming_timer_}) {
    host_.Cancel(*timer);
    *timer = kNoTimer;
  }
  for (WarmingListener& w : warming_listeners_) Forget(w);
  for (DrainingListener& d : draining_listeners_) host_.Cancel(d.timer);
  for (const auto& d : dns_) CancelDns(*d);
  ads_.reset();
  queue_.clear();
  processing_ = false;
  warming_clusters_.clear();
  warming_listeners_.clear();
  extensions_.clear();
  asked_extensions_.clear();
  latest_extensions_.clear();
  draining_listeners_.clear();
  route_subscriptions_.clear();
  dns_.clear();
  pending_cds_ = pending_lds_ = Pending{};
  clusters_.reset();
  endpoints_.reset();
  listeners_.reset();
}

void XdsState::OnSecret() {
  PromoteClusters();
  ClustersMayBeWarm();
  PromoteListeners();
  CheckLive();
}

// Requests for secrets wait while clusters or listeners are taken in, and go out after those for endpoints and routes.
// Envoy: cds_api_helper.cc, lds_api.cc: the order of the types that are paused is that in which they go on.
void XdsState::AskForSecrets() {
  if (ResourceNames names = secrets_.NewOverAds()) ads_->Subscribe(XdsType::kSds, std::move(names));
}

void XdsState::SetActive(ActiveChanges changes) {
  for (const std::string& name : view_.SetActive(std::move(changes))) ForgetDns(name);
}

void XdsState::Adopt(ActiveSets active, const ActiveChanges& changes) {
  for (const std::string& name : view_.Adopt(std::move(active), changes)) ForgetDns(name);
}

void XdsState::LoadBootstrap() {
  if (process_.options().bootstrap == nullptr) return;
  ConfigStore& store = configs_;
  for (const std::string& bytes : process_.options().bootstrap->clusters) {
    const Decoded<ClusterConfig>& decoded = store.Cluster(bytes);
    if (decoded.value == nullptr) continue;
    WarmCluster(decoded.value);
  }
  PromoteClusters();
  AwaitEndpoints();
  for (const std::string& bytes : process_.options().bootstrap->listeners) {
    const Decoded<ListenerConfig>& decoded = store.Listener(bytes);
    if (decoded.value != nullptr) WarmListener(decoded.value);
  }
  PromoteListeners();
}

}  // namespace wavetank::envoysim
