#include "cli/tables/declared_order.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <memory>
#include <set>
#include <string>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/envoyapi/descriptors.h"

namespace wavetank::cli::tables {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;
using nlohmann::ordered_json;

ordered_json AsItIs(const json& value) { return ParseOrderedJson(JsonText(value)); }

ordered_json ValueInOrder(const json& value, const FieldDescriptor& field);

void AddFields(const json& value, const Descriptor& type, ordered_json* out) {
  std::set<std::string, std::less<>> told;
  const auto add = [&](const FieldDescriptor& field) {
    const auto it = value.find(field.json_name());
    if (it == value.end() || !told.insert(field.json_name()).second) return;
    (*out)[field.json_name()] = ValueInOrder(*it, field);
  };
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::OneofDescriptor* one = type.field(i)->containing_oneof();
    if (one == nullptr) {
      add(*type.field(i));
      continue;
    }
    for (int member = 0; member < one->field_count(); ++member) add(*one->field(member));
  }
  for (const auto& [key, item] : value.items()) {
    if (!told.contains(key) && key != "@type") (*out)[key] = AsItIs(item);
  }
}

ordered_json AnyInOrder(const json& value) {
  const std::string url = Text(value, "@type");
  const std::unique_ptr<google::protobuf::Message> packed = pilot::NewEnvoyMessage(url);
  // Those with a JSON of their own have it as "value".
  if (packed == nullptr || value.contains("value")) return AsItIs(value);
  ordered_json out = {{"@type", url}};
  AddFields(value, *packed->GetDescriptor(), &out);
  return out;
}

ordered_json ValueInOrder(const json& value, const FieldDescriptor& field) {
  if (field.is_map()) {
    const FieldDescriptor& of = *field.message_type()->map_value();
    ordered_json out = ordered_json::object();
    if (!value.is_object()) return AsItIs(value);
    for (const auto& [key, item] : value.items())
      out[key] = of.message_type() == nullptr ? AsItIs(item) : InDeclaredOrder(item, *of.message_type());
    return out;
  }
  if (field.message_type() == nullptr) return AsItIs(value);
  if (!field.is_repeated() || !value.is_array()) return InDeclaredOrder(value, *field.message_type());
  ordered_json out = ordered_json::array();
  for (const json& item : value) out.push_back(InDeclaredOrder(item, *field.message_type()));
  return out;
}

}  // namespace

ordered_json InDeclaredOrder(const json& value, const Descriptor& type) {
  switch (type.well_known_type()) {
    case Descriptor::WELLKNOWNTYPE_ANY:
      return AnyInOrder(value);
    case Descriptor::WELLKNOWNTYPE_UNSPECIFIED:
      break;
    default:
      return AsItIs(value);  // a scalar, or a Struct, whose keys are sorted
  }
  if (!value.is_object()) return AsItIs(value);
  ordered_json out = ordered_json::object();
  AddFields(value, type, &out);
  return out;
}

}  // namespace wavetank::cli::tables
