#include "core/gen/telemetry/access_log.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/base/json_text.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/provider_cluster.h"
#include "core/gen/telemetry/proxy_telemetry.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/access_loggers/filters/cel/v3/cel.pb.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb.h"
#include "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "envoy/extensions/formatter/metadata/v3/metadata.pb.h"
#include "envoy/extensions/formatter/req_without_query/v3/req_without_query.pb.h"

namespace wavetank::pilot {
namespace {

namespace loggers = ::envoy::extensions::access_loggers;
using AccessLogPb = ::envoy::config::accesslog::v3::AccessLog;
using LogFilterPb = ::envoy::config::accesslog::v3::AccessLogFilter;
using FilePb = loggers::file::v3::FileAccessLog;
using FormatPb = ::envoy::config::core::v3::SubstitutionFormatString;
using CommonGrpcPb = loggers::grpc::v3::CommonGrpcAccessLogConfig;
using LogProvider = config::ExtensionProvider;
using nlohmann::json;

constexpr const char* kHttpGrpcLog = "envoy.access_loggers.http_grpc";
constexpr const char* kTcpGrpcLog = "envoy.tcp_grpc_access_log";

constexpr std::string_view kTextFormat =
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" "
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "
    "\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% "
    "%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% "
    "%ROUTE_NAME%\n";

const json& JsonFormat() {
  static const auto& format = *new json{
      {"authority", "%REQ(:AUTHORITY)%"},
      {"bytes_received", "%BYTES_RECEIVED%"},
      {"bytes_sent", "%BYTES_SENT%"},
      {"connection_termination_details", "%CONNECTION_TERMINATION_DETAILS%"},
      {"downstream_local_address", "%DOWNSTREAM_LOCAL_ADDRESS%"},
      {"downstream_remote_address", "%DOWNSTREAM_REMOTE_ADDRESS%"},
      {"duration", "%DURATION%"},
      {"method", "%REQ(:METHOD)%"},
      {"path", "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"},
      {"protocol", "%PROTOCOL%"},
      {"request_id", "%REQ(X-REQUEST-ID)%"},
      {"requested_server_name", "%REQUESTED_SERVER_NAME%"},
      {"response_code", "%RESPONSE_CODE%"},
      {"response_code_details", "%RESPONSE_CODE_DETAILS%"},
      {"response_flags", "%RESPONSE_FLAGS%"},
      {"route_name", "%ROUTE_NAME%"},
      {"start_time", "%START_TIME%"},
      {"upstream_cluster", "%UPSTREAM_CLUSTER%"},
      {"upstream_host", "%UPSTREAM_HOST%"},
      {"upstream_local_address", "%UPSTREAM_LOCAL_ADDRESS%"},
      {"upstream_service_time", "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%"},
      {"upstream_transport_failure_reason", "%UPSTREAM_TRANSPORT_FAILURE_REASON%"},
      {"user_agent", "%REQ(USER-AGENT)%"},
      {"x_forwarded_for", "%REQ(X-FORWARDED-FOR)%"},
  };
  return format;
}

// Commands that Envoy knows by extensions only.
class Formatters {
 public:
  void See(std::string_view text) {
    if (!without_query_ && text.find("%REQ_WITHOUT_QUERY") != text.npos) {
      without_query_ = true;
      if (once_) return;  // of one JSON value, istiod sees one command
    }
    metadata_ |= text.find("%METADATA") != text.npos;
  }
  void SeeOneCommandAtATime() { once_ = true; }
  // `names_metadata`: istiods that name the extension for %METADATA%.
  void AddTo(bool names_metadata, FormatPb& out) const {
    namespace formatter = ::envoy::extensions::formatter;
    if (without_query_) {
      auto* extension = out.add_formatters();
      extension->set_name("envoy.formatter.req_without_query");
      *extension->mutable_typed_config() = PackAny(formatter::req_without_query::v3::ReqWithoutQuery());
    }
    if (metadata_ && names_metadata) {
      auto* extension = out.add_formatters();
      extension->set_name("envoy.formatter.metadata");
      *extension->mutable_typed_config() = PackAny(formatter::metadata::v3::Metadata());
    }
  }

