// A live server on loopback, and gRPC clients that talk to it as an Envoy does.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/model/proxy.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "serve/server.h"
#include "sim/inputs/input.h"
#include "tests/serve/two_clusters.h"

namespace wavetank::serve {

namespace discovery = envoy::service::discovery::v3;

inline const std::string kClusterType(pilot::TypeUrl(pilot::XdsType::kCds));
inline const std::string kEndpointType(pilot::TypeUrl(pilot::XdsType::kEds));
inline const std::string kListenerType(pilot::TypeUrl(pilot::XdsType::kLds));
inline const std::string kHelloworld = "outbound|5000||helloworld.sample.svc.cluster.local";

inline ServerOptions OnAnyPort() {
  ServerOptions out;
  out.listen = out.secure_listen = "127.0.0.1:0";
  return out;
}

inline std::unique_ptr<Server> StartServer(const ServerOptions& options = OnAnyPort(),
                                           SessionOptions session = TwoClusters()) {
  absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(std::move(session));
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*std::move(made), options);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

inline sockaddr_in Loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

// Nobody listens there now; 0: there is none.
inline uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  const bool ok = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  return ok ? ntohs(address.sin_port) : 0;
}

// The name of the only pod of an app in a cluster; its node as its Envoy sends it.
inline std::string PodOf(Server& server, const std::string& cluster, const std::string& app) {
  return *server.loop().Call([&](sim::World& world) { return world.Pods(cluster, "", app).front()->name(); });
}
inline envoy::config::core::v3::Node NodeOf(Server& server, const std::string& pod) {
  const auto bootstrap = *server.loop().Call(
      [&](sim::World& world) { return *pilot::ReadProxyBootstrap(world.FindPod(pod)->pod()->body); });
  envoy::config::core::v3::Node node;
  node.set_id(bootstrap.node_id);
  auto* fields = node.mutable_metadata()->mutable_fields();
  for (const char* key : {"CLUSTER_ID", "NAMESPACE", "NETWORK", "ISTIO_VERSION", "SERVICE_ACCOUNT"}) {
    if (bootstrap.metadata.contains(key)) (*fields)[key].set_string_value(bootstrap.metadata.at(key));
  }
  return node;
}

inline absl::Status Do(Server& server, const sim::Input& input) {
  return *server.loop().Call([&](sim::World& world) { return world.Do(input); });
}

inline std::shared_ptr<grpc::Channel> PlainChannel(const std::string& address) {
  // Channels of one process share a connection otherwise.
  static std::atomic<int> number{0};
  grpc::ChannelArguments arguments;
  arguments.SetInt("wavetank.test", ++number);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// One ADS stream; every wait ends after 2 min.
template <class Request, class Response>
class AdsClient {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;
  explicit AdsClient(std::shared_ptr<grpc::Channel> channel)
      : stub_(discovery::AggregatedDiscoveryService::NewStub(std::move(channel))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    if constexpr (std::is_same_v<Request, discovery::DiscoveryRequest>) {
      stream_ = stub_->StreamAggregatedResources(&context_);
    } else {
      stream_ = stub_->DeltaAggregatedResources(&context_);
    }
  }
  ~AdsClient() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }

  bool Send(const Request& request) { return stream_->Write(request); }
  // The next response; a test that gets none fails.
  Response Read() {
    Response out;
    EXPECT_TRUE(stream_->Read(&out)) << "the stream ended";
    return out;
  }
  bool Read(Response* out) { return stream_->Read(out); }
  grpc::Status Finish() {
    Response ignored;
    while (stream_->Read(&ignored)) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  std::unique_ptr<discovery::AggregatedDiscoveryService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  bool finished_ = false;
};
using SotwClient = AdsClient<discovery::DiscoveryRequest, discovery::DiscoveryResponse>;
using DeltaClient = AdsClient<discovery::DeltaDiscoveryRequest, discovery::DeltaDiscoveryResponse>;

inline discovery::DiscoveryRequest Ask(const std::string& type, const std::vector<std::string>& names = {}) {
  discovery::DiscoveryRequest out;
  out.set_type_url(type);
  for (const std::string& name : names) out.add_resource_names(name);
  return out;
}
inline discovery::DiscoveryRequest Ask(const envoy::config::core::v3::Node& node, const std::string& type,
                                       const std::vector<std::string>& names = {}) {
  discovery::DiscoveryRequest out = Ask(type, names);
  *out.mutable_node() = node;
  return out;
}
inline discovery::DiscoveryRequest Ack(const discovery::DiscoveryResponse& response,
                                       const std::vector<std::string>& names = {}) {
  discovery::DiscoveryRequest out = Ask(response.type_url(), names);
  out.set_version_info(response.version_info());
  out.set_response_nonce(response.nonce());
  return out;
}

// Addresses of all endpoints of all assignments, sorted.
inline std::vector<std::string> Addresses(const discovery::DiscoveryResponse& response) {
  std::vector<std::string> out;
  for (const auto& any : response.resources()) {
    envoy::config::endpoint::v3::ClusterLoadAssignment assignment;
    EXPECT_TRUE(any.UnpackTo(&assignment));
    for (const auto& locality : assignment.endpoints()) {
      for (const auto& endpoint : locality.lb_endpoints()) {
        out.push_back(endpoint.endpoint().address().socket_address().address());
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace wavetank::serve
