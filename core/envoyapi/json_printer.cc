#include "core/envoyapi/json_printer.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "core/envoyapi/descriptors.h"
#include "envoy/service/discovery/v3/discovery.pb.h"

namespace wavetank::pilot {
namespace {

using Json = nlohmann::ordered_json;

// All of them as the resources of one message: the printer learns each type once a call.
bool Print(std::string_view type_url, const std::string_view* begin, const std::string_view* end, FieldNames names,
           std::vector<Json>& out) {
  envoy::service::discovery::v3::DiscoveryResponse list;
  for (const std::string_view* resource = begin; resource != end; ++resource) {
    google::protobuf::Any& any = *list.add_resources();
    any.set_type_url(std::string(type_url));
    any.set_value(resource->data(), resource->size());
  }
  // Of the descriptors by name: those of generated classes know only what this program reads.
  const std::unique_ptr<google::protobuf::Message> whole =
      NewEnvoyMessage("envoy.service.discovery.v3.DiscoveryResponse");
  if (whole == nullptr || !whole->ParseFromString(list.SerializeAsString())) return false;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = names == FieldNames::kOriginal;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(*whole, &text, options).ok()) return false;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("resources")) return begin == end;
  for (Json& resource : json["resources"]) out.push_back(std::move(resource));
  return true;
}

}  // namespace

std::vector<Json> EnvoyJson(std::string_view type_url, const std::vector<std::string_view>& resources,
                            FieldNames names) {
  std::vector<Json> out;
  const std::string_view* const begin = resources.data();
  if (Print(type_url, begin, begin + resources.size(), names, out)) return out;
  out.clear();
  for (size_t i = 0; i < resources.size(); ++i) {
    if (Print(type_url, begin + i, begin + i + 1, names, out)) continue;
    out.push_back({{"@type", type_url}, {"value", absl::Base64Escape({resources[i].data(), resources[i].size()})}});
  }
  return out;
}

}  // namespace wavetank::pilot
