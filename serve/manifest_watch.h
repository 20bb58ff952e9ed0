// Manifests that change on disk while their mesh runs: what was edited, added or removed becomes inputs, as if somebody
// had applied and deleted the objects.
//
// Files are looked at a few times a second (name, size, time of modification), and read when they have been the same
// for two looks, so that an editor's half-written file is not. A manifest that cannot be read changes nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/language/scenario.h"
#include "serve/loop/loop.h"
#include "serve/loop/stop_flag.h"

namespace wavetank::serve {

class ManifestWatch {
 public:
  struct Options {
    Duration period = 250ms;
    // One sentence for every change that was taken or could not be; from a thread of this object's.
    std::function<void(std::string)> report;
  };
  // What the manifests say now counts as known. `loop` and `clusters` outlive it.
  ManifestWatch(Loop& loop, const std::vector<scenario::ClusterSpec>& clusters, Options options);
  ~ManifestWatch();

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name
  using Objects = std::map<Key, nlohmann::json>;
  using Stamp = std::vector<std::tuple<std::string, int64_t, uint64_t>>;  // file, modified, size
  struct Watched {
    const scenario::ClusterSpec* cluster;
    Stamp known, last;
    Objects objects;
  };

  static Stamp Look(const scenario::ClusterSpec& cluster);
  static absl::StatusOr<Objects> Load(const scenario::ClusterSpec& cluster, std::vector<std::string>* notes);
  void Run();
  void Take(Watched& watched);

  Loop& loop_;
  const Options options_;
  std::vector<Watched> watched_;
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace wavetank::serve
