#include "core/gateway_api/policies/backend_tls.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/json_access.h"
#include "core/gateway_api/conditions.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

constexpr std::string_view kMeshController = "istio.io/mesh-controller";
constexpr const char* kIgnore = "istio.io/ignore-policy-attachment";
constexpr const char *kAccepted = "Accepted", *kResolvedRefs = "ResolvedRefs";
constexpr const char* kNoCredential = "invalid://";
constexpr size_t kMostAncestors = 16;

struct Target {
  std::string kind, ns, name;
  friend auto operator<=>(const Target&, const Target&) = default;
};

// What one policy says of one host.
struct Said {
  const kube::Object* policy = nullptr;
  std::optional<std::string> section;
  json tls;
};

// istiod: truncatedKeysMessage. In the order of their names; istiod's is that of a Go map.
std::string KeysOf(const json& data) {
  constexpr size_t kTold = 3;
  std::vector<std::string> keys;
  for (const auto& [key, value] : data.items()) keys.push_back(key);
  const size_t more = keys.size() > kTold ? keys.size() - kTold : 0;
  keys.resize(keys.size() - more);
  return absl::StrJoin(keys, ", ") + (more == 0 ? "" : fmt::format(", and {} more...", more));
}

// Why a ConfigMap holds no root; empty: it holds one. istiod: credentials/kube, ExtractRootFromString.
std::string NoRoot(const json& data) {
  for (const char* key : {"cacert", "ca.crt"}) {
    if (!Text(data, key).empty()) return {};
  }
  for (const char* key : {"cacert", "ca.crt"}) {
    if (!At(data, key).is_null()) return fmt::format("found key \"{}\", but it was empty", key);
  }
  return "found secret, but didn't have expected keys cacert or ca.crt; found: " + KeysOf(data);
}

class BackendTlsConverter {
 public:
  explicit BackendTlsConverter(const Inputs& in) : in_(in) { LearnAncestors(); }

  ConvertedPolicies Convert() {
    for (const kube::ObjectRef& policy : in_.Of("BackendTLSPolicy")) policies_.push_back(policy);
    for (const kube::ObjectRef& policy : policies_) Add(*policy);
    for (auto& [key, said] : by_host_) Merge(key.first, key.second, said);
    return std::move(out_);
  }

 private:
  static const json& Targets(const kube::Object& policy) { return Items(At(policy.body, {"spec", "targetRefs"})); }

  static bool Ignored(const kube::Object& policy) {
    const auto it = policy.meta.annotations.find(kIgnore);
    return it != policy.meta.annotations.end() && absl::AsciiStrToLower(it->second) == "true";
  }

  // Which gateways lead to which backends: those that routes name as parents and backends, whether they are there or
  // not. istiod: extractAncestorBackends.
  void LearnAncestors() {
    for (const char* kind : {"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute"}) {
      if (kind == std::string_view("TCPRoute") && !in_.alpha) continue;
      for (const kube::ObjectRef& route : in_.Of(kind)) {
        const json& spec = At(route->body, "spec");
        for (const json& parent : Items(At(spec, "parentRefs"))) {
          if (KindOf(parent, {std::string(kGroup), "Gateway"}) != GroupKind{std::string(kGroup), "Gateway"}) continue;
          for (const json& rule : Items(At(spec, "rules"))) {
            for (const json& backend : Items(At(rule, "backendRefs"))) {
              const GroupKind of = KindOf(backend, {"", "Service"});
              gateways_[{of.kind, Text(backend, "namespace", route->meta.ns), Text(backend, "name")}].insert(
                  {Text(parent, "namespace", route->meta.ns), Text(parent, "name")});
            }
          }
        }
      }
    }
  }

