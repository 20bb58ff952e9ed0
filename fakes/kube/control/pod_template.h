// Pods of a workload's template: their names and what tells one template from another.
#pragma once

#include <cstdint>
#include <string>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// What ends the name of the `number`th pod that a workload of this cluster makes.
std::string GeneratedSuffix(const std::string& cluster, uint64_t seed, const NamespacedName& workload, uint64_t number);

// Annotation "OURS=THEIRS" of a workload that was inferred from its recorded pods (workloads/inferred.h): the template
// whose hash is OURS is the one that the recorded cluster calls THEIRS.
inline constexpr std::string_view kRecordedHash = "simulation/recorded-template-hash";

// Of spec.template: the same for the same template, whatever else changes in the workload.
std::string TemplateHash(const kube::Object& workload);

// spec.replicas; 1 where it is not said.
int64_t Replicas(const kube::Object& workload);

// A count in an object, which nobody may have validated (a log's, or one that a scenario patches): what is negative is
// 0, and none is more than an int32 holds, so that sums and products of counts stay in range.
int64_t BoundedCount(const nlohmann::json& value, int64_t otherwise);

// How many of so many old objects go, the oldest first, by a history limit of their owner's spec.
size_t BeyondLimit(size_t old, const nlohmann::json& limit, int64_t otherwise);

// A count, or "25%" of `replicas`.
int64_t Quota(const nlohmann::json& value, int64_t replicas, bool round_up);

bool PodReady(const kube::Object& pod);
// Its phase is Succeeded or Failed: it never starts again.
bool HasEnded(const nlohmann::json& pod);

// Whether a workload has to look at its pods again: one came or went, became ready or lost it, or begins to go.
bool ServesOtherwise(const Change& pod);

// A pod of `pod_template` that `owner` controls.
nlohmann::json PodOfTemplate(const nlohmann::json& pod_template, const kube::Object& owner, const std::string& name);

}  // namespace wavetank::fakekube
