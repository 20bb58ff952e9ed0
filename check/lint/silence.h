// Findings that the author of an object does not want to hear of. Two ways, both beside the object:
//
//   # wavetank: silence WT108, IST0118      within the document of the object, or right above it
//   metadata: {annotations: {galley.istio.io/analyze-suppress: "IST0118"}}     as istioctl analyze has it; "*" is all
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "check/mesh/mesh.h"

namespace wavetank::check {

class Silences {
 public:
  // Reads the comments of all files that brought objects. InvalidArgument "FILE:LINE: ..." for a code that no rule has.
  static absl::StatusOr<Silences> Read(const Mesh& mesh);
  bool Covers(const Place& place, std::string_view code) const;

 private:
  std::map<std::pair<std::string, int>, std::set<std::string, std::less<>>> by_place_;  // file, line of the object
};

}  // namespace wavetank::check
