#include "fakes/envoy/upstream/dns_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/buggify/buggify.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

struct HostAndPort {
  std::string_view host;
  std::optional<uint16_t> port;
};

// Envoy: http/utility.cc, parseAuthority
HostAndPort Split(std::string_view authority) {
  const size_t colon = authority.rfind(':');
  if (colon == authority.npos || authority.find(']', colon) != authority.npos) return {authority, {}};
  if (authority.find(':') != colon && !authority.starts_with('[')) return {authority, {}};  // an address of IPv6
  uint32_t port = 0;
  const std::string_view digits = authority.substr(colon + 1);
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &port) || port > 0xffff)
    return {authority, {}};
  return {authority.substr(0, colon), static_cast<uint16_t>(port)};
}

std::string_view WithoutBrackets(std::string_view host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

// In the words of Envoy's resolver and its library, without blanks. Envoy: dns_resolver/cares/dns_impl.cc
std::string DetailsOf(const absl::StatusOr<DnsAnswer>& answer) {
  if (answer.ok()) return "cares_norecords:DNS_server_returned_answer_with_no_data";
  if (absl::IsNotFound(answer.status())) return "cares_norecords:Domain_name_not_found";
  if (absl::IsDeadlineExceeded(answer.status())) return "cares_failure:Timeout_while_contacting_DNS_servers";
  return "cares_failure:DNS_server_returned_general_failure";
}

}  // namespace

std::string NormalisedHost(std::string_view host, uint16_t default_port) {
  if (host.empty()) return {};
  const HostAndPort parts = Split(host);
  if (parts.port.has_value()) return std::string(host);
  const bool bare = parts.host.find(':') != parts.host.npos && !parts.host.starts_with('[');
  return bare ? fmt::format("[{}]:{}", host, default_port) : fmt::format("{}:{}", host, default_port);
}

DnsCache::DnsCache(Process& process, const DnsCacheConfig& config, OnChange on_change)
    : process_(process), config_(config), on_change_(std::move(on_change)) {}

DnsCache::~DnsCache() {
  for (const auto& [key, host] : hosts_) {
    process_.host().Cancel(host.refresh);
    process_.host().Cancel(host.limit);
  }
}

DnsCache::Lookup DnsCache::Find(const std::string& key, Callback done) {
  if (waiting_ >= config_.max_pending_requests) return {Lookup::Status::kBusy, {}, {}};
  auto at = hosts_.find(key);
  if (at == hosts_.end()) {
    if (hosts_.size() >= config_.max_hosts) return {Lookup::Status::kFull, {}, {}};
    at = hosts_.try_emplace(key).first;
    const HostAndPort parts = Split(key);
    at->second.name = std::string(WithoutBrackets(parts.host));
    at->second.port = parts.port.value_or(0);
    at->second.used = process_.host().Now();
    Ask(key);  // which may be answered at once
  }
  Host& host = at->second;
  if (!host.complete) {
    host.waiting.push_back(std::move(done));
    ++waiting_;
    return {Lookup::Status::kAsking, {}, {}};
  }
  if (host.addresses.empty()) return {Lookup::Status::kUnknown, {}, host.details};
  return {Lookup::Status::kKnown, host.addresses, host.details};
}

void DnsCache::Touch(const std::string& key) {
  if (const auto at = hosts_.find(key); at != hosts_.end()) at->second.used = process_.host().Now();
}

std::vector<std::pair<std::string, std::vector<SocketAddress>>> DnsCache::Known() const {
  std::vector<std::pair<std::string, std::vector<SocketAddress>>> out;
  for (const auto& [key, host] : hosts_) {
    if (!host.addresses.empty()) out.emplace_back(key, host.addresses);
  }
  return out;
}

void DnsCache::Ask(const std::string& key) {
  Host& host = hosts_.at(key);
  const uint64_t query = host.query = ++queries_;
  // An address is known. Envoy looks again all the time; here it is as long as it is kept.
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(host.name); literal.ok())
    return Answered(key, query, DnsAnswer{{*literal}, config_.host_ttl}, false);
  if (config_.query_timeout > Duration::zero()) {
    host.limit = process_.host().RunAfter(config_.query_timeout, [this, key, query] {
      hosts_.at(key).limit = kNoTimer;
      Answered(key, query, absl::UnavailableError("no answer in time"), true);
    });
  }
  process_.context().dns().Resolve(
      host.name, [this, alive = std::weak_ptr<char>(alive_), key, query](absl::StatusOr<DnsAnswer> answer) {
        if (alive.expired()) return;
        if (BuggifyFires(BuggifyPoint::kDnsFails)) answer = absl::UnavailableError("DNS query timed out");
        Answered(key, query, answer, false);
      });
}

// Addresses once known stay until others are.
void DnsCache::Answered(const std::string& key, uint64_t query, const absl::StatusOr<DnsAnswer>& answer,
                        bool timed_out) {
  const auto at = hosts_.find(key);
  if (at == hosts_.end() || at->second.query != query) return;  // given up
  Host& host = at->second;
  host.query = 0;
  process_.host().Cancel(host.limit);
  host.limit = kNoTimer;
  Duration again = config_.refresh_rate;
  std::vector<SocketAddress> addresses;
  if (answer.ok()) {
    for (const IpAddress& ip : answer->addresses) addresses.push_back({ip, host.port});
    if (!addresses.empty()) again = std::max(config_.min_refresh_rate, answer->ttl);
  }
  const bool changed = !addresses.empty() && addresses != host.addresses;
  if (changed) {
    host.addresses = std::move(addresses);
    host.details = "cares_success:Successful_completion";
  }
  if (host.addresses.empty()) host.details = timed_out ? "resolve_timeout" : DetailsOf(answer);
  host.complete = true;
  host.refresh = process_.host().RunAfter(again, [this, key] {
    hosts_.at(key).refresh = kNoTimer;
    Again(key);
  });
  if (changed) on_change_(key, host.addresses);
  std::vector<Callback> waiting = std::exchange(host.waiting, {});
  waiting_ -= static_cast<uint32_t>(waiting.size());
  for (Callback& done : waiting) done();  // which may ask for others
}

// Envoy: dns_cache_impl.cc, onReResolveAlarm
void DnsCache::Again(const std::string& key) {
  const Host& host = hosts_.at(key);
  process_.host().Now() - host.used > config_.host_ttl ? Forget(key) : Ask(key);
}

void DnsCache::Forget(const std::string& key) {
  const bool known = !hosts_.at(key).addresses.empty();
  hosts_.erase(key);
  if (known) on_change_(key, {});
}

}  // namespace wavetank::envoysim
