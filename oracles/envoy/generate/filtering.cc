// HTTP filters, alone and in chains, and what routes say to them.
#include <vector>

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

std::string TypeOf(const std::string& type) { return "type.googleapis.com/envoy.extensions.filters.http." + type; }

Json Percent(int numerator) { return {{"numerator", numerator}, {"denominator", "HUNDRED"}}; }

Json Fault(Draw& d) {
  Json f = {{"@type", TypeOf("fault.v3.HTTPFault")}};
  if (d.Maybe(60)) {
    Json abort = {{"percentage", Percent(d.Of({0, 100, 100}))}};
    if (d.Maybe(15)) {
      abort["grpc_status"] = d.Of({4, 5, 14});
    } else if (d.Maybe(10)) {
      abort["header_abort"] = Json::object();
    } else {
      abort["http_status"] = d.Of({400, 418, 500, 503});
    }
    f["abort"] = abort;
  }
  if (d.Maybe(40) || !f.contains("abort")) {
    f["delay"] = {{"percentage", Percent(d.Of({0, 100, 100}))}, {"fixed_delay", "0.030s"}};
  }
  if (d.Maybe(40)) f["headers"] = Json::array({DrawHeaderMatch(d)});
  if (d.Maybe(10)) f["upstream_cluster"] = d.Of({"c", "d"});
  if (d.Maybe(5)) f["max_active_faults"] = d.Of({0, 10});
  return f;
}

Json LocalLimit(Draw& d, bool of_route) {
  Json l = {{"@type", TypeOf("local_ratelimit.v3.LocalRateLimit")},
            {"stat_prefix", of_route ? "route" : "lim"},
            {"token_bucket", {{"max_tokens", d.Int(1, 4)}, {"tokens_per_fill", 1}, {"fill_interval", "60s"}}},
            {"filter_enabled", {{"default_value", Percent(d.Of({0, 100, 100, 100}))}, {"runtime_key", "x"}}},
            {"filter_enforced", {{"default_value", Percent(d.Of({0, 100, 100, 100}))}, {"runtime_key", "y"}}}};
  if (d.Maybe(25)) l["status"] = {{"code", d.Of({"TooManyRequests", "ServiceUnavailable", "Forbidden"})}};
  if (d.Maybe(40)) {
    l["response_headers_to_add"] =
        Json::array({Json{{"header", {{"key", "x-limited"}, {"value", "yes"}}},
                          {"append_action", d.Of({"APPEND_IF_EXISTS_OR_ADD", "OVERWRITE_IF_EXISTS_OR_ADD"})}}});
  }
  if (d.Maybe(30)) {
    l["request_headers_to_add_when_not_enforced"] =
        Json::array({Json{{"header", {{"key", "x-r1"}, {"value", "over"}}}}});
  }
  if (d.Maybe(25)) l["enable_x_ratelimit_headers"] = "DRAFT_VERSION_03";
  if (d.Maybe(10)) l["local_rate_limit_per_downstream_connection"] = true;
  if (d.Maybe(10)) l["rate_limited_as_resource_exhausted"] = true;
  return l;
}

Json Permission(Draw& d) {
  switch (d.Int(0, 6)) {
    case 0:
      return {{"any", true}};
    case 1:
      return {{"header", DrawHeaderMatch(d)}};
    case 2:
      return {{"url_path", {{"path", {{d.Of({"exact", "prefix", "suffix"}), d.Of({"/a", "/a/b", "/b", "/"})}}}}}};
    case 3:
      return {{"destination_port", d.Of({10000, 9000})}};
    case 4:
      return {{"not_rule", Permission(d)}};
    case 5:
      return {{"or_rules", {{"rules", Json::array({Permission(d), Permission(d)})}}}};
    default:
      return {{"and_rules", {{"rules", Json::array({Permission(d), Permission(d)})}}}};
  }
}

