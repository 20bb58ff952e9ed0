#include "fakes/kube/http/rest/patching.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/json_access.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/merge/field_set.h"
#include "fakes/kube/merge/merge_type.h"
#include "fakes/kube/merge/patch.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

namespace {

class TypedPatch {
 public:
  void Check(const FieldType& type, const json& value, const MergeType& merge, const std::string& path) {
    if (value.is_null() || type.or_anything) return;
    switch (type.shape) {
      case FieldShape::kString:
      case FieldShape::kBytes:
        if (!value.is_string())
          Say(path, fmt::format("expected string, got &value.valueUnstructured{{Value:{}}}", GoSyntax(value)));
        return;
      case FieldShape::kInteger:
      case FieldShape::kNumber:
        if (!value.is_number()) Say(path, "expected numeric (int or float), got " + GoType(value));
        return;
      case FieldShape::kBoolean:
        if (!value.is_boolean()) Say(path, fmt::format("expected boolean, got &{{{}}}", GoText(value)));
        return;
      case FieldShape::kList:
        if (!value.is_array()) return Say(path, fmt::format("expected list, got &{{{}}}", GoText(value)));
        return CheckList(*type.of, value, merge, path);
      case FieldShape::kMap:
        if (!value.is_object()) return Say(path, fmt::format("expected map, got &{{{}}}", GoText(value)));
        for (const auto& [key, item] : value.items()) Check(*type.of, item, merge.Field(key), path + "." + key);
        return;
      case FieldShape::kType:
        if (!value.is_object()) return Say(path, fmt::format("expected map, got &{{{}}}", GoText(value)));
        return CheckFields(type.name, value, merge, path);
      default:
        return;  // the schema leaves them open: times, quantities, ports by number or name
    }
  }

  // In Go's words of several errors (typed/helpers.go, ValidationErrors).
  std::string Errors() const {
    if (errors_.size() == 1) return errors_.front();
    return errors_.empty() ? "" : "errors:\n  " + absl::StrJoin(errors_, "\n  ");
  }

 private:
  static std::string GoType(const json& value) {
    if (value.is_object()) return "map[string]interface {}";
    if (value.is_array()) return "[]interface {}";
    return value.is_boolean() ? "bool" : "string";
  }
  void Say(const std::string& path, const std::string& wrong) { errors_.push_back(path + ": " + wrong); }

  void CheckList(const FieldType& of, const json& value, const MergeType& merge, const std::string& path) {
    const MergeType::List list = merge.AsList();
    size_t index = 0;
    for (const json& item : value) {
      std::string element = fmt::format("[{}]", index++);
      if (list.how != kube::ListType::Merge::kAtomic) element = PathText({ElementOf(item, list)});
      Check(of, item, merge.Element(), path + element);
    }
  }
  void CheckFields(const std::string& type_name, const json& value, const MergeType& merge, const std::string& path) {
    const ApiType* type = FindApiType(type_name);
    if (type == nullptr) return;
    for (const auto& [key, item] : value.items()) {
      if (key == "apiVersion" || key == "kind") continue;  // of an object, or of one within it
      const ApiField* field = type->Find(key);
      if (field == nullptr) return Say(path + "." + key, "field not declared in schema");  // it looks no further
      Check(field->type, item, merge.Field(key), path + "." + key);
    }
  }

  std::vector<std::string> errors_;
};

}  // namespace

std::string UntypedApply(const Resource& resource, const json& applied) {
  if (!applied.is_object()) return {};
  const ApiType* type = resource.event_view ? nullptr : ApiTypeOf(resource);
  FieldType root;
  root.shape = FieldShape::kType;
  root.name = type == nullptr ? "ObjectMeta" : type->name;
  const MergeType merge(type == nullptr ? std::string_view() : std::string_view(resource.kind));
  TypedPatch patch;
  if (type != nullptr) {
    patch.Check(root, applied, merge, "");
  } else {
    patch.Check(root, At(applied, "metadata"), merge.Field("metadata"), ".metadata");
  }
  const std::string errors = patch.Errors();
  if (errors.empty()) return {};
  return fmt::format("failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}",
                     TextOf(At(applied, {"metadata", "namespace"})), TextOf(At(applied, {"metadata", "name"})),
                     resource.group, resource.version, resource.kind, errors);
}

absl::StatusOr<json> Patched(const Resource& resource, std::string_view content_type, const json& current,
                             const json& patch) {
  const std::string_view name = content_type.substr(0, content_type.find(';'));
  std::optional<PatchType> type;
  if (name == "application/json-patch+json") type = PatchType::kJson;
  if (name == "application/merge-patch+json") type = PatchType::kMerge;
  if (name == "application/strategic-merge-patch+json") type = PatchType::kStrategic;
  if (!type) {
    return absl::UnimplementedError(
        fmt::format("the body of the request was in an unknown format - accepted media types include: "
                    "application/json-patch+json, application/merge-patch+json, {}application/apply-patch+yaml",
                    resource.custom ? "" : "application/strategic-merge-patch+json, "));
  }
  json out = current;
  if (absl::Status status = ApplyPatch(*type, {resource.kind, resource.group}, out, patch); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::fakekube::http
