// What the mesh says to what it is given: istiod's webhook to objects, its Envoys to what istiod sends them, and both
// to requests that were really sent in a copy of the settled mesh.
#include <algorithm>
#include <set>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/model/service.h"
#include "core/registry/multicluster/registries.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/results/nacks.h"

namespace wavetank::check {
namespace {

std::string ClusterOf(const std::string& proxy) { return scenario::PodNameOf(proxy).cluster; }

// What an Envoy's words name: what stands in quotes, and names with dots, slashes or underscores.
std::set<std::string> NamesIn(const std::string& words) {
  constexpr size_t kShortest = 4;
  std::set<std::string> out;
  std::string word;
  bool joined = false, letter = false;
  const auto end = [&](bool quoted) {
    if (word.size() >= kShortest && letter && (joined || quoted)) out.insert(word);
    word.clear();
    joined = letter = false;
  };
  for (const char c : words + " ") {
    const bool quote = c == '\'' || c == '"';
    if (quote || c == ' ' || c == ',' || c == ';' || c == ':' || c == '(' || c == ')') {
      end(quote);
      continue;
    }
    word += c;
    joined = joined || c == '.' || c == '/' || c == '_';
    letter = letter || (c >= 'a' && c <= 'z');
  }
  return out;
}

// The object that an Envoy's words are about: of all that istiod reads, the one with most of the names in them; where
// none has any, the only EnvoyFilter that holds for the proxy. Null: it cannot be told.
kube::ObjectRef BehindRefusal(const Mesh& mesh, const MeshCluster& primary, const sim::PodProcess* pod,
                              const std::string& words) {
  // Two services of one host make two filter chains for one SNI: of a host that is a Service's the entry is the second.
  if (words.find("duplicate matcher") != std::string::npos) {
    for (const config::ServiceEntryRef& entry : primary.configs.ServiceEntries()) {
      for (const std::string& host : entry->spec.hosts) {
        if (words.find("_._." + host) != std::string::npos)
          return mesh.Get(primary, "ServiceEntry.networking.istio.io", entry->meta.ns, entry->meta.name);
      }
    }
  }
  const std::set<std::string> names = NamesIn(words);
  kube::ObjectRef best, only;
  size_t most = 0, filters = 0;
  bool tie = false;
  for (int kind = 0; kind < config::kKinds; ++kind) {
    const kube::ResourceKind& resource = config::ResourceKindOf(static_cast<config::Kind>(kind));
    for (const kube::ObjectRef& object : mesh.List(primary, fmt::format("{}.{}", resource.kind, resource.group))) {
      const std::string spec = JsonText(At(object->body, "spec"));
      size_t score = 0;
      for (const std::string& name : names) score += spec.find(name) == std::string::npos ? 0 : name.size();
      if (score > most) {
        best = object, most = score, tie = false;
      } else if (score == most && score > 0) {
        tie = true;
      }
    }
  }
  if (best != nullptr) return tie ? nullptr : best;
  for (const config::EnvoyFilterRef& filter : primary.configs.EnvoyFilters()) {
    if (pod == nullptr || !HoldsFor(primary, filter->meta.ns, filter->spec.workload_selector, *pod)) continue;
    ++filters;
    only = mesh.Get(primary, "EnvoyFilter.networking.istio.io", filter->meta.ns, filter->meta.name);
  }
  return filters == 1 ? only : nullptr;
}

// The mesh config has the command operator ("%START_TIM%") that an Envoy does not know, in its accessLogFormat.
bool SaysOperator(const kube::Object& map, const std::string& words) {
  constexpr std::string_view kUnknown = "Not supported field in StreamInfo: ";
  const size_t at = words.find(kUnknown);
  if (at == words.npos) return false;
  const size_t from = at + kUnknown.size();
  const std::string name = words.substr(from, words.find_first_of(" ;,", from) - from);
  return !name.empty() && JsonText(At(map.body, "data")).find("%" + name) != std::string::npos;
}

// What one object makes Envoys refuse in the same words is one finding, however many they are.
void Refused(const Mesh& mesh, Findings& findings) {
  struct Refusals {
    const MeshCluster* at = nullptr;  // null: nothing is to blame
    kube::ObjectRef object;
    std::string cluster;
    scenario::Nack first;
    size_t proxies = 0;
  };
  std::vector<Refusals> all;
  const std::vector<scenario::PodName> names = scenario::PodNames(mesh.world());
  for (const scenario::Nack& nack : scenario::NackTally(mesh.world()).All()) {
    const std::string cluster = ClusterOf(nack.proxy);
    const sim::PodProcess* proxy = nullptr;
    for (const sim::PodProcess* pod : mesh.world().Pods()) {
      if (scenario::ShortName(pod->name(), names) == nack.proxy) proxy = pod;
    }
    const MeshCluster* of = mesh.Find(cluster);
    const MeshCluster* primary = of == nullptr ? nullptr : mesh.Find(of->control_plane);
    kube::ObjectRef object = primary == nullptr ? nullptr : BehindRefusal(mesh, *primary, proxy, nack.text);
    if (object == nullptr && primary != nullptr) {
      if (kube::ObjectRef map = MeshConfigMap(mesh, *primary); map != nullptr && SaysOperator(*map, nack.text))
        object = std::move(map);
    }
    const auto same = std::find_if(all.begin(), all.end(), [&](const Refusals& each) {
      return each.object == object && each.cluster == cluster && each.first.type == nack.type &&
             each.first.text == nack.text;
    });
    if (same != all.end()) {
      ++same->proxies;
    } else {
      all.push_back({object == nullptr ? nullptr : primary, std::move(object), cluster, nack, 1});
    }
  }
  for (const Refusals& each : all) {
    const std::string more = each.proxies == 1 ? std::string() : fmt::format(" and {} more", each.proxies - 1);
    std::string message = fmt::format("{}{} refused {}: {}", each.first.proxy, more, each.first.type, each.first.text);
    if (each.object != nullptr) {
      findings.Add(*each.at, *each.object, std::move(message));
    } else {
      findings.Add(each.cluster, {}, {}, std::move(message));
    }
  }
}

void NotSimulated(const Mesh& mesh, Findings& findings) {
  for (const scenario::WithoutEffect& without : scenario::WithoutEffectOf(mesh.world())) {
    const std::string message = Describe(without);
    // Of a module the plugin that brings it, if there is but one.
    const MeshCluster* at = nullptr;
    kube::ObjectRef plugin;
    size_t plugins = 0;
    for (const auto& cluster : mesh.clusters()) {
      for (const kube::ObjectRef& each : mesh.List(*cluster, "WasmPlugin.extensions.istio.io"))
        ++plugins, at = cluster.get(), plugin = each;
    }
    if (plugins == 1 && message.find("ECDS") != std::string::npos) {
      findings.Add(*at, *plugin, message);
    } else {
      findings.Add({}, {}, {}, message);
    }
  }
}

void RefusedByIstiod(const Mesh& mesh, Findings& findings) {
  for (const RefusedObject& refused : mesh.refused()) {
    findings.Add(refused.cluster, NameOf(*refused.object), mesh.Where(refused.cluster, *refused.object), refused.words);
  }
}

// Gateways run there.
bool HoldsGateway(const Mesh& mesh, std::string_view ns) {
  const auto pods = mesh.world().Pods();
  return std::any_of(pods.begin(), pods.end(),
                     [&](const sim::PodProcess* pod) { return pod->router() && pod->pod()->meta.ns == ns; });
}

// A finding of more than a note about something of the Service's or the client's namespace, of Istio's own, or, if it
// is an error, of gateways'.
bool Explained(const Mesh& mesh, const RequestOutcome& request, const std::vector<Finding>& before) {
  return std::any_of(before.begin(), before.end(), [&](const Finding& f) {
    if (f.rule->level == Level::kInfo || f.rule->code == "WT801" || !f.rule->fails_requests) return false;
    if (f.object.empty()) return f.rule->level == Level::kError;
    const std::string_view object = f.object;
    const size_t begin = object.find(' '), end = object.find('/');
    if (begin == object.npos || end == object.npos) return true;  // of no namespace
    const std::string_view ns = object.substr(begin + 1, end - begin - 1);
    if (f.rule->level == Level::kError && HoldsGateway(mesh, ns)) return true;
    return ns.empty() || ns == request.ns || ns == request.client_ns || mesh.HoldsControlPlane(ns) ||
           std::any_of(mesh.clusters().begin(), mesh.clusters().end(),
                       [&](const auto& cluster) { return cluster->root_namespace == ns; });
  });
}

struct Blamed {
  const MeshCluster* cluster = nullptr;
  kube::ObjectRef object;  // null: nothing is named
};

// The object of the client's istiod that a reason names, "(VirtualService sample/helloworld)", or that sets what it
// speaks of.
Blamed BlamedFor(const Mesh& mesh, const RequestOutcome& r) {
  const MeshCluster* of = mesh.Find(r.cluster);
  const MeshCluster* primary = of == nullptr ? nullptr : mesh.Find(of->control_plane);
  if (primary == nullptr || primary->istiod == nullptr) return {};
  for (const std::string& reason : r.reasons) {
    for (const char* kind : {"VirtualService", "DestinationRule"}) {
      const size_t at = reason.find(fmt::format("({} ", kind));
      const size_t slash = at == reason.npos ? reason.npos : reason.find('/', at);
      const size_t end = slash == reason.npos ? reason.npos : reason.find(')', slash);
      if (end == reason.npos) continue;
      const size_t begin = at + std::string_view(kind).size() + 2;
      if (kube::ObjectRef object =
              mesh.Get(*primary, fmt::format("{}.networking.istio.io", kind), reason.substr(begin, slash - begin),
                       reason.substr(slash + 1, end - slash - 1));
          object != nullptr)
        return {primary, object};
    }
    if (reason.find("within the connect timeout") == reason.npos) continue;
    for (const sim::PodProcess* pod : mesh.Pods(*of)) {
      if (r.client != fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, r.cluster)) continue;
      for (const config::EnvoyFilterRef& filter : primary->configs.EnvoyFilters()) {
        if (!HoldsFor(*primary, filter->meta.ns, filter->spec.workload_selector, *pod)) continue;
        kube::ObjectRef object =
            mesh.Get(*primary, "EnvoyFilter.networking.istio.io", filter->meta.ns, filter->meta.name);
        if (object != nullptr && JsonText(At(object->body, "spec")).find("connect_timeout") != std::string::npos)
          return {primary, object};
      }
    }
    if (!At(primary->istiod->mesh_config().raw, "connectTimeout").is_null())
      if (kube::ObjectRef map = MeshConfigMap(mesh, *primary);
          map != nullptr && !mesh.Where(primary->name, *map).file.empty())
        return {primary, map};
  }
  return {};
}

// A client's proxy holds endpoints of the host, and none of those that another network has: nothing fails, and that
// side is never asked.
void EndpointsMissing(const Mesh& mesh, Findings& findings) {
  std::set<std::pair<std::string, std::string>> told;  // client's cluster and the Service there
  for (const RequestOutcome& r : findings.requests()) {
    const MeshCluster* here = mesh.Find(r.cluster);
    const MeshCluster* primary = here == nullptr ? nullptr : mesh.Find(here->control_plane);
    if (primary == nullptr || primary->istiod == nullptr || mesh.Get(*here, "Service", r.ns, r.service) == nullptr)
      continue;
    const pilot::ServiceRef service = ServiceOf(*primary, FullHost(r.service, r.ns));
    if (service == nullptr || service->FindPort(r.port) == nullptr || primary->push->IsClusterLocal(*service) ||
        Explained(mesh, r, findings.before()))
      continue;
    std::set<std::string> held;
    for (const sim::PodProcess* pod : mesh.Pods(*here)) {
      if (pod->envoy() == nullptr || r.client != fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, r.cluster))
        continue;
      for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
        if (e.cluster == fmt::format("outbound|{}||{}", r.port, service->hostname))
          held.insert(e.address.substr(0, e.address.rfind(':')));
      }
      break;
    }
    if (held.empty()) continue;
    for (const auto& far : mesh.clusters()) {
      const kube::ObjectRef object = mesh.Get(*far, "Service", r.ns, r.service);
      if (far.get() == here || far->network == here->network || far->label.empty() || object == nullptr) continue;
      const kube::Service& typed = kube::ParseService(*object);
      if (typed.cluster_ip == "None" || typed.internal_traffic_policy == "Local" || typed.type == "ExternalName")
        continue;
      std::vector<std::string> addresses;
      for (const sim::PodProcess* pod : Behind(mesh, *far, *object)) {
        if (pod->bootstrap() && pod->Trouble().empty()) addresses.push_back(kube::ParsePod(*pod->pod()).ip);
      }
      if (addresses.empty()) continue;
      for (const auto& gateway :
           primary->istiod->registries().networks().Gateways()->ForNetwork(pilot::NetworkId(far->label)))
        addresses.push_back(gateway.addr);
      const bool any =
          std::any_of(addresses.begin(), addresses.end(), [&](const auto& each) { return held.contains(each); });
      if (any || !told.insert({r.cluster, far->name + "/" + NameOf(*object)}).second) continue;
      findings.Add(*far, *object,
                   fmt::format("clients in {} know the Service and none of its pods here: {} is answered at home alone",
                               r.cluster, r.client));
      findings.Explain({}, fmt::format("`wavetank why MESH --proxy {} --host {}` shows which of istiod's filters left "
                                       "them out",
                                       r.client.substr(0, r.client.find('.')) + "@" + r.cluster, service->hostname));
    }
  }
}

