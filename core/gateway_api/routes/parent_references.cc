#include "core/gateway_api/routes/parent_references.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/json_access.h"
#include "core/gateway_api/conditions.h"
#include "core/model/host_name.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

const std::string kGateways(kGroup);

std::optional<std::string> ParentKindOf(const Inputs& in, const json& reference) {
  const GroupKind kind = KindOf(reference, {kGateways, "Gateway"});
  if (kind == GroupKind{kGateways, "Gateway"} || kind == GroupKind{"", "Service"}) return kind.kind;
  if (kind == GroupKind{"networking.istio.io", "ServiceEntry"} &&
      in.profile.Has(pilot::Change::kGatewayApiEntryParents)) {
    return kind.kind;
  }
  if (kind == GroupKind{kGateways, "ListenerSet"} && in.profile.Has(pilot::Change::kGatewayApiListenerSets)) {
    return kind.kind;
  }
  return std::nullopt;  // for another controller, perhaps
}

// Those that a listener must serve one of.
std::vector<std::string> HostnamesOf(const Inputs& in, const kube::Object& route) {
  std::vector<std::string> out;
  if (route.kind == "TLSRoute" && !in.profile.Has(pilot::Change::kGatewayApiEveryParentTold)) return out;
  for (const json& host : Items(At(route.body, {"spec", "hostnames"}))) out.push_back(TextOf(host));
  return out;
}

// As istiod knows the kind (pkg/config/schema/gvk).
std::string_view VersionOf(const Inputs& in, const kube::Object& route) {
  if (route.kind == "TCPRoute") return "v1alpha2";
  if (route.kind == "GRPCRoute" || in.profile.Has(pilot::Change::kGatewayApiTlsKinds)) return "v1";
  return route.kind == "TLSRoute" ? "v1alpha2" : "v1beta1";
}

// A listener's "ns/host" takes one of the route's hosts, from the route's namespace.
std::optional<ConfigError> HostsDenied(const ParentInfo& parent, std::vector<std::string> hostnames,
                                       const std::string& ns) {
  if (hostnames.empty()) hostnames = {"*"};
  if (parent.hostnames.empty()) return std::nullopt;
  bool host_matched = false;
  for (const std::string& host : hostnames) {
    for (const std::string& of_listener : parent.hostnames) {
      const size_t slash = of_listener.find('/');
      const std::string where = slash == std::string::npos ? "*" : of_listener.substr(0, slash);
      const std::string name = slash == std::string::npos ? of_listener : of_listener.substr(slash + 1);
      if (!pilot::HostMatches(name, host)) continue;
      host_matched = true;
      if (where == "*" || where == ns) return std::nullopt;
    }
  }
  if (host_matched) {
    return ConfigError{
        "NotAllowedByListeners",
        fmt::format("hostnames matched parent hostname \"{}\", but namespace \"{}\" is not allowed by the parent",
                    parent.original_hostname, ns)};
  }
  return ConfigError{"NoMatchingListenerHostname",
                     fmt::format("no hostnames matched parent hostname \"{}\"", parent.original_hostname)};
}

std::optional<ConfigError> Denied(const Inputs& in, const ParentInfo& parent, const ParentKey& key,
                                  const json& reference, const kube::Object& route) {
  if (key.kind == "Service" || key.kind == "ServiceEntry") {
    if (in.profile.Has(pilot::Change::kGatewayApiEveryParentTold) && in.Find(key.kind, key.ns, key.name) == nullptr) {
      return ConfigError{"NoMatchingParent", fmt::format("parent service{}: \"{}\" not found",
                                                         key.kind == "Service" ? "" : " entry", key.name)};
    }
  } else {
    if (const int64_t port = Number(reference, "port"); port != 0 && port != parent.port) {
      return ConfigError{"NoMatchingParent", fmt::format("port {} not found", port)};
    }
    if (const std::string section = Text(reference, "sectionName"); !section.empty() && section != parent.section) {
      return ConfigError{"NoMatchingParent", fmt::format("sectionName \"{}\" not found", section)};
    }
    if (auto denied = HostsDenied(parent, HostnamesOf(in, route), route.meta.ns)) return denied;
  }
  if (std::find(parent.allowed_kinds.begin(), parent.allowed_kinds.end(), route.kind) == parent.allowed_kinds.end()) {
    return ConfigError{"NotAllowedByListeners",
                       fmt::format("kind {}/{}/{} is not allowed", kGroup, VersionOf(in, route), route.kind)};
  }
  return std::nullopt;
}

const std::vector<ParentInfo>& Mesh() {
  static const auto* const mesh = [] {
    ParentInfo parent;
    parent.internal_name = "mesh";
    parent.allowed_kinds = {"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute"};
    return new std::vector<ParentInfo>{parent};
  }();
  return *mesh;
}

// The smaller, the more it counts.
int Rank(const std::optional<ConfigError>& denied) {
  if (!denied) return 0;
  if (denied->reason == "NotAllowedByListeners") return 1;
  if (denied->reason == "NoMatchingListenerHostname") return 2;
  return 4;
}

// What one reference of a route came to, over all listeners that it may mean.
struct Report {
  const ParentReference* reference = nullptr;
  std::optional<ConfigError> denied;
  int rank = 0, taken = 0;
};

void Merge(Report& into, const ParentReference& next) {
  const int rank = Rank(next.denied);
  if (into.reference == nullptr || rank < into.rank) {
    into.reference = &next;
    into.denied = next.denied;
    into.rank = rank;
  } else if (rank == into.rank && into.denied && next.denied) {
    into.denied->message += "; " + next.denied->message;
  }
  if (!next.denied) ++into.taken;
}

