// What both sides have to agree on: PeerAuthentication against gateways between networks and against DestinationRules;
// and what one primary's cluster has and another's lacks or has otherwise, as each istiod reads the configuration of
// its own cluster alone (istio.io, deployment models: multi-primary), so that one mesh behaves in two ways.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/duration.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/model/host_name.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using Mode = config::PeerAuthentication::Mode;

// istiod leaves such an endpoint out wherever only a gateway leads to it (istiod: pilot/pkg/xds/mtls_checker.go).
void CutsOtherNetworks(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
      if (!DisablesMtls(policy->spec)) continue;
      std::set<std::string> apps;
      for (const sim::PodProcess* pod : mesh.world().Pods()) {
        if (pod->envoy() == nullptr || pod->router()) continue;
        if (!HoldsFor(*cluster, policy->meta.ns, policy->spec.selector, *pod)) continue;
        if (!ServicesBefore(mesh, *pod).empty()) apps.insert(pod->app() + "." + pod->pod()->meta.ns);
      }
      for (const std::string& app : apps) {
        findings.Add(
            *cluster, policy->meta,
            fmt::format(
                "disables mTLS of {}: clients of {} in other networks do not get its endpoints, since a gateway "
                "needs mTLS",
                app, cluster->name));
      }
    }
  }
}

void ModesConflict(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->push == nullptr) continue;
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules()) {
      if (!rule->spec.traffic_policy || !rule->spec.traffic_policy->tls) continue;
      const bool mutual = rule->spec.traffic_policy->tls->mode == config::ClientTlsSettings::Mode::kIstioMutual;
      const bool plain = rule->spec.traffic_policy->tls->mode == config::ClientTlsSettings::Mode::kDisable;
      const std::string host = FullHost(rule->spec.host, rule->meta.ns);
      const pilot::ServiceRef service = ServiceOf(*cluster, host);
      if (service == nullptr) continue;
      for (const config::PeerAuthenticationRef& policy : cluster->configs.PeerAuthentications()) {
        if (!HoldsIn(*cluster, policy->meta.ns, service->attributes.ns)) continue;
        if (policy->spec.selector && !Selects(*policy->spec.selector, service->attributes.label_selectors)) continue;
        const bool conflict =
            (plain && policy->spec.mtls == Mode::kStrict) || (mutual && policy->spec.mtls == Mode::kDisable);
        if (!conflict) continue;
        findings.Add(
            *cluster, rule->meta,
            fmt::format("sends to {} {}, and PeerAuthentication {}/{} {}", host, plain ? "without TLS" : "with mTLS",
                        policy->meta.ns, policy->meta.name, plain ? "asks for it" : "disables it"));
      }
    }
  }
}

bool IsForMesh(const config::VirtualService& vs) {
  return vs.gateways.empty() || std::find(vs.gateways.begin(), vs.gateways.end(), "mesh") != vs.gateways.end();
}

bool Covers(std::string_view rule, const std::string& host) {
  return rule == host || pilot::HostSubsetOf(host, std::string(rule));
}

// Of `host`, for clients of the primary.
bool HasRoutesFor(const MeshCluster& primary, const std::string& host) {
  const auto& all = primary.configs.VirtualServices();
  return std::any_of(all.begin(), all.end(), [&](const config::VirtualServiceRef& vs) {
    return IsForMesh(vs->spec) && std::any_of(vs->spec.hosts.begin(), vs->spec.hosts.end(), [&](const auto& each) {
             return Covers(FullHost(each, vs->meta.ns), host);
           });
  });
}

bool HasRuleFor(const MeshCluster& primary, const std::string& host) {
  const auto& all = primary.configs.DestinationRules();
  return std::any_of(all.begin(), all.end(), [&](const config::DestinationRuleRef& rule) {
    return Covers(FullHost(rule->spec.host, rule->meta.ns), host);
  });
}