// A NetworkPolicy that admits others keeps this client from some of the Service's pods: it does what it is told.
bool KeptOnPurpose(const Mesh& mesh, const RequestOutcome& r) {
  const MeshCluster* here = mesh.Find(r.cluster);
  if (here == nullptr) return false;
  std::set<std::string> addresses;
  for (const auto& cluster : mesh.clusters()) {
    const kube::ObjectRef service = mesh.Get(*cluster, "Service", r.ns, r.service);
    if (service == nullptr) continue;
    for (const sim::PodProcess* pod : Behind(mesh, *cluster, *service))
      addresses.insert(kube::ParsePod(*pod->pod()).ip);
  }
  NetworkObstacles obstacles(mesh, sim::MeshNetwork::Heed::kAll);
  for (const sim::PodProcess* pod : mesh.Pods(*here)) {
    if (pod->envoy() == nullptr || r.client != fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, r.cluster))
      continue;
    for (const auto& [address, obstacle, cluster] : obstacles.KeptFrom(*pod)) {
      if (obstacle->policy != nullptr && addresses.contains(address.ip.ToString()) &&
          DropsOnPurpose(mesh, *here, *pod, *obstacle, address.port))
        return true;
    }
  }
  return false;
}

// A Sidecar of its client's leaves the Service out, so that the client is not meant to ask it; where somebody says that
// it does (flows), WT521 tells.
bool HiddenBySidecar(const Mesh& mesh, const RequestOutcome& r) {
  const MeshCluster* here = mesh.Find(r.cluster);
  const MeshCluster* primary = here == nullptr ? nullptr : mesh.Find(here->control_plane);
  if (primary == nullptr || primary->push == nullptr) return false;
  const std::string name =
      pilot::BuildSubsetKey(pilot::TrafficDirection::kOutbound, "", FullHost(r.service, r.ns), r.port);
  for (const sim::PodProcess* pod : mesh.Pods(*here)) {
    if (pod->envoy() == nullptr || r.client != fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, r.cluster))
      continue;
    const auto clusters = pod->envoy()->ClusterNames();
    if (std::find(clusters.begin(), clusters.end(), name) != clusters.end()) return false;
    const auto& sidecars = primary->configs.Sidecars();
    return ServiceOf(*primary, FullHost(r.service, r.ns)) != nullptr &&
           std::any_of(sidecars.begin(), sidecars.end(), [&](const config::SidecarRef& sidecar) {
             return HoldsFor(*primary, sidecar->meta.ns, sidecar->spec.workload_selector, *pod);
           });
  }
  return false;
}

