// What `check` knows of a cause: findings that its rules have of the mesh behind an input, with their remedies.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/story.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

// A finding as check/lint prints it.
struct KnownFault {
  std::string code, name, cluster, object, message, remedy;
  bool before = false;  // it was there before the input, too
};
nlohmann::ordered_json ToJson(const KnownFault& fault);

// An input (its index); without one what stands at the instant `at`.
struct Suspect {
  std::optional<size_t> input;
  Time at{};
};

// For each of `suspects` what the rules of `check` find of the mesh at rest behind it: what was not there before it
// first, of these what they say of the object that it changes, then what was there before as an error. Symptoms (that
// requests fail) and infos are left out. Each mesh is a process of its own, `at_a_time` of them; one that cannot be
// made has no findings. Errors are those of the processes. Cost: two worlds and a run of all rules for each.
absl::StatusOr<std::vector<std::vector<KnownFault>>> KnownFaults(const Story& story,
                                                                 const std::vector<Suspect>& suspects, int at_a_time,
                                                                 const std::function<void(std::string_view)>& progress);

}  // namespace wavetank::check
