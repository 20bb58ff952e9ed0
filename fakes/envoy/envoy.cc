#include "fakes/envoy/envoy.h"

#include <utility>

#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/process/secrets.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/xds/xds_state.h"

namespace wavetank::envoysim {
namespace {

// The binary's own version, as an Envoy tells it in its node; the data plane's if it tells none.
EnvoyRelease ReleaseOf(EnvoyContext& context, EnvoyRelease otherwise) {
  envoy::config::core::v3::Node node;
  context.FillNode(&node);
  const uint32_t minor = node.user_agent_build_version().version().minor_number();
  return minor == 0 ? otherwise : EnvoyRelease{minor};
}

}  // namespace

// The parts of an Envoy, and its life.
class Envoy::Impl {
 public:
  Impl(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options)
      : process(context, plane.fabric(), plane.options().latencies, options, plane.options().seed,
                ReleaseOf(context, plane.options().release)),
        secrets(process, [this] { xds.OnSecret(); }),
        view(plane, process, secrets),
        xds(process, secrets, view),
        outbound(view, options.outbound_port),
        inbound(view, options.inbound_port),
        direct(view, 0) {}
  ~Impl() { Stop(StopKind::kKill); }

  void Start() {
    if (process.running()) return;
    process.Begin();
    secrets.Begin();
    view.Begin();
    xds.Begin([this] { process.context().OnLive(); });
    start_timer_ = process.host().RunAfter(process.Draw(process.latencies().start), [this] {
      start_timer_ = kNoTimer;
      xds.Start();
    });
  }

  void Stop(StopKind kind) {
    if (!process.running()) return;
    process.host().Cancel(std::exchange(start_timer_, kNoTimer));
    xds.End(kind);
    view.End(kind);
    secrets.End();
    process.End();
  }

  Process process;
  Secrets secrets;
  DataPlaneView view;
  XdsState xds;
  ListenSocket outbound, inbound, direct;

 private:
  TimerId start_timer_ = kNoTimer;
};

Envoy::Envoy(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options)
    : impl_(std::make_unique<Impl>(plane, context, options)) {}
Envoy::~Envoy() = default;
void Envoy::Start() { impl_->Start(); }
void Envoy::Stop(StopKind kind) { impl_->Stop(kind); }
void Envoy::Drain() { impl_->process.Drain(); }
void Envoy::DrawAnew(uint64_t as) { impl_->view.DrawAnew(as); }
bool Envoy::running() const { return impl_->process.running(); }
bool Envoy::live() const { return impl_->process.live(); }
bool Envoy::draining() const { return impl_->process.draining(); }
bool Envoy::ads_connected() const { return impl_->xds.connected(); }
Acceptor& Envoy::outbound() { return impl_->outbound; }
Acceptor& Envoy::inbound() { return impl_->inbound; }
Acceptor& Envoy::direct() { return impl_->direct; }
std::string_view Envoy::accepted_version(XdsType type) const { return impl_->xds.accepted_version(type); }
std::vector<EndpointStatus> Envoy::Endpoints() const { return impl_->view.Endpoints(); }
std::vector<EndpointsInUse> Envoy::EndpointTables() const { return impl_->view.EndpointTables(); }
std::vector<std::string> Envoy::ClusterNames() const { return impl_->view.ClusterNames(); }
std::vector<std::string> Envoy::ListenerNames() const { return impl_->view.ListenerNames(); }
std::vector<std::string> Envoy::RouteNames() const { return impl_->view.RouteNames(); }
uint64_t Envoy::counter(std::string_view name) const { return impl_->view.counter(name); }
std::map<std::string, uint64_t> Envoy::AllStats() const {
  std::map<std::string, uint64_t> out = impl_->view.AllStats();
  out["server.live"] = live() ? 1 : 0;
  // LIVE; INITIALIZING, once it has clusters; PRE_INITIALIZING.
  out["server.state"] = live() ? 0 : accepted_version(XdsType::kCds).empty() ? 2 : 3;
  return out;
}

}  // namespace wavetank::envoysim
