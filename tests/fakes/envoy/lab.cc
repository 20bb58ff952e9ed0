#include "tests/fakes/envoy/lab.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "envoy/extensions/filters/http/router/v3/router.pb.h"
#include "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.pb.h"
#include "envoy/extensions/filters/listener/original_dst/v3/original_dst.pb.h"
#include "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/sni_cluster/v3/sni_cluster.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.pb.h"
#include "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "istio/alpn.pb.h"

namespace wavetank::envoysim::lab {
namespace {

template <typename Proto>
std::string FromJson(const std::string& json) {
  Proto proto;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &proto);
  if (!status.ok()) ADD_FAILURE() << status.ToString() << "\n" << json;
  return proto.SerializeAsString();
}

SocketAddress Address(std::string_view text) {
  const auto a = SocketAddress::Parse(text);
  EXPECT_TRUE(a.ok()) << text;
  return *a;
}

std::string JoinJson(const std::vector<std::string>& items) { return absl::StrJoin(items, ", "); }

std::string Quoted(const std::vector<std::string>& items) {
  std::vector<std::string> out;
  for (const std::string& i : items) out.push_back(fmt::format("\"{}\"", i));
  return JoinJson(out);
}

std::string SocketJson(std::string_view address) {
  const size_t colon = address.rfind(':');
  return fmt::format(R"({{"socket_address": {{"address": "{}", "port_value": {}}}}})", address.substr(0, colon),
                     address.substr(colon + 1));
}

}  // namespace

std::string Bytes(std::string_view type_url, std::string_view json) {
  if (type_url == "Cluster") return FromJson<envoy::config::cluster::v3::Cluster>(std::string(json));
  if (type_url == "Listener") return FromJson<envoy::config::listener::v3::Listener>(std::string(json));
  if (type_url == "RouteConfiguration") {
    return FromJson<envoy::config::route::v3::RouteConfiguration>(std::string(json));
  }
  if (type_url == "ClusterLoadAssignment") {
    return FromJson<envoy::config::endpoint::v3::ClusterLoadAssignment>(std::string(json));
  }
  ADD_FAILURE() << "no such type " << type_url;
  return {};
}

// --- network

WorkloadId LabNetwork::AddPod(const std::string& ip) {
  const IpAddress address = *IpAddress::Parse(ip);
  const auto known = ids_.find(address);
  if (known != ids_.end()) return known->second;
  const uint32_t id = static_cast<uint32_t>(ids_.size()) + 1;
  ids_[address] = WorkloadId{id};
  ips_[id] = address;
  pods_[address];
  paths_[address] = std::make_unique<LabPath>(1ms);
  return WorkloadId{id};
}

PodPorts& LabNetwork::pod(const std::string& ip) { return pods_.at(*IpAddress::Parse(ip)); }

Route LabNetwork::Resolve(const Origin& origin, const SocketAddress& dialled, uint64_t) {
  const IpAddress from = ips_.at(static_cast<uint32_t>(origin.workload));
  SocketAddress destination = dialled;
  Route route;
  route.info.workload = origin.workload;
  route.info.source = {origin.source.empty() ? from : origin.source, 40000};
  route.info.destination = destination;
  PodPorts& own = pods_.at(from);
  if (origin.who == Origin::Who::kApplication && own.redirect && own.envoy != nullptr) {
    route.outcome = Route::Outcome::kAccepting;
    route.acceptor = &own.envoy->outbound();
    route.info.acceptor = origin.workload;
    route.path = &local_;
    return route;
  }
  if (const auto it = nat.find(destination); it != nat.end()) destination = it->second;
  route.info.destination = destination;
  if (destination.ip == from || destination.ip.is_loopback()) {
    route.path = &local_;
    const auto app = own.apps.find(destination.port);
    route.outcome = app == own.apps.end() ? Route::Outcome::kRefused : Route::Outcome::kAccepting;
    if (app != own.apps.end()) route.acceptor = app->second;
    route.info.acceptor = origin.workload;
    return route;
  }
  const auto pod = pods_.find(destination.ip);
  if (pod == pods_.end() || blackholed[destination.ip]) return route;
  route.path = paths_.at(destination.ip).get();
  route.info.acceptor = ids_.at(destination.ip);
  route.outcome = Route::Outcome::kAccepting;
  if (pod->second.envoy != nullptr) {
    route.acceptor = pod->second.redirect ? &pod->second.envoy->inbound() : &pod->second.envoy->direct();
    return route;
  }
  const auto app = pod->second.apps.find(destination.port);
  if (app == pod->second.apps.end()) {
    route.outcome = Route::Outcome::kRefused;
  } else {
    route.acceptor = app->second;
  }
  return route;
}

