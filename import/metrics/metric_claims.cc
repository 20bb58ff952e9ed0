#include "import/metrics/metric_claims.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/metrics/known_metrics.h"

namespace wavetank::importing {
namespace {

using nlohmann::ordered_json;

std::string LabelOf(const Sample& sample, const std::string& name) {
  const auto it = sample.labels.find(name);
  return it == sample.labels.end() ? std::string() : it->second;
}

// What was scraped has its own labels of these names; Prometheus calls those of the metric exported_NAME then.
std::string OwnLabelOf(const Sample& sample, const std::string& name) {
  const auto it = sample.labels.find("exported_" + name);
  return it == sample.labels.end() ? LabelOf(sample, name) : it->second;
}

int64_t Whole(double value) { return std::llround(std::clamp(value, -9e15, 9e15)); }

// A counter that is less than it was began anew, as Prometheus' increase() has it.
double Increase(double before, double now) { return now >= before ? now - before : now; }

}  // namespace

void MetricClaims::Add(const Sample& sample, const std::string& cluster, const std::string& file) {
  if (sample.metric == kRequestsTotal) return AddRequests(sample, cluster, file);
  const KnownMetric* const known = FindKnownMetric(sample.metric);
  if (known == nullptr) {
    ++unknown_[sample.metric];
    return;
  }
  Key key{cluster, sample.metric, {}};
  MetricLabels others = sample.labels;
  for (const std::string_view label : known->labels) {
    const std::string name(label);
    if (std::string value = OwnLabelOf(sample, name); !value.empty()) key.labels[name] = std::move(value);
    others.erase(name);
  }
  std::string member;
  for (const auto& [name, value] : others) member += name + "=" + value + "\n";
  Points& points = series_[std::move(key)][member];
  if (points.place.file.empty()) points.place = {file, sample.line};
  if (sample.at == kNoTime) {
    points.undated = sample.value;
    points.has_undated = true;
  } else {
    points.values[sample.at] = sample.value;
  }
}

void MetricClaims::AddRequests(const Sample& sample, const std::string& cluster, const std::string& file) {
  // Both sides count a request; the client's also knows of those that reached nobody.
  if (LabelOf(sample, "reporter") != "source") {
    ++of_servers_;
    return;
  }
  if (sample.at == kNoTime) {
    ++undated_requests_;
    return;
  }
  Client client;
  client.cluster = LabelOf(sample, "source_cluster");
  if (client.cluster.empty()) client.cluster = cluster;
  client.ns = LabelOf(sample, "source_workload_namespace");
  client.name = LabelOf(sample, "source_workload");
  client.scraped = LabelOf(sample, "pod") + "\n" + LabelOf(sample, "instance");
  Counted& counted = clients_[client];
  if (counted.place.file.empty()) counted.place = {file, sample.line};
  counted.scrapes.insert(sample.at);
  // A service's versions and workloads are counted apart.
  counted.answers[{LabelOf(sample, "destination_service"), LabelOf(sample, "response_code"),
                   LabelOf(sample, "response_flags")}][sample.at] += sample.value;
}

void MetricClaims::ClaimSeries(const Key& key, const std::map<std::string, Points>& members, Evidence& evidence) {
  const bool counter = FindKnownMetric(key.metric)->counter;
  std::set<WallNs> times;
  double undated = 0;
  bool has_undated = false;
  for (const auto& [member, points] : members) {
    for (const auto& [at, value] : points.values) times.insert(at);
    undated += points.undated;
    has_undated = has_undated || points.has_undated;
  }
  const auto say = [&](WallNs at, double value) -> ordered_json {
    ::wavetank::importing::Claim& claim = evidence.claims.emplace_back();
    claim.kind = ClaimKind::kMetric;
    claim.at = at;
    claim.name = key.metric;
    claim.type = key.cluster;
    claim.place = members.begin()->second.place;
    return {{"labels", key.labels}, {"counter", counter}, {"value", Whole(value)}};
  };
  const auto finish = [&](const ordered_json& extra) { evidence.claims.back().extra = JsonText(extra); };
  if (times.empty()) {
    // Of a counter one sample tells no increase.
    if (has_undated && !counter) finish(say(kNoTime, undated));
    return;
  }
  // The sum over all who were scraped, each with what it said last; a counter from its first sample on.
  std::vector<std::pair<WallNs, double>> sums;
  std::map<std::string, double> last;
  double total = 0;
  for (const WallNs at : times) {
    for (const auto& [member, points] : members) {
      const auto now = points.values.find(at);
      if (now == points.values.end()) continue;
      const auto before = last.find(member);
      if (!counter) {
        total += now->second - (before == last.end() ? 0 : before->second);
      } else if (before != last.end()) {
        total += Increase(before->second, now->second);
      }
      last[member] = now->second;
    }
    sums.emplace_back(at, total);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const bool ends = i + 1 == sums.size();
    if (i > 0 && !ends && sums[i].second == sums[i - 1].second) continue;
    ordered_json extra = say(sums[i].first, sums[i].second);
    extra["before"] = Whole(i == 0 ? sums[i].second : sums[i - 1].second);
    extra["after"] = Whole(ends ? sums[i].second : sums[i + 1].second);
    if (counter && i == 0) extra["begins"] = true;  // nothing to judge yet: where its increase is counted from
    finish(extra);
  }
}

void MetricClaims::ClaimRequests(const Client& client, const Counted& counted, Evidence& evidence) {
  struct Window {
    double requests = 0;
    std::map<std::string, double> codes, flags;
  };
  // By service and by the scrape that ends it.
  std::map<std::pair<std::string, WallNs>, Window> windows;
  for (const auto& [answer, values] : counted.answers) {
    for (const auto& [at, value] : values) {
      const auto scrape = counted.scrapes.find(at);
      if (scrape == counted.scrapes.begin()) continue;
      // What was not there at the scrape before was nought.
      const auto before = values.find(*std::prev(scrape));
      const double more = before == values.end() ? value : Increase(before->second, value);
      if (more <= 0) continue;
      Window& window = windows[{answer.service, at}];
      window.requests += more;
      window.codes[answer.code] += more;
      window.flags[answer.flags.empty() ? "-" : answer.flags] += more;
    }
  }
  for (const auto& [of, window] : windows) {
    const WallNs begin = *std::prev(counted.scrapes.find(of.second));
    ::wavetank::importing::Claim& claim = evidence.claims.emplace_back();
    claim.kind = ClaimKind::kRequests;
    claim.at = begin;
    claim.name = client.ns.empty() ? client.name : client.name + "." + client.ns;
    claim.type = client.cluster;
    claim.place = counted.place;
    ordered_json codes = ordered_json::object(), flags = ordered_json::object();
    for (const auto& [code, count] : window.codes) codes[code] = Whole(count);
    for (const auto& [flag, count] : window.flags) flags[flag] = Whole(count);
    claim.extra = JsonText(ordered_json{{"service", of.first},
                                        {"requests", Whole(window.requests)},
                                        {"codes", std::move(codes)},
                                        {"flags", std::move(flags)},
                                        {"spanNs", of.second - begin}});
  }
}

void MetricClaims::Claim(Evidence& evidence) const {
  for (const auto& [key, members] : series_) ClaimSeries(key, members, evidence);
  for (const auto& [client, counted] : clients_) ClaimRequests(client, counted, evidence);
  if (!unknown_.empty()) {
    uint64_t samples = 0;
    std::string names;
    constexpr size_t kShown = 5;
    size_t n = 0;
    for (const auto& [metric, count] : unknown_) {
      samples += count;
      if (n++ < kShown) names += (names.empty() ? "" : ", ") + metric;
    }
    evidence.notes.push_back(fmt::format("{} samples are of {} metrics that nothing simulated is held against ({}{})",
                                         samples, unknown_.size(), names, unknown_.size() > kShown ? ", ..." : ""));
  }
  const auto undated = std::count_if(series_.begin(), series_.end(), [](const auto& series) {
    return FindKnownMetric(series.first.metric)->counter &&
           std::all_of(series.second.begin(), series.second.end(),
                       [](const auto& member) { return member.second.values.empty(); });
  });
  if (undated > 0) {
    evidence.notes.push_back(
        fmt::format("{} counters have no time, so nobody knows what they count; take a range query", undated));
  }
  if (of_servers_ > 0) {
    evidence.notes.push_back(fmt::format("{} samples of {} are not their clients' (reporter=source), and not claimed",
                                         of_servers_, kRequestsTotal));
  }
  if (undated_requests_ > 0) {
    evidence.notes.push_back(
        fmt::format("{} samples of {} have no time, so nobody knows what they count; take a range query",
                    undated_requests_, kRequestsTotal));
  }
}

}  // namespace wavetank::importing
