// Two meshes compared a proxy and type at a time, so that whoever compares can let the world go on in between. What was
// equal stays known: it is not read again.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oracles/control_plane/control_plane_diff.h"
#include "oracles/control_plane/held_mesh.h"

namespace wavetank::serve {

class MeshComparison {
 public:
  // `options` must outlive it.
  explicit MeshComparison(const DiffOptions& options) : options_(options) {}

  // `ours` must outlive the comparison.
  void Begin(HeldMesh real, const HeldMesh& ours);
  // Compares one type of one proxy; false: that was all.
  bool Slice();
  // Of what was compared so far.
  const StepDifferences& found() const { return found_; }
  StepDifferences Take() { return std::move(found_); }

 private:
  using Resources = scenario::XdsSnapshot::Resources;
  void CompareType(const std::string& proxy, const std::string& kind, const Resources& real, const Resources& ours);

  const DiffOptions& options_;
  HeldMesh real_;
  const HeldMesh* ours_ = nullptr;
  std::vector<std::pair<std::string, std::string>> left_;  // proxy and type, last first
  StepDifferences found_;
  // By proxy and type, what both sides held when they last were equal though not byte by byte.
  std::map<std::pair<std::string, std::string>, std::pair<Resources, Resources>> equal_;
};

}  // namespace wavetank::serve