  // What the reference leads to; null, with the words. istiod: gatewaycommon.ReferenceSet.
  const kube::Object* Local(const json& reference, const std::string& ns, std::string* why) const {
    const GroupKind of = KindOf(reference, {});
    const std::string group = of.group == "core" ? "" : of.group, name = Text(reference, "name");
    const bool core = group.empty() && (of.kind == "Service" || of.kind == "ConfigMap" || of.kind == "Secret");
    const bool entry = group == "networking.istio.io" && of.kind == "ServiceEntry";
    if (!core && !entry) {
      *why = "unsupported kind " + of.kind;
      return nullptr;
    }
    const kube::Object* found = in_.Find(of.kind, ns, name);
    if (found == nullptr) *why = fmt::format("reference {}/{} (of kind {}) not found", ns, name, of.kind);
    return found;
  }

  // istiod: getBackendTLSCredentialName.
  std::string CredentialOf(const json& validation, const std::string& ns, Conditions* conditions) const {
    if (const json& known = At(validation, "wellKnownCACertificates"); known.is_string()) {
      if (known != "System") {
        (*conditions)[kAccepted].error = {"Invalid", fmt::format("Unknown wellKnownCACertificates: {}", TextOf(known))};
      }
      return {};
    }
    const json& references = Items(At(validation, "caCertificateRefs"));
    if (references.empty()) return {};
    if (references.size() > 1)
      (*conditions)[kAccepted].message += "; warning: only the first caCertificateRefs will be used";
    const json& reference = references.front();
    std::string why;
    const kube::Object* found = Local(reference, ns, &why);
    if (found == nullptr) {
      const bool kind = why.find("unsupported kind") != std::string::npos;
      (*conditions)[kResolvedRefs].error = {
          kind ? "InvalidKind" : "InvalidCACertificateRef",
          fmt::format("Certificate reference {}: {}", kind ? "not supported" : "not found", why)};
    } else if (found->kind != "ConfigMap") {
      why = "unsupported reference kind: " + Text(reference, "kind");
      (*conditions)[kResolvedRefs].error = {"InvalidKind", "Certificate reference invalid: " + why};
    } else {
      why = NoRoot(At(found->body, "data"));
      if (why.empty()) return fmt::format("configmap://{}/{}", ns, Text(reference, "name"));
      (*conditions)[kResolvedRefs].error = {"InvalidCACertificateRef", "Certificate invalid: " + why};
    }
    (*conditions)[kAccepted].error = {"NoValidCACertificate", "Certificate reference invalid: " + why};
    return kNoCredential;  // so that nothing gets through
  }

  // The policy that comes before this one at the same target; empty: none. istiod: btlsIsConflicted.
  std::string Conflict(const kube::Object& policy, const json& target) const {
    for (const kube::ObjectRef& other : policies_) {
      if (other.get() == &policy || other->meta.ns != policy.meta.ns || Ignored(*other)) continue;
      const json& theirs = Targets(*other);
      if (std::find(theirs.begin(), theirs.end(), target) == theirs.end()) continue;
      const auto age = [](const kube::Object& of) { return std::tie(of.meta.creation_unix_seconds, of.meta.name); };
      if (age(*other) < age(policy)) return other->meta.name;
    }
    return {};
  }

  static json ParentOf(const json& target) {
    json out = {{"group", Text(target, "group")}, {"kind", Text(target, "kind")}, {"name", Text(target, "name")}};
    if (const json& section = At(target, "sectionName"); section.is_string()) out["sectionName"] = section;
    return out;
  }

  // istiod: setAncestorStatus.
  json AncestorOf(const kube::Object& policy, json parent, const Conditions& conditions,
                  std::string_view controller) const {
    json existing = json::array();
    for (const json& known : Items(At(policy.body, {"status", "ancestors"}))) {
      if (At(known, "ancestorRef") == parent) {
        existing = At(known, "conditions");
        break;
      }
    }
    return {{"ancestorRef", std::move(parent)},
            {"controllerName", std::string(controller)},
            {"conditions", SetConditions(policy.meta.generation, in_.now, std::move(existing), conditions)}};
  }