// Fn(cluster where it stands, the object, its host, whether it is a VirtualService: else a DestinationRule).
template <class Fn>
void EachRuleOfMesh(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const config::VirtualServiceRef& vs : cluster->configs.VirtualServices()) {
      if (!IsForMesh(vs->spec)) continue;
      for (const std::string& host : vs->spec.hosts) fn(*cluster, vs->meta, FullHost(host, vs->meta.ns), true);
    }
    for (const config::DestinationRuleRef& rule : cluster->configs.DestinationRules())
      fn(*cluster, rule->meta, FullHost(rule->spec.host, rule->meta.ns), false);
  }
}

void RulesOnOneSide(const Mesh& mesh, Findings& findings) {
  std::vector<const MeshCluster*> sides;
  for (const auto& cluster : mesh.clusters()) {
    if (IsMeshPrimary(*cluster) && HasClients(mesh, *cluster)) sides.push_back(cluster.get());
  }
  EachRuleOfMesh(mesh, [&](const MeshCluster& cluster, const config::ConfigMeta& meta, const std::string& host,
                           bool routes) {
    if (host.starts_with('*') || ServiceOf(cluster, host) == nullptr) return;
    std::vector<std::string> without;
    for (const MeshCluster* const other : sides) {
      if (other == &cluster || ServiceOf(*other, host) == nullptr) continue;
      if (routes ? HasRoutesFor(*other, host) : HasRuleFor(*other, host)) continue;
      without.push_back(other->name);
    }
    if (without.empty()) return;
    findings.Add(cluster, meta,
                 fmt::format("holds for clients in {} alone: {} has none for {}, and clients there send as without it",
                             cluster.name, fmt::join(without, ", "), host));
  });
}

// Some pod that runs an application and is served by the primary; null: none.
template <class Policy>
const sim::PodProcess* HeldBy(const Mesh& mesh, const MeshCluster& primary, const Policy& policy) {
  for (const sim::PodProcess* pod : mesh.ServedPods(primary)) {
    if (IsApplication(*pod) && pod->bootstrap() && AttachesTo(primary, policy, *pod)) return pod;
  }
  return nullptr;
}

// `of_primary`: the kind's list of any primary; `counts`: whether one restricts anything.
template <class List, class Counts>
void PoliciesOfOneKind(const Mesh& mesh, Findings& findings, std::string_view kind, List of_primary, Counts counts) {
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const auto& policy : of_primary(*cluster)) {
      if (!counts(policy->spec) || HeldBy(mesh, *cluster, *policy) == nullptr) continue;
      for (const auto& other : mesh.clusters()) {
        if (other == cluster || !IsMeshPrimary(*other)) continue;
        const sim::PodProcess* const free = HeldBy(mesh, *other, *policy);  // if it stood there
        if (free == nullptr) continue;
        const auto& there = of_primary(*other);
        const bool held =
            std::any_of(there.begin(), there.end(), [&](const auto& each) { return AttachesTo(*other, *each, *free); });
        if (held) continue;
        findings.Add(*cluster, policy->meta,
                     fmt::format("holds for pods in {} alone: no {} of {} holds for {}, which serves whoever asks",
                                 cluster->name, kind, other->name, free->name()));
      }
    }
  }
}

void PoliciesOnOneSide(const Mesh& mesh, Findings& findings) {
  PoliciesOfOneKind(
      mesh, findings, "AuthorizationPolicy",
      [](const MeshCluster& c) -> const auto& { return c.configs.AuthorizationPolicies(); },
      [](const auto&) { return true; });
  PoliciesOfOneKind(
      mesh, findings, "PeerAuthentication",
      [](const MeshCluster& c) -> const auto& { return c.configs.PeerAuthentications(); },
      [](const config::PeerAuthentication& p) { return p.mtls == config::PeerAuthentication::Mode::kStrict; });
}

}  // namespace

