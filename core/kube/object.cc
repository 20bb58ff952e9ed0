#include "core/kube/object.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/base/bounds.h"
#include "core/kube/object_head.h"
#include "core/kube/time_format.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

bool TooDeep(const json& value, int left) {
  if (!value.is_structured()) return false;
  if (left == 0) return true;
  for (const json& item : value) {
    if (TooDeep(item, left - 1)) return true;
  }
  return false;
}

// What people write in YAML without knowing it.
std::string_view QuoteIt(const json& value) {
  return value.is_boolean() ? "; YAML reads y, n, yes, no, on and off as booleans, put it into quotes" : "";
}

// Reads fields of one object and keeps the first mistake.
class Reader {
 public:
  explicit Reader(std::string what) : what_(std::move(what)) {}

  std::string Text(const json& in, const char* path, const char* key, bool required = false) {
    const auto it = in.find(key);
    if (it == in.end() || it->is_null()) {
      if (required) Fail(path, key, "is missing; every object has it");
      return {};
    }
    if (!it->is_string()) {
      Fail(path, key, fmt::format("is {}, expected text{}", it->type_name(), QuoteIt(*it)));
      return {};
    }
    return it->get<std::string>();
  }

  Labels Map(const json& in, const char* path, const char* key) {
    Labels out;
    const auto it = in.find(key);
    if (it == in.end() || it->is_null()) return out;
    if (!it->is_object()) {
      Fail(path, key, fmt::format("is {}, expected a mapping of text to text", it->type_name()));
      return out;
    }
    for (const auto& [name, value] : it->items()) {
      if (value.is_null()) {  // Go reads it into the zero of its type
        out.emplace(name, "");
        continue;
      }
      if (!value.is_string()) {
        Fail(path, key,
             fmt::format("has a value of '{}' that is {}, expected text; put it into quotes", name, value.type_name()));
        return out;
      }
      out.emplace(name, value.get<std::string>());
    }
    return out;
  }

  int64_t Integer(const json& in, const char* path, const char* key) {
    const auto it = in.find(key);
    if (it == in.end() || it->is_null()) return 0;
    // Parsed numbers are unsigned when they can be; those that code has set may be signed.
    if (it->is_number_unsigned() ? it->get<uint64_t>() <= INT64_MAX
                                 : it->is_number_integer() && it->get<int64_t>() >= 0) {
      return it->get<int64_t>();
    }
    int64_t value = 0;
    if (it->is_string()) {
      const std::string& text = it->get_ref<const std::string&>();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
    }
    Fail(path, key, "is no whole number from 0 to 2^63 - 1");
    return 0;
  }

  void Fail(const char* path, const char* key, std::string_view problem) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("{}: {}{} {}", what_, path, key, problem));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string what_;
  absl::Status status_;
};

}  // namespace

std::string ResourceKind::ApiVersion() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

std::string Object::Key() const {
  return meta.ns.empty() ? fmt::format("{}/{}", kind, meta.name) : fmt::format("{}/{}/{}", kind, meta.ns, meta.name);
}

namespace {

enum class Depth : uint8_t { kUnknown, kKnown };

absl::StatusOr<std::shared_ptr<Object>> Read(const json& body, Depth depth) {
  if (!body.is_object()) {
    return absl::InvalidArgumentError(fmt::format("object: is {}, expected a mapping", body.type_name()));
  }
  if (depth == Depth::kUnknown && NestedTooDeep(body)) {
    return absl::InvalidArgumentError(fmt::format("object: nested deeper than {} levels", bounds::kDepth));
  }
  auto object = std::make_shared<Object>();
  {
    Reader reader("object");
    object->api_version = reader.Text(body, "", "apiVersion", true);
    object->kind = reader.Text(body, "", "kind", true);
    if (!reader.status().ok()) return reader.status();
  }
  Reader reader(object->kind);
  const auto metadata = body.find("metadata");
  if (metadata == body.end() || !metadata->is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: metadata is missing; it needs at least a name", object->kind));
  }
  const json& m = *metadata;
  ObjectMeta& meta = object->meta;
  meta.name = reader.Text(m, "metadata.", "name", true);
  meta.ns = reader.Text(m, "metadata.", "namespace");
  meta.uid = reader.Text(m, "metadata.", "uid");
  meta.resource_version = reader.Integer(m, "metadata.", "resourceVersion");
  meta.generation = reader.Integer(m, "metadata.", "generation");
  meta.labels = reader.Map(m, "metadata.", "labels");
  meta.annotations = reader.Map(m, "metadata.", "annotations");
  const std::string created = reader.Text(m, "metadata.", "creationTimestamp");
  if (!created.empty()) {
    const std::optional<int64_t> seconds = ParseRfc3339(created);
    if (!seconds) reader.Fail("metadata.", "creationTimestamp", "is no RFC 3339 date");
    meta.creation_unix_seconds = seconds.value_or(0);
  }
  meta.deleting = !reader.Text(m, "metadata.", "deletionTimestamp").empty();
  if (const auto owners = m.find("ownerReferences"); owners != m.end() && owners->is_array()) {
    for (const json& owner : *owners) {
      if (!owner.is_object()) {
        reader.Fail("metadata.", "ownerReferences", "holds something that is no mapping");
        break;
      }
      OwnerReference reference;
      reference.api_version = reader.Text(owner, "metadata.ownerReferences.", "apiVersion");
      reference.kind = reader.Text(owner, "metadata.ownerReferences.", "kind");
      reference.name = reader.Text(owner, "metadata.ownerReferences.", "name");
      reference.uid = reader.Text(owner, "metadata.ownerReferences.", "uid");
      const auto controller = owner.find("controller");
      reference.controller = controller != owner.end() && controller->is_boolean() && controller->get<bool>();
      meta.owner_references.push_back(std::move(reference));
    }
  }
  if (!reader.status().ok()) return reader.status();
  return object;
}

}  // namespace

namespace {

absl::StatusOr<ObjectRef> Take(json body, Depth depth) {
  absl::StatusOr<std::shared_ptr<Object>> object = Read(body, depth);
  if (!object.ok()) return object.status();
  (*object)->body = std::move(body);
  return ObjectRef(*std::move(object));
}

}  // namespace

absl::StatusOr<ObjectRef> Object::FromJson(nlohmann::json body) { return Take(std::move(body), Depth::kUnknown); }

absl::StatusOr<ObjectRef> ReadHead(const nlohmann::json& body) {
  absl::StatusOr<std::shared_ptr<Object>> object = Read(body, Depth::kUnknown);
  if (!object.ok()) return object.status();
  return ObjectRef(*std::move(object));
}

bool NestedTooDeep(const json& body) { return TooDeep(body, bounds::kDepth); }

absl::StatusOr<ObjectRef> FromReadBody(nlohmann::json body) { return Take(std::move(body), Depth::kKnown); }

}  // namespace wavetank::kube