  // istiod: mergeAncestors.
  void SetStatus(const kube::Object& policy, std::vector<json> incoming) {
    json status = At(policy.body, "status"), ancestors = json::array();
    if (!status.is_object()) status = json::object();
    for (const json& known : Items(At(status, "ancestors"))) {
      const std::string controller = Text(known, "controllerName");
      if (controller != kController && controller != kMeshController) {
        ancestors.push_back(known);
        continue;
      }
      const auto same = std::find_if(incoming.begin(), incoming.end(),
                                     [&](const json& each) { return each["ancestorRef"] == At(known, "ancestorRef"); });
      if (same == incoming.end()) continue;
      ancestors.push_back(std::move(*same));
      incoming.erase(same);
    }
    for (json& each : incoming) ancestors.push_back(std::move(each));
    if (ancestors.size() > kMostAncestors)
      ancestors.erase(ancestors.begin() + static_cast<int64_t>(kMostAncestors), ancestors.end());
    status["ancestors"] = std::move(ancestors);
    out_.statuses[{"BackendTLSPolicy", policy.meta.ns, policy.meta.name}] = std::move(status);
  }

  void Add(const kube::Object& policy) {
    Conditions conditions = {{kAccepted, {"Accepted", "Configuration is valid"}},
                             {kResolvedRefs, {"ResolvedRefs", "Configuration is valid"}}};
    std::vector<json> ancestors;
    if (Ignored(policy)) {
      conditions.erase(kResolvedRefs);
      conditions[kAccepted].error = {"IgnoredByIstio",
                                     fmt::format("Ignored by Istio due to annotation {}=true", kIgnore)};
      for (const json& target : Targets(policy))
        ancestors.push_back(AncestorOf(policy, ParentOf(target), conditions, kMeshController));
      return SetStatus(policy, std::move(ancestors));
    }
    const json& validation = At(policy.body, {"spec", "validation"});
    json tls = {{"mode", "SIMPLE"}, {"sni", Text(validation, "hostname")}};
    for (const json& name : Items(At(validation, "subjectAltNames"))) {
      const std::string type = Text(name, "type");
      if (type == "Hostname") tls["subjectAltNames"].push_back(Text(name, "hostname"));
      if (type == "URI") tls["subjectAltNames"].push_back(Text(name, "uri"));
    }
    if (const std::string credential = CredentialOf(validation, policy.meta.ns, &conditions); !credential.empty())
      tls["credentialName"] = credential;

    std::set<std::pair<std::string, std::string>> gateways;
    for (const json& target : Targets(policy)) {
      AddTarget(policy, target, tls, &conditions, &gateways);
      ancestors.push_back(AncestorOf(policy, ParentOf(target), conditions, kMeshController));
    }
    // In the order of "namespace/name"; what went wrong with the last target is told of all.
    for (const auto& [ns, name] : gateways) {
      ancestors.push_back(AncestorOf(policy, {{"group", std::string(kGroup)}, {"kind", "Gateway"}, {"name", name}},
                                     conditions, kController));
    }
    SetStatus(policy, std::move(ancestors));
  }

