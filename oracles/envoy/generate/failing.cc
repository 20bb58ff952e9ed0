// Hosts that fail, and what a proxy makes of it.
#include <vector>

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

Json Outlier(Draw& d) {
  Json o = {{"interval", "1s"}, {"base_ejection_time", d.Of({"30s", "60s"})}, {"consecutive_5xx", d.Of({1, 2, 3, 5})}};
  if (d.Maybe(75)) o["max_ejection_percent"] = d.Of({10, 34, 50, 67, 100});
  if (d.Maybe(20)) o["always_eject_one_host"] = true;
  if (d.Maybe(25)) {
    o["consecutive_gateway_failure"] = d.Of({1, 2, 4});
    o["enforcing_consecutive_gateway_failure"] = d.Of({0, 100});
  }
  if (d.Maybe(20)) o["enforcing_consecutive_5xx"] = d.Of({0, 100});
  if (d.Maybe(25)) {
    o["split_external_local_origin_errors"] = true;
    if (d.Maybe(70)) o["consecutive_local_origin_failure"] = d.Of({1, 2, 4});
    if (d.Maybe(40)) o["enforcing_consecutive_local_origin_failure"] = d.Of({0, 100});
  }
  return o;
}

Json Retry(Draw& d) {
  static const std::vector<std::string> kOn = {"5xx",
                                               "gateway-error",
                                               "reset",
                                               "connect-failure",
                                               "retriable-4xx",
                                               "refused-stream",
                                               "retriable-status-codes",
                                               "retriable-headers",
                                               "reset-before-request",
                                               "envoy-ratelimited",
                                               "cancelled",
                                               "unavailable",
                                               "deadline-exceeded",
                                               "resource-exhausted",
                                               "internal"};
  std::string on;
  for (int n = d.Int(1, 3); n > 0; --n) on += (on.empty() ? "" : ",") + d.Of(kOn);
  if (d.Maybe(30)) on = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
  Json r = {{"retry_on", on}};
  if (d.Maybe(80)) r["num_retries"] = d.Int(0, 4);
  if (d.Maybe(25)) r["per_try_timeout"] = "0.25s";
  if (d.Maybe(50)) {
    r["retry_host_predicate"] = Json::array({Json{
        {"name", "envoy.retry_host_predicates.previous_hosts"},
        {"typed_config",
         {{"@type", "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}}}}});
    r["host_selection_retry_max_attempts"] = "5";
  }
  if (on.find("status-codes") != std::string::npos) r["retriable_status_codes"] = {d.Of({503, 502, 404, 429}), 503};
  if (d.Maybe(20)) r["retry_back_off"] = {{"base_interval", "0.010s"}, {"max_interval", "0.050s"}};
  if (on.find("headers") != std::string::npos || d.Maybe(5)) {
    Json again = {{"name", "x-again"}};
    if (d.Maybe(50)) again["string_match"] = {{"exact", "yes"}};
    if (d.Maybe(15)) again["invert_match"] = true;
    r["retriable_headers"] = Json::array({again});
  }
  if (d.Maybe(12)) r["retriable_request_headers"] = Json::array({Json{{"name", "x-idempotent"}}});
  // Of no other timer's length: which of two goes first is a matter of microseconds.
  if (d.Maybe(12)) r["per_try_idle_timeout"] = "0.15s";
  if (d.Maybe(12)) {
    r["rate_limited_retry_back_off"] = {
        {"reset_headers", Json::array({Json{{"name", "retry-after"}, {"format", "SECONDS"}}})}};
    if (d.Maybe(30)) r["rate_limited_retry_back_off"]["max_interval"] = "1s";
  }
  if (d.Maybe(20)) {
    const std::string type = "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig";
    r["retry_priority"] = {
        {"name", "envoy.retry_priorities.previous_priorities"},
        {"typed_config", {{"@type", "type.googleapis.com/" + type}, {"update_frequency", d.Int(1, 3)}}}};
  }
  return r;
}

Json Breakers(Draw& d) {
  Json t = Json::object();
  if (d.Maybe(35)) t["max_connections"] = d.Int(1, 3);
  // Fewer would be met or not by requests at one time, as fast as a connection happens to stand.
  if (d.Maybe(35)) t["max_pending_requests"] = d.Int(5, 8);
  if (d.Maybe(35)) t["max_requests"] = d.Int(1, 3);
  if (d.Maybe(35)) t["max_retries"] = d.Int(0, 2);
  if (d.Maybe(15)) t["priority"] = "HIGH";
  if (d.Maybe(10)) t["track_remaining"] = true;
  return {{"thresholds", Json::array({t})}};
}

Json BackendStep(Draw& d, int backends) {
  Json b = {{"name", BackendName(d.Int(0, backends - 1))}};
  switch (d.Int(0, 9)) {
    case 0:
      b["up"] = false;
      break;
    case 1:
      b["code"] = 0;
      break;
    case 2:
      b["delay_ms"] = 600;
      break;
    case 3:
    case 4:
      break;  // it is well again
    default:
      b["code"] = d.Of({500, 502, 503, 503, 504, 404, 409, 429, 418});
  }
  if (d.Maybe(6)) b["headers"]["x-envoy-overloaded"] = "true";
  if (d.Maybe(6)) b["headers"]["x-envoy-ratelimited"] = "true";
  if (d.Maybe(12)) b["headers"]["x-again"] = d.Of({"yes", "no"});
  if (d.Maybe(6)) b["headers"]["retry-after"] = d.Of({"0", "1", "2", "soon"});
  return {{"backend", b}};
}

// Steps after which each host is as the steps before have left it, but slow.
Json SlowBackends(const Json& steps, int hosts) {
  Json out = Json::array();
  for (int i = 0; i < hosts; ++i) {
    Json backend = {{"name", BackendName(i)}};
    for (const Json& step : steps) {
      if (step.contains("backend") && step["backend"]["name"] == backend["name"]) backend = step["backend"];
    }
    backend["delay_ms"] = std::max(backend.value("delay_ms", 0), 300);
    out.push_back({{"backend", backend}});
  }
  return out;
}

}  // namespace

Json FailingCase(Draw& d) {
  const int hosts = d.Int(1, 3);
  Json out = {{"backends", Backends(hosts)}};
  Json cluster = {{"hosts", Json::array()}, {"connect_timeout", "1s"}};
  const bool priorities = d.Maybe(25);
  for (int i = 0; i < hosts; ++i) {
    cluster["hosts"].push_back(BackendAddress(i) +
                               (priorities && i > 0 ? fmt::format(" p{}", d.Int(i - 1, i) > 0 ? 1 : 0) : ""));
  }
  if (d.Maybe(50)) cluster["common_lb_config"] = {{"healthy_panic_threshold", {{"value", d.Of({0, 50})}}}};
  const bool ejects = d.Maybe(50);
  if (ejects) cluster["outlier_detection"] = Outlier(d);
  const bool limits = d.Maybe(35);
  if (limits) cluster["circuit_breakers"] = Breakers(d);
  const std::string options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  if (d.Maybe(15)) {
    cluster["typed_extension_protocol_options"][options] = {
        {"@type", "type.googleapis.com/" + options},
        {"common_http_protocol_options", {{"max_requests_per_connection", d.Int(1, 3)}}},
        {"explicit_http_config", {{"http_protocol_options", Json::object()}}}};
  }
  if (d.Maybe(40)) {
    cluster["eds"] = "c";
    out["resources"]["endpoints"] = Json::array({Json{{"eds", "c"}, {"hosts", cluster["hosts"]}}});
    cluster.erase("hosts");
  } else {
    cluster["static"] = "c";
  }
  out["resources"]["clusters"] = Json::array({cluster});
  Json route = {{"timeout", d.Of({"0s", "0s", "0.25s", "2s"})}};
  if (d.Maybe(75)) route["retry_policy"] = Retry(d);
  const bool tcp = !route.contains("retry_policy") && d.Maybe(30);
  Json listener = {{"http", "l"}, {"at", kListener}, {"to", "c"}, {"route", route}};
  if (tcp) {
    listener = {{"tcp", "l"}, {"at", kListener}, {"cluster", "c"}};
  } else if (d.Maybe(15)) {
    listener["manager"] = {{"stream_idle_timeout", d.Of({"0s", "5s"})}};
  }
  out["resources"]["listeners"] = Json::array({listener});
  Json steps = Json::array();
  // Few backends that are slow at a time: more would only take long.
  for (int i = 0; i < hosts; ++i) {
    if (d.Maybe(60)) steps.push_back(BackendStep(d, hosts));
  }
  for (int n = d.Int(3, 7); n > 0; --n) {
    if (d.Maybe(45)) steps.push_back(BackendStep(d, hosts));
    Json r = {{"to", kListener},
              {"count", d.Int(1, 8)},
              {"show", {"x-envoy-overloaded", "x-envoy-ratelimited", "x-envoy-attempt-count"}}};
    if (d.Maybe(20)) r["keep_alive"] = false;
    if (d.Maybe(10)) {
      r["method"] = "POST";
      if (d.Maybe(50)) r["body"] = 10;
    }
    if (!tcp && d.Maybe(8)) r["headers"]["x-envoy-retry-on"] = d.Of({"5xx", "retriable-4xx", "connect-failure"});
    if (!tcp && d.Maybe(5)) r["headers"]["x-envoy-max-retries"] = d.Of({"0", "1", "3"});
    if (!tcp && d.Maybe(4)) r["headers"]["x-envoy-upstream-rq-per-try-timeout-ms"] = "250";
    if (!tcp && d.Maybe(4)) r["headers"]["x-envoy-upstream-rq-timeout-ms"] = d.Of({"250", "3000"});
    if (!tcp && d.Maybe(3)) r["headers"]["x-envoy-retriable-status-codes"] = "404,409";
    if (!tcp && d.Maybe(40)) r["headers"]["x-idempotent"] = "1";
    if (limits && d.Maybe(50)) {
      // At once, to hosts that take long enough for them to meet: whether quick answers overlap is the machine's
      // affair.
      r["count"] = r["parallel"] = d.Int(2, 5);
      for (Json& slow : SlowBackends(steps, hosts)) steps.push_back(std::move(slow));
    }
    steps.push_back({{"requests", r}});
    if (d.Maybe(10)) steps.push_back({{"wait_ms", d.Of({100, 1300})}});
  }
  out["steps"] = steps;
  out["draws"] = 60;
  Json stats = Json::array();
  for (const char* stat :
       {"upstream_rq_total", "upstream_rq_retry", "upstream_rq_retry_limit_exceeded", "upstream_rq_retry_success",
        "upstream_rq_retry_overflow", "upstream_rq_timeout", "upstream_rq_per_try_timeout", "upstream_cx_connect_fail",
        "upstream_rq_pending_overflow", "upstream_cx_none_healthy", "upstream_rq_per_try_idle_timeout",
        "upstream_rq_retry_backoff_ratelimited", "upstream_rq_retry_backoff_exponential"}) {
    stats.push_back(fmt::format("cluster.c.{}", stat));
  }
  if (ejects) {
    stats.push_back("cluster.c.outlier_detection.ejections_enforced_total");
    stats.push_back("cluster.c.outlier_detection.ejections_active");
    if (!tcp) stats.push_back("cluster.c.upstream_cx_destroy_local");
  }
  out["stats"] = stats;
  return out;
}

}  // namespace wavetank::envoydiff
