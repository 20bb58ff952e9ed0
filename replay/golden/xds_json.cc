#include "replay/golden/xds_json.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <set>
#include <utility>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/trace/v3/datadog.pb.h"
#include "envoy/config/trace/v3/lightstep.pb.h"
#include "envoy/config/trace/v3/opencensus.pb.h"
#include "envoy/config/trace/v3/opentelemetry.pb.h"
#include "envoy/config/trace/v3/skywalking.pb.h"
#include "envoy/config/trace/v3/zipkin.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/access_loggers/filters/cel/v3/cel.pb.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb.h"
#include "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "envoy/extensions/filters/http/grpc_stats/v3/config.pb.h"
#include "envoy/extensions/filters/http/grpc_web/v3/grpc_web.pb.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/http/router/v3/router.pb.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.pb.h"
#include "envoy/extensions/filters/listener/original_dst/v3/original_dst.pb.h"
#include "envoy/extensions/filters/listener/original_src/v3/original_src.pb.h"
#include "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.pb.h"
#include "envoy/extensions/filters/network/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "envoy/extensions/filters/network/wasm/v3/wasm.pb.h"
#include "envoy/extensions/formatter/metadata/v3/metadata.pb.h"
#include "envoy/extensions/formatter/req_without_query/v3/req_without_query.pb.h"
#include "envoy/extensions/request_id/uuid/v3/uuid.pb.h"
#include "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.pb.h"
#include "envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config.pb.h"
#include "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "google/protobuf/wrappers.pb.h"
#include "istio/alpn.pb.h"
#include "istio/authn.pb.h"
#include "istio/metadata_exchange.pb.h"
#include "istio/stats.pb.h"
#include "replay/golden/compare.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::golden {
namespace {

using google::protobuf::Message;
using nlohmann::json;

namespace extensions = envoy::extensions;
namespace hcm = extensions::filters::network::http_connection_manager::v3;

// Messages inside Any are found by name at run time; naming them here links them.
void LinkMessages() {
  [[maybe_unused]] static const google::protobuf::Descriptor* const kLinked[] = {
      envoy::config::trace::v3::DatadogConfig::descriptor(),
      envoy::config::trace::v3::LightstepConfig::descriptor(),
      envoy::config::trace::v3::OpenCensusConfig::descriptor(),
      envoy::config::trace::v3::OpenTelemetryConfig::descriptor(),
      envoy::config::trace::v3::SkyWalkingConfig::descriptor(),
      envoy::config::trace::v3::ZipkinConfig::descriptor(),
      extensions::access_loggers::file::v3::FileAccessLog::descriptor(),
      extensions::access_loggers::filters::cel::v3::ExpressionFilter::descriptor(),
      extensions::access_loggers::grpc::v3::HttpGrpcAccessLogConfig::descriptor(),
      extensions::access_loggers::grpc::v3::TcpGrpcAccessLogConfig::descriptor(),
      extensions::access_loggers::open_telemetry::v3::OpenTelemetryAccessLogConfig::descriptor(),
      extensions::filters::http::cors::v3::Cors::descriptor(),
      extensions::filters::http::ext_authz::v3::ExtAuthz::descriptor(),
      extensions::filters::http::fault::v3::HTTPFault::descriptor(),
      extensions::filters::http::grpc_stats::v3::FilterConfig::descriptor(),
      extensions::filters::http::grpc_web::v3::GrpcWeb::descriptor(),
      extensions::filters::http::jwt_authn::v3::JwtAuthentication::descriptor(),
      extensions::filters::http::rbac::v3::RBAC::descriptor(),
      extensions::filters::http::router::v3::Router::descriptor(),
      extensions::filters::http::wasm::v3::Wasm::descriptor(),
      extensions::filters::listener::http_inspector::v3::HttpInspector::descriptor(),
      extensions::filters::listener::original_dst::v3::OriginalDst::descriptor(),
      extensions::filters::listener::original_src::v3::OriginalSrc::descriptor(),
      extensions::filters::listener::tls_inspector::v3::TlsInspector::descriptor(),
      extensions::filters::network::ext_authz::v3::ExtAuthz::descriptor(),
      extensions::filters::network::mongo_proxy::v3::MongoProxy::descriptor(),
      extensions::filters::network::rbac::v3::RBAC::descriptor(),
      extensions::filters::network::tcp_proxy::v3::TcpProxy::descriptor(),
      extensions::filters::network::wasm::v3::Wasm::descriptor(),
      extensions::formatter::metadata::v3::Metadata::descriptor(),
      extensions::formatter::req_without_query::v3::ReqWithoutQuery::descriptor(),
      extensions::request_id::uuid::v3::UuidRequestIdConfig::descriptor(),
      extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate::descriptor(),
      extensions::retry::priority::previous_priorities::v3::PreviousPrioritiesConfig::descriptor(),
      extensions::transport_sockets::raw_buffer::v3::RawBuffer::descriptor(),
      extensions::transport_sockets::tls::v3::UpstreamTlsContext::descriptor(),
      extensions::upstreams::http::v3::HttpProtocolOptions::descriptor(),
      google::protobuf::StringValue::descriptor(),
      envoy::tcp::metadataexchange::config::MetadataExchange::descriptor(),
      istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig::descriptor(),
      stats::PluginConfig::descriptor(),
      istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig::descriptor(),
      udpa::type::v1::TypedStruct::descriptor(),
      hcm::HttpConnectionManager::descriptor(),
  };
}

absl::StatusOr<std::unique_ptr<Message>> NewMessage(std::string_view kind) {
  LinkMessages();
  if (kind == "cds") return std::make_unique<envoy::config::cluster::v3::Cluster>();
  if (kind == "eds") return std::make_unique<envoy::config::endpoint::v3::ClusterLoadAssignment>();
  if (kind == "lds") return std::make_unique<envoy::config::listener::v3::Listener>();
  if (kind == "rds") return std::make_unique<envoy::config::route::v3::RouteConfiguration>();
  return absl::InvalidArgumentError(fmt::format("{}: none of cds, eds, lds, rds", kind));
}

bool Parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::StatusOr<json> ToJson(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (const auto status = google::protobuf::util::MessageToJsonString(message, &text, options); !status.ok()) {
    return absl::InvalidArgumentError(status.ToString());
  }
  json out = json::parse(text);
  MakeCanonical(out);
  return out;
}

}  // namespace

