#include "core/gen/extensions/patch_clusters.h"

#include <algorithm>
#include <utility>

#include "core/envoyapi/any.h"
#include "core/envoyapi/merge.h"
#include "core/gen/extensions/patch_match.h"
#include "core/model/service.h"
#include "envoy/config/cluster/v3/cluster.pb.h"

namespace wavetank::pilot {
namespace patch {
namespace {

using config::EnvoyFilter;
using Cluster = ::envoy::config::cluster::v3::Cluster;

bool MatchesCluster(const EnvoyPatch& patch, const std::string& name, absl::Span<const std::string> hosts) {
  const auto* match = MatchOf<EnvoyFilter::ClusterMatch>(patch);
  if (match == nullptr) return true;
  if (!match->name.empty()) return match->name == name;
  const SubsetKey key = ParseSubsetKey(name).value_or(SubsetKey{});
  if (!match->subset.empty() && match->subset != key.subset) return false;
  if (!match->service.empty()) {
    // The name of an inbound cluster says no host.
    const bool inbound = key.direction == TrafficDirection::kInbound && !hosts.empty();
    const bool found =
        inbound ? std::find(hosts.begin(), hosts.end(), match->service) != hosts.end() : key.hostname == match->service;
    if (!found) return false;
  }
  return match->port_number == 0 || static_cast<int>(match->port_number) == key.port;
}

// The transport socket goes into the one of its name, among those that are chosen by endpoint if there are such. A
// cluster without one of that name gets it in its place, but not beside those chosen by endpoint. istiod:
// mergeTransportSocketCluster. There the cluster and the patch share the socket that was put in place, and a later
// patch to it lasts; here it does not.
void MergeTransportSocket(const Cluster& from, Cluster& into) {
  const auto& source = from.transport_socket();
  ::envoy::config::core::v3::TransportSocket* target = nullptr;
  if (into.transport_socket_matches_size() > 0) {
    for (auto& match : *into.mutable_transport_socket_matches()) {
      if (match.has_transport_socket() && match.transport_socket().name() == source.name()) {
        target = match.mutable_transport_socket();
        break;
      }
    }
    if (target == nullptr) return;
  } else if (into.has_transport_socket() && into.transport_socket().name() == source.name()) {
    target = into.mutable_transport_socket();
  }
  if (target == nullptr) {
    *into.mutable_transport_socket() = source;
    return;
  }
  if (!target->has_typed_config() || !source.has_typed_config()) return;
  if (MergeAny(source.typed_config(), *target->mutable_typed_config()) == MergeResult::kDifferentTypes) {
    throw Panic();
  }
}

void Merge(const EnvoyPatches::List& patches, Context context, absl::Span<const std::string> hosts, Cluster& cluster) {
  for (const EnvoyPatch* patch : patches) {
    if (patch->operation != Operation::kMerge || !InContext(*patch, context)) continue;
    if (!MatchesCluster(*patch, cluster.name(), hosts)) continue;
    const auto* value = dynamic_cast<const Cluster*>(patch->value.get());
    if (value == nullptr) continue;
    if (value->has_transport_socket()) {
      MergeTransportSocket(*value, cluster);  // and nothing else of the patch
    } else {
      MergeEnvoyMessage(*value, cluster);
    }
  }
}

}  // namespace
}  // namespace patch

ClusterPatcher::ClusterPatcher(std::shared_ptr<const EnvoyPatches> patches, patch::Context context)
    : patches_(std::move(patches)), context_(context) {
  if (patches_ != nullptr && !patches_->Of(patch::ApplyTo::kCluster).empty()) {
    list_ = &patches_->Of(patch::ApplyTo::kCluster);
  }
}

std::optional<Resource> ClusterPatcher::Patch(Resource cluster, absl::Span<const std::string> hosts) const {
  if (!active()) return cluster;
  const std::string name(cluster.name);
  bool merges = false;
  for (const EnvoyPatch* patch : *list_) {
    if (!patch::InContext(*patch, context_)) continue;
    if (patch->operation == patch::Operation::kRemove && patch::MatchesCluster(*patch, name, hosts))
      return std::nullopt;
    merges |= patch->operation == patch::Operation::kMerge;
  }
  patch::Cluster message;
  if (!merges || !message.ParseFromArray(cluster.bytes->data(), static_cast<int>(cluster.bytes->size()))) {
    return cluster;
  }
  try {
    patch::Merge(*list_, context_, hosts, message);
  } catch (const patch::Panic&) {
  }
  return Resource(message.name(), Serialize(message));
}

std::vector<Resource> ClusterPatcher::Inserted() const {
  std::vector<Resource> out;
  if (!active()) return out;
  for (const EnvoyPatch* patch : *list_) {
    if (patch->operation != patch::Operation::kAdd || !patch::InContext(*patch, context_)) continue;
    // In any context means once, not inbound as well.
    if (patch->match->context == patch::Context::kAny && context_ == patch::Context::kSidecarInbound) continue;
    if (const auto* value = dynamic_cast<const patch::Cluster*>(patch->value.get()); value != nullptr) {
      out.emplace_back(value->name(), Serialize(*value));
    }
  }
  return out;
}

}  // namespace wavetank::pilot
