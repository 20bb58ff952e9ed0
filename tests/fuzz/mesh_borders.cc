#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/config/store/store.h"
#include "core/gen/cds/cds.h"
#include "core/gen/extensions/ecds.h"
#include "core/gen/lds/lds.h"
#include "core/gen/rds/rds.h"
#include "core/kube/yaml.h"
#include "core/validation/istio_object.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/filters/registry.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "istio/ca.pb.h"
#include "sim/inputs/kinds/outside.h"
#include "sim/world.h"
#include "tests/core/gen/gen_world.h"
#include "tests/fuzz/takers.h"

namespace wavetank::fuzz {
namespace {

// What the texts of this file must be: they are ours.
config::AnyConfigRef Config(std::string_view yaml) {
  auto body = kube::ParseYaml(yaml, "ours");
  WAVETANK_ASSERT(body.ok(), body.status().ToString());
  auto object = kube::Object::FromJson(*std::move(body));
  WAVETANK_ASSERT(object.ok(), object.status().ToString());
  auto config = config::ParseConfig(**object);
  WAVETANK_ASSERT(config.ok(), config.status().ToString());
  return *std::move(config);
}

constexpr char kGateway[] = R"(
apiVersion: networking.istio.io/v1alpha3
kind: Gateway
metadata: {name: gw, namespace: shop, uid: u, resourceVersion: "1", creationTimestamp: "2023-09-01T00:00:00Z"}
spec:
  selector: {istio: gw}
  servers:
  - {port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 15443, name: tls, protocol: TLS}, tls: {mode: AUTO_PASSTHROUGH}, hosts: ["*.local"]}
)";

template <class Message, class Take>
void EachOf(const pilot::GeneratedResources& generated, Take take) {
  for (const pilot::Resource& resource : generated.resources) {
    Message message;
    if (message.ParseFromString(std::string(*resource.bytes))) take(message);
  }
}

}  // namespace

void EnvoyFilterPatches(std::string_view bytes) {
  auto body = kube::ParseYaml(bytes, "fuzz.yaml");
  if (!body.ok()) return;
  if (body->is_object()) validation::Judge(*body);
  auto object = kube::Object::FromJson(*std::move(body));
  if (!object.ok()) return;
  auto parsed = config::ParseConfig(**object);
  if (!parsed.ok()) return;
  pilot::GenWorld world;
  world.AddService("web");
  world.AddService("db", "shop", {"tcp", 5432, pilot::Protocol::kTcp});
  world.configs.Put(Config(kGateway));
  world.configs.Put(*std::move(parsed));
  const pilot::PushContextRef push = world.Push();
  const envoysim::Extensions extensions(envoysim::ExtensionSet::kIstioProxy, {}, &envoysim::AllFilters());
  for (const auto type : {pilot::NodeType::kSidecarProxy, pilot::NodeType::kRouter}) {
    pilot::Proxy proxy = pilot::GenWorld::Connect(*push, "c1", type, {{"istio", "gw"}});
    proxy.metadata.istio_version = "1.18.2";
    const pilot::PushRequest request = pilot::GenWorld::Request(push);
    EachOf<envoy::config::cluster::v3::Cluster>(
        pilot::MakeCdsGenerator({})->Generate(proxy, {}, request),
        [&](const auto& cluster) { envoysim::CompileCluster(cluster, {}, extensions).status().IgnoreError(); });
    EachOf<envoy::config::listener::v3::Listener>(
        pilot::MakeLdsGenerator()->Generate(proxy, {}, request),
        [&](const auto& listener) { envoysim::CompileListener(listener, {}, extensions).status().IgnoreError(); });
    const pilot::WatchedResource routes{.type = pilot::XdsType::kRds,
                                        .resource_names = std::vector<std::string>{"80", "http.8080"}};
    EachOf<envoy::config::route::v3::RouteConfiguration>(
        pilot::MakeRdsGenerator({})->Generate(proxy, routes, request),
        [&](const auto& route) { envoysim::CompileRoutes(route, {}, extensions, false).status().IgnoreError(); });
    const pilot::WatchedResource named{.type = pilot::XdsType::kEcds,
                                       .resource_names = std::vector<std::string>{"a", "mine"}};
    pilot::MakeEcdsGenerator()->Generate(proxy, named, request);
  }
}

namespace {

class LastNonces final : public sim::OutsideClients::Listener {
 public:
  void OnResponse(uint64_t, std::shared_ptr<const pilot::DiscoveryResponse> r) override { nonces[r->type] = r->nonce; }
  void OnDeltaResponse(uint64_t, std::shared_ptr<const pilot::DeltaDiscoveryResponse> r) override {
    nonces[r->type] = r->nonce;
  }
  void OnClosed(uint64_t, const absl::Status&) override {}
  void OnCertificate(uint64_t, absl::StatusOr<std::vector<std::string>>) override {}