// --- ADS

std::string AdsScript::Message::ToString() const {
  std::string out = fmt::format("{} v='{}' n='{}' [{}]", XdsTypeName(type), version, nonce, absl::StrJoin(names, " "));
  if (!unsubscribe.empty()) out += fmt::format(" -[{}]", absl::StrJoin(unsubscribe, " "));
  if (node) out += " node";
  if (error_code != 0) out += fmt::format(" error {}", error_code);
  return out;
}

class AdsScript::Stream final : public AdsStream {
 public:
  Stream(AdsScript& script, int id) : script_(script), id_(id) {}
  ~Stream() override {
    if (script_.streams_ == id_) script_.observer_ = nullptr;
  }
  void Send(DiscoveryRequest request) override {
    Message m;
    m.type = *XdsTypeOf(request.type_url());
    m.version = request.version_info();
    m.nonce = request.response_nonce();
    m.names.assign(request.resource_names().begin(), request.resource_names().end());
    m.node = request.has_node();
    m.error_code = request.error_detail().code();
    m.error = request.error_detail().message();
    Deliver(std::move(m));
  }
  void SendDelta(DeltaDiscoveryRequest request) override {
    Message m;
    m.type = *XdsTypeOf(request.type_url());
    m.nonce = request.response_nonce();
    m.names.assign(request.resource_names_subscribe().begin(), request.resource_names_subscribe().end());
    m.unsubscribe.assign(request.resource_names_unsubscribe().begin(), request.resource_names_unsubscribe().end());
    m.node = request.has_node();
    m.error_code = request.error_detail().code();
    m.error = request.error_detail().message();
    for (const auto& [name, version] : request.initial_resource_versions()) m.initial_versions[name] = version;
    Deliver(std::move(m));
  }

 private:
  void Deliver(Message m) {
    m.stream = id_;
    m.at = script_.host_.Now();
    script_.Received(std::move(m));
  }
  AdsScript& script_;
  const int id_;
};

std::unique_ptr<AdsStream> AdsScript::Open(Protocol protocol, AdsStreamObserver* observer) {
  ++streams_;
  protocol_ = protocol;
  subscribed_.clear();
  opened.push_back(host_.Now());
  observer_ = observer;
  if (refusing) {
    const int stream = streams_;
    host_.Post([this, stream] {
      if (stream == streams_ && observer_ != nullptr) {
        AdsStreamObserver* o = std::exchange(observer_, nullptr);
        o->OnClose(absl::UnavailableError("connection refused"));
      }
    });
  }
  return std::make_unique<Stream>(*this, streams_);
}

void AdsScript::Received(Message m) {
  const Message copy = m;
  log.push_back(std::move(m));
  if (!automatic || refusing) return;
  std::vector<std::string>& names = subscribed_[copy.type];
  const bool first = std::none_of(log.begin(), log.end() - 1, [&](const Message& other) {
    return other.type == copy.type && other.stream == copy.stream;
  });
  std::vector<std::string> sorted = copy.names;
  std::sort(sorted.begin(), sorted.end());
  const bool more = std::any_of(sorted.begin(), sorted.end(), [&](const std::string& n) {
    return std::find(names.begin(), names.end(), n) == names.end();
  });
  if (protocol_ == Protocol::kSotw) {
    names = sorted;
  } else {
    for (const std::string& n : sorted) names.push_back(n);
  }
  if (first || more) host_.Post([this, type = copy.type] { Push(type); });
}

void AdsScript::Push(XdsType type) {
  std::vector<std::string> resources;
  std::vector<std::pair<std::string, std::string>> named;
  const std::vector<std::string>& names = subscribed_[type];
  const bool wildcard = type == XdsType::kCds || type == XdsType::kLds;
  for (const auto& [name, bytes] : world[type]) {
    if (!wildcard && std::find(names.begin(), names.end(), name) == names.end()) continue;
    resources.push_back(bytes);
    named.emplace_back(name, bytes);
  }
  const std::string version = fmt::format("v{}", ++version_);
  if (protocol_ == Protocol::kSotw) {
    Send(type, version, resources);
  } else {
    SendDelta(type, named, version);
  }
}

