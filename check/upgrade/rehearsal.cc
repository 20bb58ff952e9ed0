#include "check/upgrade/rehearsal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/status.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

constexpr Duration kLook = 1s;
constexpr Duration kPatience = 30s;
constexpr int64_t kMovedPerMille = 100;  // a share that is another by more is no chance
constexpr double kChance = 4;
constexpr size_t kNamed = 5;  // resources that are listed by name

// What a proxy is, as far as skew goes.
struct ProxyKind {
  std::string group, release;
  ServedBy istiod;
  std::string before;  // the istiod before that
};

class Rehearsal {
 public:
  Rehearsal(sim::World& world, const std::vector<scenario::FlowSpec>& flows, const Held& held,
            const RehearsalOptions& options)
      : world_(world), flows_(flows), held_(held), options_(options) {}

  absl::StatusOr<ordered_json> Run() {
    absl::StatusOr<std::unique_ptr<FlowMeter>> meter = FlowMeter::Start(world_, flows_, options_.rate);
    if (!meter.ok()) return meter.status();
    meter_ = *std::move(meter);
    world_.RunUntil(meter_->start() + options_.lead);
    LearnProxies();
    std::vector<ordered_json> steps;
    std::string stuck;
    std::vector<std::pair<int64_t, int64_t>> windows;
    for (const UpgradeStep& step : StepsOf(options_.order, options_.to, options_.revision)) {
      const Time since = world_.Now();
      const int64_t from = Second();
      before_ = held_.Groups(world_);
      for (const sim::Input& input : step.inputs) {
        if (absl::Status status = world_.Do(input); !status.ok()) {
          return absl::Status(status.code(), fmt::format("{}: {}", step.name, Message(status)));
        }
      }
      stuck = ComeToRest();
      ordered_json& out = steps.emplace_back();
      out["step"] = step.name;
      out["cluster"] = step.cluster;
      out["part"] = step.part;
      out["tookNs"] = (world_.Now() - since - options_.linger).count();
      out["proxies"] = Proxies();
      out["refused"] = Refusals(since);
      windows.emplace_back(from, Second());
      if (!stuck.empty()) break;
    }
    meter_->Finish(kPatience);
    return Report(std::move(steps), windows, stuck);
  }

 private:
  int64_t Second() const { return (world_.Now() - meter_->start()) / 1s; }

  // What keeps the step from its end; empty: it has come to rest, and `linger` has passed since.
  std::string ComeToRest() {
    const Time limit = world_.Now() + options_.limit;
    Time rest{};
    while (world_.Now() < limit) {
      world_.RunUntil(world_.Now() + kLook);
      LearnProxies();
      // Rollouts are over, istiods have nothing to do. (Traffic never ends, so what it does is no unrest.)
      const bool settled = world_.Settled() && NotLive().empty();
      if (!settled) rest = Time{};
      if (settled && rest == Time{}) rest = world_.Now();
      if (settled && world_.Now() - rest >= options_.linger) return {};
    }
    std::string out = NotLive();
    if (!out.empty()) return fmt::format("not ready after {} min: {}", options_.limit / 1min, out);
    for (const std::string& what : world_.AtWork()) out += (out.empty() ? "" : "; ") + what;
    return out;
  }

  // Proxies that have not got, or not accepted, what they need to begin.
  std::string NotLive() const {
    std::set<std::string> groups;
    for (const sim::PodProcess* pod : world_.Pods()) {
      if (pod->envoy() == nullptr) continue;
      const envoysim::Envoy& envoy = *pod->envoy();
      if (!envoy.live() || envoy.accepted_version(envoysim::XdsType::kLds).empty()) groups.insert(GroupOf(*pod));
    }
    std::string out;
    for (const std::string& group : groups) out += (out.empty() ? "" : ", ") + group;
    return out;
  }

  void LearnProxies() {
    const std::map<std::string, ServedBy> istiods = IstiodsOfProxies(world_);
    for (const sim::PodProcess* pod : world_.Pods()) {
      if (pod->envoy() == nullptr) continue;
      ProxyKind& kind = proxies_[pod->name()];
      kind.group = GroupOf(*pod);
      kind.release = ReleaseOf(*pod);
      if (const auto of = istiods.find(pod->name()); of != istiods.end()) {
        if (of->second.profile != kind.istiod.profile) kind.before = kind.istiod.profile;
        kind.istiod = of->second;
      }
      skews_.insert({kind.release, kind.istiod.profile});
    }
  }

