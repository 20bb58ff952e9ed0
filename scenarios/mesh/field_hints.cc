#include "scenarios/mesh/field_hints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/json_access.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::scenario {
namespace {

using fakekube::http::ApiType;
using fakekube::http::FieldShape;
using fakekube::http::FieldType;
using nlohmann::json;

constexpr size_t kFew = 4;   // fields that are worth a list
constexpr int kDeepest = 2;  // levels below, in which a field is looked for

// A mapping of an object: by its schema, or by its type.
struct Mapping {
  const json* schema = nullptr;
  const ApiType* type = nullptr;
  explicit operator bool() const { return schema != nullptr || type != nullptr; }
};

Mapping OfSchema(const json* schema) {
  while (schema != nullptr && At(*schema, "items").is_object()) schema = &At(*schema, "items");
  return {schema, nullptr};
}

Mapping OfType(const FieldType* type) {
  while (type->shape == FieldShape::kList && type->of != nullptr) type = type->of.get();
  return {nullptr, type->shape == FieldShape::kType ? fakekube::http::FindApiType(type->name) : nullptr};
}

std::vector<std::pair<std::string_view, Mapping>> FieldsOf(const Mapping& in) {
  std::vector<std::pair<std::string_view, Mapping>> out;
  if (in.schema != nullptr) {
    const json& properties = At(*in.schema, "properties");
    if (!properties.is_object()) return out;
    for (auto it = properties.begin(); it != properties.end(); ++it) out.emplace_back(it.key(), OfSchema(&it.value()));
  } else if (in.type != nullptr) {
    for (const auto& field : in.type->fields) out.emplace_back(field.name, OfType(&field.type));
  }
  return out;
}

bool Has(const Mapping& in, std::string_view field) {
  const auto fields = FieldsOf(in);
  return std::any_of(fields.begin(), fields.end(), [&](const auto& each) { return each.first == field; });
}

// The first path below, and `levels` at most, that leads to such a field; empty: none does.
std::string Below(const Mapping& in, std::string_view field, int levels) {
  const auto fields = FieldsOf(in);
  for (const auto& [name, inner] : fields) {
    if (inner && Has(inner, field)) return std::string(name);
  }
  if (levels == 1) return {};
  for (const auto& [name, inner] : fields) {
    if (!inner) continue;
    if (const std::string rest = Below(inner, field, levels - 1); !rest.empty())
      return fmt::format("{}.{}", name, rest);
  }
  return {};
}

}  // namespace

std::string NearestHint(std::string_view field, const std::vector<std::string_view>& known) {
  std::string_view near;
  const auto same = std::find_if(known.begin(), known.end(), [&](std::string_view each) {
    return absl::EqualsIgnoreCase(absl::string_view(each.data(), each.size()),
                                  absl::string_view(field.data(), field.size()));
  });
  near = same != known.end() ? *same : Nearest(field, known);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

std::string FieldHint(const fakekube::http::Resource& resource, const ApiType* type, std::string_view path) {
  struct Level {
    std::string path;  // empty: the object itself
    Mapping mapping;
  };
  std::vector<Level> levels{
      {"", resource.schema != nullptr ? OfSchema(resource.schema.get()) : Mapping{nullptr, type}}};
  std::string_view rest = path;
  while (true) {
    const size_t dot = rest.find('.');
    if (dot == rest.npos) break;
    const std::string_view segment = rest.substr(0, dot);
    Mapping next;
    for (const auto& [name, inner] : FieldsOf(levels.back().mapping)) {
      if (name == segment.substr(0, segment.find('['))) next = inner;
    }
    if (!next) return {};  // a mapping of any keys
    rest.remove_prefix(dot + 1);
    levels.push_back({std::string(path.substr(0, path.size() - rest.size() - 1)), next});
  }
  const Mapping& parent = levels.back().mapping;
  std::vector<std::string_view> known;
  for (const auto& [name, inner] : FieldsOf(parent)) known.push_back(name);
  for (size_t i = levels.size() - 1; i > 1; --i) {
    if (Has(levels[i - 1].mapping, rest)) return fmt::format("it stands at {}", levels[i - 1].path);
  }
  if (std::string near = NearestHint(rest, known); !near.empty()) return near;
  if (const std::string below = Below(parent, rest, kDeepest); !below.empty())
    return fmt::format("it stands within {}", below);
  return known.empty() || known.size() > kFew ? "" : fmt::format("there is {}", fmt::join(known, ", "));
}

}  // namespace wavetank::scenario