void AdsScript::Send(XdsType type, std::string_view version, const std::vector<std::string>& resources) {
  if (observer_ == nullptr) return;
  auto response = std::make_shared<DiscoveryResponse>();
  response->set_type_url(std::string(XdsTypeUrl(type)));
  response->set_version_info(std::string(version));
  response->set_nonce(fmt::format("n{}", ++nonce_));
  for (const std::string& bytes : resources) {
    auto* any = response->add_resources();
    any->set_type_url(std::string(XdsTypeUrl(type)));
    any->set_value(bytes);
  }
  observer_->OnResponse(std::move(response));
}

void AdsScript::Send(std::string_view version, std::shared_ptr<const ResponseBody> body) {
  if (observer_ == nullptr) return;
  observer_->OnResponse(SotwResponse{std::move(body), std::string(version), fmt::format("n{}", ++nonce_)});
}

void AdsScript::SendDelta(XdsType type, const std::vector<std::pair<std::string, std::string>>& resources,
                          std::string_view version, const std::vector<std::string>& removed) {
  if (observer_ == nullptr) return;
  auto response = std::make_shared<DeltaDiscoveryResponse>();
  response->set_type_url(std::string(XdsTypeUrl(type)));
  response->set_system_version_info(std::string(version));
  response->set_nonce(fmt::format("n{}", ++nonce_));
  for (const auto& [name, bytes] : resources) {
    auto* r = response->add_resources();
    r->set_name(name);
    r->set_version(std::string(version));
    r->mutable_resource()->set_type_url(std::string(XdsTypeUrl(type)));
    r->mutable_resource()->set_value(bytes);
  }
  for (const std::string& name : removed) response->add_removed_resources(name);
  observer_->OnDeltaResponse(std::move(response));
}

void AdsScript::Break(std::string_view why) {
  if (observer_ == nullptr) return;
  AdsStreamObserver* o = std::exchange(observer_, nullptr);
  o->OnClose(absl::UnavailableError(std::string(why)));
}

std::vector<std::string> AdsScript::Log() const {
  std::vector<std::string> out;
  for (const Message& m : log) out.push_back(m.ToString());
  return out;
}

// --- secrets, DNS, pods

void LabSecrets::Subscribe(std::string_view name, OnSecret on_secret) {
  auto callback = std::make_shared<OnSecret>(std::move(on_secret));
  subscribers_.emplace(std::string(name), callback);
  const auto it = secrets_.find(std::string(name));
  if (it != secrets_.end()) (*callback)(it->second);
}

void LabSecrets::Set(const std::string& name, Secret secret) {
  secrets_[name] = secret;
  const auto [begin, end] = subscribers_.equal_range(name);
  for (auto it = begin; it != end; ++it) (*it->second)(secret);
}

void LabDns::Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<DnsAnswer>)> done) {
  ++questions;
  host_.RunAfter(1ms, [this, name = std::string(name), done = std::move(done)]() mutable {
    const auto it = records.find(name);
    if (it == records.end()) {
      done(absl::NotFoundError("NXDOMAIN"));
    } else {
      done(DnsAnswer{it->second, 30s});
    }
  });
}

void LabPod::FillNode(envoy::config::core::v3::Node* node) { node->set_id("sidecar~10.0.0.1~test.lab~lab"); }

LabCa::LabCa(std::string_view name, uint64_t seed)
    : name_(name),
      seed_(seed),
      root_(x509::MakeRootCa(seed, name_ + "/root", Time{} - 24h, 24h * 3650)),
      ca_(x509::MakeIntermediateCa(seed, name_ + "/ca", root_, Time{} - 24h, 24h * 730)) {}

