#include "fakes/envoy/config/health_check_config.h"

#include <algorithm>
#include <string_view>

#include "envoy/config/core/v3/health_check.pb.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

using HealthCheckProto = envoy::config::core::v3::HealthCheck;

absl::Status HealthCheckBroken(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("Proto constraint validation failed (ClusterValidationError.HealthChecks[0]: embedded message failed "
                  "validation | caused by HealthCheckValidationError.{}: {})",
                  field, why));
}

// The constraints of health_check.proto.
absl::Status CheckHealthCheck(const HealthCheckProto& check) {
  struct Field {
    const char* name;
    bool has, required;
    const google::protobuf::Duration& value;
  };
  const Field fields[] = {
      {"Timeout", check.has_timeout(), true, check.timeout()},
      {"Interval", check.has_interval(), true, check.interval()},
      {"NoTrafficInterval", check.has_no_traffic_interval(), false, check.no_traffic_interval()},
      {"NoTrafficHealthyInterval", check.has_no_traffic_healthy_interval(), false, check.no_traffic_healthy_interval()},
      {"UnhealthyInterval", check.has_unhealthy_interval(), false, check.unhealthy_interval()},
      {"UnhealthyEdgeInterval", check.has_unhealthy_edge_interval(), false, check.unhealthy_edge_interval()},
      {"HealthyEdgeInterval", check.has_healthy_edge_interval(), false, check.healthy_edge_interval()},
  };
  for (const Field& field : fields) {
    if (field.required && !field.has) return HealthCheckBroken(field.name, "value is required");
    if (field.has && IsZero(field.value)) return HealthCheckBroken(field.name, "value must be greater than 0s");
  }
  if (!check.has_unhealthy_threshold()) return HealthCheckBroken("UnhealthyThreshold", "value is required");
  if (!check.has_healthy_threshold()) return HealthCheckBroken("HealthyThreshold", "value is required");
  if (check.health_checker_case() == HealthCheckProto::HEALTH_CHECKER_NOT_SET) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ClusterValidationError.HealthChecks[0]: embedded message failed "
        "validation | caused by field: \"health_checker\", reason: is required)");
  }
  if (check.has_http_health_check() && check.http_health_check().path().empty()) {
    return HealthCheckBroken("HttpHealthCheck",
                             "embedded message failed validation | caused by HttpHealthCheckValidationError.Path: "
                             "value length must be at least 1 characters");
  }
  return absl::OkStatus();
}

// Envoy: health_checkers/http/health_checker_impl.cc, HttpStatusChecker::validateRange
template <typename Ranges>
absl::Status StatusRanges(const Ranges& ranges, std::string_view kind, HealthCheckConfig::Statuses* out) {
  for (const auto& range : ranges) {
    const auto start = static_cast<uint64_t>(range.start()), end = static_cast<uint64_t>(range.end());
    if (start >= end) {
      return absl::InvalidArgumentError(fmt::format(
          "Invalid http {} status range: expecting start < end, but found start={} and end={}", kind, start, end));
    }
    if (start < 100) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid http {} status range: expecting start >= 100, but found start={}", kind, start));
    }
    if (end > 600) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid http {} status range: expecting end <= 600, but found end={}", kind, end));
    }
    out->emplace_back(start, end);
  }
  return absl::OkStatus();
}

