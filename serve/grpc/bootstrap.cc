#include "serve/grpc/bootstrap.h"

#include "absl/strings/match.h"
#include "core/agent/bootstrap.h"
#include "core/gen/grpc/proxyless.h"
#include "core/model/proxyless.h"

namespace wavetank::serve {
namespace {

using Json = nlohmann::ordered_json;

Json Locality(const pilot::ProxyBootstrap& proxy) {
  Json out = Json::object();
  if (!proxy.region.empty()) out["region"] = proxy.region;
  if (!proxy.zone.empty()) out["zone"] = proxy.zone;
  if (!proxy.sub_zone.empty()) out["sub_zone"] = proxy.sub_zone;
  return out;
}

}  // namespace

absl::StatusOr<Json> MakeBootstrap(const pilot::ProxyBootstrap& proxy, const BootstrapOptions& options) {
  if (options.grpc) return MakeGrpcBootstrap(proxy, {options.xds, ""});
  agent::EnvoyBootstrapOptions agent;
  agent.xds = options.xds;
  agent.sds = options.sds;
  agent.admin = options.admin;
  agent.delta = options.delta;
  agent.upstream_envoy = agent.without_agent = options.upstream_envoy;
  return agent::MakeEnvoyBootstrap(proxy, agent);
}

absl::StatusOr<Json> MakeGrpcBootstrap(const pilot::ProxyBootstrap& proxy, const GrpcBootstrapOptions& options) {
  if (absl::StatusOr<Json> valid = agent::EnvoyAddress(options.xds); !valid.ok()) return valid.status();
  const std::string uri =
      absl::StartsWith(options.xds, "unix:/") ? "unix://" + options.xds.substr(5) : options.xds;  // an absolute path
  Json out;
  out["xds_servers"] = Json::array({{{"server_uri", uri},
                                     {"channel_creds", Json::array({{{"type", "insecure"}}})},
                                     {"server_features", {"xds_v3"}}}});
  out["node"] = {{"id", proxy.node_id}, {"locality", Locality(proxy)}, {"metadata", Json(proxy.metadata)}};
  out["node"]["metadata"]["GENERATOR"] = pilot::kGrpcGenerator;
  if (!options.certificates.empty()) {
    const std::string folder = options.certificates + "/";
    out["certificate_providers"]["default"] = {{"plugin_name", "file_watcher"},
                                               {"config",
                                                {{"certificate_file", folder + "cert-chain.pem"},
                                                 {"private_key_file", folder + "key.pem"},
                                                 {"ca_certificate_file", folder + "root-cert.pem"},
                                                 {"refresh_interval", "900s"}}}};
  }
  out["server_listener_resource_name_template"] = std::string(pilot::kGrpcServerListenerPrefix) + "%s";
  return out;
}

}  // namespace wavetank::serve