Json Principal(Draw& d) {
  switch (d.Int(0, 5)) {
    case 0:
      return {{"header", DrawHeaderMatch(d)}};
    case 1:
      return {{"remote_ip", {{"address_prefix", d.Of({"10.0.0.0", "127.0.0.0", "1.2.3.0"})}, {"prefix_len", 8}}}};
    case 2:
      return {{"direct_remote_ip", {{"address_prefix", "127.0.0.1"}, {"prefix_len", d.Of({32, 8})}}}};
    case 3:
      return {{"not_id", Principal(d)}};
    case 4:
      return {{"url_path", {{"path", {{"prefix", "/a"}}}}}};
    default:
      return {{"any", true}};
  }
}

Json Rules(Draw& d) {
  Json rules = {{"action", d.Of({"ALLOW", "DENY", "DENY"})}};
  for (int n = d.Int(1, 2); n > 0; --n) {
    rules["policies"][fmt::format("policy {}", n)] = {{"permissions", Json::array({Permission(d)})},
                                                      {"principals", Json::array({Principal(d)})}};
  }
  return rules;
}

Json Rbac(Draw& d) {
  Json r = {{"@type", TypeOf("rbac.v3.RBAC")}};
  if (d.Maybe(85)) r["rules"] = Rules(d);
  if (d.Maybe(25)) {
    r["shadow_rules"] = Rules(d);
    if (d.Maybe(50)) r["shadow_rules_stat_prefix"] = "dry_";
  }
  return r;
}

Json Script(Draw& d) {
  const std::string code = d.Of({
      "function envoy_on_request(h) h:headers():add('x-r1', 'lua') end",
      "function envoy_on_request(h) if h:headers():get('x-one') then h:respond({[':status'] = '403', ['x-said'] = "
      "'lua'}, 'nope') end end",
      "function envoy_on_response(h) h:headers():replace('x-said', 'lua') end",
      "function envoy_on_request(h) h:headers():remove('x-two') end function envoy_on_response(h) "
      "h:headers():add('x-r2', h:headers():get(':status')) end",
      "function envoy_on_request(h) h:headers():replace(':path', '/a/b') h:clearRouteCache() end",
      "function envoy_on_request(h) h:headers():replace('x-r2', h:headers():get(':authority') .. '!') end",
  });
  return {{"@type", TypeOf("lua.v3.Lua")}, {"default_source_code", {{"inline_string", code}}}};
}

Json ToMetadata(Draw& d) {
  Json rule = {{"header", d.Of({"x-one", "x-two"})},
               {"on_header_present", {{"metadata_namespace", "ns"}, {"key", "k"}, {"type", "STRING"}}},
               {"remove", d.Maybe(40)}};
  if (d.Maybe(40)) rule["on_header_missing"] = {{"metadata_namespace", "ns"}, {"key", "k"}, {"value", "none"}};
  return {{"@type", TypeOf("header_to_metadata.v3.Config")}, {"request_rules", Json::array({rule})}};
}

Json HealthCheck(Draw& d) {
  return {
      {"@type", TypeOf("health_check.v3.HealthCheck")},
      {"pass_through_mode", false},
      {"headers", Json::array({Json{{"name", ":path"}, {"string_match", {{"exact", d.Of({"/a", "/b", "/x.y/z"})}}}}})}};
}

Json Mutations(Draw& d, bool of_replies) {
  Json out = Json::array();
  for (int n = d.Int(1, 3); n > 0; --n) {
    const std::string name = d.Of({"x-r1", "x-r2", "x-one", "x-said", "X-Two"});
    switch (d.Int(0, 5)) {
      case 0:
        out.push_back({{"remove", name}});
        break;
      case 1:
        // What a request cannot do without is not taken.
        out.push_back({{"remove_on_match", {{"key_matcher", {{"prefix", d.Of({"x-o", "x-r", "x-s"})}}}}}});
        break;
      default: {
        Json append = {
            {"header",
             {{"key", name},
              {"value", d.Of({"mutated", "%REQ(x-one)%", "%REQ(:path)%", "%PROTOCOL%",
                              of_replies ? "%RESPONSE_CODE%" : "a", of_replies ? "%RESP(x-said)%" : "b"})}}}};
        append["append_action"] =
            d.Of({"APPEND_IF_EXISTS_OR_ADD", "ADD_IF_ABSENT", "OVERWRITE_IF_EXISTS_OR_ADD", "OVERWRITE_IF_EXISTS"});
        out.push_back({{"append", append}});
      }
    }
  }
  return out;
}

