#include "check/rules/rule.h"

#include <algorithm>

#include "core/profile/releases.h"
#include "fakes/kube/objects/dumped.h"
#include "fmt/format.h"

namespace wavetank::check {

std::string_view LevelName(Level level) {
  static constexpr std::string_view kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

std::string Finding::Fingerprint() const { return fmt::format("{}|{}|{}|{}", rule->code, cluster, object, message); }

void Findings::Add(const MeshCluster& cluster, const kube::Object& object, std::string message) {
  Add(cluster.name, NameOf(object), mesh_.Where(cluster.name, object), std::move(message));
  out_.back().made_up = object.meta.annotations.contains(fakekube::kMadeUp);
}

void Findings::Add(const MeshCluster& cluster, const kube::ObjectRef& object, std::string message) {
  if (object != nullptr) return Add(cluster, *object, std::move(message));
  Add(cluster.name, "", {}, std::move(message));
}

void Findings::Add(const MeshCluster& cluster, const config::ConfigMeta& meta, std::string message) {
  const kube::ResourceKind& kind = config::ResourceKindOf(meta.kind);
  const kube::ObjectRef object = mesh_.Get(cluster, fmt::format("{}.{}", kind.kind, kind.group), meta.ns, meta.name);
  if (object != nullptr) return Add(cluster, *object, std::move(message));
  Add(cluster.name, fmt::format("{} {}/{}", config::KindName(meta.kind), meta.ns, meta.name), {}, std::move(message));
}

void Findings::Add(std::string_view cluster, std::string_view object, const Place& place, std::string message) {
  out_.push_back({&rule_, std::string(cluster), std::string(object), place, std::move(message), {}, {}});
}

void Findings::Explain(std::string cause, std::string remedy) {
  out_.back().cause = std::move(cause);
  out_.back().remedy = std::move(remedy);
}

void Findings::FollowsFromMadeUp() { out_.back().made_up = true; }

std::optional<Finding> Findings::TakeBack(std::string_view code, std::string_view message) {
  const Finding& last = out_.back();
  const auto found = std::find_if(out_.begin(), out_.end() - 1, [&](const Finding& f) {
    return f.rule->code == code && f.cluster == last.cluster && f.object == last.object &&
           f.message.starts_with(message);
  });
  if (found == out_.end() - 1) return std::nullopt;
  Finding out = std::move(*found);
  out_.erase(found);
  return out;
}

void Findings::Append(std::string_view more) { out_.back().message += more; }

bool Findings::Has(std::string_view code, std::string_view cluster, std::string_view object) const {
  return std::any_of(out_.begin(), out_.end(), [&](const Finding& f) {
    return f.rule->code == code && f.cluster == cluster && (object.empty() || f.object == object);
  });
}

bool Rule::IsAskedIn(std::string_view istio) const {
  return (since.empty() || pilot::HoldsIn(istio, since)) && !pilot::HoldsIn(istio, until);
}

const std::vector<const Rule*>& AllRules() {
  static const auto* const all = [] {
    auto* out = new std::vector<const Rule*>;
    for (const auto* list : {&NetworkRules(),       &GatewayServiceRules(), &RemoteSecretRules(),    &IdentityRules(),
                             &ServiceRules(),       &VirtualServiceRules(), &DestinationRuleRules(), &SniRules(),
                             &SidecarRules(),       &EnvoyFilterRules(),    &AnswerRules(),          &MutualTlsRules(),
                             &ServiceEntryRules(),  &GatewayRules(),        &InjectionRules(),       &VersionRules(),
                             &AuthorizationRules(), &NetworkPolicyRules(),  &AnnotationRules(),      &ProviderRules(),
                             &PolicyRules(),        &SettingRules(),        &RightsRules(),          &OneSideRules(),
                             &DifferenceRules(),    &WorkloadRules()}) {
      for (const Rule& rule : *list) out->push_back(&rule);
    }
    std::sort(out->begin(), out->end(), [](const Rule* a, const Rule* b) { return a->code < b->code; });
    return out;
  }();
  return *all;
}

const Rule* FindRule(std::string_view code) {
  const auto& all = AllRules();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Rule* rule) { return rule->code == code; });
  return it == all.end() ? nullptr : *it;
}

}  // namespace wavetank::check