const std::vector<Rule>& MutualTlsRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT541", "PeerAuthenticationCutsOtherNetworks", Level::kError, "between networks there is nothing but mTLS",
       "set PERMISSIVE, or keep the Service's clients in its own network", "istio/istio#28798", CutsOtherNetworks},
      {"IST0113", "MTLSPolicyConflict", Level::kError, "one side refuses what the other sends",
       "leave tls out of the DestinationRule: auto mTLS follows the policy", "istio/istio#31425", ModesConflict},
  };
  return *rules;
}

const std::vector<Rule>& OneSideRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT537", "RulesOnOneSide", Level::kWarning,
       "in a multi-primary mesh each istiod reads the configuration of its own cluster, and configures the clients "
       "there",
       "apply it in every primary cluster that has clients of the host", "istio/istio#44863, #36241", RulesOnOneSide,
       false},
      {"WT546", "PoliciesOnOneSide", Level::kWarning,
       "in a multi-primary mesh each istiod reads the policies of its own cluster, and guards the pods there",
       "apply it in every primary cluster that has such pods", "istio/istio#44863", PoliciesOnOneSide, false},
  };
  return *rules;
}

namespace {

using nlohmann::json;

// A scalar in its one form: hosts in full, durations in nanoseconds.
json OneForm(const json& value, std::string_view field, std::string_view ns) {
  if (!value.is_string()) return value;
  const std::string text = TextOf(value);
  if ((field == "host" || field == "hosts") && !ns.empty() && text.find('/') == text.npos) return FullHost(text, ns);
  if (!text.empty() && text.back() == 's' && text.front() >= '0' && text.front() <= '9') {
    if (const auto duration = ParseGoDuration(text)) return fmt::format("{} ns", duration->count());
  }
  return value;
}

// What an API server's client may write or leave out: fields of Proto JSON that say nothing, the order of names. Lists
// of objects keep theirs: the first rule that matches counts; and so do ranks.
json Canonical(const json& in, std::string_view field, std::string_view ns) {
  if (in.is_object()) {
    json out = json::object();
    for (const auto& [key, value] : in.items()) {
      if (value.is_null() || (value.is_string() && TextOf(value).empty()) || (value.is_array() && value.empty()))
        continue;
      out[key] = Canonical(value, key, ns);
    }
    return out;
  }
  if (!in.is_array()) return OneForm(in, field, ns);
  json out = json::array();
  bool scalars = true;
  for (const json& each : in) {
    scalars = scalars && each.is_primitive();
    out.push_back(Canonical(each, field, ns));
  }
  if (scalars && field != "failoverPriority") std::sort(out.begin(), out.end());
  return out;
}

std::string Shown(const json& value) {
  constexpr size_t kMost = 120;
  if (value.is_null()) return "left out";
  std::string out = value.is_string() ? TextOf(value) : JsonText(value);
  if (out.size() > kMost) out = out.substr(0, kMost) + "...";
  return out;
}

// Some proxy of the primary is configured by it.
bool HoldsForSomeone(const Mesh& mesh, const MeshCluster& primary, const kube::Object& object) {
  if (object.kind == "VirtualService" || object.kind == "DestinationRule" || object.kind == "ServiceEntry")
    return HasClients(mesh, primary);
  const kube::Labels selector = LabelsIn(WorkloadSelectorOf(object));
  const auto pods = mesh.ServedPods(primary);
  return std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
    return pod->bootstrap() && HoldsFor(primary, object.meta.ns, selector, *pod);
  });
}

std::string PlaceText(const Place& place) {
  return place.file.empty() ? std::string() : fmt::format(" ({}:{})", place.file, place.line);
}

// Gateways and WorkloadEntries are each cluster's own.
constexpr const char* kKindsOfTheMesh[] = {
    "AuthorizationPolicy.security.istio.io", "DestinationRule.networking.istio.io",
    "EnvoyFilter.networking.istio.io",       "PeerAuthentication.security.istio.io",
    "ProxyConfig.networking.istio.io",       "RequestAuthentication.security.istio.io",
    "ServiceEntry.networking.istio.io",      "Sidecar.networking.istio.io",
    "Telemetry.telemetry.istio.io",          "VirtualService.networking.istio.io",
    "WasmPlugin.extensions.istio.io"};

