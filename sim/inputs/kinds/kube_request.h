// A write of a real client over a cluster's REST API.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fakes/kube/http/message/message.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// Without the client's credentials: what came this far was let in.
struct KubeRequest {
  static constexpr std::string_view kKind = "kubeRequest";
  std::string cluster, method, path, query, content_type;
  std::shared_ptr<const nlohmann::json> body;  // null: none

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {

class World;

// Answers a request of a Kubernetes client. One that may change the cluster is an input, also if the API then refuses
// it.
fakekube::http::Response AskKube(World& world, std::string_view cluster, const fakekube::http::Request& request,
                                 bool of_real_istiod = false);

}  // namespace wavetank::sim
