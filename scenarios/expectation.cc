#include "scenarios/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "scenarios/statistics.h"
#include "scenarios/yaml_reader.h"

namespace wavetank::scenario {
namespace {

std::string Percent(int64_t ppm) {
  std::string text = fmt::format("{:.4f}", static_cast<double>(ppm) / 1e4);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " %";
}

int64_t Ppm(int64_t part, int64_t whole) { return whole == 0 ? 0 : part * 1'000'000 / whole; }

// The flows that the expectation is about, added up into one.
struct Selected {
  TrafficResult sum;
  int flows = 0;
};

bool Concerns(const Expectation& e, const TrafficResult& t) {
  using Phase = Expectation::Phase;
  if (e.phase != Phase::kAll && t.meanwhile != (e.phase == Phase::kMeanwhile)) return false;
  return e.flow.empty() || t.flow == e.flow;
}

Selected Select(const Expectation& e, const StepResult& step) {
  Selected out;
  for (const TrafficResult& t : step.traffic) {
    if (!Concerns(e, t)) continue;
    ++out.flows;
    out.sum.sent += t.sent;
    out.sum.failed += t.failed;
    out.sum.retried += t.retried;
    out.sum.remote += t.remote;
    out.sum.mtls_verified += t.mtls_verified;
    const auto add = [](auto& into, const auto& from) {
      for (const auto& [key, count] : from) into[key] += count;
    };
    add(out.sum.by_version, t.by_version);
    add(out.sum.by_cluster, t.by_cluster);
    add(out.sum.by_pod, t.by_pod);
    add(out.sum.by_flags, t.by_flags);
    add(out.sum.remote_hops, t.remote_hops);
    add(out.sum.local_hops, t.local_hops);
    add(out.sum.gateway_snis, t.gateway_snis);
    out.sum.p50 = std::max(out.sum.p50, t.p50);
    out.sum.p99 = std::max(out.sum.p99, t.p99);
  }
  return out;
}

std::string Who(const Expectation& e) {
  return fmt::format("{}{}", e.flow.empty() ? "all flows" : e.flow,
                     e.phase == Expectation::Phase::kMeanwhile ? ", meanwhile" : "");
}

ExpectationResult JudgeSplit(const Expectation& e, const Selected& s) {
  ExpectationResult r;
  const auto& counts = e.by == "version" ? s.sum.by_version : e.by == "cluster" ? s.sum.by_cluster : s.sum.by_pod;
  std::vector<int64_t> observed;
  std::vector<double> shares;
  std::string found;
  int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  std::set<std::string> names;
  for (const auto& [name, share] : e.shares_ppm) names.insert(name);
  for (const auto& [name, count] : counts) names.insert(name);
  for (const std::string& name : names) {
    const auto count = counts.find(name);
    const auto share = e.shares_ppm.find(name);
    observed.push_back(count == counts.end() ? 0 : count->second);
    shares.push_back(share == e.shares_ppm.end() ? 0 : static_cast<double>(share->second) / 1e6);
    found += fmt::format("{}{} {} ({})", found.empty() ? "" : ", ", name.empty() ? "(unlabelled)" : name,
                         Percent(Ppm(observed.back(), total)), observed.back());
  }
  const GoodnessOfFit fit = ChiSquaredTest(observed, shares);
  const double alpha = 1 - static_cast<double>(e.confidence_ppm) / 1e6;
  r.held = fit.p_value >= alpha;
  if (total == 0) {
    r.explanation = "nobody answered";
  } else if (fit.impossible) {
    r.explanation = fmt::format("{}: somebody answered whose share should be 0", found);
  } else {
    r.explanation = fmt::format("{}; chi-squared {:.2f}, p = {:.3g} {} {:.3g}", found, fit.statistic, fit.p_value,
                                r.held ? ">=" : "<", alpha);
  }
  return r;
}

// Judges one ranged quantity and appends what was found.
void JudgeRange(const Expectation& e, const std::string& name, int64_t value, const std::string& shown,
                ExpectationResult* r) {
  const auto range = e.ranges.find(name);
  if (range == e.ranges.end()) return;
  const bool held = range->second.Holds(value);
  r->held = r->held && held;
  r->explanation += fmt::format("{}{} {}{}", r->explanation.empty() ? "" : ", ", shown, name,
                                held ? "" : fmt::format(" (expected {})", range->second.text));
}

ExpectationResult JudgeHops(const Expectation& e, const Selected& s) {
  ExpectationResult r;
  r.held = true;
  const auto judge = [&](const std::string& name, const std::map<int, int64_t>& hops) {
    const auto range = e.ranges.find(name);
    if (range == e.ranges.end()) return;
    int64_t outside = 0, all = 0;
    for (const auto& [count, requests] : hops) {
      all += requests;
      if (!range->second.Holds(count)) outside += requests;
    }
    r.held = r.held && outside == 0;
    r.explanation +=
        fmt::format("{}{} of {} requests answered {} passed {} gateways", r.explanation.empty() ? "" : "; ",
                    all - outside, all, name == "remote" ? "from the other side" : "at home", range->second.text);
  };
  judge("remote", s.sum.remote_hops);
  judge("local", s.sum.local_hops);
  if (!e.sni.empty()) {
    std::string others;
    int64_t right = 0;
    for (const auto& [sni, count] : s.sum.gateway_snis) {
      if (sni == e.sni) {
        right = count;
      } else {
        others += fmt::format(" {} with SNI {}", count, sni);
      }
    }
    r.held = r.held && others.empty() && (right > 0 || s.sum.remote == 0);
    r.explanation += fmt::format("{}{} with SNI {}{}", r.explanation.empty() ? "" : "; ", right, e.sni,
                                 others.empty() ? "" : ", but" + others);
  }
  return r;
}

ExpectationResult JudgeEndpoints(const Expectation& e, const WorldView& world) {
  ExpectationResult r;
  const auto lists = world.EndpointsOf(e.cluster, e.ns, e.app, e.host, e.port);
  if (lists.empty()) {
    r.explanation = fmt::format("no proxy of {} in {} is connected", e.app, e.cluster);
    return r;
  }
  r.held = true;
  for (const auto& list : lists) {
    const auto range = e.ranges.find("count");
    const bool count_held = range == e.ranges.end() || range->second.Holds(static_cast<int64_t>(list.addresses.size()));
    std::vector<std::string> wanted = e.names;
    std::sort(wanted.begin(), wanted.end());
    const bool names_held = e.names.empty() || wanted == list.addresses;
    r.held = r.held && count_held && names_held;
    r.explanation += fmt::format("{}{} has {} [{}]", r.explanation.empty() ? "" : "; ", list.proxy,
                                 list.addresses.size(), fmt::join(list.addresses, " "));
  }
  return r;
}

ExpectationResult JudgeRequests(const Expectation& e, const TrafficResult& sum) {
  ExpectationResult r;
  r.held = true;
  const auto judge = [&](const std::string& name, int64_t count) {
    const auto range = e.ranges.find(name);
    const bool share = range != e.ranges.end() && range->second.unit == Range::Unit::kShare;
    JudgeRange(e, name, share ? Ppm(count, sum.sent) : count, fmt::format("{} of {}", count, sum.sent), &r);
  };
  judge("failed", sum.failed);
  JudgeRange(e, "sent", sum.sent, std::to_string(sum.sent), &r);
  judge("retried", sum.retried);
  JudgeRange(e, "p50", sum.p50.count(), FormatDuration(sum.p50), &r);
  JudgeRange(e, "p99", sum.p99.count(), FormatDuration(sum.p99), &r);
  return r;
}

// Traffic that must be right always or eventually is judged second by second, each by the requests that ended in it.
ExpectationResult JudgeSeconds(const Expectation& e, const StepResult& step) {
  std::map<int64_t, TrafficResult::Second> seconds;
  for (const TrafficResult& t : step.traffic) {
    if (!Concerns(e, t)) continue;
    for (const auto& [number, second] : t.seconds) {
      TrafficResult::Second& into = seconds[number];
      into.sent += second.sent;
      into.failed += second.failed;
      into.retried += second.retried;
      for (const auto& [name, count] : second.by_version) into.by_version[name] += count;
      for (const auto& [name, count] : second.by_cluster) into.by_cluster[name] += count;
      for (const auto& [name, count] : second.by_pod) into.by_pod[name] += count;
      into.latencies_ns.insert(into.latencies_ns.end(), second.latencies_ns.begin(), second.latencies_ns.end());
    }
  }
  const bool always = e.mode == "always";
  ExpectationResult r;
  int64_t looked = 0;
  for (auto& [number, second] : seconds) {
    if (!always && (number < 0 || std::chrono::seconds(number) >= e.within)) continue;
    ++looked;
    Selected s;
    s.sum.sent = second.sent;
    s.sum.failed = second.failed;
    s.sum.retried = second.retried;
    s.sum.by_version = std::move(second.by_version);
    s.sum.by_cluster = std::move(second.by_cluster);
    s.sum.by_pod = std::move(second.by_pod);
    std::vector<int64_t>& sorted = second.latencies_ns;
    std::sort(sorted.begin(), sorted.end());
    const auto percentile = [&sorted](size_t part) {
      return sorted.empty() ? Duration::zero() : Duration(sorted[(sorted.size() - 1) * part / 100]);
    };
    s.sum.p50 = percentile(50);
    s.sum.p99 = percentile(99);
    r = e.kind == "split" ? JudgeSplit(e, s) : JudgeRequests(e, s.sum);
    r.explanation = number < 0 ? fmt::format("in the second that ended {} s before: {}", -number - 1, r.explanation)
                               : fmt::format("in the second from {} s on: {}", number, r.explanation);
    if (r.held != always) return r;
  }
  if (looked == 0) {
    r.explanation = always ? "no request ended in this step; add the flow to meanwhile or then"
                           : fmt::format("no request ended within {} of the change; add the flow to meanwhile or then",
                                         FormatDuration(e.within));
  } else if (always) {
    r.explanation = fmt::format("in each of {} seconds; last {}", looked, r.explanation);
  } else {
    r.explanation = fmt::format("in none of {} seconds; last {}", looked, r.explanation);
  }
  return r;
}

}  // namespace

std::string Describe(const Expectation& e) {
  std::string text = e.mode.empty() ? "" : e.mode + " ";
  const auto ranges = [&] {
    std::string out;
    for (const auto& [name, range] : e.ranges) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, range.text);
    return out;
  };
  if (e.kind == "split") {
    std::string shares;
    for (const auto& [name, share] : e.shares_ppm) {
      shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", name, Percent(share));
    }
    return text + fmt::format("split of {} by {}: {} ({} confidence)", Who(e), e.by, shares, Percent(e.confidence_ppm));
  }
  if (e.kind == "flags") {
    return text + fmt::format("flags of {}: {}", Who(e),
                              e.names.empty() ? "none" : fmt::format("only {}", fmt::join(e.names, ", ")));
  }
  if (e.kind == "endpoints") {
    return text + fmt::format("endpoints of {}:{} at {} in {}: {}{}", e.host, e.port, e.app, e.cluster, ranges(),
                              e.names.empty() ? "" : fmt::format("{}", fmt::join(e.names, " ")));
  }
  if (e.kind == "converged") return text + fmt::format("converged: {}", ranges());
  return text + fmt::format("{} of {}: {}{}", e.kind, Who(e), ranges(), e.sni.empty() ? "" : ", SNI " + e.sni);
}

