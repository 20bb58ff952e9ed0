// Routes and what they do to heads of requests and answers.
#include <set>
#include <vector>

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kPaths = {
    "/",   "/a",       "/a/",   "/a/b",   "/a/b/c?q=1",       "/A/b",  "/long/path", "/long/path/more?x=1&y=2",
    "/ab", "/a?debug", "/a?q=", "/x.y/z", "/a/b?q=one&q=two", "/a/bc", "/b",         "/b/a"};
const std::vector<std::string> kOddPaths = {"//a",      "/a/../b",  "/a/./b",       "/a/%2e%2e/b", "/a%2Fb",
                                            "/%61",     "/a//b",    "/a%5cb",       "/a\\b",       "/../a",
                                            "/a/%2E/b", "/a;v=1/b", "/a%2fb?x=%2f", "/a/..%2fb",   "/%"};
const std::vector<std::string> kHosts = {
    "x",         "one.example",      "ONE.example",    "two.example", "deep.one.example",
    "one.other", "one.example:8080", "one.example:80", "unknown",     "x:10000"};
const std::vector<std::string> kDomains = {"x",     "one.example", "*.example",   "*.one.example",
                                           "one.*", "*-x.example", "two.example", "one.example:8080",
                                           "x:*",   "unknown"};
const std::vector<std::string> kValues = {"one", "two", "On", "abc", "5", "-3", "12", "a,b", "one two"};
const std::vector<std::string> kNames = {"x-one", "x-two", "x-num"};

Json PathMatch(Draw& d) {
  switch (d.Int(0, 9)) {
    case 0:
    case 1:
    case 2:
      return {{"prefix", d.Of({"/", "/a", "/a/", "/a/b", "/long", "/A", "/b"})}};
    case 3:
    case 4:
      return {{"path", d.Of({"/", "/a", "/a/b", "/ab", "/A/b", "/long/path"})}};
    case 5:
    case 6:
      return {{"path_separated_prefix", d.Of({"/a", "/a/b", "/long", "/b"})}};
    default:
      return {{"safe_regex", {{"regex", d.Of({"/.*", "/a.*", "/a/[^/]+", "/(a|b)", "/[a-z]+/path.*", "/a/b(/.*)?"})}}}};
  }
}

Json Match(Draw& d) {
  Json match = PathMatch(d);
  if (d.Maybe(15) && !match.contains("safe_regex")) match["case_sensitive"] = false;
  for (int n = d.Maybe(35) ? d.Int(1, 2) : 0; n > 0; --n) match["headers"].push_back(DrawHeaderMatch(d));
  if (d.Maybe(15)) {
    Json query = {{"name", d.Of({"q", "x", "debug"})}};
    d.Maybe(30) ? query["present_match"] = true : query["string_match"] = DrawStringMatch(d, d.Of({"1", "one", ""}));
    match["query_parameters"].push_back(query);
  }
  if (d.Maybe(4)) {
    match["runtime_fraction"] = {{"default_value", {{"numerator", d.Of({0, 100})}, {"denominator", "HUNDRED"}}}};
  }
  if (d.Maybe(4)) match["grpc"] = Json::object();
  return match;
}