Secret LabCa::Identity(std::string_view spiffe, Duration validity) const {
  const x509::KeyPairRef key = x509::KeyPair::Derive(seed_, fmt::format("{}/{}/{}", name_, spiffe, ++issued_));
  x509::CertificateSpec spec;
  spec.sans = {std::string(spiffe)};
  spec.not_before = Time{} - 2min;
  spec.not_after = Time{} + validity;
  auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca_.certificate, *ca_.key);
  EXPECT_TRUE(leaf.ok()) << leaf.status();
  std::vector<x509::CertificateRef> chain{*leaf};
  chain.insert(chain.end(), ca_.chain.begin(), ca_.chain.end());
  return {CertificateChain::Of(std::move(chain)), nullptr};
}

Secret LabCa::Root() const { return {nullptr, x509::TrustBundle::Of({root_.root})}; }

// --- the lab

DataPlane::Options Instant() {
  DataPlane::Options o;
  const LatencyRange none;
  o.latencies = StageLatencies{none, none, none, none, none, {}, none, {}, {}, {}, {}};
  return o;
}

Lab::Lab(uint64_t seed, DataPlane::Options options)
    : kernel(seed),
      host(kernel.NewHost("lab", 0, nullptr)),
      plane(host, network,
            [&] {
              options.seed = seed;
              return options;
            }()),
      dns(host) {}

Lab::Proxy& Lab::AddProxy(const std::string& name, const std::string& ip, bool sidecar, AdsTransport::Protocol protocol,
                          Duration initial_fetch_timeout) {
  auto proxy = std::make_unique<Proxy>();
  proxy->ip = ip;
  proxy->workload = network.AddPod(ip);
  proxy->ads = std::make_unique<AdsScript>(host);
  proxy->secrets = std::make_unique<LabSecrets>();
  proxy->context = std::make_unique<LabPod>(host, *proxy->ads, *proxy->secrets, dns);
  EnvoyOptions options;
  options.name = name;
  options.workload = proxy->workload;
  options.ip = *IpAddress::Parse(ip);
  options.protocol = protocol;
  options.initial_fetch_timeout = initial_fetch_timeout;
  proxy->envoy = std::make_unique<Envoy>(plane, *proxy->context, options);
  proxy->client = std::make_unique<AppClient>(plane.fabric(), host, proxy->workload, name);
  network.pod(ip).envoy = proxy->envoy.get();
  network.pod(ip).redirect = sidecar;
  return *(proxies[name] = std::move(proxy));
}

EchoApp& Lab::AddApp(const std::string& name, const std::string& ip, uint16_t port) {
  network.AddPod(ip);
  Served& served = apps_[{ip, port}];
  served.app = std::make_unique<EchoApp>(host, name);
  served.server = std::make_unique<AppServer>(plane.fabric(), host, *served.app);
  network.pod(ip).apps[port] = served.server.get();
  return *served.app;
}

void Lab::RemoveApp(const std::string& ip, uint16_t port) {
  network.pod(ip).apps.erase(port);
  apps_.erase({ip, port});
}

std::string Lab::Name(NameId id) const { return id == kNoName ? std::string() : std::string(kernel.names().Text(id)); }

Lab::Result Lab::Convert(const RequestRecord& record) {
  Result r;
  r.done = true;
  r.record = record;
  r.details = record.details;
  r.body = record.body;
  r.flags = ResponseFlagsToString(record.flags);
  r.server = Name(record.server);
  r.upstream = record.upstream.empty() ? "" : record.upstream.ToString();
  r.listener = record.listener;
  r.filter_chain = record.filter_chain;
  r.virtual_host = record.virtual_host;
  r.route = record.route;
  r.cluster = record.cluster;
  r.failure = record.transport_failure;
  r.finding = record.tls_finding;
  plane.fabric().DescribeHops(record.upstream_connection, &r.hops);
  for (const Hop& hop : r.hops) r.hop_snis.emplace_back(hop.sni);
  return r;
}

Lab::Result Lab::Ask(Proxy& from, std::string_view destination, const RequestSpec& spec, bool keep_alive,
                     Duration limit) {
  const std::shared_ptr<Result> result = Begin(from, destination, spec, keep_alive);
  const Time end = kernel.Now() + limit;
  while (!result->done && kernel.Now() < end && kernel.Step()) {
  }
  return *result;
}

std::shared_ptr<Lab::Result> Lab::Begin(Proxy& from, std::string_view destination, const RequestSpec& spec,
                                        bool keep_alive) {
  auto result = std::make_shared<Result>();
  AppClient::Options options;
  options.keep_alive = keep_alive;
  from.client->Send(Address(destination), spec, options,
                    [this, result](const RequestRecord& record) { *result = Convert(record); });
  return result;
}