Json AllMutations(Draw& d) {
  Json out = Json::object();
  if (d.Maybe(70)) out["request_mutations"] = Mutations(d, false);
  if (d.Maybe(70)) out["response_mutations"] = Mutations(d, true);
  if (d.Maybe(25)) {
    Json query = {{"record", {{"key", d.Of({"q", "b", "new"})}, {"value", d.Of({"1", "%REQ(x-one)%"})}}},
                  {"action", d.Of({"APPEND_IF_EXISTS_OR_ADD", "ADD_IF_ABSENT", "OVERWRITE_IF_EXISTS_OR_ADD",
                                   "OVERWRITE_IF_EXISTS"})}};
    out["query_parameter_mutations"] = Json::array({Json{{"append", query}}});
    if (d.Maybe(40)) out["query_parameter_mutations"].push_back({{"remove", d.Of({"q", "a"})}});
  }
  return out;
}

Json HeaderMutation(Draw& d) {
  Json out = {{"@type", TypeOf("header_mutation.v3.HeaderMutation")}, {"mutations", AllMutations(d)}};
  if (d.Maybe(40)) out["most_specific_header_mutations_wins"] = true;
  return out;
}
Json HeaderMutationOfRoute(Draw& d) {
  return {{"@type", TypeOf("header_mutation.v3.HeaderMutationPerRoute")}, {"mutations", AllMutations(d)}};
}

Json Cors(Draw&) { return {{"@type", TypeOf("cors.v3.Cors")}}; }
Json Buffer(Draw& d) { return {{"@type", TypeOf("buffer.v3.Buffer")}, {"max_request_bytes", d.Of({50, 100, 1000})}}; }
Json Limit(Draw& d) { return LocalLimit(d, false); }

struct FilterKind {
  const char* name;
  Json (*make)(Draw& draw);
  Json (*make_for_route)(Draw& draw);
};

Json FaultOfRoute(Draw& d) { return Fault(d); }
Json LimitOfRoute(Draw& d) { return LocalLimit(d, true); }
Json RbacOfRoute(Draw& d) {
  Json out = {{"@type", TypeOf("rbac.v3.RBACPerRoute")}};
  if (d.Maybe(70)) out["rbac"] = {{"rules", Rules(d)}};
  return out;
}
Json BufferOfRoute(Draw& d) {
  if (d.Maybe(40)) return {{"@type", TypeOf("buffer.v3.BufferPerRoute")}, {"disabled", true}};
  return {{"@type", TypeOf("buffer.v3.BufferPerRoute")}, {"buffer", {{"max_request_bytes", d.Of({30, 150})}}}};
}
Json LuaOfRoute(Draw& d) {
  if (d.Maybe(40)) return {{"@type", TypeOf("lua.v3.LuaPerRoute")}, {"disabled", true}};
  return {{"@type", TypeOf("lua.v3.LuaPerRoute")},
          {"source_code", {{"inline_string", "function envoy_on_request(h) h:headers():add('x-r1', 'route') end"}}}};
}

constexpr FilterKind kFilterKinds[] = {
    {"envoy.filters.http.fault", Fault, FaultOfRoute},
    {"envoy.filters.http.local_ratelimit", Limit, LimitOfRoute},
    {"envoy.filters.http.rbac", Rbac, RbacOfRoute},
    {"envoy.filters.http.lua", Script, LuaOfRoute},
    {"envoy.filters.http.header_to_metadata", ToMetadata, nullptr},
    {"envoy.filters.http.health_check", HealthCheck, nullptr},
    {"envoy.filters.http.buffer", Buffer, BufferOfRoute},
    {"envoy.filters.http.cors", Cors, nullptr},
    {"envoy.filters.http.header_mutation", HeaderMutation, HeaderMutationOfRoute},
};

