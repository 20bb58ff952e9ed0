#include "fakes/kube/merge/patch.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/strategic_merge.h"
#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr size_t kMaxOperations = 10000;  // kube-apiserver: handlers/patch.go, maxJSONPatchOperations
// What all copies of a patch may add up to: else ten of them make a gigabyte (kube-apiserver: server/config.go).
constexpr size_t kMaxCopied = size_t{3} << 20;

// All that a client hears of an operation that cannot be done: kube-apiserver keeps the reason to itself
// (apiserver: pkg/endpoints/handlers/patch.go, applyJSPatch).
absl::Status Unprocessable() {
  return MakeApiError(
      {422, "Invalid", "the server rejected our request due to an error in our request", json::object()});
}

// The tokens of a JSON pointer (RFC 6901), unescaped. False if it is none.
bool ReadPointer(const json& operation, const char* key, std::vector<std::string>* out) {
  const auto it = operation.find(key);
  if (it == operation.end() || !it->is_string()) return false;
  const std::string& text = it->get_ref<const std::string&>();
  if (text.empty()) return true;
  if (text[0] != '/') return false;
  out->emplace_back();
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '/') {
      out->emplace_back();
    } else if (text[i] != '~') {
      out->back() += text[i];
    } else if (i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
      out->back() += text[++i] == '0' ? '~' : '/';
    } else {
      return false;
    }
  }
  return true;
}

// An index into a list of `size` elements; size itself counts only if `end` is allowed. -1: none.
int64_t Index(const std::string& token, size_t size, bool end) {
  if (token.empty() || token.size() > 9 || token.find_first_not_of("0123456789") != std::string::npos) return -1;
  if (token.size() > 1 && token[0] == '0') return -1;
  const int64_t index = std::stoll(token);
  return index < static_cast<int64_t>(size) + (end ? 1 : 0) ? index : -1;
}

json* Child(json* at, const std::string& token) {
  if (at->is_object()) {
    const auto it = at->find(token);
    return it == at->end() ? nullptr : &*it;
  }
  if (!at->is_array()) return nullptr;
  const int64_t index = Index(token, at->size(), false);
  return index < 0 ? nullptr : &(*at)[static_cast<size_t>(index)];
}

// Null: no such place.
json* Walk(json* at, const std::vector<std::string>& tokens, size_t count) {
  for (size_t i = 0; i < count && at != nullptr; ++i) at = Child(at, tokens[i]);
  return at;
}

bool Add(json& target, const std::vector<std::string>& path, json value) {
  if (path.empty()) {
    target = std::move(value);
    return true;
  }
  json* parent = Walk(&target, path, path.size() - 1);
  if (parent == nullptr) return false;
  if (parent->is_object()) {
    (*parent)[path.back()] = std::move(value);
    return true;
  }
  if (!parent->is_array()) return false;
  const int64_t index =
      path.back() == "-" ? static_cast<int64_t>(parent->size()) : Index(path.back(), parent->size(), true);
  if (index < 0) return false;
  parent->insert(parent->begin() + index, std::move(value));
  return true;
}

bool Remove(json& target, const std::vector<std::string>& path) {
  if (path.empty()) return false;
  json* parent = Walk(&target, path, path.size() - 1);
  if (parent == nullptr || Child(parent, path.back()) == nullptr) return false;
  if (parent->is_object()) {
    parent->erase(path.back());
  } else {
    parent->erase(static_cast<size_t>(Index(path.back(), parent->size(), false)));
  }
  return true;
}

// False if it cannot be done.
bool Execute(json& target, const json& operation, size_t* copied) {
  const std::string op = operation.value("op", "");
  std::vector<std::string> path, from;
  if (!ReadPointer(operation, "path", &path)) return false;
  const auto value = operation.find("value");
  if ((op == "add" || op == "replace") && value == operation.end()) return false;
  if (op == "add") return Add(target, path, *value);
  if (op == "remove") return Remove(target, path);
  if (op == "replace") {
    json* at = Walk(&target, path, path.size());
    if (at == nullptr) return false;
    *at = *value;
    return true;
  }
  if (op == "test") {
    const json* at = Walk(&target, path, path.size());
    // A missing value is null, on either side.
    return at == nullptr ? value == operation.end() || value->is_null()
                         : *at == (value == operation.end() ? json() : *value);
  }
  if (op != "move" && op != "copy") return false;
  if (!ReadPointer(operation, "from", &from)) return false;
  json* source = Walk(&target, from, from.size());
  if (source == nullptr) return false;
  // Into itself: RFC 6902, 4.4.
  if (op == "move" && path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin())) return false;
  if (op == "copy") {
    *copied += source->dump(-1, ' ', false, json::error_handler_t::replace).size();
    if (*copied > kMaxCopied) return false;
  }
  json taken = *source;
  if (op == "move") {
    if (from == path) return true;
    if (!Remove(target, from)) return false;
  }
  return Add(target, path, std::move(taken));
}

}  // namespace

