#include "serve/grpc/status_answer.h"

#include <optional>
#include <utility>

#include "core/debug/status.h"
#include "core/istiod/bootstrap_answer.h"
#include "core/xds/discovery_server.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fmt/format.h"
#include "sim/istiod_process.h"

namespace wavetank::serve {
namespace {

// The identity that the token of a ServiceAccount of any cluster gives; empty: none.
std::string IdentityOf(const sim::World& world, const TransportPeer& peer) {
  if (!peer.tls || peer.bearer_token.empty()) return {};
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const auto claims = world.tokens(cluster.name)->Verify(peer.bearer_token, {"istio-ca"}, world.Now());
    if (!claims.ok()) continue;
    return fmt::format("spiffe://cluster.local/ns/{}/sa/{}", claims->ns, claims->service_account);
  }
  return {};
}

envoy::service::discovery::v3::DiscoveryResponse ResponseOf(const sim::World& world, const pilot::Istiod& istiod,
                                                            std::string_view type_url,
                                                            std::vector<debug::StatusResource> resources) {
  envoy::service::discovery::v3::DiscoveryResponse response;
  for (debug::StatusResource& resource : resources) {
    google::protobuf::Any& any = *response.add_resources();
    any.set_type_url(std::move(resource.type_url));
    any.set_value(std::move(resource.bytes));
  }
  response.set_type_url(std::string(type_url));
  // istioctl waits for a version that it has not seen: any.
  const pilot::PushContextRef& push = istiod.discovery().last_push_context();
  response.set_version_info(push == nullptr ? "" : push->version());
  response.set_nonce(fmt::format("{}{}", kStatusNonce, world.Now().time_since_epoch().count()));
  response.mutable_control_plane()->set_identifier(debug::ControlPlaneIdentifier(istiod));
  return response;
}

}  // namespace

absl::StatusOr<envoy::service::discovery::v3::DiscoveryResponse> StatusOfIstiod(const sim::World& world,
                                                                                std::string_view cluster,
                                                                                std::string_view type_url,
                                                                                const std::vector<std::string>& names,
                                                                                std::string_view identity) {
  const sim::IstiodProcess* const process = world.IstiodOf(cluster);
  if (process == nullptr) return absl::UnavailableError("no istiod runs in this cluster");
  absl::StatusOr<std::vector<debug::StatusResource>> resources =
      debug::StatusResources(process->istiod(), type_url, names, identity);
  if (!resources.ok()) return resources.status();
  return ResponseOf(world, process->istiod(), type_url, *std::move(resources));
}

absl::StatusOr<std::string> AnswerStatus(const sim::World& world, const StatusQuestion& question) {
  const auto response =
      StatusOfIstiod(world, question.cluster, question.type_url, question.names, IdentityOf(world, question.peer));
  if (!response.ok()) return response.status();
  return response->SerializeAsString();
}

absl::StatusOr<std::string> AnswerBootstrap(const sim::World& world, std::string_view cluster,
                                            const pilot::Node& node) {
  const sim::IstiodProcess* const process = world.IstiodOf(cluster);
  if (process == nullptr || !process->istiod().Ready())
    return absl::UnavailableError("no istiod is ready in this cluster");
  const pilot::Istiod& istiod = process->istiod();
  const pilot::PushContextRef& push = istiod.discovery().last_push_context();
  if (push == nullptr) return absl::UnavailableError("istiod has no configuration yet");
  absl::StatusOr<std::string> bootstrap = pilot::BootstrapFor(*push, istiod.options().profile, node);
  if (!bootstrap.ok()) return bootstrap.status();
  const std::string type_url(pilot::kBootstrapTypeUrl);
  return ResponseOf(world, istiod, type_url, {{type_url, *std::move(bootstrap)}}).SerializeAsString();
}

// istiod: pushStatusEvent; such responses have neither version nor nonce.
Subscription FollowStatus(sim::World& world, const StatusQuestion& question,
                          std::function<void(const std::string& response)> tell) {
  sim::IstiodProcess* const process = world.IstiodOf(question.cluster);
  if (process == nullptr || !debug::IsEventType(question.type_url)) return {};
  return process->istiod().discovery().on_connection_event.Add(
      [type_url = question.type_url, tell = std::move(tell)](const pilot::ConnectionEvent& event) {
        std::optional<debug::StatusResource> resource = debug::EventResource(type_url, event);
        if (!resource) return;
        envoy::service::discovery::v3::DiscoveryResponse response;
        google::protobuf::Any& any = *response.add_resources();
        any.set_type_url(std::move(resource->type_url));
        any.set_value(std::move(resource->bytes));
        response.set_type_url(type_url);
        tell(response.SerializeAsString());
      });
}

}  // namespace wavetank::serve