void ConfigurationDiffers(const Mesh& mesh, Findings& findings) {
  std::vector<const MeshCluster*> primaries;
  for (const auto& cluster : mesh.clusters()) {
    if (IsMeshPrimary(*cluster)) primaries.push_back(cluster.get());
  }
  for (const char* kind : kKindsOfTheMesh) {
    for (size_t i = 0; i < primaries.size(); ++i) {
      for (const kube::ObjectRef& object : mesh.List(*primaries[i], kind)) {
        if (!HoldsForSomeone(mesh, *primaries[i], *object)) continue;
        const json spec = Canonical(At(object->body, "spec"), "", object->meta.ns);
        // Each is held against the first primary's that has it, so that three that differ are two findings.
        const auto has = [&](const MeshCluster* c) {
          return mesh.Get(*c, kind, object->meta.ns, object->meta.name) != nullptr;
        };
        if (std::any_of(primaries.begin(), primaries.begin() + static_cast<std::ptrdiff_t>(i), has)) continue;
        for (size_t j = i + 1; j < primaries.size(); ++j) {
          const MeshCluster& other = *primaries[j];
          const kube::ObjectRef twin = mesh.Get(other, kind, object->meta.ns, object->meta.name);
          if (twin == nullptr || !HoldsForSomeone(mesh, other, *twin)) continue;
          const auto differs = FirstDifference(spec, Canonical(At(twin->body, "spec"), "", twin->meta.ns));
          if (!differs) continue;
          // As it was written: lists whose order says nothing are held against each other sorted.
          const auto written = [&](const kube::Object& of) {
            return Shown(AtPointer(At(of.body, "spec"), differs->at));
          };
          findings.Add(*primaries[i], *object,
                       fmt::format("{} is {} here and {} in {}{}: proxies of the two clusters do different things",
                                   differs->path.empty() ? "spec" : "spec." + differs->path, written(*object),
                                   written(*twin), other.name, PlaceText(mesh.Where(other.name, *twin))));
        }
      }
    }
  }
}

// Fields of the mesh config that change what proxies do, with what istiod has where they are left out
// (istiod: pkg/config/mesh/mesh.go, DefaultMeshConfig). What names the cluster, its network or its istiod is each
// cluster's own; trust domains are WT302's.
struct MeshField {
  const char* path;
  const char* otherwise;  // JSON
};
constexpr MeshField kFieldsOfTheMesh[] = {
    {"outboundTrafficPolicy.mode", "\"ALLOW_ANY\""},
    {"enableAutoMtls", "true"},
    {"rootNamespace", "\"istio-system\""},
    {"h2UpgradePolicy", "\"DO_NOT_UPGRADE\""},
    {"connectTimeout", "\"10s\""},
    {"protocolDetectionTimeout", "\"0s\""},
    {"defaultServiceExportTo", "[\"*\"]"},
    {"defaultVirtualServiceExportTo", "[\"*\"]"},
    {"defaultDestinationRuleExportTo", "[\"*\"]"},
    {"localityLbSetting", "null"},
    {"pathNormalization.normalization", "\"DEFAULT\""},
    {"defaultHttpRetryPolicy", "null"},
    {"meshMTLS.minProtocolVersion", "null"},
    {"verifyCertificateAtClient", "false"},
    {"tcpKeepalive", "null"},
    {"accessLogFile", "null"},
    {"defaultConfig.holdApplicationUntilProxyStarts", "false"},
    {"defaultConfig.interceptionMode", "\"REDIRECT\""},
};

