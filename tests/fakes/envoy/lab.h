// A small world for Envoys under test: pods with addresses, paths between them, an ADS server that is a script, secrets
// from a CA of its own. Everything in virtual time, on sim's kernel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/x509/x509.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/envoy/apps/app.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tcp/network.h"
#include "google/protobuf/message.h"
#include "sim/kernel/kernel.h"

namespace wavetank::envoysim::lab {

// JSON or nothing: the test's own resources, as text.
std::string Bytes(std::string_view type_url, std::string_view json);

class LabPath final : public Path {
 public:
  explicit LabPath(Duration latency) : latency_(latency) {}
  std::optional<Duration> Transit(Time) override {
    if (cut) return std::nullopt;
    return latency_;
  }
  bool cut = false;

 private:
  Duration latency_;
};

class LocalPath final : public Path {
 public:
  bool local() const override { return true; }
  std::optional<Duration> Transit(Time) override { return Duration::zero(); }
};

struct PodPorts {
  std::map<uint16_t, Acceptor*> apps;
  Envoy* envoy = nullptr;
  bool redirect = false;  // a sidecar; else the Envoy listens directly
};

// Every address is reachable from everywhere; NAT entries rewrite a destination.
class LabNetwork final : public Network {
 public:
  WorkloadId AddPod(const std::string& ip);
  PodPorts& pod(const std::string& ip);
  IpAddress ip(WorkloadId id) const { return ips_.at(static_cast<uint32_t>(id)); }
  LabPath& path(const std::string& ip) { return *paths_.at(*IpAddress::Parse(ip)); }  // to that pod
  std::map<SocketAddress, SocketAddress> nat;
  std::map<IpAddress, bool> blackholed;

  Route Resolve(const Origin& origin, const SocketAddress& destination, uint64_t flow) override;

 private:
  std::map<uint32_t, IpAddress> ips_;
  std::map<IpAddress, PodPorts> pods_;
  std::map<IpAddress, WorkloadId> ids_;
  std::map<IpAddress, std::unique_ptr<LabPath>> paths_;
  LocalPath local_;
};

// An application that says who it is.
class EchoApp final : public Application {
 public:
  EchoApp(Host& host, std::string_view name) : name_(host.Intern(name)) {}
  AppReply Serve(const InboundCall& call) override {
    ++served;
    last_source = call.connection.source;
    AppReply out;
    out.code = code;
    out.delay = delay;
    out.server = name_;
    return out;
  }
  NameId name() const { return name_; }
  uint16_t code = 200;
  Duration delay{};
  int served = 0;
  SocketAddress last_source;

 private:
  NameId name_;
};

// The script at the other end of ADS: records requests, sends what it is told.
class AdsScript final : public AdsTransport {
 public:
  struct Message {
    XdsType type;
    std::string version, nonce, error;
    int error_code = 0;
    std::vector<std::string> names, unsubscribe;
    std::map<std::string, std::string> initial_versions;
    bool node = false;
    Time at{};
    int stream = 0;
    // "CDS v=1 n=2 [a b]" and so on, for comparisons.
    std::string ToString() const;
  };

  explicit AdsScript(Host& host) : host_(host) {}

  std::unique_ptr<AdsStream> Open(Protocol protocol, AdsStreamObserver* observer) override;

  // SotW response with these serialised resources; nonce counts up over all types.
  void Send(XdsType type, std::string_view version, const std::vector<std::string>& resources);
  // The same as an object that may go to others, too.
  void Send(std::string_view version, std::shared_ptr<const ResponseBody> body);
  void SendDelta(XdsType type, const std::vector<std::pair<std::string, std::string>>& resources,  // name, bytes
                 std::string_view version, const std::vector<std::string>& removed = {});
  void Break(std::string_view why = "connection lost");

  // Answers by itself: whatever is asked for, with what is in `world`.
  std::map<XdsType, std::map<std::string, std::string>> world;  // type -> name -> bytes
  bool automatic = false;
  bool refusing = false;
  // Pushes the world's present content of one type.
  void Push(XdsType type);

  std::vector<Message> log;
  std::vector<std::string> Log() const;  // ToString of all
  std::vector<Time> opened;
  bool connected() const { return observer_ != nullptr; }

 private:
  class Stream;
  void Received(Message message);

  Host& host_;
  AdsStreamObserver* observer_ = nullptr;
  int streams_ = 0;
  int nonce_ = 0;
  int version_ = 0;
  Protocol protocol_ = Protocol::kSotw;
  std::map<XdsType, std::vector<std::string>> subscribed_;
};

class LabSecrets final : public SecretProvider {
 public:
  void Subscribe(std::string_view name, OnSecret on_secret) override;
  void Set(const std::string& name, Secret secret);

 private:
  std::map<std::string, Secret> secrets_;
  std::multimap<std::string, std::shared_ptr<OnSecret>> subscribers_;
};

class LabDns final : public DnsResolver {
 public:
  explicit LabDns(Host& host) : host_(host) {}
  void Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<DnsAnswer>)> done) override;
  std::map<std::string, std::vector<IpAddress>> records;
  int questions = 0;

 private:
  Host& host_;
};

class LabPod final : public EnvoyContext {
 public:
  LabPod(Host& host, AdsTransport& ads, SecretProvider& secrets, DnsResolver& dns)
      : host_(host), ads_(ads), secrets_(secrets), dns_(dns) {}
  Host& host() override { return host_; }
  AdsTransport& ads() override { return ads_; }
  SecretProvider& secrets() override { return secrets_; }
  DnsResolver& dns() override { return dns_; }
  void FillNode(envoy::config::core::v3::Node* node) override;
  void OnLive() override { live_at = host_.Now(); }
  void OnApplied(XdsType type, std::string_view version, std::string_view) override {
    applied.emplace_back(type, version);
    applied_at[type] = host_.Now();
  }
  void OnRejected(XdsType type, std::string_view, std::string_view error) override {
    rejected.emplace_back(type, error);
  }
  std::optional<Time> live_at;
  std::vector<std::pair<XdsType, std::string>> applied, rejected;
  std::map<XdsType, Time> applied_at;