ExpectationResult Judge(const Expectation& e, const StepResult& step, const WorldView& world) {
  ExpectationResult r;
  if (e.kind == "converged") {
    r.held = true;
    JudgeRange(e, "within", step.convergence.Total().count(), "took " + FormatDuration(step.convergence.Total()), &r);
    JudgeRange(e, "proxies", static_cast<int64_t>(step.convergence.proxies.size()),
               std::to_string(step.convergence.proxies.size()), &r);
    if (e.ranges.count("within") != 0 && !step.convergence.proxies.empty()) {
      r.explanation += fmt::format("; last was {}", step.convergence.proxies.front().proxy);
    }
  } else if (e.kind == "endpoints") {
    r = JudgeEndpoints(e, world);
  } else if (!e.mode.empty()) {
    r = JudgeSeconds(e, step);
  } else {
    const Selected s = Select(e, step);
    if (s.flows == 0 || s.sum.sent == 0) {
      r.explanation = "no such request was sent in this step; add the flow to meanwhile or then";
    } else if (e.kind == "split") {
      r = JudgeSplit(e, s);
    } else if (e.kind == "hops") {
      r = JudgeHops(e, s);
    } else if (e.kind == "mtls") {
      r.held = true;
      const int64_t answered = s.sum.sent - s.sum.failed;
      JudgeRange(e, "verified", Ppm(s.sum.mtls_verified, answered),
                 fmt::format("{} of {} answered requests were", s.sum.mtls_verified, answered), &r);
    } else if (e.kind == "flags") {
      r.held = true;
      for (const auto& [flags, count] : s.sum.by_flags) {
        const bool none = flags == "-" || flags.empty();
        // A request can have several: each has to be one of those.
        const std::vector<std::string> each = absl::StrSplit(flags, ',');
        r.held = r.held && (none || std::all_of(each.begin(), each.end(), [&](const std::string& flag) {
                              return std::find(e.names.begin(), e.names.end(), flag) != e.names.end();
                            }));
        r.explanation += fmt::format("{}{} with {}", r.explanation.empty() ? "" : ", ", count, none ? "none" : flags);
      }
    } else if (e.kind == "requests") {
      r = JudgeRequests(e, s.sum);
    }
  }
  r.text = Describe(e);
  r.line = e.line;
  return r;
}

}  // namespace wavetank::scenario