// As it is written, or what holds without it.
json FieldOf(const MeshCluster& cluster, const MeshField& field) {
  const json* at = &cluster.istiod->mesh_config().raw;
  std::string_view path = field.path;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    at = &At(*at, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  const bool says = !at->is_null() && !(at->is_string() && TextOf(*at).empty());
  return says ? *at : ParseJson(field.otherwise);
}

void MeshConfigsDiffer(const Mesh& mesh, Findings& findings) {
  const MeshCluster* first = nullptr;
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    if (first == nullptr) {
      first = cluster.get();
      continue;
    }
    for (const MeshField& field : kFieldsOfTheMesh) {
      const json mine = FieldOf(*cluster, field), theirs = FieldOf(*first, field);
      if (Canonical(mine, "", "") == Canonical(theirs, "", "")) continue;
      // It is told where somebody wrote it.
      const kube::ObjectRef here = MeshConfigMap(mesh, *cluster), there = MeshConfigMap(mesh, *first);
      const bool written = here != nullptr && !mesh.Where(cluster->name, *here).file.empty();
      const bool at_first = !written && there != nullptr && !mesh.Where(first->name, *there).file.empty();
      findings.Add(at_first ? *first : *cluster, at_first ? there : here,
                   fmt::format("the mesh config's {} is {} here and {} in {}: proxies of the two clusters do different "
                               "things",
                               field.path, Shown(at_first ? theirs : mine), Shown(at_first ? mine : theirs),
                               at_first ? cluster->name : first->name));
      break;
    }
  }
}

// A ServiceEntry is no policy: what it brings are hosts.
std::string WhatHolds(const kube::Object& object) {
  if (object.kind != "ServiceEntry") return "holds for proxies";
  std::vector<std::string> hosts;
  for (const json& host : Items(At(object.body, {"spec", "hosts"}))) hosts.push_back(TextOf(host));
  return fmt::format("{} {} known to proxies", fmt::join(hosts, ", "), hosts.size() == 1 ? "is" : "are");
}

// What holds for pods here would hold for pods there, and stands there under no name. Kinds whose absence fails no
// request at once: WT537 and WT546 tell of the others.
void OnOneSide(const Mesh& mesh, Findings& findings) {
  static constexpr const char* kKinds[] = {"EnvoyFilter.networking.istio.io", "RequestAuthentication.security.istio.io",
                                           "ServiceEntry.networking.istio.io", "Sidecar.networking.istio.io",
                                           "WasmPlugin.extensions.istio.io"};
  for (const auto& cluster : mesh.clusters()) {
    if (!IsMeshPrimary(*cluster)) continue;
    for (const char* kind : kKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        if (mesh.Where(cluster->name, *object).file.empty() || !HoldsForSomeone(mesh, *cluster, *object)) continue;
        for (const auto& other : mesh.clusters()) {
          if (other == cluster || !IsMeshPrimary(*other) || !HoldsForSomeone(mesh, *other, *object)) continue;
          // Of another name it may say the same.
          if (!mesh.List(*other, kind, object->meta.ns).empty()) continue;
          findings.Add(*cluster, *object,
                       fmt::format("{} in {} alone: {} has no {} in namespace {}, and has {}", WhatHolds(*object),
                                   cluster->name, other->name, object->kind, object->meta.ns,
                                   object->kind == "ServiceEntry" ? "clients" : "proxies that it would hold for"));
          break;
        }
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& DifferenceRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT547", "ConfigurationDiffersAcrossPrimaries", Level::kWarning,
       "in a multi-primary mesh each istiod reads the configuration of its own cluster, so one name means two things",
       "apply the same object in every primary cluster, or give what is each cluster's own a name of its own",
       "istio/istio#44863", ConfigurationDiffers, false},
      {"WT709", "MeshConfigsDiffer", Level::kWarning,
       "each istiod follows the mesh config of its own cluster, and so do the proxies that it serves",
       "install the primaries of one mesh with the same meshConfig", "", MeshConfigsDiffer, false},
      {"WT710", "ConfigurationOnOneSide", Level::kInfo,
       "in a multi-primary mesh each istiod reads the configuration of its own cluster, and configures the proxies "
       "there",
       "apply it in every primary cluster that has such proxies", "istio/istio#44863", OnOneSide, false},
  };
  return *rules;
}

}  // namespace wavetank::check