 private:
  Host& host_;
  AdsTransport& ads_;
  SecretProvider& secrets_;
  DnsResolver& dns_;
};

// A root, a CA below it, and certificates for service accounts.
class LabCa {
 public:
  explicit LabCa(std::string_view name, uint64_t seed = 1);
  Secret Identity(std::string_view spiffe, Duration validity = 24h) const;
  Secret Root() const;

 private:
  std::string name_;
  uint64_t seed_;
  x509::CertificateAuthority root_, ca_;
  mutable int issued_ = 0;
};

class Lab {
 public:
  explicit Lab(uint64_t seed = 1, DataPlane::Options options = {});

  // One pod with an Envoy. `secrets` nullptr: no SDS.
  struct Proxy {
    std::string ip;
    WorkloadId workload{};
    std::unique_ptr<AdsScript> ads;
    std::unique_ptr<LabSecrets> secrets;
    std::unique_ptr<LabPod> context;
    std::unique_ptr<Envoy> envoy;
    std::unique_ptr<AppClient> client;
  };
  Proxy& AddProxy(const std::string& name, const std::string& ip, bool sidecar = true,
                  AdsTransport::Protocol protocol = AdsTransport::Protocol::kSotw, Duration initial_fetch_timeout = {});
  // An application on a port of a pod (made if need be).
  EchoApp& AddApp(const std::string& name, const std::string& ip, uint16_t port);
  void RemoveApp(const std::string& ip, uint16_t port);

  void RunFor(Duration d) { kernel.RunUntil(kernel.Now() + d); }
  // One request from the client of a proxy, run until it is answered (or `limit`).
  struct Result {
    bool done = false;
    RequestRecord record;
    std::string details, body, flags, server, upstream, listener, filter_chain, virtual_host, route, cluster, failure,
        finding;
    std::vector<Hop> hops;
    std::vector<std::string> hop_snis;
  };
  Result Ask(Proxy& from, std::string_view destination, const RequestSpec& spec, bool keep_alive = true,
             Duration limit = 60s);
  // Sends it and returns at once; run the lab to see it done.
  std::shared_ptr<Result> Begin(Proxy& from, std::string_view destination, const RequestSpec& spec,
                                bool keep_alive = true);
  std::vector<Result> AskMany(Proxy& from, std::string_view destination, const RequestSpec& spec, int n,
                              bool keep_alive = true);
  Result Convert(const RequestRecord& record);
  std::string Name(NameId id) const;

  sim::Kernel kernel;
  Host& host;
  LabNetwork network;
  DataPlane plane;
  LabDns dns;
  std::map<std::string, std::unique_ptr<Proxy>> proxies;

 private:
  struct Served {
    std::unique_ptr<EchoApp> app;
    std::unique_ptr<AppServer> server;
  };
  std::map<std::pair<std::string, uint16_t>, Served> apps_;
};

// Latencies of nothing, for tests of what is chosen rather than when.
DataPlane::Options Instant();

// --- resources in Istio's form, as serialised protobufs

struct EndpointSpec {
  std::string address;  // "10.1.0.1:5000"
  uint32_t weight = 1;
  std::string health;  // "UNHEALTHY", ...
  bool tls = false;
  std::string more;  // an additional address
};
struct LocalitySpec {
  std::string region;
  std::vector<EndpointSpec> endpoints;
  uint32_t weight = 0;  // 0: not given
  uint32_t priority = 0;
};

std::string EdsCluster(std::string_view name, std::string_view extra_json = "");
std::string StaticCluster(std::string_view name, const std::vector<EndpointSpec>& endpoints,
                          std::string_view extra_json = "");
std::string OriginalDstCluster(std::string_view name, std::string_view bind = "");
std::string Localities(std::string_view cluster, const std::vector<LocalitySpec>& localities);
std::string Assignment(std::string_view cluster, const std::vector<EndpointSpec>& endpoints);
// HCM on ADDRESS:PORT, not bound, routes by RDS under `route_name`.
std::string HttpListener(std::string_view name, std::string_view address, std::string_view route_name);
// HCM with inline routes: everything to `cluster`. `retry`: Istio's default retries.
std::string HttpListenerTo(std::string_view name, std::string_view address, std::string_view cluster, bool retry,
                           std::string_view route_extra = "");
// The same with these virtual hosts (JSON list) and HTTP filters before the router (JSON, comma at the end).
std::string HttpListenerWith(std::string_view name, std::string_view address, std::string_view virtual_hosts,
                             std::string_view filters = "");
std::string TcpListenerTo(std::string_view name, std::string_view address, std::string_view cluster);
std::string VirtualOutbound();
std::string RoutesTo(std::string_view name, std::string_view domain, std::string_view cluster, bool retry = true);
extern const char kIstioRetry[];  // JSON of a retry_policy

// JSON of transport sockets with the SDS names "default" and "ROOTCA".
std::string UpstreamTls(std::string_view sni, std::string_view san, const std::vector<std::string>& alpn);
std::string DownstreamTls(bool require_client_certificate = true);
// "transport_socket_matches": [istio, disabled] as Istio writes them.
std::string SocketMatches(std::string_view sni, std::string_view san);
std::string VirtualInbound(uint16_t port, std::string_view cluster, bool strict = true);
std::string PassthroughGateway(const std::vector<std::string>& server_names);

}  // namespace wavetank::envoysim::lab
