#include "fakes/kube/http/rest/ephemeral_containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/base/json_access.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr const char* kField = "spec.ephemeralContainers";

const json& Named(const json& containers, const std::string& name) {
  const auto it = std::find_if(containers.begin(), containers.end(),
                               [&](const json& container) { return Text(container, "name") == name; });
  return it == containers.end() ? Null() : *it;
}

// The fields of a container that one added to a running pod cannot have.
constexpr const char* kNotAllowed[] = {"ports",        "livenessProbe", "readinessProbe",
                                       "startupProbe", "lifecycle",     "resizePolicy"};

}  // namespace

std::vector<FieldError> CheckEphemeralContainers(const json& pod, const json& previous) {
  std::vector<FieldError> errors;
  const json &now = Items(At(pod, {"spec", "ephemeralContainers"})),
             &before = Items(At(previous, {"spec", "ephemeralContainers"}));
  for (const json& old : before) {
    const std::string name = Text(old, "name");
    const json& kept = Named(now, name);
    if (kept.is_null()) {
      errors.push_back(
          ForbiddenField(kField, fmt::format("existing ephemeral containers \"{}\" may not be removed\n", name)));
    } else if (kept != old) {
      errors.push_back(
          ForbiddenField(kField, fmt::format("existing ephemeral containers \"{}\" may not be changed\n", name)));
    }
  }
  std::set<std::string> names, targets;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : Items(At(pod, {"spec", list}))) {
      names.insert(Text(container, "name"));
      if (list == std::string_view("containers")) targets.insert(Text(container, "name"));
    }
  }
  for (size_t i = 0; i < now.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", kField, i), name = Text(now[i], "name");
    if (name.empty()) {
      errors.push_back(RequiredField(at + ".name"));
    } else if (!names.insert(name).second) {
      errors.push_back(DuplicateField(at + ".name", name));
    }
    if (Text(now[i], "image").empty()) errors.push_back(RequiredField(at + ".image"));
    const std::string target = Text(now[i], "targetContainerName");
    if (!target.empty() && !targets.contains(target)) {
      errors.push_back({"FieldValueNotFound", at + ".targetContainerName", fmt::format("Not found: \"{}\"", target)});
    }
    for (const char* field : kNotAllowed) {
      if (now[i].is_object() && now[i].contains(field))
        errors.push_back(ForbiddenField(at + "." + field, "cannot be set for an Ephemeral Container"));
    }
  }
  return errors;
}

}  // namespace wavetank::fakekube::http
