// Manifests: multi-document YAML or JSON, as kubectl reads them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

struct Manifest {
  nlohmann::json object;
  std::string file;
  int line = 0;                     // where the document begins, or the item of a List
  bool dumped = false;              // an API server had written it (dumped.h)
  nlohmann::json status = nullptr;  // of a dumped one, as it was there
};

// Documents that are no objects of an API server, among manifests: what `is` fits is not looked at, and goes to
// `found`.
struct OtherDocuments {
  std::function<bool(const nlohmann::json&)> is;
  std::vector<Manifest> found;
};

// Documents of `text` in order; empty ones are skipped, `kind: List` is unrolled. Scalars resolve as Kubernetes' YAML
// library does (YAML 1.1 booleans; quoted text stays text). Every object has apiVersion, kind and a name. Errors name
// file, line, column and remedy.
absl::StatusOr<std::vector<Manifest>> ParseManifests(const std::string& file, const std::string& text,
                                                     OtherDocuments* others = nullptr);

// Whether one of the files that LoadManifests() would read names one of `words`: without them it need not be read.
bool AnyMentions(const std::string& path, const std::vector<std::string_view>& words);

// A file, or the .yaml, .yml and .json files of a folder in order of their names. What `kubectl get -o yaml` printed is
// taken as it is: see CleanDumped().
absl::StatusOr<std::vector<Manifest>> LoadManifests(const std::string& path, OtherDocuments* others = nullptr);

}  // namespace wavetank::fakekube
