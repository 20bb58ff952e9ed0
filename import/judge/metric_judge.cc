#include "import/judge/metric_judge.h"

#include <algorithm>
#include <cmath>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/judge/shares.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using wavetank::Text;  // of JSON; a Place has one of its own

// "sleep-6d4f5c7b9-x2x7q.sample@cluster1" as its workload: "sleep.sample"; empty: no pod of a Deployment.
std::string WorkloadOf(std::string_view client) {
  client = client.substr(0, client.find('@'));
  const size_t dot = client.find('.');
  std::string_view pod = client.substr(0, dot);
  for (int i = 0; i < 2; ++i) {
    const size_t dash = pod.rfind('-');
    if (dash == pod.npos) return {};
    pod = pod.substr(0, dash);
  }
  return std::string(pod) + std::string(dot == client.npos ? "" : client.substr(dot));
}

// Whether an authority as clients write it ("helloworld.sample:5000") is of a service as metrics call it.
bool IsOf(std::string_view authority, std::string_view service) {
  const std::string_view host = authority.substr(0, authority.rfind(':'));
  return service.starts_with(host) && (service.size() == host.size() || service[host.size()] == '.');
}

}  // namespace

std::optional<JudgedClaim> MetricJudge::OnMetric(const replay::LogInput& input) {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  MetricLabels labels;
  for (const auto& [name, value] : At(out.claim, "labels").items()) labels[name] = TextOf(value);
  const std::string cluster = Text(out.claim, "type"), metric = Text(out.claim, "name");
  const std::optional<double> value = metric_ ? metric_(cluster, metric, labels) : std::nullopt;
  const bool begins = At(out.claim, "begins") == true;
  if (!value) {
    if (begins) return std::nullopt;
    out.why = "the simulated mesh has nothing that this metric is of";
    return out;
  }
  double here = *value;
  if (At(out.claim, "counter") == true) {
    const std::string key = cluster + "\n" + metric + "\n" + JsonText(At(out.claim, "labels"));
    const auto [it, fresh] = counters_.try_emplace(key, Counter{here, 0});
    if (begins) return std::nullopt;
    if (!fresh) it->second.total += here >= it->second.last ? here - it->second.last : here;
    it->second.last = here;
    here = it->second.total;
  }
  const int64_t claimed = Number(out.claim, "value");
  const auto [least, most] =
      std::minmax({claimed, Number(out.claim, "before", claimed), Number(out.claim, "after", claimed)});
  const int64_t rounded = std::llround(std::clamp(here, -9e15, 9e15));
  out.simulated = fmt::format("{}", rounded);
  out.simulated_at = input.at;
  if (At(out.claim, "partial") == true && rounded < least) {
    out.why = fmt::format("at least {} were counted, and only what the evidence names is here", least);
    return out;
  }
  out.verdict = least <= rounded && rounded <= most ? Verdict::kAgrees : Verdict::kDisagrees;
  if (out.verdict == Verdict::kDisagrees) {
    out.why = least == most ? fmt::format("and not {}", least) : fmt::format("and not between {} and {}", least, most);
  }
  return out;
}

void MetricJudge::OnRequestsClaim(const replay::LogInput& input) {
  const json& claim = At(input.body, "claim");
  Window& window = windows_[Text(claim, "name")].emplace_back();
  window.seq = input.seq;
  window.service = Text(claim, "service");
  window.from = input.at;
  window.until = input.at + Duration(std::clamp<int64_t>(Number(claim, "spanNs"), 0, Duration(24h).count()));
}

void MetricJudge::OnRequest(const replay::LoggedEvent& event) {
  const auto it = windows_.find(WorkloadOf(event.subject));
  if (it == windows_.end()) return;
  // Counted when it ends, as the proxy does.
  for (auto window = it->second.rbegin(); window != it->second.rend(); ++window) {
    if (event.time < window->from || event.time >= window->until || !IsOf(event.object, window->service)) continue;
    ++window->requests;
    ++window->codes[fmt::format("{}", event.a)];
    ++window->flags[std::string(event.detail.substr(0, event.detail.find('|')))];
    return;
  }
}

JudgedClaim MetricJudge::JudgeRequests(const replay::LogInput& input) const {
  JudgedClaim out;
  out.at = input.at;
  out.claim = At(input.body, "claim");
  const Window* window = nullptr;
  if (const auto it = windows_.find(Text(out.claim, "name")); it != windows_.end()) {
    for (const Window& one : it->second) {
      if (one.seq == input.seq) window = &one;
    }
  }
  if (window == nullptr || window->requests == 0) {
    out.why = "nobody asks for that in the simulated mesh: access logs tell who asks whom, metrics do not";
    return out;
  }
  out.simulated_at = window->from;
  out.simulated =
      fmt::format("{} requests: {}; flags {}", window->requests, SharesInWords(window->codes, window->requests),
                  SharesInWords(window->flags, window->requests));
  const auto total = static_cast<uint64_t>(std::max<int64_t>(Number(out.claim, "requests", 1), 1));
  for (const auto& [field, simulated] : {std::pair{"codes", &window->codes}, std::pair{"flags", &window->flags}}) {
    std::map<std::string, uint64_t> real;
    for (const auto& [what, count] : At(out.claim, field).items()) {
      real[what] += static_cast<uint64_t>(std::max<int64_t>(NumberOf(count), 0));
    }
    const std::string which = FirstDifference(real, total, *simulated, window->requests);
    if (!which.empty()) out.why += fmt::format("{}{} {}", out.why.empty() ? "" : "; ", field, which);
  }
  out.verdict = out.why.empty() ? Verdict::kAgrees : Verdict::kDisagrees;
  return out;
}

}  // namespace wavetank::importing
