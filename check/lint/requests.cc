#include "check/lint/requests.h"

#include <algorithm>

#include "check/game_day/fork_pool.h"
#include "check/traffic/flows.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

constexpr size_t kPairs = 400;
constexpr int64_t kRate = 10;
constexpr Duration kLasts = 2s, kPatience = 16s;

// The mesh does what it was told to.
bool IsRefusal(const FailureReason& reason) {
  for (const char* word :
       {"rbac", "jwt_authn", "ext_authz", "route_not_found", "fault_filter_abort", "direct_response"}) {
    if (reason.details.find(word) != std::string::npos) return true;
  }
  // An authorizer, say, that nobody shows what it asks for.
  if (reason.words.starts_with("the application answered 4")) return true;
  return reason.flags.find("NR") != std::string::npos || reason.ClientGone();
}

// In the fork.
std::string Send(const Mesh& mesh, const std::vector<scenario::FlowSpec>& flows) {
  sim::World& world = mesh.world();
  json out = json::array();
  absl::StatusOr<std::unique_ptr<FlowMeter>> meter = FlowMeter::Start(world, flows, kRate);
  if (!meter.ok()) return JsonText(out);
  world.RunUntil(world.Now() + kLasts);
  (*meter)->Finish(kPatience);
  for (size_t i = 0; i < flows.size(); ++i) {
    const Window window = (*meter)->Between(i, 0, INT64_MAX);
    int64_t failed = 0, refused = 0;
    std::vector<std::pair<int64_t, std::string>> reasons;
    for (const auto& [reason, count] : window.reasons) {
      if (reason.details.find("rbac") != std::string::npos) refused += count;
      if (IsRefusal(reason)) continue;
      failed += count;
      reasons.emplace_back(-count, reason.Text());
    }
    std::sort(reasons.begin(), reasons.end());
    json texts = json::array();
    for (size_t k = 0; k < std::min<size_t>(reasons.size(), 2); ++k) texts.push_back(reasons[k].second);
    out.push_back({{"sent", window.sent},
                   {"failed", failed},
                   {"refused", refused},
                   {"retried", window.retried},
                   {"reasons", texts}});
  }
  return JsonText(out);
}

}  // namespace

RequestsSent SendRequests(const Mesh& mesh) {
  RequestsSent sent;
  std::vector<scenario::FlowSpec> flows = EveryFlow(mesh, kPairs + 1, true);
  if (flows.empty()) return sent;
  if (flows.size() > kPairs) {
    sent.notes.push_back(
        fmt::format("requests were sent between {} pairs of client and Service, and there are more; `wavetank apply` "
                    "sends between all",
                    kPairs));
    flows.resize(kPairs);
  }
  const auto answers = InForks(
      1, 1, [&](size_t) { return Send(mesh, flows); }, nullptr, nullptr,
      [](size_t) { return "requests between applications"; });
  if (!answers.ok()) {
    sent.notes.push_back(fmt::format("what comes of requests is not known: {}", Message(answers.status())));
    return sent;
  }
  const json results = ParseJson(answers->front());
  std::vector<RequestOutcome>& out = sent.outcomes;
  for (size_t i = 0; results.is_array() && i < std::min(results.size(), flows.size()); ++i) {
    RequestOutcome& r = out.emplace_back();
    r.client = fmt::format("{}.{}@{}", flows[i].from_app, flows[i].from_namespace, flows[i].from_cluster);
    r.cluster = flows[i].from_cluster;
    r.client_ns = flows[i].from_namespace;
    const size_t dot = flows[i].host.find('.');
    r.service = flows[i].host.substr(0, dot);
    r.ns = flows[i].host.substr(dot + 1);
    r.port = flows[i].port;
    r.sent = results[i]["sent"].get<int64_t>();
    r.failed = results[i]["failed"].get<int64_t>();
    r.refused = results[i]["refused"].get<int64_t>();
    r.retried = results[i]["retried"].get<int64_t>();
    for (const json& reason : results[i]["reasons"]) r.reasons.push_back(reason.get<std::string>());
  }
  return sent;
}

}  // namespace wavetank::check
