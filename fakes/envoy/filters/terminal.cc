#include "fakes/envoy/filters/terminal.h"

#include <memory>
#include <utility>

#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fakes/envoy/config/listener_config.h"

namespace wavetank::envoysim {
namespace {

namespace network = envoy::extensions::filters::network;

class RouterFilter final : public HttpFilter {
 public:
  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    stream.Route(lead);
    return FilterStatus::kStop;
  }
};

// Envoy: source/extensions/filters/network/sni_cluster/sni_cluster.cc
class SniCluster final : public NetworkFilter {
 public:
  void OnNewConnection(NetworkConnection& connection) const override {
    const std::string_view name = connection.Facts().server_name;
    if (!name.empty()) connection.UseCluster(name);
  }
};

}  // namespace

HttpFilterType RouterFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.router.v3.Router";
  type.name = "envoy.filters.http.router";
  type.terminal = true;
  type.make = [](const google::protobuf::Any&,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    return std::make_shared<RouterFilter>();
  };
  return type;
}

NetworkFilterType ConnectionManagerType() {
  return {"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          "envoy.filters.network.http_connection_manager", /*terminal=*/true,
          [](const google::protobuf::Any& config, const FilterContext& context, FilterChain* chain) {
            network::http_connection_manager::v3::HttpConnectionManager message;
            if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
            absl::StatusOr<HttpConnectionManager> made = CompileHttpConnectionManager(message, context.extensions);
            if (made.ok()) chain->http = *std::move(made);
            return made.status();
          }};
}

NetworkFilterType SniClusterType() {
  return {"envoy.extensions.filters.network.sni_cluster.v3.SniCluster", "envoy.filters.network.sni_cluster",
          /*terminal=*/false, [](const google::protobuf::Any&, const FilterContext&, FilterChain* chain) {
            chain->filters.push_back(std::make_shared<SniCluster>());
            return absl::OkStatus();
          }};
}

NetworkFilterType TcpProxyType() {
  return {"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "envoy.filters.network.tcp_proxy",
          /*terminal=*/true, [](const google::protobuf::Any& config, const FilterContext& context, FilterChain* chain) {
            network::tcp_proxy::v3::TcpProxy message;
            if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
            absl::StatusOr<TcpProxy> made = CompileTcpProxy(message, context.extensions);
            if (made.ok()) chain->tcp = *std::move(made);
            return made.status();
          }};
}

}  // namespace wavetank::envoysim
