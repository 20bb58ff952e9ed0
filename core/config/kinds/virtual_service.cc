#include "core/config/kinds/virtual_service.h"

#include "absl/strings/escaping.h"
#include "core/config/kinds/read_message.h"

namespace wavetank::config {

namespace {
struct Percent {
  double value = 0;
};
void ReadMessage(ProtoJson& in, Percent& out) { in.Field("value", out.value); }

std::optional<double> ReadPercent(ProtoJson& in, std::string_view field) {
  std::optional<Percent> percent;
  in.Field(field, percent);
  return percent ? std::optional(percent->value) : std::nullopt;
}
}  // namespace

void ReadMessage(ProtoJson& in, HeaderOperations& out) {
  in.Field("set", out.set);
  in.Field("add", out.add);
  in.Field("remove", out.remove);
}

void ReadMessage(ProtoJson& in, Headers& out) {
  in.Field("request", out.request);
  in.Field("response", out.response);
}

void ReadMessage(ProtoJson& in, HttpMatchRequest& out) {
  in.Field("name", out.name);
  in.Field("uri", out.uri);
  in.Field("scheme", out.scheme);
  in.Field("method", out.method);
  in.Field("authority", out.authority);
  in.Field("headers", out.headers);
  in.Field("port", out.port);
  in.Field("sourceLabels", out.source_labels);
  in.Field("gateways", out.gateways);
  in.Field("queryParams", out.query_params);
  in.Field("ignoreUriCase", out.ignore_uri_case);
  in.Field("withoutHeaders", out.without_headers);
  in.Field("sourceNamespace", out.source_namespace);
  in.Field("statPrefix", out.stat_prefix);
}

void ReadMessage(ProtoJson& in, HttpRouteDestination& out) {
  out.has_destination = in.Has("destination");
  in.Field("destination", out.destination);
  in.Field("weight", out.weight);
  in.Field("headers", out.headers);
}

void ReadMessage(ProtoJson& in, RouteDestination& out) {
  out.has_destination = in.Has("destination");
  in.Field("destination", out.destination);
  in.Field("weight", out.weight);
}

void ReadMessage(ProtoJson& in, HttpRewrite::Regex& out) {
  in.Field("match", out.match);
  in.Field("rewrite", out.rewrite);
}

void ReadMessage(ProtoJson& in, HttpRewrite& out) {
  in.Field("uri", out.uri);
  in.Field("authority", out.authority);
  in.Field("uriRegexRewrite", out.uri_regex);
}

void ReadMessage(ProtoJson& in, HttpRedirect& out) {
  using DerivePort = HttpRedirect::DerivePort;
  in.Field("uri", out.uri);
  in.Field("authority", out.authority);
  in.Field("scheme", out.scheme);
  in.Field("port", out.port);
  if (in.Has("derivePort")) {
    out.derive_port = DerivePort::kFromProtocolDefault;
    in.Enum("derivePort", *out.derive_port,
            {{"FROM_PROTOCOL_DEFAULT", DerivePort::kFromProtocolDefault},
             {"FROM_REQUEST_PORT", DerivePort::kFromRequestPort}});
  }
  in.Field("redirectCode", out.redirect_code);
}

void ReadMessage(ProtoJson& in, HttpDirectResponse& out) {
  in.Field("status", out.status);
  const nlohmann::json* body = in.Find("body");
  if (body == nullptr) return;
  ProtoJson fields(*body, in.PathOf("body"), in.status());
  fields.Field("string", out.body);
  if (std::string encoded; fields.Has("bytes")) {
    fields.Field("bytes", encoded);
    std::string decoded;
    if (!absl::Base64Unescape(encoded, &decoded)) return fields.Fail("bytes", "expected base64");
    out.body = std::move(decoded);
    out.body_is_bytes = true;
  }
}

void ReadMessage(ProtoJson& in, HttpRetry& out) {
  in.Field("attempts", out.attempts);
  in.Field("perTryTimeout", out.per_try_timeout);
  in.Field("retryOn", out.retry_on);
  in.Field("retryRemoteLocalities", out.retry_remote_localities);
  in.Field("retryIgnorePreviousHosts", out.retry_ignore_previous_hosts);
  in.Field("backoff", out.backoff);
}

void ReadMessage(ProtoJson& in, HttpFaultInjection::Delay& out) {
  in.Field("percent", out.percent);
  in.Field("fixedDelay", out.fixed_delay);
  out.percentage = ReadPercent(in, "percentage");
}

void ReadMessage(ProtoJson& in, HttpFaultInjection::Abort& out) {
  in.Field("httpStatus", out.http_status);
  in.Field("grpcStatus", out.grpc_status);
  out.percentage = ReadPercent(in, "percentage");
}

void ReadMessage(ProtoJson& in, HttpFaultInjection& out) {
  in.Field("delay", out.delay);
  in.Field("abort", out.abort);
}

void ReadMessage(ProtoJson& in, CorsPolicy& out) {
  in.Field("allowOrigin", out.allow_origin);
  in.Field("allowOrigins", out.allow_origins);
  in.Field("allowMethods", out.allow_methods);
  in.Field("allowHeaders", out.allow_headers);
  in.Field("exposeHeaders", out.expose_headers);
  in.Field("maxAge", out.max_age);
  in.Field("allowCredentials", out.allow_credentials);
  using Unmatched = CorsPolicy::UnmatchedPreflights;
  in.Enum("unmatchedPreflights", out.unmatched_preflights,
          {{"UNSPECIFIED", Unmatched::kUnspecified}, {"FORWARD", Unmatched::kForward}, {"IGNORE", Unmatched::kIgnore}});
}

void ReadMessage(ProtoJson& in, Delegate& out) {
  in.Field("name", out.name);
  in.Field("namespace", out.ns);
}

void ReadMessage(ProtoJson& in, HttpMirrorPolicy& out) {
  in.Field("destination", out.destination);
  out.percentage = ReadPercent(in, "percentage");
}

void ReadMessage(ProtoJson& in, HttpRoute& out) {
  in.Field("name", out.name);
  in.Field("match", out.match);
  in.Field("route", out.route);
  in.Field("redirect", out.redirect);
  in.Field("directResponse", out.direct_response);
  in.Field("delegate", out.delegate);
  in.Field("rewrite", out.rewrite);
  in.Field("timeout", out.timeout);
  in.Field("retries", out.retries);
  in.Field("fault", out.fault);
  in.Field("mirror", out.mirror);
  in.Field("mirrorPercent", out.mirror_percent);
  out.mirror_percentage = ReadPercent(in, "mirrorPercentage");
  in.Field("mirrors", out.mirrors);
  in.Field("corsPolicy", out.cors_policy);
  in.Field("headers", out.headers);
}

void ReadMessage(ProtoJson& in, TlsMatchAttributes& out) {
  in.Field("sniHosts", out.sni_hosts);
  in.Field("destinationSubnets", out.destination_subnets);
  in.Field("port", out.port);
  in.Field("sourceLabels", out.source_labels);
  in.Field("gateways", out.gateways);
  in.Field("sourceNamespace", out.source_namespace);
}

void ReadMessage(ProtoJson& in, L4MatchAttributes& out) {
  in.Field("destinationSubnets", out.destination_subnets);
  in.Field("port", out.port);
  in.Field("sourceSubnet", out.source_subnet);
  in.Field("sourceLabels", out.source_labels);
  in.Field("gateways", out.gateways);
  in.Field("sourceNamespace", out.source_namespace);
}

void ReadMessage(ProtoJson& in, TlsRoute& out) {
  in.Field("match", out.match);
  in.Field("route", out.route);
}

void ReadMessage(ProtoJson& in, TcpRoute& out) {
  in.Field("match", out.match);
  in.Field("route", out.route);
}

void ReadMessage(ProtoJson& in, VirtualService& out) {
  in.Field("hosts", out.hosts);
  in.Field("gateways", out.gateways);
  in.Field("http", out.http);
  in.Field("tls", out.tls);
  in.Field("tcp", out.tcp);
  in.Field("exportTo", out.export_to);
}

}  // namespace wavetank::config
