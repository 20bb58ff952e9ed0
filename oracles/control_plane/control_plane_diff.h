// One scenario through both control planes, ours in virtual time and real istiods in real time, and what their proxies
// hold compared after every step.
//
// The comparison is that of golden cases: resource by resource, field by field, nothing tolerated. Made canonical is
// only what istiod itself leaves open (oracles/golden/compare.h): the order of a locality's endpoints and that of
// virtualInbound's per-port passthrough chains. Versions and nonces are not resources; resourceVersions are each API
// server's own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "oracles/golden/compare.h"
#include "scenarios/language/scenario.h"
#include "serve/control_planes.h"

namespace wavetank::serve {

struct DiffOptions {
  ControlPlaneOptions control_plane;
  std::string profile;          // instead of the scenario's, if not empty
  size_t max_differences = 20;  // per proxy and type
  bool unified_diff = false;
  // Meshes are compared when both sides are at rest: ours has sent nothing for `ours_quiet` of virtual time; of the
  // real one's istiods none has sent anything, or needed a processor, for `real_quiet` and longer than it debounces.
  Duration ours_quiet = 5s, real_quiet = 1500ms;
  // How long to wait for that; a step after which it never came is not judged.
  Duration rest_limit = 60s;
  // Steps' waits are no longer than that, on both sides; zero: as long as the scenario says.
  Duration longest_wait{};
  // Patience with what differs then: as long as that, they may come to rest again and be compared again.
  Duration patience = 5s;
  std::function<void(std::string_view)> progress;
};

struct ProxyDifferences {
  std::string proxy, type;  // "cds", "eds", "lds", "rds", "nds", "ecds"; "": the proxy is there on one side only
  std::vector<golden::Difference> differences;  // expected: the real istiod's
  std::string unified_diff;
};

struct StepDifferences {
  std::string name;  // of the first: "the mesh is up"
  size_t proxies = 0, resources = 0;
  std::string not_judged;  // why not, if it was not: a side that never came to rest
  std::vector<ProxyDifferences> differences;
};

struct DiffResult {
  std::string scenario;
  std::vector<StepDifferences> steps;
  bool Equal() const;   // nothing differs; what was not judged does not
  bool Judged() const;  // every step was
};

// The scenario's actions without its traffic and expectations, which have no say in what istiod generates. Errors are
// about the input or the control plane, as those of scenario::Run and ControlPlanes::Start.
absl::StatusOr<DiffResult> DiffControlPlanes(const scenario::Scenario& scenario, const DiffOptions& options);

// Each difference on lines of its own; empty if there is none.
std::string DifferencesText(const DiffResult& result);
nlohmann::ordered_json ToJson(const DiffResult& result);

}  // namespace wavetank::serve