// What a route says of whether a filter takes part, and to it. Null: nothing.
Json WordOfRoute(Draw& d, const FilterKind& kind, int percent) {
  constexpr const char* kWrapped = "type.googleapis.com/envoy.config.route.v3.FilterConfig";
  if (d.Maybe(8)) return {{"@type", kWrapped}, {"disabled", true}};
  if (d.Maybe(8)) return {{"@type", kWrapped}, {"config", Json::object()}};
  if (kind.make_for_route == nullptr || !d.Maybe(percent)) return nullptr;
  Json own = kind.make_for_route(d);
  return d.Maybe(20) ? Json{{"@type", kWrapped}, {"config", own}} : own;
}

}  // namespace

Json FilteringCase(Draw& d) {
  Json out = {{"backends", Backends(2)}};
  out["resources"]["clusters"] = Json::array({Json{{"static", "c"}, {"hosts", Json::array({BackendAddress(0)})}},
                                              Json{{"static", "d"}, {"hosts", Json::array({BackendAddress(1)})}}});
  std::vector<FilterKind> kinds(std::begin(kFilterKinds), std::end(kFilterKinds));
  Json filters = Json::array();
  std::vector<FilterKind> chosen;
  for (int n = d.Int(1, 3); n > 0; --n) {
    const size_t at = static_cast<size_t>(d.Int(0, static_cast<int>(kinds.size()) - 1));
    chosen.push_back(kinds[at]);
    Json filter = {{"name", kinds[at].name}, {"typed_config", kinds[at].make(d)}};
    if (d.Maybe(15)) filter["disabled"] = true;
    filters.push_back(filter);
    kinds.erase(kinds.begin() + static_cast<std::ptrdiff_t>(at));
  }
  Json hosts = DrawVirtualHosts(d);
  for (Json& host : hosts) {
    for (const FilterKind& kind : chosen) {
      if (const Json word = WordOfRoute(d, kind, 12); !word.is_null())
        host["typed_per_filter_config"][kind.name] = word;
      for (Json& route : host["routes"]) {
        const Json word = WordOfRoute(d, kind, 30);
        if (!word.is_null()) route["typed_per_filter_config"][kind.name] = word;
      }
    }
  }
  Json table = {{"name", "l"}, {"virtual_hosts", hosts}, {"validate_clusters", false}};
  Json manager = {{"route_config", table}};
  if (d.Maybe(20)) manager["use_remote_address"] = true;
  out["resources"]["listeners"] =
      Json::array({Json{{"http", "l"}, {"at", kListener}, {"filters", filters}, {"manager", manager}}});
  Json steps = Json::array();
  AddEcho(2, &steps);
  for (int n = d.Int(10, 16); n > 0; --n) {
    Json step = DrawRequest(d);
    Json& r = step["requests"];
    for (const char* more : {"x-limited", "x-ratelimit-limit", "x-ratelimit-remaining", "x-local-rate-limit"})
      r["show"].push_back(more);
    if (d.Maybe(8)) r["headers"]["x-envoy-fault-abort-request"] = "451";
    if (r.contains("headers")) {  // filters that wait for a request's end would wait for ever
      r["headers"].erase("connection");
      r["headers"].erase("upgrade");
    }
    if (d.Maybe(25)) r["keep_alive"] = false;
    if (manager.contains("use_remote_address")) r["from"] = "127.77.0.201";
    steps.push_back(step);
  }
  out["steps"] = steps;
  out["stats"] = {"cluster.c.upstream_rq_total", "cluster.d.upstream_rq_total"};
  return out;
}

}  // namespace wavetank::envoydiff