  // What is wrong with a target stays so for those after it, whose conditions are the same ones in istiod.
  void AddTarget(const kube::Object& policy, const json& target, const json& tls, Conditions* conditions,
                 std::set<std::pair<std::string, std::string>>* gateways) {
    std::string why;
    const kube::Object* found = Local(target, policy.meta.ns, &why);
    const std::string section = Text(target, "sectionName");
    if (found != nullptr && found->kind != "Service" && found->kind != "ServiceEntry") {
      why = "unsupported reference kind: " + Text(target, "kind");
    } else if (found != nullptr && !section.empty()) {
      const json& ports = Items(At(found->body, {"spec", "ports"}));
      if (std::none_of(ports.begin(), ports.end(), [&](const json& port) { return Text(port, "name") == section; })) {
        why = fmt::format("sectionName \"{}\" does not exist in {} {}/{}", section, found->kind, found->meta.ns,
                          found->meta.name);
      }
    }
    if (!why.empty()) {
      (*conditions)[kAccepted].error = {"TargetNotFound", "targetRefs invalid: " + why};
      return;
    }
    const Target key{found->kind, policy.meta.ns, found->meta.name};
    if (const std::string other = Conflict(policy, target); !other.empty()) {
      (*conditions)[kAccepted].error = {
          "Conflicted", fmt::format("Conflicts with BackendTLSPolicy \"{}\" targeting the same backend", other)};
    } else {
      Said said{&policy, section.empty() ? std::nullopt : std::optional(section), tls};
      if (found->kind == "Service") {
        by_host_[{key, fmt::format("{}.{}.svc.{}", key.name, key.ns, in_.domain_suffix)}].push_back(std::move(said));
      } else {
        for (const json& host : Items(At(found->body, {"spec", "hosts"})))
          by_host_[{key, TextOf(host)}].push_back(said);
      }
    }
    if (const auto known = gateways_.find(key); known != gateways_.end())
      gateways->insert(known->second.begin(), known->second.end());
  }

  // One DestinationRule of a host; the oldest policy wins. istiod: DestinationRuleCollection.
  void Merge(const Target& target, const std::string& host, std::vector<Said>& said) {
    std::stable_sort(said.begin(), said.end(), [](const Said& a, const Said& b) {
      const kube::ObjectMeta &x = a.policy->meta, &y = b.policy->meta;
      return std::tie(x.creation_unix_seconds, x.ns, x.name) < std::tie(y.creation_unix_seconds, y.ns, y.name);
    });
    json policy = json::object();
    std::map<std::string, json> ports;  // by name; istiod's order is that of a Go map
    std::vector<std::string> parents;
    for (const Said& each : said) {
      if (each.section) {
        ports.emplace(*each.section, each.tls);
      } else if (!policy.contains("tls")) {
        policy["tls"] = each.tls;
      } else {
        continue;
      }
      std::string parent = fmt::format("BackendTLSPolicy/{}.{}", each.policy->meta.ns, each.policy->meta.name);
      if (std::find(parents.begin(), parents.end(), parent) == parents.end()) parents.push_back(std::move(parent));
    }
    const kube::Object* object = in_.Find(target.kind, target.ns, target.name);
    for (auto& [name, tls] : ports) {
      int64_t number = 0;
      for (const json& port : Items(At(object->body, {"spec", "ports"}))) {
        if (Text(port, "name") != name) continue;
        number = Number(port, target.kind == "Service" ? "port" : "number");
        break;
      }
      policy["portLevelSettings"].push_back({{"port", {{"number", number}}}, {"tls", std::move(tls)}});
    }
    std::string name = target.name;
    if (target.kind == "ServiceEntry") name += "~" + absl::StrReplaceAll(host, {{".", "-"}});
    // Of no age, which makes it the oldest of its host.
    out_.configs.push_back(MakeConfig("DestinationRule", target.ns, fmt::format("{}~{}", name, kGeneratedMark),
                                      {{std::string(kParents), absl::StrJoin(parents, ",")}}, kube::Object(),
                                      {{"host", host}, {"trafficPolicy", std::move(policy)}}));
  }

  const Inputs& in_;
  std::vector<kube::ObjectRef> policies_;
  std::map<Target, std::set<std::pair<std::string, std::string>>>
      gateways_;  // namespace and name, by what they lead to
  std::map<std::pair<Target, std::string>, std::vector<Said>> by_host_;
  ConvertedPolicies out_;
};

}  // namespace

ConvertedPolicies ConvertBackendTls(const Inputs& in) {
  if (!in.profile.Has(pilot::Change::kGatewayApiBackendTls)) return {};
  return BackendTlsConverter(in).Convert();
}

}  // namespace wavetank::gatewayapi