// A name that is no name there, and need not be.
bool OfMembersElsewhere(const Mesh& mesh, const RequestOutcome& r) {
  const MeshCluster* there = mesh.Find(r.cluster);
  if (there == nullptr || r.reasons.empty() || r.reasons.front().find("no such host") == std::string::npos)
    return false;
  return std::any_of(mesh.clusters().begin(), mesh.clusters().end(), [&](const auto& home) {
    const kube::ObjectRef service = mesh.Get(*home, "Service", r.ns, r.service);
    return service != nullptr && home.get() != there && NamesMembersAtHome(mesh, *home, *service, *there);
  });
}

void RequestsFail(const Mesh& mesh, Findings& findings) {
  for (const RequestOutcome& r : findings.requests()) {
    const bool retried = r.failed == 0 && r.retried * 4 >= r.sent;
    if ((r.failed == 0 && !retried) || Explained(mesh, r, findings.before()) || KeptOnPurpose(mesh, r)) continue;
    if (OfMembersElsewhere(mesh, r) || HiddenBySidecar(mesh, r)) continue;
    const std::string message =
        retried ? fmt::format(
                      "{} of {} requests from {} to port {} get through after a retry alone: some of its endpoints "
                      "are dead",
                      r.retried, r.sent, r.client, r.port)
                : fmt::format("{} of {} requests from {} to port {} fail: {}", r.failed, r.sent, r.client, r.port,
                              fmt::join(r.reasons, "; "));
    if (const Blamed blamed = BlamedFor(mesh, r); blamed.object != nullptr) {
      findings.Add(*blamed.cluster, *blamed.object, message);
      findings.Explain("what it sets is not kept by the way to some endpoint",
                       fmt::format("mend it; `wavetank why MESH --from {} --to {}.{}:{}` shows the request hop by hop",
                                   r.client.substr(0, r.client.find('.')) + "@" + r.cluster, r.service, r.ns, r.port));
      continue;
    }
    const MeshCluster* at = mesh.Find(r.cluster);
    kube::ObjectRef service = at == nullptr ? nullptr : mesh.Get(*at, "Service", r.ns, r.service);
    for (const auto& cluster : mesh.clusters()) {
      if (service != nullptr) break;
      service = mesh.Get(*cluster, "Service", r.ns, r.service);
      at = cluster.get();
    }
    if (service != nullptr) findings.Add(*at, *service, message);
  }
}

}  // namespace

const std::vector<Rule>& AnswerRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT532", "ConfigurationRefused", Level::kError,
       "an Envoy goes on with what it had, and one that starts never gets ready",
       "mend the EnvoyFilter or object that the words name; `wavetank xds` shows what was sent", "istio/istio#50658",
       Refused},
      {"WT533", "NotSimulated", Level::kInfo, "a real Envoy would do something that no simulated one does",
       "try that part beside a real Envoy: `wavetank serve` (docs/serve.md)", "", NotSimulated},
      {"WT534", "RefusedByIstiod", Level::kError, "the object is not stored, and what was there before stays in force",
       "mend the field that the words name", "istio/istio#13241", RefusedByIstiod},
      {"WT802", "EndpointsMissing", Level::kWarning,
       "something that no other rule knows keeps the pods of another network from these clients",
       "`wavetank why MESH --proxy CLIENT --host HOST` shows which of istiod's filters left them out", "",
       EndpointsMissing},
      {"WT801", "RequestsFail", Level::kError, "something that no other rule knows stands between client and Service",
       "`wavetank why MESH --from CLIENT --to HOST:PORT` shows the request hop by hop", "", RequestsFail},
  };
  return *rules;
}

}  // namespace wavetank::check