std::vector<Lab::Result> Lab::AskMany(Proxy& from, std::string_view destination, const RequestSpec& spec, int n,
                                      bool keep_alive) {
  std::vector<Result> out;
  for (int i = 0; i < n; ++i) out.push_back(Ask(from, destination, spec, keep_alive));
  return out;
}

// --- resources

const char kIstioRetry[] = R"({
  "retry_on": "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes", "num_retries": 2,
  "retry_host_predicate": [{"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}}],
  "host_selection_retry_max_attempts": "5", "retriable_status_codes": [503]})";

namespace {

std::string LocalitiesJson(std::string_view cluster, const std::vector<LocalitySpec>& localities) {
  std::vector<std::string> groups;
  for (const LocalitySpec& l : localities) {
    std::vector<std::string> endpoints;
    for (const EndpointSpec& e : l.endpoints) {
      const std::string more =
          e.more.empty() ? "" : fmt::format(R"(, "additional_addresses": [{{"address": {}}}])", SocketJson(e.more));
      std::string json = fmt::format(R"({{"endpoint": {{"address": {}{}}}, "load_balancing_weight": {})",
                                     SocketJson(e.address), more, e.weight);
      if (!e.health.empty()) json += fmt::format(R"(, "health_status": "{}")", e.health);
      if (e.tls) {
        json += R"(, "metadata": {"filter_metadata": {"envoy.transport_socket_match": {"tlsMode": "istio"}}})";
      }
      endpoints.push_back(json + "}");
    }
    std::string json = fmt::format(R"({{"locality": {{"region": "{}"}}, "priority": {}, "lb_endpoints": [{}])",
                                   l.region, l.priority, JoinJson(endpoints));
    if (l.weight > 0) json += fmt::format(R"(, "load_balancing_weight": {})", l.weight);
    groups.push_back(json + "}");
  }
  return fmt::format(R"({{"cluster_name": "{}", "endpoints": [{}]}})", cluster, JoinJson(groups));
}

std::string RouterFilter() {
  return R"({"name": "envoy.filters.http.router", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}})";
}

std::string Hcm(std::string_view prefix, const std::string& routes, std::string_view filters = "") {
  return fmt::format(R"({{"name": "envoy.filters.network.http_connection_manager", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "{}", {}, "http_filters": [{}{}]}}}})",
                     prefix, routes, filters, RouterFilter());
}

std::string Tcp(std::string_view prefix, std::string_view cluster) {
  return fmt::format(R"({{"name": "envoy.filters.network.tcp_proxy", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
    "stat_prefix": "{}", "cluster": "{}"}}}})",
                     prefix, cluster);
}

std::string ListenerFilter(std::string_view name, std::string_view type) {
  return fmt::format(R"({{"name": "envoy.filters.listener.{0}", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.listener.{0}.v3.{1}"}}}})",
                     name, type);
}

std::string CommonTls(const std::string& validation, const std::vector<std::string>& alpn) {
  const auto sds = [](std::string_view name) {
    return fmt::format(R"({{"name": "{}", "sds_config": {{"ads": {{}}, "resource_api_version": "V3"}}}})", name);
  };
  return fmt::format(R"("common_tls_context": {{"alpn_protocols": [{}], "tls_certificate_sds_secret_configs": [{}],
    "combined_validation_context": {{"default_validation_context": {{{}}},
      "validation_context_sds_secret_config": {}}}}})",
                     Quoted(alpn), sds("default"), validation, sds("ROOTCA"));
}

}  // namespace

std::string EdsCluster(std::string_view name, std::string_view extra) {
  return Bytes("Cluster", fmt::format(R"({{"name": "{}", "type": "EDS", "connect_timeout": "10s",
    "eds_cluster_config": {{"eds_config": {{"ads": {{}}, "resource_api_version": "V3"}}}} {}}})",
                                      name, extra.empty() ? "" : fmt::format(", {}", extra)));
}

