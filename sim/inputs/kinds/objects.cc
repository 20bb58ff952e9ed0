#include "sim/inputs/kinds/objects.h"

#include "fakes/kube/http/rest/rest.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

using nlohmann::json;

// What the API server is given where a mapping is expected: never anything else, which it would have to take apart.
const json& MappingOf(const json& in) {
  static const auto* const empty = new json(json::object());
  return in.is_object() ? in : *empty;
}

}  // namespace

void ApplyObject::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("object", Need::kLenient, object);
}

absl::Status ApplyObject::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  if (const auto verdict = (*site)->AskIstio(MappingOf(object)); verdict.denied) {
    return absl::InvalidArgumentError(*verdict.denied);
  }
  return (*site)->Apply(MappingOf(object));
}

void DeleteObject::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("kind", Need::kRequired, object_kind);
  visitor.Visit("namespace", Need::kLenient, ns);
  visitor.Visit("name", Need::kRequired, name);
}

absl::Status DeleteObject::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  return (*site)->cluster().api().Delete(object_kind, {ns, name});
}

void PatchObject::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("kind", Need::kRequired, object_kind);
  visitor.Visit("namespace", Need::kLenient, ns);
  visitor.Visit("name", Need::kRequired, name);
  visitor.Visit("patch", Need::kLenient, patch);
}

absl::Status PatchObject::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  return (*site)->cluster().api().Patch(object_kind, {ns, name}, MappingOf(patch)).status();
}

void GoLive::Fields(FieldVisitor& visitor) { visitor.Visit("cluster", Need::kRequired, cluster); }

absl::Status GoLive::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  return (*site)->cluster().GoLive();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterObjects(InputTable& table) {
  table.Add<inputs::ApplyObject>();
  table.Add<inputs::DeleteObject>();
  table.Add<inputs::PatchObject>();
  table.Add<inputs::GoLive>();
}
}  // namespace wavetank::sim
