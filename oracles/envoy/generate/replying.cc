// Filters that change answers by what a client and a service say: compressors, and limits that a service keeps.
#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

std::string FilterType(const std::string& type) { return "type.googleapis.com/envoy.extensions.filters.http." + type; }

Json Common(Draw& d) {
  Json out = Json::object();
  if (d.Maybe(40)) out["min_content_length"] = d.Of({30, 100, 300});
  if (d.Maybe(30)) out["content_type"] = Json::array({d.Of({"text/html", "application/json"}), "text/plain"});
  if (d.Maybe(15)) out["enabled"] = {{"default_value", d.Maybe(50)}, {"runtime_key", "e"}};
  return out;
}

Json CompressorOf(Draw& d, const std::string& library) {
  const std::string type = library == "gzip" ? "gzip.compressor.v3.Gzip" : "brotli.compressor.v3.Brotli";
  Json out = {
      {"@type", FilterType("compressor.v3.Compressor")},
      {"compressor_library",
       {{"name", "z"}, {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.compression." + type}}}}}};
  if (d.Maybe(85)) {
    out["response_direction_config"] = {{"common_config", Common(d)}};
    if (d.Maybe(20)) out["response_direction_config"]["disable_on_etag_header"] = true;
    if (d.Maybe(20)) out["response_direction_config"]["remove_accept_encoding_header"] = true;
  }
  if (d.Maybe(25)) {
    out["request_direction_config"]["common_config"] = Common(d);
    out["request_direction_config"]["common_config"]["enabled"] = {{"default_value", true}, {"runtime_key", "r"}};
  }
  if (d.Maybe(15)) out["choose_first"] = true;
  return out;
}

Json CompressorOfRoute(Draw& d) {
  Json out = {{"@type", FilterType("compressor.v3.CompressorPerRoute")}};
  if (d.Maybe(50)) {
    out["disabled"] = true;
  } else {
    out["overrides"] = {{"response_direction_config", {{"remove_accept_encoding_header", d.Maybe(50)}}}};
  }
  return out;
}

Json Action(Draw& d) {
  switch (d.Int(0, 4)) {
    case 0:
      return {
          {"request_headers", {{"header_name", "x-one"}, {"descriptor_key", "one"}, {"skip_if_absent", d.Maybe(30)}}}};
    case 1:
      return {{"remote_address", Json::object()}};
    case 2:
      return {{"destination_cluster", Json::object()}};
    case 3:
      return {{"header_value_match", {{"descriptor_value", "m"}, {"headers", Json::array({DrawHeaderMatch(d)})}}}};
    default:
      return {{"generic_key", {{"descriptor_value", d.Of({"a", "b"})}}}};
  }
}

Json LimitsOf(Draw& d) {
  Json out = Json::array();
  for (int n = d.Int(0, 2); n > 0; --n) {
    Json limit = {{"actions", Json::array({Action(d)})}};
    if (d.Maybe(30)) limit["actions"].push_back(Action(d));
    if (d.Maybe(10)) limit["stage"] = 1;
    out.push_back(limit);
  }
  return out;
}

Json ServiceLimits(Draw& d) {
  Json out = Json::array();
  for (const char* key : {"one", "remote_address", "destination_cluster", "header_match", "generic_key"}) {
    if (d.Maybe(70)) {
      out.push_back({{"descriptor", Json::array({Json::array({key, ""})})}, {"requests", d.Int(0, 4)}, {"name", key}});
    }
  }
  return out;
}

}  // namespace

Json CompressingCase(Draw& d) {
  Json out = {{"backends", Backends(2)}};
  out["resources"]["clusters"] = Json::array({Json{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}},
                                              Json{{"static", "d"}, {"hosts", Json::array({BackendAddress(1)})}}});
  const std::string first = d.Of({"gzip", "gzip", "brotli"});
  Json filters = Json::array({Json{{"name", "z1"}, {"typed_config", CompressorOf(d, first)}}});
  if (d.Maybe(25)) {
    filters.push_back({{"name", "z2"}, {"typed_config", CompressorOf(d, first == "gzip" ? "brotli" : "gzip")}});
  }
  Json hosts = DrawVirtualHosts(d);
  for (Json& host : hosts) {
    for (Json& route : host["routes"]) {
      if (d.Maybe(20)) route["typed_per_filter_config"]["z1"] = CompressorOfRoute(d);
    }
  }
  const Json table = {{"name", "l"}, {"virtual_hosts", hosts}, {"validate_clusters", false}};
  out["resources"]["listeners"] = Json::array(
      {Json{{"http", "l"}, {"at", kListener}, {"filters", filters}, {"manager", {{"route_config", table}}}}});
  Json steps = Json::array();
  for (int n = d.Int(8, 12); n > 0; --n) {
    if (d.Maybe(60)) {
      for (int i = 0; i < 2; ++i) {
        Json state = {{"name", BackendName(i)}, {"body", d.Of({1, 29, 30, 120, 500, 3000})}};
        Json& said = state["headers"] = Json::object();
        if (d.Maybe(80)) {
          said["content-type"] =
              d.Of({"text/html", "text/html; charset=utf-8", "application/json", "image/png", "text/plain"});
        }
        if (d.Maybe(20)) said["etag"] = d.Of({"\"abc\"", "W/\"abc\""});
        if (d.Maybe(15)) said["vary"] = d.Of({"Cookie", "Accept-Encoding", "accept-encoding"});
        if (d.Maybe(10)) said["cache-control"] = d.Of({"no-transform", "max-age=3"});
        if (d.Maybe(10)) said["content-encoding"] = "br";
        steps.push_back({{"backend", state}});
      }
    }
    Json step = DrawRequest(d);
    Json& r = step["requests"];
    if (r.contains("headers")) {
      r["headers"].erase("connection");
      r["headers"].erase("upgrade");
    }
    if (d.Maybe(85)) {
      r["headers"]["accept-encoding"] =
          d.Of({"gzip", "gzip, br", "br;q=0.5, gzip;q=0.7", "*", "identity", "gzip;q=0, *", "deflate"});
    }
    for (const char* more : {"content-encoding", "vary", "etag", "content-length"}) r["show"].push_back(more);
    steps.push_back(step);
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_rq_total"};
  return out;
}

Json LimitingCase(Draw& d) {
  Json out = {{"backends", Backends(3)}};
  const std::string service = BackendName(2);
  out["rate_limiters"][service] = ServiceLimits(d);
  const char* const kOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  out["resources"]["clusters"] =
      Json::array({Json{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}},
                   Json{{"static", "d"}, {"hosts", Json::array({BackendAddress(1)})}},
                   Json{{"static", "limits"},
                        {"hosts", Json::array({BackendAddress(2)})},
                        {"typed_extension_protocol_options",
                         {{kOptions,
                           {{"@type", fmt::format("type.googleapis.com/{}", kOptions)},
                            {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}}}}}}});
  Json filter = {{"@type", FilterType("ratelimit.v3.RateLimit")},
                 {"domain", "d"},
                 {"timeout", "2s"},
                 {"failure_mode_deny", d.Maybe(40)},
                 {"rate_limit_service",
                  {{"transport_api_version", "V3"}, {"grpc_service", {{"envoy_grpc", {{"cluster_name", "limits"}}}}}}}};
  if (d.Maybe(15)) filter["stage"] = 1;
  if (d.Maybe(40)) filter["enable_x_ratelimit_headers"] = "DRAFT_VERSION_03";
  if (d.Maybe(20)) filter["disable_x_envoy_ratelimited_header"] = true;
  if (d.Maybe(20)) filter["rate_limited_as_resource_exhausted"] = true;
  if (d.Maybe(20)) filter["rate_limited_status"] = {{"code", d.Of({"ServiceUnavailable", "Forbidden"})}};
  if (d.Maybe(10)) filter["request_type"] = d.Of({"internal", "external", "both"});
  Json hosts = DrawVirtualHosts(d);
  for (Json& host : hosts) {
    if (d.Maybe(40)) host["rate_limits"] = LimitsOf(d);
    for (Json& route : host["routes"]) {
      if (!route.contains("route")) continue;
      route["route"]["rate_limits"] = LimitsOf(d);
      if (d.Maybe(20)) route["route"]["include_vh_rate_limits"] = true;
    }
  }
  const Json table = {{"name", "l"}, {"virtual_hosts", hosts}, {"validate_clusters", false}};
  const Json filters = Json::array({Json{{"name", "envoy.filters.http.ratelimit"}, {"typed_config", filter}}});
  out["resources"]["listeners"] = Json::array(
      {Json{{"http", "l"}, {"at", kListener}, {"filters", filters}, {"manager", {{"route_config", table}}}}});
  Json steps = Json::array();
  if (d.Maybe(30)) {
    steps.push_back({{"backend", {{"name", service}, {"headers", {{"x-said", "limiter"}}}}}});
  }
  for (int n = d.Int(8, 14); n > 0; --n) {
    if (d.Maybe(6)) steps.push_back({{"backend", {{"name", service}, {"code", d.Of({200, 500})}}}});
    Json step = DrawRequest(d);
    Json& r = step["requests"];
    if (r.contains("headers")) {
      r["headers"].erase("connection");
      r["headers"].erase("upgrade");
    }
    for (const char* more : {"x-ratelimit-limit", "x-ratelimit-remaining", "x-envoy-ratelimited", "x-said"})
      r["show"].push_back(more);
    steps.push_back(step);
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.d.upstream_rq_total"};
  return out;
}

}  // namespace wavetank::envoydiff