std::string StaticCluster(std::string_view name, const std::vector<EndpointSpec>& endpoints, std::string_view extra) {
  return Bytes(
      "Cluster",
      fmt::format(R"({{"name": "{}", "type": "STATIC", "connect_timeout": "10s", "load_assignment": {} {}}})", name,
                  LocalitiesJson(name, {{"", endpoints, 0, 0}}), extra.empty() ? "" : fmt::format(", {}", extra)));
}

std::string OriginalDstCluster(std::string_view name, std::string_view bind) {
  return Bytes("Cluster", fmt::format(R"({{"name": "{}", "type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED",
                 "connect_timeout": "10s" {}}})",
                                      name,
                                      bind.empty() ? ""
                                                   : fmt::format(R"(, "upstream_bind_config": {{"source_address": {{
                                            "address": "{}", "port_value": 0}}}})",
                                                                 bind)));
}

std::string Localities(std::string_view cluster, const std::vector<LocalitySpec>& localities) {
  return Bytes("ClusterLoadAssignment", LocalitiesJson(cluster, localities));
}

std::string Assignment(std::string_view cluster, const std::vector<EndpointSpec>& endpoints) {
  return Localities(cluster, {{"", endpoints, 0, 0}});
}

std::string HttpListener(std::string_view name, std::string_view address, std::string_view route_name) {
  return Bytes(
      "Listener",
      fmt::format(R"({{"name": "{}", "address": {}, "bind_to_port": false, "filter_chains": [{{"filters": [{}]}}]}})",
                  name, SocketJson(address),
                  Hcm("h", fmt::format(R"("rds": {{"route_config_name": "{}", "config_source": {{"ads": {{}},
                             "resource_api_version": "V3"}}}})",
                                       route_name))));
}

std::string HttpListenerTo(std::string_view name, std::string_view address, std::string_view cluster, bool retry,
                           std::string_view route_extra) {
  const std::string routes = fmt::format(
      R"("route_config": {{"name": "inline", "virtual_hosts": [{{"name": "all", "domains": ["*"], "routes": [
        {{"name": "default", "match": {{"prefix": "/"}}, "route": {{"cluster": "{}", "timeout": "0s" {} {}}}}}]}}]}})",
      cluster, retry ? fmt::format(", \"retry_policy\": {}", kIstioRetry) : "",
      route_extra.empty() ? "" : fmt::format(", {}", route_extra));
  return Bytes("Listener",
               fmt::format(R"({{"name": "{}", "address": {}, "bind_to_port": false, "traffic_direction": "OUTBOUND",
                 "filter_chains": [{{"name": "http", "filters": [{}]}}]}})",
                           name, SocketJson(address), Hcm("h", routes)));
}

std::string HttpListenerWith(std::string_view name, std::string_view address, std::string_view virtual_hosts,
                             std::string_view filters) {
  return Bytes(
      "Listener",
      fmt::format(R"({{"name": "{}", "address": {}, "bind_to_port": false, "traffic_direction": "OUTBOUND",
                 "filter_chains": [{{"name": "http", "filters": [{}]}}]}})",
                  name, SocketJson(address),
                  Hcm("h", fmt::format(R"("route_config": {{"name": "inline", "virtual_hosts": {}}})", virtual_hosts),
                      filters)));
}

std::string TcpListenerTo(std::string_view name, std::string_view address, std::string_view cluster) {
  return Bytes(
      "Listener",
      fmt::format(R"({{"name": "{}", "address": {}, "bind_to_port": false, "filter_chains": [{{"filters": [{}]}}]}})",
                  name, SocketJson(address), Tcp(cluster, cluster)));
}

std::string VirtualOutbound() {
  return Bytes("Listener", fmt::format(R"({{"name": "virtualOutbound", "address": {}, "use_original_dst": true,
                 "traffic_direction": "OUTBOUND", "filter_chains": [
                   {{"name": "blackhole", "filter_chain_match": {{"destination_port": 15001}}, "filters": [{}]}},
                   {{"name": "catchall", "filters": [{}]}}]}})",
                                       SocketJson("0.0.0.0:15001"), Tcp("BlackHoleCluster", "BlackHoleCluster"),
                                       Tcp("PassthroughCluster", "PassthroughCluster")));
}

