// Clients: HTTP/2, TLS, gRPC, the PROXY protocol, bodies, several flows at once and requests under way across a push.
#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

Json DirectRoute(int status) { return {{"match", {{"prefix", "/"}}}, {"direct_response", {{"status", status}}}}; }

Json ListenerTo(const Json& manager) { return {{"http", "l"}, {"at", kListener}, {"to", "c"}, {"manager", manager}}; }

Json ClientSecrets() {
  return {{"default", {{"san", "spiffe://cluster.local/ns/a/sa/a"}}},
          {"other", {{"san", "spiffe://cluster.local/ns/b/sa/b"}, {"ca", "other"}}},
          {"old", {{"san", "spiffe://cluster.local/ns/a/sa/a"}, {"validity", "expired"}}},
          {"ROOTCA", {{"roots", Json::array({"mesh"})}}}};
}

// How one step's clients speak; `tls`: the listener does.
void DrawClient(Draw& d, bool tls, Json* requests) {
  Json& r = *requests;
  if (d.Maybe(40)) r["http2"] = true;
  if (tls && d.Maybe(90)) {
    Json& client = r["tls"] = Json::object();
    if (d.Maybe(60)) client["certificate"] = d.Of({"default", "default", "other", "old"});
    if (d.Maybe(30)) client["sni"] = d.Of({"a.example", "b.example"});
    if (d.Maybe(20)) client["root"] = "ROOTCA";
    if (d.Maybe(15)) client["versions"] = Json::array({"TLSv1_2", d.Of({"TLSv1_2", "TLSv1_3"})});
  }
  if (d.Maybe(20)) {
    r["method"] = "POST";
    r["body"] = d.Of({1, 1000, 70000});
  }
}

Json ClientStep(Draw& d, bool tls) {
  Json r = {{"to", kListener}, {"count", d.Int(1, 4)}, {"path", d.Of({"/", "/a", "/a?b=1"})}};
  DrawClient(d, tls, &r);
  if (d.Maybe(25)) r["keep_alive"] = false;
  if (d.Maybe(30)) r["parallel"] = d.Int(1, 3);
  return {{"requests", r}};
}

}  // namespace

Json SpeakingCase(Draw& d) {
  Json out = {{"backends", Backends(1)}};
  const bool tls = d.Maybe(50);
  out["resources"]["clusters"] = Json::array({Json{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}}});
  Json manager = Json::object();
  if (d.Maybe(20)) manager["common_http_protocol_options"] = {{"max_requests_per_connection", d.Int(1, 3)}};
  Json listener = ListenerTo(manager);
  if (tls) {
    out["secrets"] = ClientSecrets();
    Json& mtls = listener["mtls"] = {{"certificate", "default"}, {"alpn", Json::array({"h2", "http/1.1"})}};
    if (d.Maybe(60)) mtls["root"] = "ROOTCA";
    if (!mtls.contains("root") || d.Maybe(40)) mtls["require"] = false;
    if (d.Maybe(20)) mtls["versions"] = Json::array({d.Of({"TLSv1_2", "TLSv1_3"}), "TLSv1_3"});
  }
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array();
  steps.push_back(
      {{"backend", {{"name", "a"}, {"echo", {":bytes", "x-forwarded-proto"}}, {"body", d.Of({1, 100, 50000})}}}});
  for (int n = d.Int(4, 8); n > 0; --n) steps.push_back(ClientStep(d, tls));
  if (d.Maybe(40)) {  // requests under way across a push
    steps.push_back({{"backend", {{"name", "a"}, {"delay_ms", 600}}}});
    Json under_way = ClientStep(d, tls);
    const int clients = d.Int(1, 3);
    under_way["requests"].update({{"background", true}, {"count", clients}, {"parallel", clients}});
    steps.push_back(under_way);
    steps.push_back({{"wait_ms", 200}});
    Json changed = listener;
    changed.erase("to");
    changed["virtual_hosts"] = Json::array(
        {Json{{"name", "v"}, {"domains", Json::array({"*"})}, {"routes", Json::array({DirectRoute(418)})}}});
    steps.push_back({{"push", {{"listeners", Json::array({changed})}}}});
    steps.push_back(ClientStep(d, tls));
    steps.push_back({{"join", true}});
  }
  out["steps"] = steps;
  // A connection is seen even if none of its requests is.
  out["stats"] = {"cluster.c.upstream_rq_total", "http.l.downstream_rq_http2_total", "http.l.downstream_cx_total"};
  if (tls) {
    for (const char* stat : {"handshake", "connection_error", "fail_verify_error", "fail_verify_no_cert"}) {
      out["stats"].push_back(fmt::format("listener.127.77.0.1_10000.ssl.{}", stat));
    }
  }
  return out;
}

