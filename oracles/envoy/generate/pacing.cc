// Answers that take their time and come over time.
#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

// What happens to an answer happens at one of these times after its request, in milliseconds: a head after 0 or 250, a
// last byte 300 or 600 later. Limits lie between them, far enough from each for a busy machine.
constexpr int kHeadAfter = 250;
const char* const kLimits[] = {"0.140s", "0.430s", "0.720s", "3s"};

// One limit in a case: of two that end at one time either may be the first.
enum class Limited : uint8_t { kNothing, kRoute, kStream, kCluster, kManager, kSilence, kSilenceOfRoute };

Json ManagerOfSlowOnes(Draw& d, Limited limited) {
  const Json format = {
      {"text_format_source",
       {{"inline_string",
         "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_REQUEST_ATTEMPT_COUNT%\n"}}}};
  Json out = {{"access_log", Json::array({Json{{"name", "envoy.access_loggers.file"},
                                               {"typed_config",
                                                {{"@type",
                                                  "type.googleapis.com/envoy.extensions.access_loggers.file.v3."
                                                  "FileAccessLog"},
                                                 {"path", "/logs/a"},
                                                 {"log_format", format}}}}})}};
  if (limited == Limited::kSilence) out["stream_idle_timeout"] = d.Of(kLimits);
  if (limited == Limited::kManager) out["common_http_protocol_options"] = {{"max_stream_duration", d.Of(kLimits)}};
  return out;
}

Json RetriesOfSlowOnes(Draw& d, Limited limited) {
  Json out = {{"retry_on", d.Of({"5xx", "gateway-error", "reset", "retriable-status-codes",
                                 "connect-failure,refused-stream,retriable-status-codes", "retriable-4xx"})},
              {"num_retries", d.Int(0, 2)},
              {"retriable_status_codes", Json::array({503, 404})}};
  if (limited == Limited::kNothing && d.Maybe(80)) out["per_try_timeout"] = d.Of({"0.140s", "0.430s"});
  // A further try comes at once, as far as times go.
  out["retry_back_off"] = {{"base_interval", "0.001s"}, {"max_interval", "0.002s"}};
  return out;
}

Json SlowBackend(Draw& d, int hosts) {
  Json out = {{"name", BackendName(d.Int(0, hosts - 1))}, {"body", d.Of({2, 500, 5000})}};
  if (d.Maybe(70)) out["body_ms"] = d.Of({300, 600});
  if (d.Maybe(35)) out["delay_ms"] = kHeadAfter;
  if (d.Maybe(35)) out["code"] = d.Of({503, 503, 500, 404, 409});
  return {{"backend", out}};
}

}  // namespace

Json PacingCase(Draw& d) {
  const int hosts = d.Int(1, 2);
  Json out = {{"backends", Backends(hosts)}};
  Json cluster = {{"static", "c"}, {"hosts", Json::array()}};
  for (int i = 0; i < hosts; ++i) cluster["hosts"].push_back(BackendAddress(i));
  const auto limited = static_cast<Limited>(d.Int(0, 6));
  const std::string options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  if (limited == Limited::kCluster) {
    cluster["typed_extension_protocol_options"][options] = {
        {"@type", "type.googleapis.com/" + options},
        {"common_http_protocol_options", {{"max_stream_duration", d.Of(kLimits)}}},
        {"explicit_http_config", {{"http_protocol_options", Json::object()}}}};
  }
  if (d.Maybe(25)) {
    cluster["outlier_detection"] = {{"consecutive_5xx", d.Of({1, 2, 3})},
                                    {"interval", "100s"},
                                    {"base_ejection_time", "100s"},
                                    {"max_ejection_percent", d.Of({50, 100})}};
  }
  out["resources"]["clusters"] = Json::array({cluster});
  Json route = {{"timeout", limited == Limited::kRoute ? d.Of(kLimits) : "0s"}};
  if (d.Maybe(60)) route["retry_policy"] = RetriesOfSlowOnes(d, limited);
  if (limited == Limited::kSilenceOfRoute) route["idle_timeout"] = d.Of(kLimits);
  if (limited == Limited::kStream) route["max_stream_duration"] = {{"max_stream_duration", d.Of(kLimits)}};
  out["resources"]["listeners"] = Json::array({Json{
      {"http", "l"}, {"at", kListener}, {"to", "c"}, {"route", route}, {"manager", ManagerOfSlowOnes(d, limited)}}});
  Json steps = Json::array();
  for (int n = d.Int(3, 5); n > 0; --n) {
    if (d.Maybe(70)) steps.push_back(SlowBackend(d, hosts));
    if (d.Maybe(30)) steps.push_back(SlowBackend(d, hosts));
    Json r = {{"to", kListener}, {"count", d.Int(1, 2)}};
    if (d.Maybe(35)) r["http2"] = true;
    if (d.Maybe(15)) r["method"] = "HEAD";
    if (d.Maybe(15)) r.update({{"method", "POST"}, {"body", 100}});
    if (d.Maybe(15) && !r.contains("method")) {
      // The application goes away amid the answer, or before its head.
      r.update({{"background", true}, {"count", 1}});
      steps.push_back({{"backend", {{"name", "a"}, {"body", 500}, {"body_ms", 600}, {"delay_ms", d.Of({0, 250})}}}});
      steps.push_back({{"requests", r}});
      steps.push_back({{"wait_ms", d.Of({120, 370})}});
      steps.push_back({{"backend", {{"name", "a"}, {"up", false}}}});
      steps.push_back({{"join", true}});
      continue;
    }
    steps.push_back({{"requests", r}});
  }
  out["steps"] = steps;
  if (hosts > 1) out["draws"] = 40;
  Json stats = Json::array();
  for (const char* stat : {"upstream_rq_total", "upstream_rq_timeout", "upstream_rq_per_try_timeout",
                           "upstream_rq_retry", "upstream_rq_retry_success", "upstream_rq_retry_limit_exceeded",
                           "upstream_rq_max_duration_reached", "upstream_rq_tx_reset", "upstream_cx_total",
                           "upstream_cx_destroy_local", "upstream_cx_destroy_remote", "upstream_cx_protocol_error"}) {
    stats.push_back(fmt::format("cluster.c.{}", stat));
  }
  for (const char* stat : {"downstream_rq_2xx", "downstream_rq_5xx", "downstream_rq_rx_reset", "downstream_rq_tx_reset",
                           "downstream_rq_idle_timeout", "downstream_rq_max_duration_reached"}) {
    stats.push_back(fmt::format("http.l.{}", stat));
  }
  if (cluster.contains("outlier_detection")) {
    stats.push_back("cluster.c.outlier_detection.ejections_enforced_total");
  }
  out["stats"] = stats;
  return out;
}

}  // namespace wavetank::envoydiff
