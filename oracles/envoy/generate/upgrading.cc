// Connections that are upgraded, through one proxy or two that speak HTTP/1.1 or HTTP/2 to each other.
#include <cstdint>
#include <initializer_list>
#include <string>

#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

// Messages come every so often, are answered at once or 250 ms later, and whatever has a limit ends at least 100 ms
// from either.
constexpr int kBetweenMessages = 700, kMessageAnswerAfter = 250;
constexpr char kNearName[] = "l", kFarName[] = "m";
constexpr char kFarAt[] = "127.77.0.1:10001";

enum class UpgradeLimit : uint8_t { kNothing, kRoute, kTry, kSilence, kSilenceOfRoute, kManager, kStream, kCluster };

Json LogOfUpgrades(const std::string& name) {
  const Json format = {
      {"text_format_source",
       {{"inline_string",
         "%PROTOCOL% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% received %BYTES_RECEIVED% sent "
         "%BYTES_SENT% tries %UPSTREAM_REQUEST_ATTEMPT_COUNT% %REQ(UPGRADE)% %RESP(UPGRADE)%\n"}}}};
  return Json::array({Json{{"name", "envoy.access_loggers.file"},
                           {"typed_config",
                            {{"@type", "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"},
                             {"path", "/logs/" + name},
                             {"log_format", format}}}}});
}

Json AllowedUpgrades(Draw& d) {
  Json out = Json::array();
  if (d.Maybe(90)) out.push_back({{"upgrade_type", "websocket"}});
  if (d.Maybe(60)) out.push_back({{"upgrade_type", "foo"}});
  const std::string types = "type.googleapis.com/envoy.extensions.filters.http.";
  if (!out.empty() && d.Maybe(20)) {
    const Json mutation = {{"append", {{"header", {{"key", "x-of-upgrades"}, {"value", "1"}}}}}};
    out[0]["filters"] = Json::array(
        {Json{{"name", "own"},
              {"typed_config",
               {{"@type", types + "header_mutation.v3.HeaderMutation"},
                {"mutations", {{"response_mutations", Json::array({mutation})}}}}}},
         Json{{"name", "envoy.filters.http.router"}, {"typed_config", {{"@type", types + "router.v3.Router"}}}}});
  }
  return out;
}

Json UpgradingListener(Draw& d, const char* name, const char* at, const char* to, UpgradeLimit limited) {
  Json manager = {{"access_log", LogOfUpgrades(name)}, {"upgrade_configs", AllowedUpgrades(d)}};
  if (d.Maybe(80)) manager["http2_protocol_options"] = {{"allow_connect", true}};
  if (limited == UpgradeLimit::kSilence) manager["stream_idle_timeout"] = "0.350s";
  if (limited == UpgradeLimit::kManager) {
    manager["common_http_protocol_options"] = {{"max_stream_duration", d.Of({"0.470s", "1.050s"})}};
  }
  Json route = {{"timeout", limited == UpgradeLimit::kRoute ? d.Of({"0.130s", "0.470s"}) : "0s"}};
  if (limited == UpgradeLimit::kSilenceOfRoute) route["idle_timeout"] = "0.350s";
  if (limited == UpgradeLimit::kStream) route["max_stream_duration"] = {{"max_stream_duration", "1.050s"}};
  if (limited == UpgradeLimit::kTry || d.Maybe(30)) {
    route["retry_policy"] = {{"retry_on", d.Of({"5xx", "reset", "connect-failure,refused-stream,unavailable"})},
                             {"num_retries", d.Int(0, 2)},
                             {"retry_back_off", {{"base_interval", "0.001s"}, {"max_interval", "0.002s"}}}};
    if (limited == UpgradeLimit::kTry) route["retry_policy"]["per_try_timeout"] = "0.130s";
  }
  if (d.Maybe(15)) {
    route["upgrade_configs"] =
        Json::array({Json{{"upgrade_type", d.Of({"websocket", "foo"})}, {"enabled", d.Maybe(50)}}});
  }
  return {{"http", name}, {"at", at}, {"to", to}, {"route", route}, {"manager", manager}};
}