  // Groups whose release or istiod is another, and what of their configuration is.
  ordered_json Proxies() {
    ordered_json out = ordered_json::array();
    for (const auto& [name, now] : held_.Groups(world_)) {
      const auto was = before_.find(name);
      if (was == before_.end()) continue;
      const ProxyGroup& then = was->second;
      if (then.releases == now.releases && then.istiods == now.istiods) continue;
      ordered_json& each = out.emplace_back();
      each["group"] = name;
      each["proxies"] = now.proxies;
      each["releases"] = {then.releases, now.releases};
      each["istiods"] = {then.istiods, now.istiods};
      Compare(name, then, now, &each);
    }
    return out;
  }

  void Compare(const std::string& name, const ProxyGroup& then, const ProxyGroup& now, ordered_json* out) const {
    std::map<std::string, int64_t> differ;  // by type
    std::map<std::string, std::map<std::string, int64_t>> by_change;
    std::vector<std::string> others;
    int64_t endpoints = 0, brought = 0;
    std::set<ResourceKey> keys;
    for (const auto* of : {&then.resources, &now.resources}) {
      for (const auto& [key, hash] : *of) keys.insert(key);
    }
    const ChangesOfResources* const known = KnownOf(name);
    const ResourceHashes* const at_first = HeldAtFirst(name);
    for (const ResourceKey& key : keys) {
      const auto a = then.resources.find(key), b = now.resources.find(key);
      if (a != then.resources.end() && b != now.resources.end() && a->second == b->second) continue;
      ++differ[key.first];
      const auto row = known == nullptr ? ChangesOfResources::const_iterator() : known->find(key);
      if (known != nullptr && row != known->end() && !row->second.empty()) {
        for (const std::string& change : row->second) ++by_change[change][key.first];
      } else if (key.first == "eds") {
        ++endpoints;  // pods came and went
      } else if (at_first != nullptr && !at_first->contains(key)) {
        ++brought;  // of a Service that the upgrade itself made, or that is gone with it
      } else {
        others.push_back(fmt::format("{} {}", key.first, key.second));
      }
    }
    (*out)["resources"] = then.resources.size();
    (*out)["differ"] = differ;
    // In the order of the table.
    ordered_json changes = ordered_json::array();
    if (options_.attribution != nullptr) {
      for (const std::string& change : options_.attribution->changes) {
        if (const auto found = by_change.find(change); found != by_change.end()) {
          changes.push_back({{"change", change}, {"resources", found->second}});
        }
      }
    }
    (*out)["changes"] = std::move(changes);
    (*out)["endpointsAlone"] = endpoints;
    (*out)["brought"] = brought;
    (*out)["others"] = others.size();
    if (others.size() > kNamed) others.resize(kNamed);
    (*out)["otherNames"] = others;
  }

  const ChangesOfResources* KnownOf(const std::string& group) const {
    if (options_.attribution == nullptr) return nullptr;
    const auto found = options_.attribution->groups.find(group);
    return found == options_.attribution->groups.end() ? nullptr : &found->second;
  }

  const ResourceHashes* HeldAtFirst(const std::string& group) const {
    if (options_.attribution == nullptr) return nullptr;
    const auto found = options_.attribution->before.find(group);
    return found == options_.attribution->before.end() ? nullptr : &found->second;
  }

  // Configuration that proxies refused since then, by what they are.
  ordered_json Refusals(Time since) {
    std::map<std::tuple<std::string, std::string, std::string, std::string>, std::set<std::string>> by_kind;
    for (const envoysim::DataPlane::Nack& nack : world_.data_plane().nacks()) {
      if (nack.last < since) continue;
      const ProxyKind& kind = proxies_[nack.proxy];
      // A step begins while the istiod is there that it takes away, and what is refused then is that one's.
      const std::string& istiod = nack.last < kind.istiod.since ? kind.before : kind.istiod.profile;
      by_kind[{kind.release, istiod, std::string(nack.type), nack.text}].insert(kind.group);
    }
    ordered_json out = ordered_json::array();
    for (const auto& [kind, groups] : by_kind) {
      const auto& [release, istiod, type, words] = kind;
      out.push_back({{"proxy", release}, {"istiod", istiod}, {"type", type}, {"words", words}, {"groups", groups}});
    }
    return out;
  }

  static int64_t PerMille(const Window& window, const std::string& cluster) {
    const int64_t answered = window.sent - window.failed;
    const auto it = window.by_cluster.find(cluster);
    return it == window.by_cluster.end() || answered <= 0 ? 0 : it->second * 1000 / answered;
  }

  static bool Moved(const Window& a, const Window& b) {
    std::set<std::string> clusters;
    for (const Window* window : {&a, &b}) {
      for (const auto& [name, count] : window->by_cluster) clusters.insert(name);
    }
    return std::any_of(clusters.begin(), clusters.end(), [&](const std::string& cluster) {
      return std::abs(PerMille(a, cluster) - PerMille(b, cluster)) > kMovedPerMille;
    });
  }

