#include "sim/network/dns.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/types.h"
#include "fakes/kube/services/load_balancers.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr int kMaxAliases = 8;
// CoreDNS's ConfigMaps: its Corefile, and what some distributions let administrators add.
constexpr const char *kSystem = "kube-system", *kMap = "coredns", *kCustom = "coredns-custom";

absl::Status NoSuchName(std::string_view name) { return absl::NotFoundError(fmt::format("no such host: {}", name)); }

// An address next to those of the cluster's Services: in a /16 with some, as ranges of Services are hardly smaller.
bool IsOfServices(fakekube::ApiServer& api, const IpAddress& address) {
  if (!address.is_v4()) return false;
  for (const kube::ObjectRef& object : api.List("Service")) {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(Text(At(object->body, "spec"), "clusterIP"));
    if (ip.ok() && ip->is_v4() && ip->low() >> 16 == address.low() >> 16) return true;
  }
  return false;
}

std::string_view WithoutDot(std::string_view name) {
  return !name.empty() && name.back() == '.' ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

absl::StatusOr<WorldDns::Answer> WorldDns::Ask(std::string_view name, std::optional<Duration>* ttl) const {
  name = WithoutDot(name);
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok()) return Answer{{*literal}, {}};
  std::optional<Duration> least;
  const auto holds = [&](const std::optional<Duration>& more) {
    if (more) least = std::min(least.value_or(*more), *more);
    if (ttl != nullptr) *ttl = least;
  };
  for (int aliases = 0; aliases <= kMaxAliases; ++aliases) {
    const auto it = zone_.find(name);
    if (it == zone_.end()) {
      const auto address = fakekube::AddressOfLoadBalancerName(name);
      const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address.value_or(""));
      if (!address || !ip.ok()) return NoSuchName(name);
      return Answer{{*ip}, least};
    }
    const DnsRecord& record = it->second;
    holds(record.ttl);
    if (record.a_fails && record.aaaa_fails)
      return absl::UnavailableError(fmt::format("no answer for {}: server failure", name));
    if (!record.alias.empty()) {
      name = WithoutDot(record.alias);
      continue;
    }
    Answer answer{{}, least};
    for (const IpAddress& ip : record.addresses) {
      if (ip.is_v4() ? !record.a_fails : !record.aaaa_fails) answer.addresses.push_back(ip);
    }
    if (!answer.addresses.empty()) return answer;
    if (record.a_fails || record.aaaa_fails)
      return absl::UnavailableError(fmt::format("no answer for {}: server failure", name));
    return NoSuchName(name);
  }
  return absl::UnavailableError("a chain of aliases without end");
}

absl::StatusOr<std::vector<IpAddress>> WorldDns::Resolve(std::string_view name) const {
  absl::StatusOr<Answer> answer = Ask(name);
  if (!answer.ok()) return answer.status();
  return std::move(answer->addresses);
}

absl::StatusOr<std::vector<IpAddress>> ClusterDns::Resolve(std::string_view name, std::string_view ns) const {
  Answered answer = Ask(name, ns);
  if (!answer.ok()) return answer.status();
  return std::move(answer->addresses);
}

ClusterDns::Answered ClusterDns::Ask(std::string_view name, std::string_view ns) const {
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok())
    return WorldDns::Answer{{*literal}, {}};
  if (name.empty() || name.back() != '.') {
    // resolv.conf: search NS.svc.DOMAIN svc.DOMAIN DOMAIN, ndots 5.
    const auto dots = std::count(name.begin(), name.end(), '.');
    if (dots < 5) {
      for (const std::string& suffix : {fmt::format("{}.svc.{}", ns, domain_), "svc." + domain_, domain_}) {
        auto found = Qualified(fmt::format("{}.{}", name, suffix), 0);
        if (found.ok()) return found;
      }
    }
  }
  return Qualified(WithoutDot(name), 0);
}

ClusterDns::Answered ClusterDns::Outside(std::string_view name) const {
  const Time now = api_.host().Now();
  if (const auto kept = kept_.find(name); kept != kept_.end()) {
    if (now < kept->second.until) {
      Answered answer = kept->second.answer;
      if (answer.ok()) answer->ttl = kept->second.until - now;
      return answer;
    }
    kept_.erase(kept);
  }
  std::optional<Duration> ttl;
  Answered answer = world_.Ask(name, &ttl);
  // That a server failed is no answer to be kept.
  if (ttl && *ttl > Duration::zero() && (answer.ok() || absl::IsNotFound(answer.status())))
    kept_.insert_or_assign(std::string(name), Kept{now + *ttl, answer});
  return answer;
}

