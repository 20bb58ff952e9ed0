#include "scenarios/traffic_account.h"

#include <algorithm>

namespace wavetank::scenario {

TrafficAccount::TrafficAccount(const NameTable& names, std::string flow, bool meanwhile, Time start,
                               std::optional<Time> seconds_since)
    : names_(names), seconds_since_(seconds_since) {
  result_.flow = std::move(flow);
  result_.meanwhile = meanwhile;
  result_.start = start;
  result_.bucket = kBucket;
}

TrafficResult::Second* TrafficAccount::SecondOf(Time at) {
  if (!seconds_since_) return nullptr;
  return &result_.seconds[std::chrono::floor<std::chrono::seconds>(at - *seconds_since_).count()];
}

void TrafficAccount::Add(const sim::TrafficRecord& t) {
  const envoysim::RequestRecord& r = t.record;
  ++result_.sent;
  const auto bucket = static_cast<size_t>((t.done - result_.start) / kBucket);
  if (result_.series.size() <= bucket) result_.series.resize(bucket + 1);
  ++result_.by_code[r.code];
  // What failed without a proxy's flags is told in the client's own words.
  const bool failed = r.code < 200 || r.code >= 400 || t.server == nullptr;
  ++result_.by_flags[failed && r.flags == envoysim::kNoFlags && !r.details.empty()
                         ? std::string(r.details)
                         : envoysim::ResponseFlagsToString(r.flags)];
  if (r.attempts > 1) ++result_.retried;
  latencies_.push_back((t.done - t.sent).count());
  if (TrafficResult::Second* second = SecondOf(t.done)) {
    ++second->sent;
    second->failed += failed ? 1 : 0;
    second->retried += r.attempts > 1 ? 1 : 0;
    second->latencies_ns.push_back(latencies_.back());
    if (!failed) {
      ++second->by_version[t.server->version];
      ++second->by_cluster[t.server->cluster];
      ++second->by_pod[t.server->name];
    }
  }

  if (failed) {
    ++result_.failed;
    ++result_.series[bucket].failed;
    return;
  }
  ++result_.by_version[t.server->version];
  ++result_.by_cluster[t.server->cluster];
  ++result_.by_pod[t.server->name];
  ++result_.series[bucket].by_version[t.server->version];

  std::vector<std::string> way;
  const envoysim::Hop* last_tls = nullptr;
  for (const envoysim::Hop& hop : t.hops) {
    // A tcp_proxy behind an SNI match on the way: the gateway sends on what it cannot read.
    if (!hop.cluster.empty() && !hop.tls && !hop.sni.empty()) {
      way.emplace_back(names_.Text(hop.proxy));
      ++result_.gateway_snis[std::string(hop.sni)];
    }
    if (hop.tls) last_tls = &hop;
  }
  const bool remote = t.server->cluster != t.spec.cluster;
  result_.remote += remote ? 1 : 0;
  ++(remote ? result_.remote_hops : result_.local_hops)[static_cast<int>(way.size())];
  way.push_back(t.server->name);
  ++result_.ways[std::move(way)];
  if (last_tls != nullptr && last_tls->client_verified && last_tls->server_verified) ++result_.mtls_verified;
}

TrafficResult TrafficAccount::Finish(Time end, int64_t unanswered) {
  result_.end = end;
  if (unanswered > 0) {
    result_.sent += unanswered;
    result_.failed += unanswered;
    result_.by_flags["no answer"] += unanswered;
    if (TrafficResult::Second* second = SecondOf(end)) {
      second->sent += unanswered;
      second->failed += unanswered;
    }
  }
  std::sort(latencies_.begin(), latencies_.end());
  const auto percentile = [&](int64_t part) {
    if (latencies_.empty()) return Duration::zero();
    const auto index = static_cast<size_t>(static_cast<int64_t>(latencies_.size() - 1) * part / 100);
    return Duration(latencies_[index]);
  };
  result_.p50 = percentile(50);
  result_.p99 = percentile(99);
  result_.max = percentile(100);
  return result_;
}

}  // namespace wavetank::scenario