absl::Status SetHttpCheck(const HealthCheckProto::HttpHealthCheck& http, const Extensions& extensions,
                          HealthCheckConfig* out) {
  namespace core = envoy::config::core::v3;
  if (http.method() != core::METHOD_UNSPECIFIED) out->method = core::RequestMethod_Name(http.method());
  if (http.has_send() &&
      (out->method == "GET" || out->method == "HEAD" || out->method == "DELETE" || out->method == "TRACE")) {
    return absl::InvalidArgumentError(
        fmt::format("HTTP health check cannot specify a request payload with method '{}'. Only methods that support a "
                    "request body (POST, PUT, PATCH, OPTIONS) can be used with payload.",
                    out->method));
  }
  out->host = http.host();
  out->path = http.path();
  out->http2 = http.codec_client_type() != envoy::type::v3::HTTP1;
  if (absl::Status s = HeaderOperations::MakeForRequests(http, extensions, &out->headers); !s.ok()) return s;
  if (absl::Status s = StatusRanges(http.expected_statuses(), "expected", &out->expected); !s.ok()) return s;
  if (out->expected.empty()) out->expected.emplace_back(200, 201);
  if (absl::Status s = StatusRanges(http.retriable_statuses(), "retriable", &out->retriable); !s.ok()) return s;
  if (http.has_service_name_matcher()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(http.service_name_matcher());
    if (!match.ok()) return match.status();
    out->service_name = *std::move(match);
  }
  constexpr std::string_view kHttp = "envoy.config.core.v3.HealthCheck.HttpHealthCheck";
  // Of bodies nothing is known but their length.
  if (!http.receive().empty()) extensions.NoteWithoutEffect("active health check", fmt::format("{}.receive", kHttp));
  if (http.codec_client_type() == envoy::type::v3::HTTP3) {
    extensions.NoteWithoutEffect("active health check", fmt::format("{}.codec_client_type HTTP3", kHttp));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HealthCheckConfig>> CompileHealthCheck(const HealthCheckProto& check,
                                                                            const Extensions& extensions) {
  if (absl::Status s = CheckHealthCheck(check); !s.ok()) return s;
  auto out = std::make_shared<HealthCheckConfig>();
  const auto note = [&](std::string_view what) {
    extensions.NoteWithoutEffect("active health check", fmt::format("envoy.config.core.v3.HealthCheck.{}", what));
  };
  out->timeout = ToDuration(check.timeout());
  out->interval = ToDuration(check.interval());
  if (check.has_no_traffic_interval()) out->no_traffic_interval = ToDuration(check.no_traffic_interval());
  out->no_traffic_healthy_interval = check.has_no_traffic_healthy_interval()
                                         ? ToDuration(check.no_traffic_healthy_interval())
                                         : out->no_traffic_interval;
  out->unhealthy_interval = check.has_unhealthy_interval() ? ToDuration(check.unhealthy_interval()) : out->interval;
  out->unhealthy_edge_interval =
      check.has_unhealthy_edge_interval() ? ToDuration(check.unhealthy_edge_interval()) : out->unhealthy_interval;
  out->healthy_edge_interval =
      check.has_healthy_edge_interval() ? ToDuration(check.healthy_edge_interval()) : out->interval;
  out->initial_jitter = ToDuration(check.initial_jitter());
  out->interval_jitter = ToDuration(check.interval_jitter());
  out->interval_jitter_percent = check.interval_jitter_percent();
  out->unhealthy_threshold = check.unhealthy_threshold().value();
  out->healthy_threshold = check.healthy_threshold().value();
  if (check.has_reuse_connection()) out->reuse_connection = check.reuse_connection().value();
  for (const std::string& protocol : check.tls_options().alpn_protocols()) out->alpn.push_back(protocol);
  if (check.has_transport_socket_match_criteria()) {
    StringPairs& criteria = out->socket_criteria.emplace();
    for (const auto& [key, value] : check.transport_socket_match_criteria().fields()) {
      criteria.emplace_back(key, value.string_value());
    }
    std::sort(criteria.begin(), criteria.end());
  }
  if (!check.event_log_path().empty()) note("event_log_path");
  if (!check.event_logger().empty()) note("event_logger");
  switch (check.health_checker_case()) {
    case HealthCheckProto::kHttpHealthCheck:
      out->kind = HealthCheckConfig::Kind::kHttp;
      if (absl::Status s = SetHttpCheck(check.http_health_check(), extensions, out.get()); !s.ok()) return s;
      return out;
    case HealthCheckProto::kTcpHealthCheck:
      out->kind = HealthCheckConfig::Kind::kTcp;
      // What is said on a connection is not modelled: one that stands is well.
      if (!check.tcp_health_check().send().text().empty()) note("TcpHealthCheck.send");
      if (!check.tcp_health_check().receive().empty()) note("TcpHealthCheck.receive");
      return out;
    case HealthCheckProto::kGrpcHealthCheck:
      out->kind = HealthCheckConfig::Kind::kGrpc;
      out->method = "POST";
      out->host = check.grpc_health_check().authority();
      out->path = "/grpc.health.v1.Health/Check";
      out->http2 = true;
      if (absl::Status s =
              HeaderOperations::MakeAdditions(check.grpc_health_check().initial_metadata(), extensions, &out->headers);
          !s.ok()) {
        return s;
      }
      return out;
    default:
      note(fmt::format("CustomHealthCheck {}", check.custom_health_check().name()));
      return std::shared_ptr<const HealthCheckConfig>();
  }
}

std::shared_ptr<const RequestSpec> HealthCheckRequest(const HealthCheckConfig& config, const std::string& cluster,
                                                      const std::string& hostname, const SocketAddress& address,
                                                      Time now) {
  auto spec = std::make_shared<RequestSpec>();
  spec->protocol = config.http2 ? HttpProtocol::kHttp2 : HttpProtocol::kHttp11;
  spec->method = config.method;
  spec->path = config.path;
  // Envoy: source/common/upstream/health_checker_impl.cc, getHostname
  spec->authority = !hostname.empty() ? hostname : !config.host.empty() ? config.host : cluster;
  if (config.kind == HealthCheckConfig::Kind::kGrpc) {
    spec->headers.emplace_back("te", "trailers");
    spec->headers.emplace_back("content-type", "application/grpc");
    spec->headers.emplace_back("grpc-timeout", fmt::format("{}m", config.timeout / 1ms));
  }
  spec->headers.emplace_back("user-agent", "Envoy/HC");
  if (config.headers.empty()) return spec;
  AccessLogEntry entry;
  entry.start = entry.end = now;
  entry.request = spec.get();
  entry.upstream_host = address;
  entry.cluster = cluster;
  RequestEdit edit(*spec);
  config.headers.Apply(entry, &edit);
  std::shared_ptr<const RequestSpec> edited = edit.Take();
  return edited != nullptr ? edited : spec;
}

}  // namespace wavetank::envoysim
