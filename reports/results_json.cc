#include "reports/report.h"

#include "scenarios/results/nacks.h"

namespace wavetank::report {
namespace {

using nlohmann::ordered_json;
using scenario::RunResult;

ordered_json TrafficJson(const scenario::TrafficResult& t) {
  ordered_json out;
  out["flow"] = t.flow;
  out["phase"] = t.meanwhile ? "meanwhile" : "then";
  out["startMs"] = ToMillis(t.start.time_since_epoch());
  out["endMs"] = ToMillis(t.end.time_since_epoch());
  out["sent"] = t.sent;
  out["failed"] = t.failed;
  out["retried"] = t.retried;
  out["attempts"] = t.attempts;
  out["clientAttempts"] = t.client_attempts;
  out["remote"] = t.remote;
  out["mtlsVerified"] = t.mtls_verified;
  out["byVersion"] = t.by_version;
  out["byCluster"] = t.by_cluster;
  out["byPod"] = t.by_pod;
  out["byFlags"] = t.by_flags;
  ordered_json codes = ordered_json::object();
  for (const auto& [code, count] : t.by_code) codes[std::to_string(code)] = count;
  out["byCode"] = codes;
  out["gatewaySnis"] = t.gateway_snis;
  out["latencyMs"] = {{"p50", ToMillis(t.p50)}, {"p99", ToMillis(t.p99)}, {"max", ToMillis(t.max)}};
  out["bucketMs"] = ToMillis(t.bucket);
  out["series"] = ordered_json::array();
  for (const auto& bucket : t.series) {
    out["series"].push_back({{"byVersion", bucket.by_version},
                             {"failed", bucket.failed},
                             {"retried", bucket.retried},
                             {"p50Ms", ToMillis(bucket.p50)},
                             {"p99Ms", ToMillis(bucket.p99)}});
  }
  out["failures"] = ordered_json::array();
  for (const auto& f : t.failures) {
    out["failures"].push_back({{"retried", f.retried},
                               {"code", f.code},
                               {"flags", f.flags},
                               {"upstream", f.upstream},
                               {"cause", f.cause},
                               {"count", f.count},
                               {"firstMs", ToMillis(f.first.time_since_epoch())},
                               {"lastMs", ToMillis(f.last.time_since_epoch())}});
  }
  out["upstreams"] = ordered_json::object();
  for (const auto& [name, upstream] : t.upstreams) {
    out["upstreams"][name] = {
        {"tries", upstream.tries}, {"failed", upstream.failed}, {"cluster", upstream.cluster}, {"pod", upstream.pod}};
  }
  return out;
}

ordered_json ConvergenceJson(const scenario::Convergence& c) {
  ordered_json out;
  out["eventMs"] = ToMillis(c.event.time_since_epoch());
  if (c.connected >= 0) out["connectedProxies"] = c.connected;
  out["totalMs"] = ToMillis(c.Total());
  out["proxies"] = ordered_json::array();
  for (const auto& proxy : c.proxies) {
    ordered_json row;
    row["proxy"] = proxy.proxy;
    row["totalMs"] = ToMillis(proxy.total);
    row["responses"] = proxy.responses;
    ordered_json stages;
    for (int i = 0; i < scenario::kStages; ++i) {
      stages[std::string(scenario::StageName(static_cast<scenario::Stage>(i)))] =
          ToMillis(proxy.stages[static_cast<size_t>(i)]);
    }
    row["stagesMs"] = stages;
    out["proxies"].push_back(row);
  }
  return out;
}

}  // namespace

ordered_json ResultsJson(const RunResult& result) {
  ordered_json out;
  out["scenario"] = result.scenario;
  out["file"] = result.file;
  out["description"] = result.description;
  out["profile"] = result.profile;
  out["version"] = result.version;
  out["seed"] = result.seed;
  out["digest"] = result.digest;
  out["passed"] = result.Passed();
  out["virtualSeconds"] = ToMillis(result.end.time_since_epoch()) / 1e3;
  out["traceRecords"] = result.trace_records;
  out["interrupted"] = result.interrupted;
  out["error"] = result.error;
  out["notes"] = result.notes;
  out["mended"] = result.mended;
  out["unready"] = result.unready;
  out["nacks"] = scenario::ToJson(result.nacks);
  out["withoutEffect"] = scenario::ToJson(result.without_effect);
  out["invariants"] = {{"watched", result.invariants}, {"violations", ordered_json::array()}};
  for (const sim::Violation& v : result.violations) {
    ordered_json row = {{"invariant", v.invariant}, {"subject", v.subject},
                        {"what", v.what},           {"known", v.known},
                        {"inputs", v.inputs},       {"atMs", ToMillis(v.at.time_since_epoch())}};
    if (v.until) row["untilMs"] = ToMillis(v.until->time_since_epoch());
    out["invariants"]["violations"].push_back(std::move(row));
  }
  out["deadPaths"] = ordered_json::array();
  for (const scenario::DeadPath& d : scenario::DeadPaths(result)) {
    out["deadPaths"].push_back({{"flow", d.flow},
                                {"step", d.step},
                                {"phase", d.meanwhile ? "meanwhile" : "then"},
                                {"upstream", d.upstream},
                                {"cause", d.cause},
                                {"tries", d.tries},
                                {"retried", d.retried},
                                {"failed", d.failed},
                                {"sent", d.sent},
                                {"sinceMs", ToMillis(d.since.time_since_epoch())}});
  }
  out["silentFlows"] = ordered_json::array();
  for (const scenario::SilentFlow& flow : scenario::SilentFlows(result))
    out["silentFlows"].push_back({{"flow", flow.flow}, {"client", flow.client}, {"sent", flow.sent}});
  // Pairs of second and responses: most seconds of a long run have none.
  out["pushes"] = ordered_json::array();
  for (const auto& [second, count] : result.pushes) out["pushes"].push_back({second, count});
  out["steps"] = ordered_json::array();
  for (const auto& step : result.steps) {
    ordered_json row;
    row["name"] = step.name;
    row["actions"] = step.actions;
    row["startMs"] = ToMillis(step.start.time_since_epoch());
    row["endMs"] = ToMillis(step.end.time_since_epoch());
    row["convergence"] = ConvergenceJson(step.convergence);
    row["traffic"] = ordered_json::array();
    for (const auto& t : step.traffic) row["traffic"].push_back(TrafficJson(t));
    row["calls"] = ordered_json::array();
    for (const auto& t : step.calls) row["calls"].push_back(TrafficJson(t));
    row["expectations"] = ordered_json::array();
    for (const auto& e : step.expectations) {
      row["expectations"].push_back(
          {{"text", e.text}, {"held", e.held}, {"explanation", e.explanation}, {"line", e.line}});
    }
    row["notes"] = step.notes;
    row["ejected"] = ordered_json::array();
    for (const auto& e : step.ejected) {
      row["ejected"].push_back({{"proxy", e.proxy}, {"cluster", e.cluster}, {"host", e.host}});
    }
    row["nacks"] = scenario::ToJson(step.nacks);
    row["cut"] = step.cut;
    row["notJudged"] = step.not_judged;
    out["steps"].push_back(row);
  }
  ordered_json topology;
  topology["nodes"] = ordered_json::array();
  for (const auto& node : result.nodes) {
    topology["nodes"].push_back(
        {{"id", node.id}, {"label", node.label}, {"kind", node.kind}, {"cluster", node.cluster}});
  }
  topology["edges"] = ordered_json::array();
  for (const auto& edge : result.edges) {
    topology["edges"].push_back({{"from", edge.from},
                                 {"to", edge.to},
                                 {"label", edge.label},
                                 {"kind", edge.kind},
                                 {"tries", edge.tries},
                                 {"failed", edge.failed}});
  }
  out["topology"] = topology;
  return out;
}

}  // namespace wavetank::report
