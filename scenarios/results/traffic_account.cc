#include "scenarios/results/traffic_account.h"

#include <algorithm>

#include "fmt/format.h"
#include "scenarios/answers/request_story.h"

namespace wavetank::scenario {

namespace {

// Sorts `values`.
Duration Percentile(std::vector<int64_t>& values, int64_t part) {
  if (values.empty()) return Duration::zero();
  std::sort(values.begin(), values.end());
  return Duration(values[static_cast<size_t>(static_cast<int64_t>(values.size() - 1) * part / 100)]);
}

// "listener A, cluster B at 10.2.0.4:5000: UF", as a proxy says of a connection that it closed; none: it says no
// address.
envoysim::SocketAddress AddressToldBy(std::string_view closer) {
  constexpr std::string_view kAt = " at ";
  const size_t at = closer.rfind(kAt);
  if (at == closer.npos) return {};
  closer.remove_prefix(at + kAt.size());
  const size_t end = closer.find(": ");
  const auto address = envoysim::SocketAddress::Parse(closer.substr(0, end));
  return address.ok() ? *address : envoysim::SocketAddress{};
}

}  // namespace

TrafficAccount::TrafficAccount(const NameTable& names, AddressNames& addresses, std::string flow, bool meanwhile,
                               Time start, std::optional<Time> seconds_since)
    : names_(names), addresses_(addresses), seconds_since_(seconds_since) {
  result_.flow = std::move(flow);
  result_.meanwhile = meanwhile;
  result_.start = start;
  result_.bucket = kBucket;
}

TrafficResult::Second* TrafficAccount::SecondOf(Time at) {
  if (!seconds_since_) return nullptr;
  return &result_.seconds[std::chrono::floor<std::chrono::seconds>(at - *seconds_since_).count()];
}

void TrafficAccount::AddFailure(bool retried, int code, std::string flags, const envoysim::SocketAddress& upstream,
                                std::string cause, Time at) {
  std::string whose = upstream == envoysim::SocketAddress{} ? std::string() : addresses_.Of(upstream);
  const auto [it, first] = failures_.try_emplace({retried, code, flags, whose, cause});
  TrafficResult::Failure& failure = it->second;
  if (first) failure = {retried, code, std::move(flags), std::move(whose), std::move(cause), 0, at, at};
  ++failure.count;
  failure.first = std::min(failure.first, at);
  failure.last = std::max(failure.last, at);
}

void TrafficAccount::AddTry(const envoysim::SocketAddress& address, bool failed) {
  TrafficResult::Upstream& upstream = result_.upstreams[addresses_.Of(address)];
  if (upstream.tries == 0) {
    if (const AddressNames::Owner* const owner = addresses_.OwnerOf(address)) {
      upstream.cluster = owner->cluster;
      upstream.pod = owner->pod;
    }
  }
  ++upstream.tries;
  upstream.failed += failed ? 1 : 0;
}

// The words, and what the network has to do with it where nobody answered.
std::string TrafficAccount::CauseOf(const FailureFacts& facts, const sim::TrafficRecord& t,
                                    const envoysim::SocketAddress& upstream) const {
  std::string words = FailureInWords(facts);
  const bool unanswered = facts.code == 0 || facts.code == 503 || facts.code == 504;
  // Of a connection of bytes only its proxy knows where it went.
  const bool told = upstream == envoysim::SocketAddress{};
  const std::string obstacle =
      unanswered ? addresses_.Obstacle(t.client, told ? AddressToldBy(facts.closer) : upstream, t.record.cluster)
                 : std::string();
  return obstacle.empty() ? words : words + " (" + obstacle + ")";
}

// Every try, by the upstream that it went to.
void TrafficAccount::AddTries(const sim::TrafficRecord& t, bool failed) {
  const envoysim::RequestRecord& r = t.record;
  result_.attempts += r.attempts;
  if (r.failed_tries != nullptr) {
    for (const envoysim::FailedTry& each : *r.failed_tries) {
      AddTry(each.upstream, true);
      std::string cause = CauseOf(FactsOf(each, r.cluster), t, each.upstream);
      if ((each.flags & envoysim::kUpstreamRequestTimeout) != 0 && !r.route_config.empty())
        cause += fmt::format(" ({})", ObjectAt(r.route_config));
      AddFailure(true, each.code, envoysim::ResponseFlagsToString(each.flags), each.upstream, std::move(cause),
                 each.at);
    }
  }
  if (r.upstream != envoysim::SocketAddress{}) AddTry(r.upstream, failed);
  if (failed) {
    std::string cause = CauseOf(FactsOf(r), t, r.upstream);
    if (const std::string by = BlamedObject(r); !by.empty()) cause += fmt::format(" ({})", by);
    AddFailure(false, r.code, envoysim::ResponseFlagsToString(r.flags), r.upstream, std::move(cause), t.done);
  }
}

void TrafficAccount::Add(const sim::TrafficRecord& t) {
  const envoysim::RequestRecord& r = t.record;
  ++result_.sent;
  result_.without_client += t.client.empty() ? 1 : 0;
  if (result_.client.empty()) result_.client = fmt::format("app {} of {} in {}", t.spec.app, t.spec.ns, t.spec.cluster);
  const auto bucket = static_cast<size_t>((t.done - result_.start) / kBucket);
  if (result_.series.size() <= bucket) {
    result_.series.resize(bucket + 1);
    bucket_latencies_.resize(bucket + 1);
  }
  ++result_.by_code[r.code];
  // What failed without a proxy's flags is told in the client's own words.
  const bool failed = !sim::Answered(t);
  ++result_.by_flags[failed && r.flags == envoysim::kNoFlags && !r.details.empty()
                         ? std::string(r.details)
                         : envoysim::ResponseFlagsToString(r.flags)];
  if (r.attempts > 1) ++result_.retried;
  result_.client_attempts += t.client_attempts;
  latencies_.push_back((t.done - t.sent).count());
  bucket_latencies_[bucket].push_back(latencies_.back());
  result_.series[bucket].retried += r.attempts > 1 ? 1 : 0;
  AddTries(t, failed);
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
    TrafficResult::Failure failure;
    failure.flags = "-";
    failure.cause = "no answer yet when the traffic ended";
    failure.count = unanswered;
    failure.first = failure.last = end;
    result_.failures.push_back(std::move(failure));
    if (TrafficResult::Second* second = SecondOf(end)) {
      second->sent += unanswered;
      second->failed += unanswered;
    }
  }
  result_.p50 = Percentile(latencies_, 50);
  result_.p99 = Percentile(latencies_, 99);
  result_.max = Percentile(latencies_, 100);
  for (size_t i = 0; i < result_.series.size(); ++i) {
    result_.series[i].p50 = Percentile(bucket_latencies_[i], 50);
    result_.series[i].p99 = Percentile(bucket_latencies_[i], 99);
  }
  for (const auto& [key, failure] : failures_) result_.failures.push_back(failure);
  std::stable_sort(result_.failures.begin(), result_.failures.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return result_;
}

}  // namespace wavetank::scenario
