#include "scenarios/mesh/manifest_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/base/text/go_url.h"
#include "core/config/store/store.h"
#include "core/kube/object.h"
#include "core/kube/object_head.h"
#include "core/push/policies/envoy_filters.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/api/schema.h"
#include "fakes/kube/http/api/unreadable.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/store/api_server.h"
#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"
#include "scenarios/mesh/field_hints.h"
#include "scenarios/mesh/known_resources.h"
#include "scenarios/mesh/unheeded.h"
#include "sim/network/corefile.h"

namespace wavetank::scenario {

using fakekube::http::ApiType;
using fakekube::http::Resource;
using nlohmann::json;

namespace {

// Of Istio's kinds `object` is only looked at as a whole, of Kubernetes' own field by field.
absl::Status Readable(const Resource& resource, const ApiType* type, const json& object, const std::string& name) {
  if (resource.schema != nullptr) {
    const std::vector<fakekube::FieldError> errors = fakekube::http::ValidateBySchema(*resource.schema, object);
    return errors.empty() ? absl::OkStatus() : fakekube::InvalidObject({resource.kind, resource.group}, name, errors);
  }
  const std::string wrong = type == nullptr ? "" : fakekube::http::UnreadableField(*type, object);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} \"{}\": {}", resource.kind, name, wrong));
}

std::vector<std::string> UnknownFieldsOf(const Resource& resource, const ApiType* type, const json& object) {
  if (resource.schema != nullptr) {
    json pruned = object;
    return fakekube::http::PruneBySchema(*resource.schema, &pruned);
  }
  return type == nullptr ? std::vector<std::string>() : fakekube::http::UnknownFields(*type, object);
}

// Those of Istio's kinds that 1.18 does not have, but for `unknown`, which no release has.
std::vector<std::string> LaterFieldsOf(const json& object, const std::vector<std::string>& unknown) {
  const Resource* resource = ResourceOf(object, false);
  if (resource == nullptr || resource->schema == nullptr) return {};
  std::vector<std::string> out = UnknownFieldsOf(*resource, nullptr, object);
  std::erase_if(
      out, [&](const std::string& field) { return std::find(unknown.begin(), unknown.end(), field) != unknown.end(); });
  return out;
}

bool IstiodReads(const json& object) {
  for (int kind = 0; kind < config::kKinds; ++kind) {
    if (config::KindName(static_cast<config::Kind>(kind)) == Text(object, "kind")) return true;
  }
  return false;
}

// What an API server takes and istiod cannot read.
std::vector<std::string> UnreadByIstiod(const json& object) {
  const auto parsed = kube::Object::FromJson(object);
  if (!parsed.ok() || !IstiodReads(object)) return {};
  const absl::StatusOr<config::AnyConfigRef> config = config::ParseConfig(**parsed);
  if (!config.ok()) return {std::string(Message(config.status()))};
  if (const auto* filter = std::get_if<config::EnvoyFilterRef>(&*config); filter != nullptr)
    return pilot::UnreadablePatchValues((*filter)->spec);
  if (const auto* plugin = std::get_if<config::WasmPluginRef>(&*config);
      plugin != nullptr && !ParseGoUrl((*plugin)->spec.url)) {
    return {fmt::format("spec.url: '{}' is none; the plugin is passed over", (*plugin)->spec.url)};
  }
  return {};
}

// Each once: one line for all objects that say the same.
void NoteWithoutEffect(const std::string& file, int line, const json& object, std::vector<std::string>* notes) {
  for (const std::string& unheeded : UnheededIn(object)) {
    const std::string what = ": " + unheeded;
    const bool said =
        std::any_of(notes->begin(), notes->end(), [&](const std::string& note) { return note.ends_with(what); });
    if (!said) notes->push_back(fmt::format("{}:{}{}", file, line, what));
  }
}

// What of CoreDNS's configuration has no effect, in its own ConfigMap or in the one that k3s and AKS let it import.
void NoteCorefile(const std::string& file, int line, const json& object, std::vector<std::string>* notes) {
  const std::string name = Text(At(object, "metadata"), "name");
  const bool custom = name == "coredns-custom";
  if (Text(object, "kind") != "ConfigMap" || (name != "coredns" && !custom) ||
      Text(At(object, "metadata"), "namespace") != "kube-system" || !At(object, "data").is_object())
    return;
  for (const auto& [key, value] : object["data"].items()) {
    if (custom ? !key.ends_with(".server") && !key.ends_with(".override") : key != "Corefile") continue;
    const std::string text = TextOf(value);
    const auto corefile =
        sim::Corefile::Make(key.ends_with(".override") ? fmt::format(".:53 {{\n{}\n}}", text) : text, nullptr);
    if (!corefile.ok() || (*corefile)->without_effect().empty()) continue;
    notes->push_back(fmt::format("{}:{}: {}: {}: it has no effect here", file, line, key,
                                 absl::StrJoin((*corefile)->without_effect(), ", ")));
  }
}

}  // namespace

absl::Status CheckManifest(const std::string& file, int line, const json& object, std::vector<std::string>* notes) {
  const auto refused = [&](const absl::Status& status) {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", file, line, Message(status)));
  };
  // Kind, names and labels have their types from here on; objects that stand in a scenario come here first.
  if (const auto head = kube::ReadHead(object); !head.ok()) return refused(head.status());
  if (const std::string complaint = NoMatch(object); !complaint.empty())
    return refused(absl::InvalidArgumentError(complaint));
  const std::string name = Text(At(object, "metadata"), "name");
  if (const Resource* resource = ResourceOf(object, true)) {
    const ApiType* type = fakekube::http::ApiTypeOf(*resource);
    if (absl::Status status = Readable(*resource, type, object, name); !status.ok()) return refused(status);
    if (notes != nullptr) {
      const std::vector<std::string> unknown = UnknownFieldsOf(*resource, type, object);
      if (!unknown.empty()) {
        notes->push_back(fmt::format("{}:{}: {} \"{}\": unknown field{} {}; kept, without effect", file, line,
                                     resource->kind, name, unknown.size() == 1 ? "" : "s",
                                     absl::StrJoin(unknown, ", ", [&](std::string* out, const std::string& field) {
                                       const std::string hint = FieldHint(*resource, type, field);
                                       *out += hint.empty() ? field : fmt::format("{} ({})", field, hint);
                                     })));
      }
      if (const std::vector<std::string> later = LaterFieldsOf(object, unknown); !later.empty()) {
        notes->push_back(
            fmt::format("{}:{}: {} \"{}\": field{} {} came after Istio 1.18; of effect with profiles of "
                        "releases that read {}",
                        file, line, resource->kind, name, later.size() == 1 ? "" : "s", absl::StrJoin(later, ", "),
                        later.size() == 1 ? "it" : "them"));
      }
      for (const std::string& wrong : resource->custom ? UnreadByIstiod(object) : std::vector<std::string>()) {
        notes->push_back(fmt::format("{}:{}: {} \"{}\": istiod cannot read {}; kept, without effect", file, line,
                                     resource->kind, name, wrong));
      }
    }
  }
  if (notes != nullptr) NoteWithoutEffect(file, line, object, notes);
  if (notes != nullptr) NoteCorefile(file, line, object, notes);
  json defaulted = object;
  fakekube::SetDefaults(defaulted);
  const absl::Status status = fakekube::Validate(defaulted, nullptr);
  return status.ok() ? status : refused(status);
}

}  // namespace wavetank::scenario
