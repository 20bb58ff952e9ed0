#include "core/xds/proto_adapter.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "google/protobuf/struct.pb.h"

namespace wavetank::pilot {
namespace {

namespace discovery = envoy::service::discovery::v3;
using nlohmann::json;

// Hostile nodes nest without end; what Istio's agents send is three levels deep.
constexpr int kMaxDepth = 32;

json ToJson(const google::protobuf::Struct& in, int depth);

json ToJson(const google::protobuf::Value& in, int depth) {
  switch (in.kind_case()) {
    case google::protobuf::Value::kBoolValue:
      return in.bool_value();
    case google::protobuf::Value::kNumberValue: {
      // A number without a fraction is an integer for whoever reads it as one.
      const double number = in.number_value();
      const auto whole = number >= -9e15 && number <= 9e15 ? static_cast<int64_t>(number) : 0;
      if (static_cast<double>(whole) == number) return whole;
      return number;
    }
    case google::protobuf::Value::kStringValue:
      return in.string_value();
    case google::protobuf::Value::kStructValue:
      return depth > kMaxDepth ? json() : ToJson(in.struct_value(), depth + 1);
    case google::protobuf::Value::kListValue: {
      json out = json::array();
      if (depth > kMaxDepth) return out;
      for (const google::protobuf::Value& item : in.list_value().values()) out.push_back(ToJson(item, depth + 1));
      return out;
    }
    default:
      return nullptr;
  }
}

json ToJson(const google::protobuf::Struct& in, int depth) {
  json out = json::object();
  for (const auto& [key, value] : in.fields()) out[key] = ToJson(value, depth);
  return out;
}

void ValueToProto(const json& in, google::protobuf::Value* out) {
  switch (in.type()) {
    case json::value_t::boolean:
      out->set_bool_value(in.get<bool>());
      break;
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      out->set_number_value(in.get<double>());
      break;
    case json::value_t::string:
      out->set_string_value(in.get_ref<const std::string&>());
      break;
    case json::value_t::object:
      ToProto(in, out->mutable_struct_value());
      break;
    case json::value_t::array:
      out->mutable_list_value();
      for (const json& item : in) ValueToProto(item, out->mutable_list_value()->add_values());
      break;
    default:
      out->set_null_value(google::protobuf::NULL_VALUE);
  }
}

absl::StatusOr<XdsType> ReadType(const std::string& url) {
  const std::optional<XdsType> type = ParseTypeUrl(url);
  if (!type) return absl::InvalidArgumentError(absl::StrCat("unknown type URL '", url, "'"));
  return *type;
}

}  // namespace

void ToProto(const json& in, google::protobuf::Struct* out) {
  for (const auto& [key, value] : in.items()) ValueToProto(value, &(*out->mutable_fields())[key]);
}

std::shared_ptr<const Node> FromProto(const envoy::config::core::v3::Node& in) {
  auto node = std::make_shared<Node>();
  node->id = in.id();
  node->cluster = in.cluster();
  node->locality = {in.locality().region(), in.locality().zone(), in.locality().sub_zone()};
  node->metadata = ToJson(in.metadata(), 0);
  return node;
}

absl::StatusOr<DiscoveryRequest> FromProto(const discovery::DiscoveryRequest& in) {
  absl::StatusOr<XdsType> type = ReadType(in.type_url());
  if (!type.ok()) return type.status();
  DiscoveryRequest out;
  out.type = *type;
  out.version_info = in.version_info();
  out.response_nonce = in.response_nonce();
  out.resource_names = std::vector<std::string>(in.resource_names().begin(), in.resource_names().end());
  if (in.has_node()) out.node = FromProto(in.node());
  if (in.has_error_detail()) out.error_detail = ErrorDetail{in.error_detail().code(), in.error_detail().message()};
  return out;
}

absl::StatusOr<DeltaDiscoveryRequest> FromProto(const discovery::DeltaDiscoveryRequest& in) {
  absl::StatusOr<XdsType> type = ReadType(in.type_url());
  if (!type.ok()) return type.status();
  DeltaDiscoveryRequest out;
  out.type = *type;
  out.resource_names_subscribe.assign(in.resource_names_subscribe().begin(), in.resource_names_subscribe().end());
  out.resource_names_unsubscribe.assign(in.resource_names_unsubscribe().begin(), in.resource_names_unsubscribe().end());
  for (const auto& [name, version] : in.initial_resource_versions()) out.initial_resource_versions[name] = version;
  out.response_nonce = in.response_nonce();
  if (in.has_node()) out.node = FromProto(in.node());
  if (in.has_error_detail()) out.error_detail = ErrorDetail{in.error_detail().code(), in.error_detail().message()};
  return out;
}

void ToProto(const DiscoveryResponse& in, discovery::DiscoveryResponse* out) {
  const std::string url(TypeUrl(in.type));
  out->set_type_url(url);
  out->set_version_info(in.version_info);
  out->set_nonce(in.nonce);
  out->mutable_resources()->Reserve(static_cast<int>(in.resources.size()));
  for (const Resource& resource : in.resources) {
    google::protobuf::Any* any = out->add_resources();
    any->set_type_url(url);
    any->set_value(resource.bytes->data(), resource.bytes->size());
  }
}

void ToProto(const DeltaDiscoveryResponse& in, discovery::DeltaDiscoveryResponse* out) {
  const std::string url(TypeUrl(in.type));
  out->set_type_url(url);
  out->set_system_version_info(in.system_version_info);
  out->set_nonce(in.nonce);
  for (const Resource& resource : in.resources) {
    discovery::Resource* wrapped = out->add_resources();
    wrapped->set_name(resource.name.data(), resource.name.size());
    wrapped->mutable_resource()->set_type_url(url);
    wrapped->mutable_resource()->set_value(resource.bytes->data(), resource.bytes->size());
  }
  for (const std::string& name : in.removed_resources) out->add_removed_resources(name);
}

void ToProto(const Node& in, envoy::config::core::v3::Node* out) {
  out->set_id(in.id);
  out->set_cluster(in.cluster);
  out->mutable_locality()->set_region(in.locality.region);
  out->mutable_locality()->set_zone(in.locality.zone);
  out->mutable_locality()->set_sub_zone(in.locality.sub_zone);
  ToProto(in.metadata, out->mutable_metadata());
}

}  // namespace wavetank::pilot
