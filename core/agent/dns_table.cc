#include "core/agent/dns_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/gen/nds/name_table.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

std::string WithDot(std::string_view name) {
  std::string out = absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  if (out.empty() || out.back() != '.') out += '.';
  return out;
}

}  // namespace

std::vector<std::string> AlternativeHosts(std::string_view host, std::string_view short_name, std::string_view ns,
                                          std::string_view proxy_namespace, std::string_view domain) {
  std::set<std::string> out{fmt::format("{}.", host)};
  // Services of another domain have no short names here: two clusters' names would be one.
  if (!domain.empty() && host.ends_with(domain)) {
    out.insert(fmt::format("{}.{}.", short_name, ns));
    if (proxy_namespace == ns) out.insert(fmt::format("{}.", short_name));
    out.insert(fmt::format("{}.{}.{}.", short_name, ns, domain.substr(0, domain.find('.'))));
  }
  return {out.begin(), out.end()};
}

DnsTable::DnsTable(DnsOptions options) : options_(std::move(options)), domain_(options_.proxy_domain) {
  const size_t dot = domain_.find('.');
  if (domain_.substr(0, dot) == options_.proxy_namespace) {
    domain_ = dot == std::string::npos ? "" : domain_.substr(dot + 1);
  }
}

void DnsTable::Update(const pilot::NameTable& table) {
  hosts_.clear();
  ready_ = true;
  for (const auto& [host, entry] : table.hosts) {
    std::vector<IpAddress> v4, v6;
    for (const std::string& text : entry.ips) {
      const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
      if (ip.ok()) (ip->is_v4() ? v4 : v6).push_back(*ip);
    }
    if (v4.empty() && v6.empty()) continue;
    std::vector<std::string> names;
    if (entry.registry == "Kubernetes") {
      names = AlternativeHosts(host, entry.short_name, entry.ns, options_.proxy_namespace, domain_);
    } else {
      names = {WithDot(host)};
    }
    for (std::string& name : names) name = WithDot(name);
    for (const std::string& name : names) Add(name, v4, v6);
    if (options_.search.empty()) continue;
    // What a resolver asks first is the name with the first search domain: an alias leads from there at once, so that
    // it need not ask for the others.
    for (const std::string& name : names) {
      const std::string expanded = name + WithDot(options_.search[0]);
      if (std::find(names.begin(), names.end(), expanded) == names.end()) hosts_[expanded].alias_of = name;
    }
  }
}

void DnsTable::Add(const std::string& name, const std::vector<IpAddress>& v4, const std::vector<IpAddress>& v6) {
  Host& host = hosts_[name];
  if (!v4.empty()) host.v4 = v4;
  if (!v6.empty()) host.v6 = v6;
}

DnsDecision DnsTable::Lookup(std::string_view name, uint16_t type) const {
  if (!ready_) {
    return {options_.respond_before_sync ? DnsDecision::Kind::kUpstream : DnsDecision::Kind::kServFail, {}};
  }
  const std::string asked = WithDot(name);
  std::string_view rest = asked;
  auto found = hosts_.find(asked);
  // "a.b.example.com." is then looked for as "*.b.example.com.", "*.example.com." and so on.
  while (found == hosts_.end()) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos || dot + 1 >= rest.size()) return {};
    rest.remove_prefix(dot + 1);
    found = hosts_.find(fmt::format("*.{}", rest));
  }
  const bool wildcard = rest.size() != asked.size();
  const auto wanted = static_cast<DnsType>(type);
  if (wanted != DnsType::kA && wanted != DnsType::kAaaa) return {};
  DnsDecision out;
  out.kind = DnsDecision::Kind::kAnswer;
  const Host* host = &found->second;
  std::string owner = found->first;
  if (!host->alias_of.empty()) {
    const auto target = hosts_.find(host->alias_of);
    if (target == hosts_.end()) return out;
    const bool any = wanted == DnsType::kA ? !target->second.v4.empty() : !target->second.v6.empty();
    if (any) out.records.push_back({owner, DnsType::kCname, {}, target->first});
    owner = target->first;
    host = &target->second;
  }
  for (const IpAddress& ip : wanted == DnsType::kA ? host->v4 : host->v6) {
    // A wildcard's answer is about the name that was asked for.
    out.records.push_back({wildcard ? asked : owner, wanted, ip, ""});
  }
  return out;
}

void DnsTable::Shuffle(std::vector<DnsRecord>& records, RandomStream& random) {
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const DnsRecord& record) { return record.type != DnsType::kCname; });
  for (auto it = first; it != records.end(); ++it) {
    const auto left = static_cast<uint64_t>(records.end() - it);
    std::iter_swap(it, it + static_cast<int64_t>(random.Below(left)));
  }
}

std::map<std::string, std::vector<IpAddress>> DnsTable::Names() const {
  std::map<std::string, std::vector<IpAddress>> out;
  for (const auto& [name, host] : hosts_) {
    if (!host.alias_of.empty() && host.v4.empty() && host.v6.empty()) continue;
    std::vector<IpAddress>& addresses = out[name];
    addresses = host.v4;
    addresses.insert(addresses.end(), host.v6.begin(), host.v6.end());
  }
  return out;
}

}  // namespace wavetank::agent