Json ClusterOfUpgrades(Draw& d, const char* name, const char* host, bool http2, UpgradeLimit limited) {
  const std::string options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  Json said = {{"@type", "type.googleapis.com/" + options}};
  said["explicit_http_config"][http2 ? "http2_protocol_options" : "http_protocol_options"] = Json::object();
  if (http2 && d.Maybe(50)) said["explicit_http_config"]["http2_protocol_options"]["allow_connect"] = true;
  Json common = Json::object();
  if (limited == UpgradeLimit::kCluster) common["max_stream_duration"] = "1.050s";
  if (d.Maybe(15)) common["max_requests_per_connection"] = d.Int(1, 2);
  if (!common.empty()) said["common_http_protocol_options"] = common;
  return {{"static", name}, {"hosts", Json::array({host})}, {"typed_extension_protocol_options", {{options, said}}}};
}

void AddStats(const std::string& prefix, std::initializer_list<const char*> names, Json* stats) {
  for (const char* name : names) stats->push_back(prefix + name);
}

}  // namespace

Json UpgradingCase(Draw& d) {
  const bool two = d.Maybe(75), limited_far = two && d.Maybe(50);
  const auto limited = d.Maybe(50) ? static_cast<UpgradeLimit>(d.Int(0, 7)) : UpgradeLimit::kNothing;
  const UpgradeLimit near = limited_far ? UpgradeLimit::kNothing : limited,
                     far = limited_far ? limited : UpgradeLimit::kNothing;
  const std::string app = BackendAddress(0);
  Json out = {{"backends", Backends(1)}};
  Json& resources = out["resources"];
  resources["clusters"] = Json::array({ClusterOfUpgrades(d, "c", app.c_str(), false, two ? far : near)});
  resources["listeners"] = Json::array({UpgradingListener(d, kNearName, kListener, two ? "n" : "c", near)});
  if (two) {
    resources["clusters"].push_back(ClusterOfUpgrades(d, "n", kFarAt, d.Maybe(80), near));
    resources["listeners"].push_back(UpgradingListener(d, kFarName, kFarAt, "c", far));
  }
  Json steps = Json::array();
  for (int n = d.Int(2, 3); n > 0; --n) {
    Json backend = {{"name", "a"}, {"upgrade", d.Maybe(75)}};
    if (d.Maybe(25)) backend["delay_ms"] = kMessageAnswerAfter;
    if (!backend["upgrade"] && d.Maybe(60)) backend["code"] = d.Of({302, 404, 500, 503});
    if (d.Maybe(20)) backend["body"] = 300;
    steps.push_back({{"backend", backend}});
    Json r = {{"to", kListener},
              {"upgrade", d.Maybe(75) ? "websocket" : "foo"},
              {"count", d.Int(1, 3)},
              {"anonymous", true},
              {"interval_ms", kBetweenMessages},
              {"show", {"upgrade", "connection", "x-of-upgrades"}}};
    if (!d.Maybe(15)) {
      steps.push_back({{"requests", r}});
      continue;
    }
    // The application goes away amid it.
    r.update({{"background", true}, {"count", 2}});
    steps.push_back({{"requests", r}});
    steps.push_back({{"wait_ms", 470}});
    steps.push_back({{"backend", {{"name", "a"}, {"up", false}}}});
    steps.push_back({{"join", true}});
  }
  steps.push_back({{"wait_ms", 1300}});  // a connection that was answered closes within a second
  out["steps"] = steps;
  Json& stats = out["stats"] = Json::array();
  for (const Json& listener : resources["listeners"]) {
    AddStats("http." + listener["http"].get<std::string>() + ".",
             {"downstream_cx_upgrades_total", "downstream_cx_upgrades_active", "downstream_rq_total",
              "downstream_rq_1xx", "downstream_rq_2xx", "downstream_rq_3xx", "downstream_rq_4xx", "downstream_rq_5xx",
              "downstream_rq_rx_reset", "downstream_rq_tx_reset", "downstream_rq_response_before_rq_complete",
              "downstream_rq_ws_on_non_ws_route", "downstream_rq_active", "downstream_cx_total"},
             &stats);
  }
  for (const Json& cluster : resources["clusters"]) {
    AddStats("cluster." + cluster["static"].get<std::string>() + ".",
             {"upstream_rq_total", "upstream_rq_retry", "upstream_rq_timeout", "upstream_cx_total",
              "upstream_cx_protocol_error", "upstream_rq_rx_reset", "upstream_rq_tx_reset", "upstream_rq_active"},
             &stats);
  }
  return out;
}

}  // namespace wavetank::envoydiff