  std::map<pilot::XdsType, std::string> nonces;
};

// A cluster with an istiod and an application, at rest. Made anew from time to time, so that what clients leave behind
// stays little.
class Mesh {
 public:
  static Mesh& Fresh() {
    static std::unique_ptr<Mesh> mesh;
    if (mesh == nullptr || mesh->used_++ == 500) mesh = std::make_unique<Mesh>();
    return *mesh;
  }
  Mesh() {
    sim::WorldOptions options;
    sim::WorldCluster cluster;
    cluster.name = cluster.network = cluster.control_plane = "cluster1";
    cluster.pod_cidr = "10.1.0.0/16";
    cluster.service_cidr = "10.96.0.0/16";
    cluster.load_balancer_cidr = "172.30.1.0/24";
    cluster.nodes = {{"n1", "region1", "zone1"}};
    options.clusters = {cluster};
    auto world = sim::World::Create(options);
    WAVETANK_ASSERT(world.ok(), world.status().ToString());
    world_ = *std::move(world);
    Ours("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    Ours("install", {{"cluster", "cluster1"}});
    Settle();
    for (const char* file : {"sample", "helloworld-service", "helloworld-v1", "sleep"}) {
      const auto manifests =
          fakekube::LoadManifests(fmt::format("{}/scenarios/manifests/{}.yaml", WAVETANK_SOURCE_DIR, file));
      WAVETANK_ASSERT(manifests.ok(), manifests.status().ToString());
      for (const fakekube::Manifest& manifest : *manifests) {
        nlohmann::json object = manifest.object;
        if (object.at("kind") != "Namespace") object["metadata"]["namespace"] = "sample";
        Ours("apply", {{"cluster", "cluster1"}, {"object", std::move(object)}});
      }
    }
    Settle();
    world_->outside().set_listener(&nonces_);
  }
  ~Mesh() { world_->outside().set_listener(nullptr); }

  uint64_t NextClient() { return ++client_; }
  const std::string& LastNonce(pilot::XdsType type) { return nonces_.nonces[type]; }
  bool Do(const sim::Input& input) { return world_->Do(input).ok(); }
  void RunFor(Duration time) { world_->RunUntil(world_->Now() + time); }

 private:
  void Ours(const std::string& kind, const nlohmann::json& body) {
    const auto input = sim::Input::Parse(kind, body);
    WAVETANK_ASSERT(input.ok(), input.status().ToString());
    const absl::Status done = world_->Do(*input);
    WAVETANK_ASSERT(done.ok(), done.ToString());
  }
  void Settle() { WAVETANK_ASSERT(world_->RunUntilSettled(world_->Now() + 2min)); }

  std::unique_ptr<sim::World> world_;
  LastNonces nonces_;
  uint64_t client_ = 0;
  int used_ = 0;
};

// A pod of the mesh, as its connection's certificate and token say.
sim::OutsidePeer Peer() {
  sim::OutsidePeer out;
  out.tls = true;
  out.token = sim::OutsidePeer::Token::kIssued;
  out.issuer = "cluster1";
  out.claims.ns = "sample";
  out.claims.service_account = "sleep";
  out.claims.audiences = {"istio-ca"};
  out.claims.expires = Time{} + 24h * 365;
  out.cluster_id = "cluster1";
  return out;
}

// The first message, which is taken away.
std::string_view TakeFrame(std::string_view* bytes) {
  constexpr size_t kHead = 5;
  uint32_t size = 0;
  for (size_t i = 1; i < std::min(kHead, bytes->size()); ++i)
    size = size << 8 | static_cast<unsigned char>((*bytes)[i]);
  bytes->remove_prefix(std::min(kHead, bytes->size()));
  const std::string_view out = bytes->substr(0, size);
  bytes->remove_prefix(out.size());
  return out;
}

template <class Message, class Kind>
void Stream(Mesh& mesh, std::string_view bytes) {
  const uint64_t client = mesh.NextClient();
  if (!mesh.Do(sim::inputs::XdsOpen{client, "cluster1", "ipv4:10.9.9.9:4711", Peer()})) return;
  while (!bytes.empty()) {
    const std::string_view frame = TakeFrame(&bytes);
    Message message;
    if (!message.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) break;
    auto request = pilot::FromProto(message);
    if (!request.ok()) break;
    if (request->response_nonce == "last") request->response_nonce = mesh.LastNonce(request->type);
    if (!mesh.Do(Kind{client, *std::move(request)})) break;
    mesh.RunFor(100ms);
  }
  mesh.Do(sim::inputs::XdsClose{client});
  mesh.RunFor(10ms);
}

}  // namespace

void GrpcMessages(std::string_view bytes) {
  if (bytes.empty()) return;
  Mesh& mesh = Mesh::Fresh();
  const char method = bytes.front();
  bytes.remove_prefix(1);
  if (method == 'S') {
    Stream<envoy::service::discovery::v3::DiscoveryRequest, sim::inputs::XdsRequest>(mesh, bytes);
  } else if (method == 'D') {
    Stream<envoy::service::discovery::v3::DeltaDiscoveryRequest, sim::inputs::XdsDeltaRequest>(mesh, bytes);
  } else if (method == 'C') {
    const std::string_view frame = TakeFrame(&bytes);
    istio::v1::auth::IstioCertificateRequest message;
    if (!message.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) return;
    sim::inputs::CertificateRequest request{mesh.NextClient(), "cluster1", Peer(), {}};
    request.request.csr = message.csr();
    request.request.validity_seconds = message.validity_duration();
    const auto& metadata = message.metadata().fields();
    if (const auto it = metadata.find("ImpersonatedIdentity"); it != metadata.end())
      request.request.impersonated_identity = it->second.string_value();
    if (const auto it = metadata.find("CertSigner"); it != metadata.end())
      request.request.cert_signer = it->second.string_value();
    mesh.Do(request);
    mesh.RunFor(100ms);
  }
}

}  // namespace wavetank::fuzz