ClusterDns::ClusterDns(fakekube::ApiServer& api, WorldDns& world, DnsReload reload, std::string domain)
    : api_(api),
      world_(world),
      domain_(std::move(domain)),
      reload_(reload.most),
      draws_(reload.seed, "coredns/reload") {
  world_.Add(this);
  watch_ = api_.Observe("ConfigMap",
                        [this](const fakekube::Change& change) { OnConfigMap(change.previous, *change.object); });
}

void ClusterDns::OnConfigMap(const kube::ObjectRef& before, const kube::Object& now) {
  if (now.meta.ns != kSystem || (now.meta.name != kMap && now.meta.name != kCustom)) return;
  const Time time = api_.host().Now();
  if (!begun_) {
    if (now.meta.name == kMap) begun_ = time;
    return;
  }
  // What its pods find when they start, of which manifests bring one object after the other.
  constexpr Duration kBegins = 1s;
  if (time < *begun_ + kBegins) return;
  if (corefile_version_.first < 0) {  // nobody has asked yet, and it runs by what was there before
    const auto was = [&](const char* name) {
      return now.meta.name == name ? before : api_.Get("ConfigMap", {kSystem, name});
    };
    if (const kube::ObjectRef map = was(kMap); map != nullptr) Load(map, was(kCustom));
  }
  if (reload_ > Duration::zero() && due_ <= time)
    due_ = time + Duration(static_cast<int64_t>(draws_.Below(static_cast<uint64_t>(reload_.count()))));
}

bool ClusterDns::Settled() const {
  return api_.host().Now() >= due_ || !corefile_.ok() || *corefile_ == nullptr || !(*corefile_)->reloads();
}

absl::StatusOr<std::shared_ptr<const Corefile>> ClusterDns::InForce() const {
  const kube::ObjectRef map = api_.Get("ConfigMap", {kSystem, kMap});
  if (map != nullptr) Load(map, api_.Get("ConfigMap", {kSystem, kCustom}));  // else its pods hold what they had
  return corefile_;
}

void ClusterDns::Load(const kube::ObjectRef& map, const kube::ObjectRef& custom) const {
  const std::pair version(map->meta.resource_version, custom == nullptr ? 0 : custom->meta.resource_version);
  if (version == corefile_version_) return;
  const bool runs = corefile_.ok() && *corefile_ != nullptr;
  if (runs && (*corefile_)->reloads() && api_.host().Now() < due_) return;
  corefile_version_ = version;
  if (runs && !(*corefile_)->reloads()) return;
  const json& text = At(map->body, {"data", "Corefile"});
  if (!text.is_string()) return;
  const Corefile::Files files = Corefile::FilesOf(map.get(), custom.get());
  absl::StatusOr<std::shared_ptr<const Corefile>> made = Corefile::Make(TextOf(text), &files);
  // coredns: plugin/reload: what cannot be read leaves the one before in force; none is where it has just begun.
  if (made.ok() || !runs) corefile_ = std::move(made);
}

bool ClusterDns::HasAddress(const IpAddress& address, bool outside) const {
  for (const kube::ObjectRef& object : api_.List("Service", "kube-system")) {
    if (Text(At(object->body, {"spec", "selector"}), "k8s-app") != "kube-dns") continue;
    const auto is = [&](const std::string& text) {
      const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
      return ip.ok() && *ip == address;
    };
    if (!outside && is(Text(At(object->body, "spec"), "clusterIP"))) return true;
    for (const json& ingress : Items(At(object->body, {"status", "loadBalancer", "ingress"}))) {
      if (is(Text(ingress, "ip"))) return true;
    }
    for (const json& ip : Items(At(object->body, {"spec", "externalIPs"}))) {
      if (is(TextOf(ip))) return true;
    }
  }
  return false;
}

const ClusterDns* WorldDns::At(const IpAddress& address, const ClusterDns& from) const {
  for (const ClusterDns* cluster : clusters_) {
    if (cluster->HasAddress(address, /*outside=*/cluster != &from)) return cluster;
  }
  return nullptr;
}

ClusterDns::Answered ClusterDns::Forward(const Corefile::Step& step, int depth) const {
  if (step.servers.empty()) return Outside(step.name);
  Answered out = absl::UnavailableError(fmt::format("no answer for {}: server failure", step.name));
  for (const std::string& server : step.servers) {
    const absl::StatusOr<IpAddress> address = IpAddress::Parse(server);
    const ClusterDns* const cluster = address.ok() ? world_.At(*address, *this) : nullptr;
    if (cluster != nullptr) {
      out = depth >= kMaxAliases ? out : cluster->Qualified(step.name, depth + 1);
    } else {
      // An address of Services that none has is nobody's; any other server knows the world's names.
      const bool lost = address.ok() && IsOfServices(api_, *address);
      if (!lost) out = Outside(step.name);
    }
    if (out.ok() || absl::IsNotFound(out.status())) return out;
  }
  return out;
}

