#include "core/gen/access_log.h"

#include <string_view>

#include "core/gen/any.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "google/protobuf/util/json_util.h"

namespace wavetank::pilot {
namespace {

using AccessLogPb = ::envoy::config::accesslog::v3::AccessLog;
using FileAccessLogPb = ::envoy::extensions::access_loggers::file::v3::FileAccessLog;

constexpr std::string_view kTextFormat =
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% "
    "%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" "
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "
    "\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% "
    "%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% "
    "%ROUTE_NAME%\n";

constexpr std::pair<const char*, const char*> kJsonFormat[] = {
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

// Envoy wants every line of a text format to end itself.
std::string TextFormat(const config::MeshConfig& mesh) {
  std::string format = mesh.access_log_format.empty() ? std::string(kTextFormat) : mesh.access_log_format;
  if (format.back() != '\n') format.push_back('\n');
  return format;
}

void SetJsonFormat(const config::MeshConfig& mesh, google::protobuf::Struct& out) {
  if (!mesh.access_log_format.empty()) {
    google::protobuf::Struct parsed;
    if (google::protobuf::util::JsonStringToMessage(mesh.access_log_format, &parsed).ok()) {
      out = parsed;
      return;
    }
  }
  for (const auto& [key, value] : kJsonFormat) (*out.mutable_fields())[key].set_string_value(value);
}

AccessLogPb MakeFileAccessLog(const config::MeshConfig& mesh) {
  FileAccessLogPb file;
  file.set_path(mesh.access_log_file);
  if (mesh.access_log_encoding_json) {
    SetJsonFormat(mesh, *file.mutable_log_format()->mutable_json_format());
  } else {
    file.mutable_log_format()->mutable_text_format_source()->set_inline_string(TextFormat(mesh));
  }
  AccessLogPb log;
  log.set_name("envoy.access_loggers.file");
  *log.mutable_typed_config() = PackAny(file);
  return log;
}

}  // namespace

std::string FileAccessLog(const config::MeshConfig& mesh) {
  return mesh.access_log_file.empty() ? std::string() : Serialize(MakeFileAccessLog(mesh));
}

std::string ListenerFileAccessLog(const config::MeshConfig& mesh) {
  if (mesh.access_log_file.empty() || mesh.disable_envoy_listener_log) return {};
  AccessLogPb log = MakeFileAccessLog(mesh);
  log.mutable_filter()->mutable_response_flag_filter()->add_flags("NR");
  return Serialize(log);
}

}  // namespace wavetank::pilot
