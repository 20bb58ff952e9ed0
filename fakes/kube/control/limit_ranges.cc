#include "fakes/kube/control/limit_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/json_access.h"
#include "core/kube/quantity.h"

namespace wavetank::fakekube {
namespace {

using absl::int128;
using nlohmann::json;

// Sets what `defaults` say and the section lacks; the names that it set.
std::vector<std::string> SetDefaultsOf(const json& defaults, json& container, const char* section) {
  std::vector<std::string> set;
  if (!defaults.is_object() || defaults.empty()) return set;
  json& resources = container["resources"];
  if (!resources.is_object()) resources = json::object();
  json& said = resources[section];
  if (!said.is_object()) said = json::object();
  for (const auto& [name, quantity] : defaults.items()) {
    if (said.contains(name)) continue;
    // What a container is limited to it asks for, before any default (Kubernetes' defaults come before admission).
    if (const json& own_limit = At(At(resources, "limits"), name);
        section == std::string_view("requests") && !own_limit.is_null()) {
      said[name] = json(own_limit);
      continue;
    }
    said[name] = quantity;
    set.push_back(name);
  }
  if (said.empty()) resources.erase(section);
  return set;
}

void SetContainersDefaults(const json& limit, json& pod) {
  std::vector<std::string> told;
  for (const char* list : {"containers", "initContainers"}) {
    const auto spec = pod.find("spec");
    if (spec == pod.end() || !spec->is_object() || !spec->contains(list) || !(*spec)[list].is_array()) continue;
    for (json& container : (*spec)[list]) {
      if (!container.is_object()) continue;
      const char* what = list == std::string_view("containers") ? "container" : "init container";
      for (const auto& [section, defaults, word] :
           {std::tuple<const char*, const char*, const char*>{"requests", "defaultRequest", "request"},
            {"limits", "default", "limit"}}) {
        const std::vector<std::string> set = SetDefaultsOf(At(limit, defaults), container, section);
        if (!set.empty())
          told.push_back(fmt::format("{} {} for {} {}", fmt::join(set, ", "), word, what, Text(container, "name")));
      }
    }
  }
  if (told.empty()) return;
  json& annotations = pod["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = json::object();
  annotations["kubernetes.io/limit-ranger"] = fmt::format("LimitRanger plugin set: {}", fmt::join(told, "; "));
}

// What one container, or all of a pod together, say of a resource; a null quantity: nothing.
struct Said {
  std::optional<int128> request, limit;
  std::string request_text, limit_text;
};

Said SaidBy(const json& resources, const std::string& name) {
  const json &request = At(At(resources, "requests"), name), &limit = At(At(resources, "limits"), name);
  Said out{kube::QuantityNanos(request), kube::QuantityNanos(limit), kube::QuantityText(request),
           kube::QuantityText(limit)};
  if (!out.request) out.request = out.limit, out.request_text = out.limit_text;
  return out;
}

Said SaidByAll(const json& pod, const std::string& name) {
  Said out;
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    const Said one = SaidBy(At(container, "resources"), name);
    if (one.request) out.request = out.request.value_or(0) + *one.request;
    if (one.limit) out.limit = out.limit.value_or(0) + *one.limit;
  }
  const auto text = [](const std::optional<int128>& nanos) {
    return nanos ? fmt::format("{}", static_cast<int64_t>(*nanos / kube::kNanosPerUnit)) : std::string();
  };
  out.request_text = text(out.request), out.limit_text = text(out.limit);
  return out;
}

void CheckBounds(const json& limit, const std::string& type, const std::string& name, const Said& said,
                 std::vector<std::string>* errors) {
  const json &least = At(At(limit, "min"), name), &most = At(At(limit, "max"), name),
             &ratio = At(At(limit, "maxLimitRequestRatio"), name);
  if (const auto bound = kube::QuantityNanos(least)) {
    if (!said.request) {
      errors->push_back(fmt::format("minimum {} usage per {} is {}.  No request is specified", name, type,
                                    kube::QuantityText(least)));
    } else if (*said.request < *bound) {
      errors->push_back(fmt::format("minimum {} usage per {} is {}, but request is {}", name, type,
                                    kube::QuantityText(least), said.request_text));
    }
  }
  if (const auto bound = kube::QuantityNanos(most)) {
    if (!said.limit) {
      errors->push_back(
          fmt::format("maximum {} usage per {} is {}.  No limit is specified", name, type, kube::QuantityText(most)));
    } else if (*said.limit > *bound) {
      errors->push_back(fmt::format("maximum {} usage per {} is {}, but limit is {}", name, type,
                                    kube::QuantityText(most), said.limit_text));
    }
  }
  if (const auto bound = kube::QuantityNanos(ratio); bound && said.limit && said.request && *said.request > 0) {
    const double is = static_cast<double>(*said.limit) / static_cast<double>(*said.request);
    if (is > static_cast<double>(*bound) / static_cast<double>(kube::kNanosPerUnit))
      errors->push_back(fmt::format("{} max limit to request ratio per {} is {}, but provided ratio is {:.6f}", name,
                                    type, kube::QuantityText(ratio), is));
  }
}

std::vector<std::string> NamesIn(const json& limit) {
  std::vector<std::string> out;
  for (const char* section : {"min", "max", "maxLimitRequestRatio"}) {
    const json& said = At(limit, section);
    if (!said.is_object()) continue;
    for (const auto& [name, quantity] : said.items()) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

void CheckLimit(const json& limit, const json& object, std::vector<std::string>* errors) {
  const std::string type = Text(limit, "type"), kind = Text(object, "kind");
  for (const std::string& name : NamesIn(limit)) {
    if (kind == "Pod" && type == "Container") {
      for (const char* list : {"containers", "initContainers"}) {
        for (const json& container : Items(At(object, {"spec", list})))
          CheckBounds(limit, type, name, SaidBy(At(container, "resources"), name), errors);
      }
    } else if (kind == "Pod" && type == "Pod") {
      CheckBounds(limit, type, name, SaidByAll(object, name), errors);
    } else if (kind == "PersistentVolumeClaim" && type == "PersistentVolumeClaim") {
      const Said said = SaidBy(At(object, {"spec", "resources"}), name);
      CheckBounds(limit, type, name, {said.request, said.request, said.request_text, said.request_text}, errors);
    }
  }
}

}  // namespace

absl::Status AdmitByLimitRanges(const ApiServer& api, json& object) {
  const std::string kind = Text(object, "kind"), ns = TextOf(At(object, {"metadata", "namespace"}));
  if ((kind != "Pod" && kind != "PersistentVolumeClaim") || Text(object, "apiVersion") != "v1" || ns.empty())
    return absl::OkStatus();
  std::vector<std::string> errors;
  for (const ObjectRef& range : api.List("LimitRange.", ns)) {
    const json& limits = Items(At(range->body, {"spec", "limits"}));
    for (const json& limit : limits) {
      if (kind == "Pod" && Text(limit, "type") == "Container") SetContainersDefaults(limit, object);
    }
    for (const json& limit : limits) CheckLimit(limit, object, &errors);
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(errors.size() == 1 ? errors.front()
                                                        : fmt::format("[{}]", fmt::join(errors, ", ")));
}

}  // namespace wavetank::fakekube