ClusterDns::Answered ClusterDns::By(const Corefile& corefile, std::string_view name, int depth) const {
  using Kind = Corefile::Step::Kind;
  if (depth >= kMaxAliases) return absl::UnavailableError("a chain of aliases without end");
  const Corefile::Step step = corefile.Query(std::string(name));
  const auto after = [&](const Corefile::Step& next) -> Answered {
    switch (next.kind) {
      case Kind::kAddresses:
        return WorldDns::Answer{next.addresses, next.ttl};
      case Kind::kAlias:
        return Qualified(next.name, depth + 1);
      case Kind::kNoSuchName:
        return NoSuchName(next.name);
      case Kind::kForward:
        return Forward(next, depth);
      case Kind::kService:
      case Kind::kNoServer:
        break;
    }
    return absl::UnavailableError(fmt::format("no answer for {}: no server of CoreDNS is for it", next.name));
  };
  if (step.kind != Kind::kService) return after(step);
  const std::string_view rest =
      std::string_view(step.name).substr(0, step.name.size() - std::min(step.name.size(), step.zone.size() + 1));
  const std::string_view below = rest.ends_with(".svc") ? rest.substr(0, rest.size() - 4) : std::string_view();
  const bool served =
      step.namespaces.empty() || std::find(step.namespaces.begin(), step.namespaces.end(),
                                           std::string(below.substr(below.rfind('.') + 1))) != step.namespaces.end();
  Answered out = served && !below.empty() ? InZone(step.name, step.zone, depth) : NoSuchName(step.name);
  if (out.ok() || !absl::IsNotFound(out.status()) || !step.falls_through) return out;
  return after(corefile.AfterServices(step.name));
}

ClusterDns::Answered ClusterDns::Qualified(std::string_view name, int depth) const {
  const absl::StatusOr<std::shared_ptr<const Corefile>> corefile = InForce();
  if (!corefile.ok())
    return absl::UnavailableError(
        fmt::format("no answer for {}: CoreDNS does not run: {}", name, Message(corefile.status())));
  if (*corefile != nullptr) return By(**corefile, name, depth);
  return InZone(name, domain_, depth);
}

ClusterDns::Answered ClusterDns::InZone(std::string_view name, std::string_view of, int depth) const {
  const std::string zone = fmt::format(".svc.{}", of);
  if (name.size() <= zone.size() || name.substr(name.size() - zone.size()) != zone) return Outside(name);
  const std::string_view rest = name.substr(0, name.size() - zone.size());
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return NoSuchName(name);
  return Service(rest.substr(0, dot), rest.substr(dot + 1), depth);
}

ClusterDns::Answered ClusterDns::Service(std::string_view name, std::string_view ns, int depth) const {
  // "pod-0.service.namespace": the endpoint with that host name.
  std::string hostname;
  if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
    hostname = name.substr(0, dot);
    name = name.substr(dot + 1);
  }
  const kube::ObjectRef object = api_.Get("Service", {std::string(ns), std::string(name)});
  if (object == nullptr) return NoSuchName(fmt::format("{}.{}", name, ns));
  const kube::Service& service = kube::ParseService(*object);
  if (service.type == "ExternalName") {
    if (depth >= kMaxAliases) return absl::UnavailableError("a chain of aliases without end");
    return Qualified(WithoutDot(service.external_name), depth + 1);
  }
  std::vector<IpAddress> out;
  const auto add = [&out](std::string_view text) {
    if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text); ip.ok()) out.push_back(*ip);
  };
  if (service.cluster_ip != "None" && hostname.empty()) {
    add(service.cluster_ip);
  } else {
    for (const kube::ObjectRef& slice_object : api_.List("EndpointSlice", ns)) {
      const auto owner = slice_object->meta.labels.find("kubernetes.io/service-name");
      if (owner == slice_object->meta.labels.end() || owner->second != name) continue;
      const kube::EndpointSlice& slice = kube::ParseEndpointSlice(*slice_object);
      for (const kube::EndpointSlice::Endpoint& endpoint : slice.endpoints) {
        if (!hostname.empty() && endpoint.target_name != hostname) continue;
        if (!endpoint.ready.value_or(true) && !service.publish_not_ready) continue;
        for (const std::string& address : endpoint.addresses) add(address);
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  // A question names no IP family here: records of IPv4 if there are any, as most clients prefer them to unique
  // local addresses of IPv6 (RFC 6724, section 2.1).
  if (!out.empty() && out.front().is_v4()) {
    std::erase_if(out, [](const IpAddress& ip) { return !ip.is_v4(); });
  }
  if (out.empty()) return NoSuchName(fmt::format("{}.{}", name, ns));
  return WorldDns::Answer{std::move(out), {}};
}

}  // namespace wavetank::sim
