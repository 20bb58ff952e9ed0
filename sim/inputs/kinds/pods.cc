#include "sim/inputs/kinds/pods.h"

#include <utility>
#include <vector>

#include "core/debug/log_scopes.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void KillPods::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("namespace", Need::kLenient, ns);
  visitor.Visit("app", Need::kRequired, app);
}

absl::Status KillPods::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  std::vector<kube::NamespacedName> victims;
  for (const auto& [key, pod] : (*site)->pods()) {
    if ((ns.empty() || key.ns == ns) && pod->app() == app) victims.push_back(key);
  }
  if (victims.empty()) {
    return absl::InvalidArgumentError(fmt::format("no pod of app '{}' runs in cluster '{}'", app, cluster));
  }
  for (const kube::NamespacedName& victim : victims) (*site)->cluster().api().Finalize("Pod", victim).IgnoreError();
  return absl::OkStatus();
}

namespace {

// ControlZ's PUT of a scope of an istiod's log (`istioctl admin log --level`): from now on it prints from that level
// on. An empty level leaves what is.
struct SetLogLevel {
  static constexpr std::string_view kKind = "logLevel";
  std::string cluster, pod, scope, output, stack_trace;
  bool callers = false;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

void SetLogLevel::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("pod", Need::kRequired, pod);
  visitor.Visit("scope", Need::kRequired, scope);
  for (const auto& [field, level] : {std::pair("output", &output), std::pair("stackTrace", &stack_trace)}) {
    visitor.Visit(field, Need::kSparse, *level);
    if (!level->empty() && !debug::ParseLogLevel(*level)) visitor.Refuse(field, "is no level of a log");
  }
  visitor.Visit("callers", Need::kSparse, callers);
}

absl::Status SetLogLevel::Apply(InputTarget& target) const {
  const absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const World::Site::IstiodLog* const log = (*site)->LogOf(fmt::format("{}.{}", pod, cluster));
  if (log == nullptr)
    return absl::InvalidArgumentError(fmt::format("no istiod runs in pod '{}' of cluster '{}'", pod, cluster));
  if (!log->scopes->Set(target.world.Now(), scope, debug::ParseLogLevel(output), debug::ParseLogLevel(stack_trace),
                        callers)) {
    return absl::InvalidArgumentError(fmt::format("istiod has no scope '{}' of its log", scope));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterPods(InputTable& table) {
  table.Add<inputs::KillPods>();
  table.Add<inputs::SetLogLevel>();
}
}  // namespace wavetank::sim