Json CallingCase(Draw& d) {
  const char* const kOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  Json out = {{"backends", Backends(1)}, {"grpc_backends", Json::array({"a"})}};
  out["resources"]["clusters"] =
      Json::array({Json{{"static", "c"},
                        {"hosts", Json::array({BackendAddress(0)})},
                        {"typed_extension_protocol_options",
                         {{kOptions,
                           {{"@type", fmt::format("type.googleapis.com/{}", kOptions)},
                            {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}}}}}}});
  Json route = {{"timeout", d.Of({"0s", "0.4s", "5s"})}};
  if (d.Maybe(40)) route["max_grpc_timeout"] = d.Of({"0s", "0.4s", "5s"});
  if (d.Maybe(20)) route["max_stream_duration"] = {{"grpc_timeout_header_max", d.Of({"0s", "0.4s"})}};
  if (d.Maybe(50)) {
    route["retry_policy"] = {
        {"retry_on", d.Of({"unavailable", "cancelled,resource-exhausted", "5xx", "deadline-exceeded,internal"})},
        {"num_retries", d.Int(1, 2)}};
  }
  Json listener = {{"http", "l"}, {"at", kListener}, {"to", "c"}, {"route", route}};
  if (d.Maybe(30)) {
    Json abort = {{"percentage", {{"numerator", 100}}}};
    d.Maybe(50) ? abort["grpc_status"] = d.Of({5, 14}) : abort["http_status"] = d.Of({403, 404, 429, 503});
    listener["filters"] =
        Json::array({Json{{"name", "envoy.filters.http.fault"},
                          {"typed_config",
                           {{"@type", "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"},
                            {"headers", Json::array({Json{{"name", "x-fail"}, {"present_match", true}}})},
                            {"abort", abort}}}}});
  }
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array();
  for (int n = d.Int(4, 8); n > 0; --n) {
    if (d.Maybe(60)) {
      Json state = {{"name", "a"}, {"grpc_status", d.Of({0, 0, 1, 4, 5, 8, 13, 14, 16})}};
      if (d.Maybe(40)) state["grpc_message"] = "told";
      if (d.Maybe(30)) state["delay_ms"] = 800;
      if (d.Maybe(8)) state = {{"name", "a"}, {"up", false}};
      steps.push_back({{"backend", state}});
    }
    Json r = {{"to", kListener}, {"grpc", true}, {"path", "/pkg.Service/Call"}, {"count", d.Int(1, 2)}};
    r["headers"] = Json::object();
    // Shorter than any answer, longer, or nearly none, which an answer that takes no time would race.
    const bool slow =
        !steps.empty() && steps.back().contains("backend") && steps.back()["backend"].contains("delay_ms");
    if (d.Maybe(40)) r["headers"]["grpc-timeout"] = d.Of({"300m", "2S", slow ? "100u" : "2S"});
    if (d.Maybe(30)) r["headers"]["x-fail"] = "1";
    steps.push_back({{"requests", r}});
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.c.upstream_rq_retry"};
  return out;
}

Json AnnouncingCase(Draw& d) {
  Json out = {{"backends", Backends(1)}};
  Json cluster = {{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}};
  const std::string kSockets = "type.googleapis.com/envoy.extensions.transport_sockets.";
  if (d.Maybe(50)) {
    cluster["transport_socket"] = {{"name", "envoy.transport_sockets.upstream_proxy_protocol"},
                                   {"typed_config",
                                    {{"@type", kSockets + "proxy_protocol.v3.ProxyProtocolUpstreamTransport"},
                                     {"config", {{"version", d.Of({"V1", "V2"})}}},
                                     {"transport_socket",
                                      {{"name", "envoy.transport_sockets.raw_buffer"},
                                       {"typed_config", {{"@type", kSockets + "raw_buffer.v3.RawBuffer"}}}}}}}};
  }
  out["resources"]["clusters"] = Json::array({cluster});
  Json listener = d.Maybe(60) ? ListenerTo({{"use_remote_address", d.Maybe(50)}})
                              : Json{{"tcp", "l"}, {"at", kListener}, {"cluster", "c"}};
  if (d.Maybe(70)) {
    listener["listener_filters"] = Json::array(
        {Json{{"name", "envoy.filters.listener.proxy_protocol"},
              {"typed_config",
               {{"@type", "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"},
                {"allow_requests_without_proxy_protocol", d.Maybe(50)}}}}});
  }
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array({Json{{"backend", {{"name", "a"}, {"echo", {":proxy", "x-forwarded-for"}}}}}});
  for (int n = d.Int(4, 8); n > 0; --n) {
    Json r = {{"to", kListener}, {"from", "127.77.0.201"}, {"count", d.Int(1, 2)}};
    if (d.Maybe(75)) {
      r["proxy_protocol"] = {{"version", d.Int(1, 2)},
                             {"source", d.Of({"10.1.2.3:4567", "10.1.2.4:80"})},
                             {"destination", d.Of({"10.9.8.7:80", "127.77.0.1:10000"})}};
      if (d.Maybe(15)) r["proxy_protocol"] = d.Int(1, 2);
    }
    steps.push_back({{"requests", r}});
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_cx_total"};
  return out;
}

}  // namespace wavetank::envoydiff
