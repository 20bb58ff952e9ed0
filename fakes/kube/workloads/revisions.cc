#include "fakes/kube/workloads/revisions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/objects/one_more.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kRevisionKind = "ControllerRevision";
constexpr const char* kPatchDirective = "$patch";

// The set's, by number.
std::vector<ObjectRef> RevisionsOf(const ApiServer& api, const kube::Object& set) {
  std::vector<ObjectRef> out;
  for (ObjectRef& kept : api.List(kRevisionKind, set.meta.ns)) {
    const kube::OwnerReference* owner = ControllerOf(*kept);
    if (owner != nullptr && owner->uid == set.meta.uid) out.push_back(std::move(kept));
  }
  std::stable_sort(out.begin(), out.end(), [](const ObjectRef& a, const ObjectRef& b) {
    return Number(a->body, "revision") < Number(b->body, "revision");
  });
  return out;
}

json TextsOf(const kube::Labels& texts) {
  json out = json::object();
  for (const auto& [key, value] : texts) out[key] = value;
  return out;
}

void DropOldest(ApiServer& api, const kube::Object& set, const std::set<std::string>& live) {
  std::vector<ObjectRef> old = RevisionsOf(api, set);
  std::erase_if(old, [&](const ObjectRef& revision) { return live.contains(revision->meta.name); });
  const size_t gone = BeyondLimit(old.size(), At(set.body, {"spec", "revisionHistoryLimit"}), 10);
  for (size_t i = 0; i < gone; ++i) api.Delete(kRevisionKind, {set.meta.ns, old[i]->meta.name}).IgnoreError();
}

}  // namespace

void KeepRevision(ApiServer& api, const kube::Object& set, const std::string& name, const json& more,
                  const std::set<std::string>& live) {
  const std::vector<ObjectRef> all = RevisionsOf(api, set);
  const int64_t newest = all.empty() ? 0 : Number(all.back()->body, "revision");
  if (const ObjectRef kept = api.Get(kRevisionKind, {set.meta.ns, name}); kept != nullptr) {
    // A template of old is the wanted one again.
    if (Number(kept->body, "revision") < newest)
      api.Patch(kRevisionKind, {set.meta.ns, name}, {{"revision", OneMore(newest)}}).IgnoreError();
    return;
  }
  json pod_template = At(set.body, {"spec", "template"});
  if (!pod_template.is_object()) pod_template = json::object();
  json labels = At(pod_template, {"metadata", "labels"});
  if (!labels.is_object()) labels = json::object();
  labels.update(more);
  // It is a strategic patch, by which kubectl goes back to it.
  pod_template[kPatchDirective] = "replace";
  json revision = {
      {"apiVersion", "apps/v1"},
      {"kind", kRevisionKind},
      {"metadata",
       {{"name", name}, {"namespace", set.meta.ns}, {"labels", std::move(labels)}, {"ownerReferences", OwnedBy(set)}}},
      {"revision", OneMore(newest)},
      {"data", {{"spec", {{"template", std::move(pod_template)}}}}}};
  // Its change-cause above all.
  if (!set.meta.annotations.empty()) revision["metadata"]["annotations"] = TextsOf(set.meta.annotations);
  api.Create(std::move(revision)).IgnoreError();
  std::set<std::string> kept = live;
  kept.insert(name);
  DropOldest(api, set, kept);
}

json TemplateOfRevision(const kube::Object* revision) {
  if (revision == nullptr) return {};
  json out = At(revision->body, {"data", "spec", "template"});
  if (out.is_object()) out.erase(kPatchDirective);
  return out;
}

}  // namespace wavetank::fakekube
