#include "fakes/envoy/extensions/extensions.h"

#include <algorithm>
#include <array>
#include <string>

#include "fmt/format.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/util/json_util.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::envoysim {
namespace {

using std::string_view_literals::operator""sv;

// Of stock Envoy, as far as meshes use them: docs/real-envoy.md 9, checked one by one against the real binary.
constexpr std::array kStockTypes = {
    "envoy.extensions.access_loggers.file.v3.FileAccessLog"sv,
    "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"sv,
    "envoy.extensions.filters.http.cors.v3.Cors"sv,
    "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"sv,
    "envoy.extensions.filters.http.fault.v3.HTTPFault"sv,
    "envoy.extensions.filters.http.grpc_stats.v3.FilterConfig"sv,
    "envoy.extensions.filters.http.grpc_web.v3.GrpcWeb"sv,
    "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"sv,
    "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"sv,
    "envoy.extensions.filters.http.lua.v3.Lua"sv,
    "envoy.extensions.filters.http.rbac.v3.RBAC"sv,
    "envoy.extensions.filters.http.router.v3.Router"sv,
    "envoy.extensions.filters.http.set_filter_state.v3.Config"sv,
    "envoy.extensions.filters.listener.http_inspector.v3.HttpInspector"sv,
    "envoy.extensions.filters.listener.original_dst.v3.OriginalDst"sv,
    "envoy.extensions.filters.listener.original_src.v3.OriginalSrc"sv,
    "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"sv,
    "envoy.extensions.filters.network.ext_authz.v3.ExtAuthz"sv,
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"sv,
    "envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit"sv,
    "envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy"sv,
    "envoy.extensions.filters.network.rbac.v3.RBAC"sv,
    "envoy.extensions.filters.network.redis_proxy.v3.RedisProxy"sv,
    "envoy.extensions.filters.network.sni_cluster.v3.SniCluster"sv,
    "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"sv,
    "envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig"sv,
    "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"sv,
    "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"sv,
    "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"sv,
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"sv,
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"sv,
};

// Types that contain one of these are in istio-proxy only.
constexpr std::array kIstioTypes = {
    "envoy.extensions.filters.http.wasm.v3.Wasm"sv,
    "envoy.extensions.filters.network.wasm.v3.Wasm"sv,
    "envoy.tcp.metadataexchange.config.MetadataExchange"sv,
    "io.istio.http.peer_metadata.Config"sv,
    "io.istio.network.authn.Config"sv,
    "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig"sv,
    "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig"sv,
    "stats.PluginConfig"sv,
};

template <size_t n>
bool Has(const std::array<std::string_view, n>& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool IsTypedStruct(std::string_view type) {
  return type == "udpa.type.v1.TypedStruct" || type == "xds.type.v3.TypedStruct";
}

}  // namespace

std::string_view TypeName(const google::protobuf::Any& config) {
  const std::string_view url(config.type_url());
  return url.substr(url.rfind('/') + 1);
}

std::string ConfigType(const google::protobuf::Any& config) {
  const std::string_view type = TypeName(config);
  if (!IsTypedStruct(type)) return std::string(type);
  udpa::type::v1::TypedStruct wrapped;  // xds.type.v3 has the same fields
  if (!wrapped.ParseFromString(config.value())) return std::string(type);
  return wrapped.type_url().substr(wrapped.type_url().rfind('/') + 1);
}

absl::Status UnpackConfig(const google::protobuf::Any& config, google::protobuf::Message* out) {
  const auto refused = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("Unable to parse JSON as proto ({})", why));
  };
  if (!IsTypedStruct(TypeName(config))) {
    if (TypeName(config) == out->GetDescriptor()->full_name() && out->ParseFromString(config.value())) {
      return absl::OkStatus();
    }
    if (config.type_url().empty()) return absl::OkStatus();  // named alone: all defaults
    return absl::InvalidArgumentError(
        fmt::format("Unable to unpack as {}: [{}]", out->GetDescriptor()->full_name(), config.type_url()));
  }
  udpa::type::v1::TypedStruct wrapped;
  if (!wrapped.ParseFromString(config.value())) return refused("TypedStruct");
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(wrapped.value(), &json).ok()) return refused("Struct");
  const auto read = google::protobuf::util::JsonStringToMessage(json, out);
  return read.ok() ? absl::OkStatus() : refused(std::string(read.message()));
}

absl::Status Extensions::Check(std::string_view name, const google::protobuf::Any& config) const {
  const std::string type = ConfigType(config);
  if (Has(kStockTypes, type)) return absl::OkStatus();
  if (set_ == ExtensionSet::kIstioProxy) {
    if (Has(kIstioTypes, type)) return absl::OkStatus();
    // istio-proxy finds a filter by its name alone.
    if (type.empty() && (name.starts_with("istio") || name.starts_with("envoy."))) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("Didn't find a registered implementation for '{}' with type URL: '{}'", name, type));
}

}  // namespace wavetank::envoysim