json MergePatched(const json& target, json patch) {
  if (!patch.is_object()) return patch;
  json out = json::object();
  auto& members = out.get_ref<json::object_t&>();
  if (target.is_object()) members.reserve(target.size());
  auto change = patch.begin();
  const auto add_new = [&] {  // what `target` has not
    if (!change->is_null()) members.emplace_hint(members.end(), change.key(), MergePatched(json(), std::move(*change)));
    ++change;
  };
  if (target.is_object()) {
    for (auto old = target.begin(); old != target.end(); ++old) {
      while (change != patch.end() && change.key() < old.key()) add_new();
      if (change == patch.end() || change.key() != old.key()) {
        members.emplace_hint(members.end(), old.key(), *old);
        continue;
      }
      if (!change->is_null()) {
        members.emplace_hint(members.end(), old.key(), MergePatched(*old, std::move(*change)));
      }
      ++change;
    }
  }
  while (change != patch.end()) add_new();
  return out;
}

bool MergePatchChanges(const json& target, const json& patch) {
  if (!patch.is_object()) return patch != target;
  if (!target.is_object()) return true;
  for (const auto& [key, value] : patch.items()) {
    const auto old = target.find(key);
    if (value.is_null() ? old != target.end() : old == target.end() || MergePatchChanges(*old, value)) return true;
  }
  return false;
}

absl::Status JsonPatch(json& target, const json& operations) {
  if (!operations.is_array()) {
    return BadRequest(
        fmt::format("error decoding patch: json: cannot unmarshal {} into Go value of type "
                    "[]handlers.jsonPatchOp",
                    operations.is_boolean() ? "bool" : operations.type_name()));
  }
  if (operations.size() > kMaxOperations) {
    return MakeApiError(
        {413, "RequestEntityTooLarge",
         fmt::format("The allowed maximum operations in a JSON patch is {}, got {}", kMaxOperations, operations.size()),
         nullptr});
  }
  json copy = target;
  size_t copied = 0;
  for (const json& operation : operations) {
    if (!operation.is_object()) {
      return BadRequest(
          fmt::format("error decoding patch: json: cannot unmarshal {} into Go value of type "
                      "handlers.jsonPatchOp",
                      operation.is_boolean() ? "bool" : operation.type_name()));
    }
    for (const char* field : {"op", "path"}) {
      const json& value = At(operation, field);
      if (!value.is_null() && !value.is_string()) {
        return BadRequest(
            fmt::format("error decoding patch: json: cannot unmarshal {} into Go struct field "
                        "jsonPatchOp.{} of type string",
                        value.is_boolean() ? "bool" : value.type_name(), field));
      }
    }
    if (!operation.contains("op") || !operation.contains("path")) return Unprocessable();
    if (!Execute(copy, operation, &copied)) return Unprocessable();
  }
  target = std::move(copy);
  return absl::OkStatus();
}

absl::Status ApplyPatch(PatchType type, const GroupKind& kind, json& target, const json& patch) {
  if (type == PatchType::kJson) return JsonPatch(target, patch);
  if (!patch.is_object()) {
    return BadRequest(fmt::format("{}json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                                  type == PatchType::kMerge ? "error decoding patch: " : "",
                                  patch.is_boolean() ? "bool" : patch.type_name()));
  }
  if (type == PatchType::kMerge) {
    target = MergePatched(target, patch);
    return absl::OkStatus();
  }
  if (!KubernetesOwn(kind)) {
    return MakeApiError({415, "UnsupportedMediaType",
                         "the body of the request was in an unknown format - accepted media types include: "
                         "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                         nullptr});
  }
  json copy = target;
  if (absl::Status status = kube::StrategicMerge(copy, patch, kind.kind); !status.ok()) {
    return BadRequest(std::string(Message(status)));
  }
  target = std::move(copy);
  return absl::OkStatus();
}

}  // namespace wavetank::fakekube
