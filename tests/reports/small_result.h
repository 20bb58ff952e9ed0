// A small result of a run with everything in it that a report shows.
#pragma once

#include "scenarios/results/result.h"

namespace wavetank::report {

inline scenario::RunResult SmallResult() {
  using namespace std::chrono_literals;
  scenario::RunResult result;
  result.scenario = "two <waves> & a \"tank\"";
  result.file = "waves/scenario.yaml";
  result.description = "</script><script>document.title = 'broken out';</script>";
  result.profile = "istio-1.18";
  result.version = "test";
  result.seed = 7;
  result.digest = "00112233445566778899aabbccddeeff";
  result.end = Time{} + 20s;
  result.trace_records = 42;

  scenario::StepResult step;
  step.name = "scaled";
  step.actions = {"scale sample/helloworld-v2 in cluster2 to 3"};
  step.start = Time{} + 10s;
  step.end = Time{} + 12s;
  step.convergence.event = step.start;
  step.convergence.connected = 2;
  scenario::ProxyConvergence proxy;
  proxy.proxy = "sleep-jsdn7bjgc5-x2nxx.sample@cluster1";
  proxy.total = 1450ms;
  proxy.stages = {1300ms, 2ms, 1ms, 100ms, 40ms, 3ms, 1ms, 3ms};
  proxy.responses = 2;
  step.convergence.proxies = {proxy};
  scenario::TrafficResult traffic;
  traffic.flow = "from-cluster1";
  traffic.sent = 10;
  traffic.failed = 1;
  traffic.by_version = {{"v1", 3}, {"v2", 6}};
  traffic.by_flags = {{"-", 9}, {"URX,UF", 1}};
  traffic.by_code = {{200, 9}, {503, 1}};
  traffic.p50 = 5ms;
  traffic.p99 = 9ms;
  traffic.bucket = 250ms;
  traffic.start = Time{} + 10s;
  traffic.end = Time{} + 11s;
  traffic.retried = 1;
  traffic.attempts = 12;
  traffic.series = {{{{"v1", 3}, {"v2", 1}}, 0, 0, 5ms, 9ms}, {{{"v2", 5}}, 1, 1, 5ms, 9ms}};
  traffic.failures = {{false, 503, "URX,UF", "cluster2's gateway gw 172.30.2.1:15443", "TLS alert <unknown_ca>", 1,
                       Time{} + 10s, Time{} + 10s}};
  traffic.upstreams = {{"cluster2's gateway gw 172.30.2.1:15443", {6, 6, "cluster2", ""}}};
  step.traffic = {traffic};
  step.expectations = {{"split of from-cluster1: v1 33 %, v2 67 %", true, "v1 33.3 %", 12},
                       {"requests: failed < 1", false, "1 of 10 \x01 failed <&>", 13}};
  result.steps = {step};
  result.nodes = {{"cluster1/sample/sleep", "sleep", "workload", "cluster1"},
                  {"cluster1/istio-system/istiod", "istiod", "istiod", "cluster1"},
                  {"cluster2/sample/helloworld v2", "helloworld \"v2\"", "workload", "cluster2"}};
  result.edges = {{"cluster1/sample/sleep", "cluster2/sample/helloworld v2", "6", "calls", 12, 6}};
  result.pushes = {{10, 3}};
  return result;
}

}  // namespace wavetank::report