 private:
  bool once_ = false, without_query_ = false, metadata_ = false;
};

// Names of filter state that tells the peer.
using PeerStates = std::span<const char* const>;
constexpr const char* kPeerStates[] = {"upstream_peer",         "downstream_peer",      "wasm.upstream_peer",
                                       "wasm.upstream_peer_id", "wasm.downstream_peer", "wasm.downstream_peer_id"};

// How istiods of several releases write formats.
struct FormatRules {
  // That Envoy need not sort the fields of JSON is said, which it does not by itself.
  bool json_options = false;
  bool raw_cluster = false;  // clusters by name, in istiod's own formats
  bool names_metadata_extension = true, omit_empty = false;
  PeerStates peers, otel_peers, mesh_peers;  // for a provider, one of OpenTelemetry, the mesh's own service
  bool otel_no_labels = false;
};
FormatRules RulesOf(const PushContext& push) {
  const Profile& profile = push.profile();
  const PeerStates all = kPeerStates;
  const bool renamed = profile.Has(Change::kPeerStateNames);
  const PeerStates own = renamed ? all.first(2) : all.subspan(2);
  return {profile.Has(Change::kJsonLogOptions), profile.Has(Change::kRawUpstreamCluster),
          !profile.Has(Change::kFormattersBuiltIn), profile.Has(Change::kOmitEmptyLogValues), own,
          profile.Has(Change::kOtelLogsAllPeerStates) ? all : own,
          // It is told all names since there are new ones (istiod: networking/core/accesslog.go).
          renamed ? all : own, profile.Has(Change::kOtelNoBuiltinLabels)};
}

std::string OwnFormat(std::string_view text, const FormatRules& rules) {
  return rules.raw_cluster
             ? absl::StrReplaceAll({text.data(), text.size()}, {{"%UPSTREAM_CLUSTER%", "%UPSTREAM_CLUSTER_RAW%"}})
             : std::string(text);
}

json OwnJsonFormat(const FormatRules& rules) {
  json out = JsonFormat();
  out["upstream_cluster"] = OwnFormat(out["upstream_cluster"].get<std::string>(), rules);
  return out;
}

// Envoy wants every line of a text format to end itself.
void SetTextFormat(std::string_view text, const FormatRules& rules, FormatPb& out) {
  std::string format = text.empty() ? OwnFormat(kTextFormat, rules) : std::string(text);
  if (format.back() != '\n') format.push_back('\n');
  Formatters formatters;
  formatters.See(format);
  formatters.AddTo(rules.names_metadata_extension, out);
  out.mutable_text_format_source()->set_inline_string(std::move(format));
}

void SetJsonFormat(const json& format, const FormatRules& rules, FormatPb& out) {
  if (rules.json_options) out.mutable_json_format_options();
  Formatters formatters;
  formatters.SeeOneCommandAtATime();
  for (const auto& [key, value] : format.items()) {
    if (value.is_string()) formatters.See(value.get_ref<const std::string&>());
  }
  formatters.AddTo(rules.names_metadata_extension, out);
  ToProto(format, out.mutable_json_format());
}

// A logger's name and its configuration.
AccessLogPb MakeLog(const char* name, const google::protobuf::Message& config) {
  AccessLogPb log;
  log.set_name(name);
  *log.mutable_typed_config() = PackAny(config);
  return log;
}

AccessLogPb MakeFileLog(const FilePb& file) { return MakeLog("envoy.access_loggers.file", file); }

// With the mesh's own format.
AccessLogPb MeshFileLog(const std::string& path, const config::MeshConfig& mesh, const FormatRules& rules) {
  FilePb file;
  file.set_path(path);
  FormatPb& format = *file.mutable_log_format();
  if (!mesh.access_log_encoding_json) {
    SetTextFormat(mesh.access_log_format, rules, format);
  } else {
    const json own = mesh.access_log_format.empty() ? json() : ParseJson(mesh.access_log_format);
    SetJsonFormat(own.is_object() ? own : OwnJsonFormat(rules), rules, format);
  }
  return MakeFileLog(file);
}

AccessLogPb FileLog(const LogProvider::FileAccessLog& provider, const FormatRules& rules) {
  FilePb file;
  file.set_path(provider.path.empty() ? "/dev/stdout" : provider.path);
  if (!provider.format || provider.format->text) {
    SetTextFormat(provider.format ? *provider.format->text : "", rules, *file.mutable_log_format());
  } else if (provider.format->labels) {
    SetJsonFormat(provider.format->labels->empty() ? OwnJsonFormat(rules) : *provider.format->labels, rules,
                  *file.mutable_log_format());
  }
  if (rules.omit_empty && provider.omit_empty && file.has_log_format())
    file.mutable_log_format()->set_omit_empty_values(true);
  return MakeFileLog(file);
}

// Without names of filter state, what metadata exchange found out about the peer: `peers`.
void SetCommonGrpc(const std::string& log_name, const ProviderCluster& to, const std::vector<std::string>& filter_state,
                   PeerStates peers, CommonGrpcPb& out) {
  out.set_log_name(log_name);
  out.mutable_grpc_service()->mutable_envoy_grpc()->set_cluster_name(to.cluster);
  out.mutable_grpc_service()->mutable_envoy_grpc()->set_authority(to.hostname);
  out.set_transport_api_version(::envoy::config::core::v3::V3);
  for (const std::string& name : filter_state) out.add_filter_state_objects_to_log(name);
  if (!filter_state.empty()) return;
  for (const char* name : peers) out.add_filter_state_objects_to_log(name);
}

AccessLogPb GrpcLog(const LogProvider::GrpcAccessLog& provider, const ProviderCluster& to, PeerStates peers) {
  const auto name = [&](const char* otherwise) { return provider.log_name.empty() ? otherwise : provider.log_name; };
  if (provider.tcp) {
    loggers::grpc::v3::TcpGrpcAccessLogConfig config;
    SetCommonGrpc(name("tcp_envoy_accesslog"), to, provider.filter_state_objects, peers,
                  *config.mutable_common_config());
    return MakeLog(kTcpGrpcLog, config);
  }
  loggers::grpc::v3::HttpGrpcAccessLogConfig config;
  SetCommonGrpc(name("http_envoy_accesslog"), to, provider.filter_state_objects, peers,
                *config.mutable_common_config());
  for (const std::string& header : provider.request_headers) config.add_additional_request_headers_to_log(header);
  for (const std::string& header : provider.response_headers) config.add_additional_response_headers_to_log(header);
  for (const std::string& name_of : provider.response_trailers) config.add_additional_response_trailers_to_log(name_of);
  return MakeLog(kHttpGrpcLog, config);
}

AccessLogPb OtelLog(const LogProvider::OtelAccessLog& provider, const ProviderCluster& to, const FormatRules& rules) {
  loggers::open_telemetry::v3::OpenTelemetryAccessLogConfig config;
  SetCommonGrpc(provider.log_name.empty() ? "otel_envoy_accesslog" : provider.log_name, to, {}, rules.otel_peers,
                *config.mutable_common_config());
  if (rules.otel_no_labels) config.set_disable_builtin_labels(true);
  config.mutable_body()->set_string_value(provider.text.empty() ? OwnFormat(kTextFormat, rules) : provider.text);
  for (const auto& [key, value] : provider.labels.items()) {
    auto* attribute = config.mutable_attributes()->add_values();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value.is_string() ? value.get_ref<const std::string&>() : "");
  }
  return MakeLog("envoy.access_loggers.open_telemetry", config);
}

// nullopt: the provider is no log, or its service is not there.
std::optional<AccessLogPb> LogOf(const LogProvider& provider, const PushContext& push) {
  if (const auto* file = std::get_if<LogProvider::FileAccessLog>(&provider.telemetry)) {
    // The built-in one has the mesh's format unless it is given one.
    const FormatRules rules = RulesOf(push);
    const bool plain = !file->format && !(rules.omit_empty && file->omit_empty);
    return provider.name == "envoy" && plain ? MeshFileLog(file->path, push.mesh(), rules) : FileLog(*file, rules);
  }
  if (const auto* grpc = std::get_if<LogProvider::GrpcAccessLog>(&provider.telemetry)) {
    const auto to = LookupProviderCluster(grpc->service, grpc->port, push);
    return to ? std::optional(GrpcLog(*grpc, *to, RulesOf(push).peers)) : std::nullopt;
  }
  if (const auto* otel = std::get_if<LogProvider::OtelAccessLog>(&provider.telemetry)) {
    const auto to = LookupProviderCluster(otel->service, otel->port, push);
    return to ? std::optional(OtelLog(*otel, *to, RulesOf(push))) : std::nullopt;
  }
  return std::nullopt;
}

// A listener itself logs connections that no filter chain took.
void SetNoRoute(LogFilterPb& out) { out.mutable_response_flag_filter()->add_flags("NR"); }

LogFilterPb CelFilter(const std::string& expression) {
  loggers::filters::cel::v3::ExpressionFilter cel;
  cel.set_expression(expression);
  LogFilterPb out;
  out.mutable_extension_filter()->set_name("envoy.access_loggers.extension_filters.cel");
  *out.mutable_extension_filter()->mutable_typed_config() = PackAny(cel);
  return out;
}

class LogsWriter {
 public:
  explicit LogsWriter(bool for_listeners) : for_listeners_(for_listeners) {}