std::string HeaderText(Draw& d, bool reply) {
  if (d.Maybe(50)) return d.Of({"one", "two", "set by route", "a,b"});
  const std::string format = d.Of(
      {"%REQ(x-one)%", "%REQ(:path)%", "%PROTOCOL%", "%REQ(x-none?x-two)%", "%REQ(x-one):2%", "%ROUTE_NAME%", "100%%",
       "%REQ(:method)% %REQ(:authority)%", "%DOWNSTREAM_LOCAL_PORT%", "%REQ(x-envoy-original-path?:path)%",
       "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "%REQ(x-none)%", "p-%REQ(x-num)%-s", "%UPSTREAM_CLUSTER%"});
  if (reply && d.Maybe(40))
    return d.Of({"%RESPONSE_CODE%", "%RESPONSE_FLAGS%", "%RESP(x-said)%", "%RESPONSE_CODE_DETAILS%"});
  return format;
}

Json HeaderAdditions(Draw& d, bool reply) {
  Json out = Json::array();
  for (int n = d.Int(1, 3); n > 0; --n) {
    Json option = {
        {"header", {{"key", d.Of({"x-r1", "x-r2", "x-one", "x-said", "X-Case"})}, {"value", HeaderText(d, reply)}}}};
    switch (d.Int(0, 6)) {
      case 0:
        option["append_action"] = "ADD_IF_ABSENT";
        break;
      case 1:
        option["append_action"] = "OVERWRITE_IF_EXISTS_OR_ADD";
        break;
      case 2:
        option["append_action"] = "OVERWRITE_IF_EXISTS";
        break;
      case 3:
        option["append"] = d.Maybe(50);
        break;
      default:
        break;
    }
    if (d.Maybe(10)) option["keep_empty_value"] = true;
    out.push_back(option);
  }
  return out;
}

Json CorsPolicy(Draw& d) {
  Json cors = {{"@type", "type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy"}};
  for (int n = d.Int(1, 2); n > 0; --n)
    cors["allow_origin_string_match"].push_back(DrawStringMatch(d, "http://one.example"));
  if (d.Maybe(70)) cors["allow_methods"] = "GET,POST";
  if (d.Maybe(50)) cors["allow_headers"] = "x-one,x-two";
  if (d.Maybe(50)) cors["expose_headers"] = "x-said";
  if (d.Maybe(50)) cors["max_age"] = "600";
  if (d.Maybe(50)) cors["allow_credentials"] = d.Maybe(70);
  if (d.Maybe(20)) cors["forward_not_matching_preflights"] = d.Maybe(50);
  if (d.Maybe(15)) {
    cors["filter_enabled"] = {{"default_value", {{"numerator", d.Of({0, 100})}, {"denominator", "HUNDRED"}}}};
  }
  return cors;
}

Json RedirectAction(Draw& d) {
  Json out = Json::object();
  if (d.Maybe(30)) out[d.Maybe(70) ? "https_redirect" : "scheme_redirect"] = true;
  if (out.contains("scheme_redirect")) out["scheme_redirect"] = d.Of({"https", "http", "ftp"});
  if (d.Maybe(40)) out["host_redirect"] = d.Of({"new.example", "new.example:90"});
  if (d.Maybe(30)) out["port_redirect"] = d.Of({80, 443, 8080});
  switch (d.Int(0, 4)) {
    case 0:
      out["path_redirect"] = d.Of({"/new", "/new?z=1"});
      break;
    case 1:
      out["prefix_rewrite"] = d.Of({"/p", "/p/", "/"});
      break;
    case 2:
      out["regex_rewrite"] = {{"pattern", {{"regex", "/a"}}}, {"substitution", "/r"}};
      break;
    default:
      break;
  }
  if (d.Maybe(30)) out["response_code"] = d.Of({"FOUND", "SEE_OTHER", "TEMPORARY_REDIRECT", "PERMANENT_REDIRECT"});
  if (d.Maybe(25)) out["strip_query"] = true;
  return out;
}

void Rewrite(Draw& d, Json* action) {
  switch (d.Int(0, 7)) {
    case 0:
    case 1:
      (*action)["prefix_rewrite"] = d.Of({"/", "/p", "/p/", "/new/place", "/p?z=1"});
      break;
    case 2:
      (*action)["regex_rewrite"] = {{"pattern", {{"regex", d.Of({"/a", "^/([^/]+)/(.*)$", "[aeiou]", "/+"})}}},
                                    {"substitution", d.Of({"/r", "/x", "", "/-"})}};
      break;
    default:
      break;
  }
  switch (d.Int(0, 9)) {
    case 0:
      (*action)["host_rewrite_literal"] = d.Of({"new.example", "new.example:90"});
      break;
    case 1:
      (*action)["host_rewrite_header"] = "x-one";
      break;
    case 2:
      (*action)["host_rewrite_path_regex"] = {{"pattern", {{"regex", "^/([^/?]+).*$"}}},
                                              {"substitution", "\\1.example"}};
      break;
    case 3:
      (*action)["auto_host_rewrite"] = true;
      break;
    default:
      break;
  }
  if (d.Maybe(15)) (*action)["append_x_forwarded_host"] = true;
}

Json ForwardAction(Draw& d) {
  Json action = {{"timeout", d.Of({"0s", "15s", "5s"})}};
  switch (d.Int(0, 9)) {
    case 0:
      action["cluster_header"] = "x-cluster";
      break;
    case 1:
    case 2: {
      Json c = {{"name", "c"}, {"weight", 100}}, e = {{"name", "d"}, {"weight", 0}};
      DrawHeaderOperations(d, 50, &c);
      if (d.Maybe(20)) c["host_rewrite_literal"] = "weighted.example";
      action["weighted_clusters"] = {{"clusters", Json::array({c, e})}};
      break;
    }
    case 3:
      action["cluster"] = "nowhere";
      if (d.Maybe(60))
        action["cluster_not_found_response_code"] = d.Of({"NOT_FOUND", "SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR"});
      break;
    default:
      action["cluster"] = d.Of({"c", "c", "d"});
  }
  if (d.Maybe(60)) Rewrite(d, &action);
  if (d.Maybe(8)) {
    Json mirror = {{"cluster", "d"}};
    if (d.Maybe(30)) mirror["runtime_fraction"] = {{"default_value", {{"numerator", d.Of({0, 100})}}}};
    action["request_mirror_policies"].push_back(mirror);
  }
  if (d.Maybe(10))
    action["retry_policy"] = {{"retry_on", d.Of({"5xx", "retriable-4xx", "connect-failure"})},
                              {"num_retries", d.Int(0, 2)}};
  if (d.Maybe(8)) action["upgrade_configs"] = Json::array({Json{{"upgrade_type", "websocket"}, {"enabled", false}}});
  return action;
}

Json RouteOf(Draw& d, int index) {
  Json route = {{"match", Match(d)}};
  if (d.Maybe(70)) route["name"] = fmt::format("r{}", index);
  if (d.Maybe(10)) {
    route["redirect"] = RedirectAction(d);
  } else if (d.Maybe(10)) {
    route["direct_response"] = {{"status", d.Of({200, 201, 302, 404, 418, 503})}};
    if (d.Maybe(60)) route["direct_response"]["body"] = {{"inline_string", d.Of({"hello", "sorry\n", ""})}};
  } else {
    route["route"] = ForwardAction(d);
  }
  DrawHeaderOperations(d, 30, &route);
  if (d.Maybe(15)) route["typed_per_filter_config"] = {{"envoy.filters.http.cors", CorsPolicy(d)}};
  if (d.Maybe(5)) route["decorator"] = {{"operation", "decorated"}};
  return route;
}

Json Manager(Draw& d) {
  Json m = Json::object();
  if (d.Maybe(30)) m["normalize_path"] = d.Maybe(80);
  if (d.Maybe(25)) m["merge_slashes"] = true;
  if (d.Maybe(20)) {
    m["path_with_escaped_slashes_action"] =
        d.Of({"KEEP_UNCHANGED", "REJECT_REQUEST", "UNESCAPE_AND_REDIRECT", "UNESCAPE_AND_FORWARD"});
  }
  if (d.Maybe(25)) m["use_remote_address"] = d.Maybe(80);
  if (d.Maybe(15)) m["xff_num_trusted_hops"] = d.Int(1, 2);
  if (d.Maybe(8)) m["skip_xff_append"] = true;
  if (d.Maybe(10)) m["server_name"] = "istio-envoy";
  if (d.Maybe(10)) m["server_header_transformation"] = d.Of({"APPEND_IF_ABSENT", "PASS_THROUGH", "OVERWRITE"});
  if (d.Maybe(8)) m["via"] = "proxy";
  if (d.Maybe(8)) m["strip_any_host_port"] = true;
  if (d.Maybe(8) && !m.contains("strip_any_host_port")) m["strip_matching_host_port"] = true;
  if (d.Maybe(10))
    m["forward_client_cert_details"] =
        d.Of({"SANITIZE", "FORWARD_ONLY", "APPEND_FORWARD", "SANITIZE_SET", "ALWAYS_FORWARD_ONLY"});
  if (d.Maybe(5)) m["common_http_protocol_options"]["max_requests_per_connection"] = d.Int(1, 3);
  return m;
}

}  // namespace

Json DrawStringMatch(Draw& d, const std::string& about) {
  Json m = Json::object();
  switch (d.Int(0, 4)) {
    case 0:
      m["prefix"] = about.empty() ? "o" : about.substr(0, 1 + about.size() / 2);
      break;
    case 1:
      m["suffix"] = about.empty() ? "e" : about.substr(about.size() / 2);
      break;
    case 2:
      m["contains"] = about.empty() ? "n" : about.substr(about.size() / 3, 1);
      break;
    case 3:
      return {{"safe_regex", {{"regex", d.Of({".*", "o.*", "[a-z]+", "\\d+", "http://.*", "one|two"})}}}};
    default:
      m["exact"] = about;
  }
  if (d.Maybe(20)) m["ignore_case"] = true;
  return m;
}

Json DrawHeaderMatch(Draw& d) {
  Json m = {
      {"name", d.Of({"x-one", "x-two", "x-num", ":method", ":authority", "x-forwarded-proto", ":path", "X-One"})}};
  switch (d.Int(0, 5)) {
    case 0:
      m["present_match"] = d.Maybe(70);
      break;
    case 1:
      m["range_match"] = {{"start", d.Int(-5, 5)}, {"end", d.Int(6, 20)}};
      break;
    default:
      m["string_match"] = DrawStringMatch(d, m["name"] == ":method"             ? "GET"
                                             : m["name"] == "x-forwarded-proto" ? "http"
                                                                                : d.Of(kValues));
  }
  if (d.Maybe(20)) m["invert_match"] = true;
  if (d.Maybe(15)) m["treat_missing_header_as_empty"] = true;
  return m;
}

void DrawHeaderOperations(Draw& d, int percent, Json* level) {
  if (d.Maybe(percent)) (*level)["request_headers_to_add"] = HeaderAdditions(d, false);
  if (d.Maybe(percent / 2))
    (*level)["request_headers_to_remove"] = Json::array({d.Of({"x-one", "x-two", "x-r1", "cookie"})});
  if (d.Maybe(percent)) (*level)["response_headers_to_add"] = HeaderAdditions(d, true);
  if (d.Maybe(percent / 2)) (*level)["response_headers_to_remove"] = Json::array({d.Of({"x-said", "x-r1", "server"})});
}

Json DrawVirtualHosts(Draw& d) {
  Json hosts = Json::array();
  std::set<std::string> taken;
  int routes = 0;
  const int count = d.Int(1, 3);
  for (int i = 0; i < count; ++i) {
    Json domains = Json::array();
    for (int n = d.Int(1, 2); n > 0; --n) {
      const std::string domain = d.Of(kDomains);
      if (taken.insert(domain).second) domains.push_back(domain);
    }
    if (i == 0 || domains.empty()) domains = Json::array();
    if (domains.empty()) {
      if (!taken.insert("*").second) continue;
      domains.push_back("*");
    }
    Json host = {{"name", fmt::format("v{}", i)}, {"domains", domains}, {"routes", Json::array()}};
    for (int n = d.Int(1, 4); n > 0; --n) host["routes"].push_back(RouteOf(d, routes++));
    DrawHeaderOperations(d, 25, &host);
    if (d.Maybe(10)) host["require_tls"] = d.Of({"ALL", "EXTERNAL_ONLY", "NONE"});
    if (d.Maybe(30)) host["include_request_attempt_count"] = true;
    if (d.Maybe(20)) host["include_attempt_count_in_response"] = true;
    if (d.Maybe(10)) host["typed_per_filter_config"] = {{"envoy.filters.http.cors", CorsPolicy(d)}};
    hosts.push_back(host);
  }
  return hosts;
}

Json DrawRequest(Draw& d) {
  Json r = {{"to", kListener},
            {"path", d.Maybe(18) ? d.Of(kOddPaths) : d.Of(kPaths)},
            {"host", d.Maybe(50) ? std::string("x") : d.Of(kHosts)}};
  Json headers = Json::object();
  for (const std::string& name : kNames) {
    if (!d.Maybe(30)) continue;
    headers[name] = name == "x-num" ? d.Of({"5", "-3", "12", "x", "6"}) : d.Of(kValues);
    if (d.Maybe(8)) headers[name] = {d.Of(kValues), d.Of(kValues)};
  }
  if (d.Maybe(12)) r["method"] = d.Of({"POST", "PUT", "DELETE", "HEAD", "OPTIONS"});
  if (d.Maybe(12)) headers["x-cluster"] = d.Of({"c", "d", "nowhere"});
  if (d.Maybe(10))
    headers["x-forwarded-for"] = d.Of({"10.0.0.1", "10.0.0.1, 192.168.1.1", "1.2.3.4,5.6.7.8 , 9.9.9.9", "junk"});
  if (d.Maybe(8)) headers["x-forwarded-proto"] = d.Of({"https", "http"});
  if (d.Maybe(4)) headers["x-forwarded-host"] = "before.example";
  if (d.Maybe(12)) {
    headers["origin"] = d.Of({"http://one.example", "http://two.example", "https://one.example"});
    if (d.Maybe(60)) {
      r["method"] = "OPTIONS";
      if (d.Maybe(80)) headers["access-control-request-method"] = d.Of({"GET", "PUT"});
      if (d.Maybe(40)) headers["access-control-request-headers"] = "x-one";
    }
  }
  if (d.Maybe(5)) {
    headers["content-type"] = d.Of({"application/grpc", "application/grpc+proto", "application/json"});
    if (headers["content-type"] != "application/json") r["method"] = "POST";
  }
  if (d.Maybe(3)) headers["x-envoy-upstream-rq-timeout-ms"] = d.Of({"3000", "junk", "0"});
  if (d.Maybe(3)) headers["x-envoy-decorator-operation"] = "mine";
  if (d.Maybe(4)) headers["cookie"] = d.Of({"a=1; b=2", "session=abc"});
  if (d.Maybe(3)) headers["x_under"] = "score";
  if (d.Maybe(3)) headers["x-envoy-original-path"] = "/original";
  if (d.Maybe(3)) headers["x-envoy-attempt-count"] = "7";
  if (d.Maybe(3)) headers["x-forwarded-client-cert"] = "By=a;URI=spiffe://x";
  if (d.Maybe(3)) {
    headers["connection"] = "Upgrade";
    headers["upgrade"] = d.Of({"websocket", "h2c", "WebSocket"});
  }
  if (d.Maybe(2)) headers["via"] = "1.1 before";
  if (!headers.empty()) r["headers"] = headers;
  if (r.value("method", "GET") == "POST" && d.Maybe(50)) r["body"] = d.Int(1, 200);
  r["show"] = {"location",
               "x-r1",
               "x-r2",
               "x-one",
               "x-said",
               "x-case",
               "content-type",
               "server",
               "access-control-allow-origin",
               "access-control-allow-methods",
               "access-control-allow-headers",
               "access-control-max-age",
               "access-control-expose-headers",
               "access-control-allow-credentials",
               "x-envoy-attempt-count",
               "grpc-status",
               "grpc-message",
               "via",
               "x-envoy-decorator-operation"};
  return {{"requests", r}};
}

void AddEcho(int backends, Json* steps) {
  for (int i = 0; i < backends; ++i) {
    const Json echo = {":path",
                       "host",
                       "x-one",
                       "x-two",
                       "x-r1",
                       "x-r2",
                       "x-case",
                       "cookie",
                       "x-forwarded-host",
                       "x-forwarded-proto",
                       "x-forwarded-for",
                       "x-envoy-original-path",
                       "x-envoy-attempt-count",
                       "x-envoy-expected-rq-timeout-ms",
                       "x-envoy-decorator-operation",
                       "x-envoy-internal",
                       "x-envoy-external-address",
                       "x_under",
                       "x-forwarded-client-cert",
                       "x-envoy-upstream-rq-timeout-ms",
                       "via",
                       "x-envoy-original-host",
                       "x-envoy-downstream-service-cluster"};
    steps->push_back(
        {{"backend", {{"name", BackendName(i)}, {"echo", echo}, {"headers", {{"x-said", "by " + BackendName(i)}}}}}});
  }
}

Json HeadsCase(Draw& d) {
  Json out = {{"backends", Backends(2)}};
  out["resources"]["clusters"] = {{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}},
                                  {{"static", "d"}, {"hosts", Json::array({BackendAddress(1)})}}};
  Json table = {{"name", "l"}, {"virtual_hosts", DrawVirtualHosts(d)}, {"validate_clusters", false}};
  DrawHeaderOperations(d, 15, &table);
  if (d.Maybe(15)) table["most_specific_header_mutations_wins"] = true;
  if (d.Maybe(15)) table["ignore_port_in_host_matching"] = true;
  Json manager = Manager(d);
  manager["route_config"] = table;
  Json listener = {{"http", "l"}, {"at", kListener}, {"manager", manager}};
  if (d.Maybe(50)) {
    const Json cors = {{"name", "envoy.filters.http.cors"},
                       {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors"}}}};
    listener["filters"] = Json::array({cors});
  }
  if (d.Maybe(40)) {
    table["name"] = "rds-1";
    out["resources"]["routes"] = Json::array({table});
    listener["manager"].erase("route_config");
    listener["rds"] = "rds-1";
  }
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array();
  AddEcho(2, &steps);
  for (int n = d.Int(14, 24); n > 0; --n) {
    steps.push_back(DrawRequest(d));
    // A real Envoy says of a client at 127.0.0.1 that it is at the machine's own address.
    if (manager.value("use_remote_address", false)) steps.back()["requests"]["from"] = "127.77.0.201";
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.d.upstream_rq_total"};
  return out;
}

}  // namespace wavetank::envoydiff