absl::StatusOr<json> ResourceToJson(std::string_view kind, std::string_view bytes) {
  absl::StatusOr<std::unique_ptr<Message>> message = NewMessage(kind);
  if (!message.ok()) return message.status();
  if (!Parse(bytes, **message)) {
    return absl::InvalidArgumentError(fmt::format("not a {}", (*message)->GetTypeName()));
  }
  return ToJson(**message);
}

absl::StatusOr<json> NormalizeRecorded(std::string_view kind, const json& resource) {
  absl::StatusOr<std::unique_ptr<Message>> message = NewMessage(kind);
  if (!message.ok()) return message.status();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(resource.dump(), message->get(), options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", ResourceName(resource), status.ToString()));
  }
  return ToJson(**message);
}

std::vector<std::string> EdsNames(const std::vector<std::string_view>& clusters) {
  std::set<std::string> out;
  for (const std::string_view bytes : clusters) {
    envoy::config::cluster::v3::Cluster cluster;
    if (!Parse(bytes, cluster) || cluster.type() != envoy::config::cluster::v3::Cluster::EDS) continue;
    const std::string& name = cluster.eds_cluster_config().service_name();
    out.insert(name.empty() ? cluster.name() : name);
  }
  return {out.begin(), out.end()};
}

std::vector<std::string> RdsNames(const std::vector<std::string_view>& listeners) {
  std::set<std::string> out;
  for (const std::string_view bytes : listeners) {
    envoy::config::listener::v3::Listener listener;
    if (!Parse(bytes, listener)) continue;
    const auto look = [&](const envoy::config::listener::v3::FilterChain& chain) {
      for (const auto& filter : chain.filters()) {
        hcm::HttpConnectionManager manager;
        if (filter.typed_config().UnpackTo(&manager) && manager.has_rds())
          out.insert(manager.rds().route_config_name());
      }
    };
    for (const auto& chain : listener.filter_chains()) look(chain);
    if (listener.has_default_filter_chain()) look(listener.default_filter_chain());
  }
  return {out.begin(), out.end()};
}

}  // namespace wavetank::golden