  // Requests that were lost with the pod that sent them, or that no pod was there to send.
  static int64_t ClientGone(const Window& window) {
    int64_t out = 0;
    for (const auto& [reason, count] : window.reasons) {
      if (reason.ClientGone()) out += count;
    }
    return out;
  }

  static int64_t Failed(const Window& window) { return window.failed - ClientGone(window); }

  // Of a window's failures those that came of themselves before the first step as well: as large a share, and what
  // chance may add to it (kChance standard deviations, of both windows).
  static int64_t FailedAnyway(const Window& before, const Window& window) {
    if (Failed(before) <= 0 || before.sent <= 0) return 0;
    const auto sent = static_cast<double>(window.sent), lead = static_cast<double>(before.sent);
    const double share = static_cast<double>(Failed(before)) / lead;
    const double deviation = std::sqrt(sent * share * (1 - share) * (1 + sent / lead));
    return std::min(Failed(window), static_cast<int64_t>(std::ceil(sent * share + kChance * deviation)));
  }

  ordered_json FlowIn(size_t flow, const Window& before, const Window& window) const {
    const int64_t anyway = FailedAnyway(before, window);
    ordered_json out = {{"flow", flows_[flow].name},
                        {"sent", window.sent},
                        {"failed", Failed(window) - anyway},
                        {"failedAsBefore", anyway},
                        {"clientGone", ClientGone(window)},
                        {"retried", window.retried},
                        {"p99Ns", window.Percentile(99).count()},
                        {"byCluster", window.by_cluster},
                        {"moved", Moved(before, window)}};
    std::vector<std::pair<int64_t, std::string>> reasons;
    for (const auto& [reason, count] : window.reasons) {
      reasons.emplace_back(-count, reason.ClientGone() ? "its client was gone before the answer" : reason.Text());
    }
    std::sort(reasons.begin(), reasons.end());
    ordered_json why = ordered_json::array();
    for (const auto& [count, text] : reasons) why.push_back({{"why", text}, {"requests", -count}});
    out["reasons"] = std::move(why);
    return out;
  }

  ordered_json Report(std::vector<ordered_json> steps, const std::vector<std::pair<int64_t, int64_t>>& windows,
                      const std::string& stuck) const {
    const int64_t lead = options_.lead / 1s;
    ordered_json out;
    out["order"] = options_.order.Name();
    out["method"] = NameOf(options_.order.method);
    out["gatewaysFirst"] = options_.order.gateways_first;
    out["clusters"] = options_.order.clusters;
    out["stuck"] = stuck;
    int64_t sent = 0, failed = 0, moved = 0, refused = 0;
    ordered_json before = ordered_json::array();
    for (size_t flow = 0; flow < flows_.size(); ++flow) {
      const Window lead_window = meter_->Between(flow, 0, lead);
      before.push_back(FlowIn(flow, Window(), lead_window));
      for (size_t i = 0; i < steps.size(); ++i) {
        const Window window = meter_->Between(flow, windows[i].first, windows[i].second);
        ordered_json in = FlowIn(flow, lead_window, window);
        sent += window.sent;
        failed += in["failed"].get<int64_t>();
        moved += in["moved"].get<bool>() ? 1 : 0;
        steps[i]["flows"].push_back(std::move(in));
      }
    }
    for (const ordered_json& step : steps) refused += static_cast<int64_t>(step["refused"].size());
    out["sent"] = sent;
    out["failed"] = failed;
    out["moved"] = moved;
    out["refused"] = refused;
    out["tookNs"] = (world_.Now() - meter_->start()).count();
    ordered_json skews = ordered_json::array();
    for (const auto& [release, istiod] : skews_) {
      if (!release.empty() && !istiod.empty()) skews.push_back({{"proxy", release}, {"istiod", istiod}});
    }
    out["skews"] = std::move(skews);
    out["before"] = std::move(before);
    out["steps"] = std::move(steps);
    return out;
  }

  sim::World& world_;
  const std::vector<scenario::FlowSpec>& flows_;
  const Held& held_;
  const RehearsalOptions& options_;
  std::unique_ptr<FlowMeter> meter_;
  std::map<std::string, ProxyGroup> before_;
  std::map<std::string, ProxyKind> proxies_;             // by name, those that are gone too
  std::set<std::pair<std::string, std::string>> skews_;  // releases of proxies and istiods that were seen together
};

}  // namespace

absl::StatusOr<ordered_json> Rehearse(sim::World& world, const std::vector<scenario::FlowSpec>& flows, const Held& held,
                                      const RehearsalOptions& options) {
  return Rehearsal(world, flows, held, options).Run();
}

}  // namespace wavetank::check