std::string RoutesTo(std::string_view name, std::string_view domain, std::string_view cluster, bool retry) {
  return Bytes("RouteConfiguration",
               fmt::format(R"({{"name": "{}", "virtual_hosts": [{{"name": "vh", "domains": ["{}"], "routes": [
                 {{"name": "default", "match": {{"prefix": "/"}}, "route": {{"cluster": "{}", "timeout": "0s" {}}}}}]}}]}})",
                           name, domain, cluster, retry ? fmt::format(", \"retry_policy\": {}", kIstioRetry) : ""));
}

std::string UpstreamTls(std::string_view sni, std::string_view san, const std::vector<std::string>& alpn) {
  return fmt::format(
      R"({{"name": "envoy.transport_sockets.tls", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "{}", {}}}}})",
      sni, CommonTls(san.empty() ? "" : fmt::format(R"("match_subject_alt_names": [{{"exact": "{}"}}])", san), alpn));
}

std::string DownstreamTls(bool require) {
  return fmt::format(R"({{"name": "envoy.transport_sockets.tls", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    "require_client_certificate": {}, {}}}}})",
                     require,
                     CommonTls(R"("match_subject_alt_names": [{"prefix": "spiffe://cluster.local/"}])",
                               {"istio-peer-exchange", "h2", "http/1.1"}));
}

std::string SocketMatches(std::string_view sni, std::string_view san) {
  return fmt::format(R"("transport_socket_matches": [
    {{"name": "tlsMode-istio", "match": {{"tlsMode": "istio"}}, "transport_socket": {}}},
    {{"name": "tlsMode-disabled", "match": {{}}, "transport_socket": {{"name": "envoy.transport_sockets.raw_buffer",
      "typed_config": {{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}}}}])",
                     UpstreamTls(sni, san, {"istio-peer-exchange", "istio"}));
}

std::string VirtualInbound(uint16_t port, std::string_view cluster, bool strict) {
  const std::string routes = fmt::format(
      R"("route_config": {{"name": "inbound|{1}||", "virtual_hosts": [{{"name": "inbound|http|{1}", "domains": ["*"],
        "routes": [{{"name": "default", "match": {{"prefix": "/"}}, "route": {{"cluster": "{0}", "timeout": "0s"}}}}]}}]}})",
      cluster, port);
  const std::string blackhole =
      fmt::format(R"({{"name": "virtualInbound-blackhole", "filter_chain_match": {{"destination_port": 15006}},
        "filters": [{}]}})",
                  Tcp("BlackHoleCluster", "BlackHoleCluster"));
  const std::string tls = fmt::format(
      R"({{"name": "0.0.0.0_{0}", "filter_chain_match": {{"destination_port": {0}, "transport_protocol": "tls"}},
        "transport_socket": {1}, "filters": [{2}]}})",
      port, DownstreamTls(), Hcm("inbound", routes));
  const std::string plain = fmt::format(
      R"({{"name": "plain_{0}", "filter_chain_match": {{"destination_port": {0}, "transport_protocol": "raw_buffer"}},
        "filters": [{1}]}})",
      port, Hcm("inbound", routes));
  return Bytes("Listener", fmt::format(R"({{"name": "virtualInbound", "address": {}, "traffic_direction": "INBOUND",
                 "listener_filters": [{}, {}], "filter_chains": [{}]}})",
                                       SocketJson("0.0.0.0:15006"), ListenerFilter("original_dst", "OriginalDst"),
                                       ListenerFilter("tls_inspector", "TlsInspector"),
                                       strict ? JoinJson({blackhole, tls}) : JoinJson({blackhole, tls, plain})));
}

std::string PassthroughGateway(const std::vector<std::string>& server_names) {
  return Bytes("Listener",
               fmt::format(R"({{"name": "0.0.0.0_15443", "address": {}, "listener_filters": [{}], "filter_chains": [
                 {{"name": "passthrough", "filter_chain_match": {{"server_names": [{}], "application_protocols": [
                     "istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"]}},
                   "filters": [{{"name": "envoy.filters.network.sni_cluster", "typed_config": {{
                     "@type": "type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster"}}}}, {}]}}]}})",
                           SocketJson("0.0.0.0:15443"), ListenerFilter("tls_inspector", "TlsInspector"),
                           Quoted(server_names), Tcp("BlackHoleCluster", "BlackHoleCluster")));
}

}  // namespace wavetank::envoysim::lab
