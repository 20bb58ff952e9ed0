#include "core/election/cluster_elections.h"

#include <algorithm>
#include <utility>

#include "core/base/containers/countdown.h"
#include "fmt/format.h"

namespace wavetank::election {
namespace {

constexpr kube::ResourceKind kWebhooks{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
                                       "mutatingwebhookconfigurations", false};
// istiod: pkg/revisions/default_watcher.go.
constexpr std::string_view kDefaultTag = "istio-revision-tag-default";
// istiod: remoteIstiodPrefix.
constexpr char kRemote = '^';

}  // namespace

ClusterElections::ClusterElections(Host& host, kube::Client& client, Options options, std::function<bool()> contested,
                                   LogSink log)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      contested_(std::move(contested)),
      log_(std::move(log)) {}

ClusterElections::~ClusterElections() = default;

void ClusterElections::Join(std::string_view id, std::function<void()> started, std::function<void()> stopped) {
  if (!options_.enabled) {
    if (log_) log_({.text = fmt::format("bypassing leader election: {}", id)});
    unasked_.push_back(std::move(stopped));
    return started();
  }
  LeaderElection::Options election;
  election.lock.lease = id == kGatewayDeploymentController;
  election.lock.ns = options_.ns;
  election.lock.name = id;
  if (election.lock.lease && !options_.revision.empty()) election.lock.name += "-" + options_.revision;
  election.identity = options_.identity;
  election.key = options_.remote ? kRemote + options_.revision : options_.revision;
  election.seed = options_.seed;
  LeaderElection::Surroundings around;
  around.contested = contested_;
  if (options_.prioritized && !election.lock.lease) {
    around.evicts = [this](const std::string& holder_key) { return Evicts(holder_key); };
  }
  around.started = std::move(started);
  around.stopped = std::move(stopped);
  around.log = log_;
  if (contested_()) FollowDefaultRevision();
  elections_.push_back(std::make_unique<LeaderElection>(host_, client_, std::move(election), std::move(around)));
  elections_.back()->Run();
}

void ClusterElections::Reconsider() {
  if (elections_.empty() || !contested_()) return;
  FollowDefaultRevision();
  for (const auto& election : elections_) election->Contest();
}

void ClusterElections::Stop(std::function<void()> ended) {
  for (const auto& stopped : std::exchange(unasked_, {})) stopped();
  // One more than there are, so that it does not come to its end before all were told.
  const std::function<void()> one = AfterCalls(elections_.size() + 1, std::move(ended));
  for (const auto& election : elections_) election->Stop(one);
  one();
}

std::vector<nlohmann::json> ClusterElections::Unwritten() const {
  std::vector<nlohmann::json> out;
  for (const auto& election : elections_) {
    if (std::optional<nlohmann::json> object = election->Unwritten()) out.push_back(*std::move(object));
  }
  return out;
}

bool ClusterElections::Leads(std::string_view id) const {
  if (!options_.enabled) return true;
  return std::any_of(elections_.begin(), elections_.end(),
                     [&](const auto& e) { return e->id().starts_with(id) && e->leads(); });
}

void ClusterElections::FollowDefaultRevision() {
  if (default_tag_ != nullptr || !options_.prioritized) return;
  default_tag_ = std::make_unique<kube::Informer>(
      client_, host_, kWebhooks, kube::ListOptions{.field_selector = fmt::format("metadata.name={}", kDefaultTag)});
  default_tag_->Start();
}

// istiod: LocationPrioritizedComparison.
bool ClusterElections::Evicts(const std::string& holder_key) const {
  const bool held_from_afar = holder_key.starts_with(kRemote);
  const std::string holder = held_from_afar ? holder_key.substr(1) : holder_key;
  const kube::ObjectRef tag = default_tag_ == nullptr ? nullptr : default_tag_->Get("", kDefaultTag);
  if (tag != nullptr) {
    const auto it = tag->meta.labels.find("istio.io/rev");
    const std::string by_default = it == tag->meta.labels.end() ? "" : it->second;
    if (options_.revision != holder && !by_default.empty() && by_default == options_.revision) return true;
  }
  return options_.revision == holder && !options_.remote && held_from_afar;
}

}  // namespace wavetank::election