  void Http(const AccessLogPb& log) {
    using Hcm = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
    Add(Hcm::kAccessLogFieldNumber, log, out_.http);
  }
  void Tcp(const AccessLogPb& log) {
    using TcpProxy = ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
    Add(TcpProxy::kAccessLogFieldNumber, log, out_.tcp);
  }
  // With the listener's filter before the log's own.
  void Listener(AccessLogPb log) {
    if (!for_listeners_) return;
    if (log.has_filter()) {
      LogFilterPb both;
      SetNoRoute(*both.mutable_and_filter()->add_filters());
      *both.mutable_and_filter()->add_filters() = log.filter();
      *log.mutable_filter() = std::move(both);
    } else {
      SetNoRoute(*log.mutable_filter());
    }
    Add(::envoy::config::listener::v3::Listener::kAccessLogFieldNumber, log, out_.listener);
  }
  void Everywhere(const AccessLogPb& log) {
    Http(log);
    Tcp(log);
    Listener(log);
  }
  Telemetries::Logs Take() { return std::move(out_); }

 private:
  static void Add(int field, const AccessLogPb& log, std::string& out) {
    wire::Writer(&out).Bytes(field, Serialize(log));
  }

  const bool for_listeners_;
  Telemetries::Logs out_;
};

void AddMeshLogs(const config::MeshConfig& mesh, const FormatRules& rules, LogsWriter& out) {
  if (!mesh.access_log_file.empty()) out.Everywhere(MeshFileLog(mesh.access_log_file, mesh, rules));
  if (!mesh.enable_envoy_access_log_service) return;
  const ProviderCluster service{"", "envoy_accesslog_service"};  // of the bootstrap
  const auto grpc = [&](bool tcp, const char* name) {
    LogProvider::GrpcAccessLog log;
    log.tcp = tcp;
    log.log_name = name;
    return GrpcLog(log, service, rules.mesh_peers);
  };
  out.Http(grpc(false, ""));
  out.Tcp(grpc(true, ""));
  out.Listener(grpc(true, "listener_envoy_accesslog"));
}

}  // namespace

Telemetries::Logs MakeAccessLogs(const WorkloadTelemetry& telemetry, ListenerClass listener_class,
                                 const PushContext& push) {
  const config::MeshConfig& mesh = push.mesh();
  LogsWriter out(!mesh.disable_envoy_listener_log);
  bool any = false;  // also a log that is disabled
  for (const auto& [name, spec] : telemetry.Logging(SideOf(listener_class))) {
    const LogProvider* provider = config::FindTelemetryProvider(mesh.extension_providers, name);
    if (provider == nullptr) continue;
    std::optional<AccessLogPb> log = LogOf(*provider, push);
    if (!log) continue;
    any = true;
    if (spec.disabled) continue;
    if (spec.HasFilter()) *log->mutable_filter() = CelFilter(**spec.filter);
    out.Everywhere(*log);
  }
  if (!any) AddMeshLogs(mesh, RulesOf(push), out);
  return out.Take();
}

}  // namespace wavetank::pilot