// Before it was so, those of other controllers and ours, the last first. `reports`: by ReferenceText.
template <typename StatusOf>
json AllSorted(const kube::Object& route, std::map<std::string, Report> reports, const StatusOf& status_of) {
  const std::string& ns = route.meta.ns;
  std::vector<json> all;
  const json& before = Items(At(route.body, {"status", "parents"}));
  for (const json& parent : before) {
    if (Text(parent, "controllerName") != kController) all.push_back(parent);
  }
  for (const auto& [key, report] : reports) {
    const auto known = std::find_if(before.begin(), before.end(), [&, &key = key](const json& parent) {
      return ReferenceText(At(parent, "parentRef"), ns) == key;
    });
    all.push_back(status_of(report, known == before.end() ? Null() : *known));
  }
  std::stable_sort(all.begin(), all.end(), [&](const json& a, const json& b) {
    return ReferenceText(At(a, "parentRef"), ns) > ReferenceText(At(b, "parentRef"), ns);
  });
  return json(std::move(all));
}

}  // namespace

bool ParentReference::MayServe(std::string_view host) const {
  if (!hostname.empty() && !pilot::IsWildcard(hostname)) return true;
  if (!hostname.empty() && !pilot::HostMatches(host, hostname)) return false;
  return std::none_of(banned.begin(), banned.end(), [&](const std::string& other) {
    return hostname.size() <= other.size() && pilot::HostSubsetOf(host, other);
  });
}

std::string ReferenceText(const json& reference, const std::string& ns) {
  const GroupKind kind = KindOf(reference, {kGateways, "Gateway"});
  return fmt::format("{}/{}/{}/{}/{}.{}", kind.group, kind.kind, Text(reference, "name"),
                     Text(reference, "sectionName"), Number(reference, "port"), Text(reference, "namespace", ns));
}

std::vector<ParentReference> ParentReferences(const Inputs& in, const Parents& parents, const kube::Object& route) {
  std::vector<ParentReference> out;
  for (const json& reference : Items(At(route.body, {"spec", "parentRefs"}))) {
    const std::optional<std::string> kind = ParentKindOf(in, reference);
    if (!kind) continue;
    const ParentKey key{*kind, Text(reference, "namespace", route.meta.ns), Text(reference, "name")};
    const auto known = parents.find(key);
    const bool mesh = key.kind == "Service" || key.kind == "ServiceEntry";
    if (!mesh && known == parents.end()) continue;
    const std::vector<ParentInfo>& all = mesh ? Mesh() : known->second;
    for (const ParentInfo& parent : all) {
      ParentReference one{reference, key, parent.internal_name, parent.original_hostname, parent.section, {}, {}};
      for (const ParentInfo& other : all) {
        if (&other != &parent && other.port == parent.port && other.protocol == parent.protocol) {
          one.banned.insert(other.original_hostname);
        }
      }
      one.banned.erase(parent.original_hostname);
      one.denied = Denied(in, parent, key, reference, route);
      out.push_back(std::move(one));
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](const ParentReference& a, const ParentReference& b) {
    return ReferenceText(a.original, route.meta.ns) < ReferenceText(b.original, route.meta.ns);
  });
  return out;
}

std::vector<ParentReference> Taken(const std::vector<ParentReference>& references) {
  std::vector<ParentReference> out;
  for (const ParentReference& reference : references) {
    if (!reference.denied) out.push_back(reference);
  }
  std::stable_sort(out.begin(), out.end(), [](const ParentReference& a, const ParentReference& b) {
    return a.internal_name < b.internal_name;
  });
  return out;
}

json RouteParentStatuses(const Inputs& in, const kube::Object& route, const std::vector<ParentReference>& references,
                         const std::optional<ConfigError>& gateway_error,
                         const std::optional<ConfigError>& mesh_error) {
  const std::string& ns = route.meta.ns;
  std::map<std::string, Report> reports;
  for (const ParentReference& reference : references) Merge(reports[ReferenceText(reference.original, ns)], reference);
  const bool every = in.profile.Has(pilot::Change::kGatewayApiEveryParentTold);
  if (!every && !reports.empty()) {
    // istiod 1.18: createRouteStatus, "Once we find the best reason, do not consider any others".
    int best = std::numeric_limits<int>::max();
    for (const auto& [key, report] : reports) best = std::min(best, report.rank);
    std::erase_if(reports, [&](const auto& entry) { return entry.second.rank != best; });
  }
  const auto status_of = [&](const Report& report, const json& before) {
    Conditions conditions = {
        {"Accepted",
         {"Accepted",
          report.taken > 1 ? fmt::format("Route was valid, bound to {} parents", report.taken)
                           : std::string("Route was valid"),
          true, report.denied}},
        {"ResolvedRefs",
         {"ResolvedRefs", "All references resolved", true, report.reference->IsMesh() ? mesh_error : gateway_error}}};
    return json{{"parentRef", report.reference->original},
                {"controllerName", std::string(kController)},
                {"conditions", SetConditions(route.meta.generation, in.now, At(before, "conditions"), conditions)}};
  };
  // What is there stays in its place; what is new comes behind, the last first.
  json out = json::array();
  if (!every) return AllSorted(route, std::move(reports), status_of);
  for (const json& parent : Items(At(route.body, {"status", "parents"}))) {
    if (Text(parent, "controllerName") != kController) {
      out.push_back(parent);
      continue;
    }
    const auto report = reports.find(ReferenceText(At(parent, "parentRef"), ns));
    if (report == reports.end()) continue;
    out.push_back(status_of(report->second, parent));
    reports.erase(report);
  }
  for (auto it = reports.rbegin(); it != reports.rend(); ++it) out.push_back(status_of(it->second, Null()));
  return out;
}

}  // namespace wavetank::gatewayapi
