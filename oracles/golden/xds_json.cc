#include "oracles/golden/xds_json.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/json_text.h"
#include "core/envoyapi/descriptors.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "oracles/golden/compare.h"

namespace wavetank::golden {
namespace {

using google::protobuf::Message;
using nlohmann::json;

namespace hcm = envoy::extensions::filters::network::http_connection_manager::v3;

// Of descriptors that know all of Envoy's API: what stands in an Any may be of any type, as an EnvoyFilter has it.
absl::StatusOr<std::unique_ptr<Message>> NewMessage(std::string_view kind) {
  for (const auto& [known, type] : {std::pair("cds", "envoy.config.cluster.v3.Cluster"),
                                    {"eds", "envoy.config.endpoint.v3.ClusterLoadAssignment"},
                                    {"lds", "envoy.config.listener.v3.Listener"},
                                    {"rds", "envoy.config.route.v3.RouteConfiguration"},
                                    {"ecds", "envoy.config.core.v3.TypedExtensionConfig"}}) {
    if (kind == known) return pilot::NewEnvoyMessage(type);
  }
  return absl::InvalidArgumentError(fmt::format("{}: none of cds, eds, lds, rds, ecds", kind));
}

bool Parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Also inside of Anys. An EnvoyFilter that merges one type into another leaves fields behind that are of no type that
// the message knows: Go's JSON leaves them out, protobuf's stumbles over them.
void DiscardUnknown(Message& message) {
  message.DiscardUnknownFields();
  const auto& reflection = *message.GetReflection();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  if (type.full_name() == "google.protobuf.Any") {
    const auto *url = type.FindFieldByNumber(1), *value = type.FindFieldByNumber(2);
    const std::unique_ptr<Message> inner = pilot::NewEnvoyMessage(reflection.GetString(message, url));
    if (inner == nullptr || !inner->ParseFromString(reflection.GetString(message, value))) return;
    DiscardUnknown(*inner);
    reflection.SetString(&message, value, inner->SerializeAsString());
    return;
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) DiscardUnknown(*reflection.MutableMessage(&message, field));
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i) {
      DiscardUnknown(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

absl::StatusOr<json> ToJson(Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const google::protobuf::LogSilencer quiet;  // the first try may fail
  auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) {
    DiscardUnknown(message);
    text.clear();
    status = google::protobuf::util::MessageToJsonString(message, &text, options);
  }
  if (!status.ok()) return absl::InvalidArgumentError(status.ToString());
  json out = ParseJson(text);
  MakeCanonical(out);
  return out;
}

}  // namespace

absl::StatusOr<json> ResourceToJson(std::string_view kind, std::string_view bytes) {
  absl::StatusOr<std::unique_ptr<Message>> message = NewMessage(kind);
  if (!message.ok()) return message.status();
  if (!Parse(bytes, **message)) {
    return absl::InvalidArgumentError(fmt::format("not a {}", (*message)->GetTypeName()));
  }
  return ToJson(**message);
}

absl::StatusOr<json> NormalizeRecorded(std::string_view kind, const json& resource) {
  absl::StatusOr<std::unique_ptr<Message>> message = NewMessage(kind);
  if (!message.ok()) return message.status();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(JsonText(resource), message->get(), options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", ResourceName(resource), status.ToString()));
  }
  return ToJson(**message);
}

std::vector<std::string> EdsNames(const std::vector<std::string_view>& clusters) {
  std::set<std::string> out;
  for (const std::string_view bytes : clusters) {
    envoy::config::cluster::v3::Cluster cluster;
    if (!Parse(bytes, cluster) || cluster.type() != envoy::config::cluster::v3::Cluster::EDS) continue;
    const std::string& name = cluster.eds_cluster_config().service_name();
    out.insert(name.empty() ? cluster.name() : name);
  }
  return {out.begin(), out.end()};
}

namespace {

// Of the listeners' filter chains.
template <typename Visit>
void ForEachNetworkFilter(const std::vector<std::string_view>& listeners, Visit visit) {
  for (const std::string_view bytes : listeners) {
    envoy::config::listener::v3::Listener listener;
    if (!Parse(bytes, listener)) continue;
    const auto look = [&](const envoy::config::listener::v3::FilterChain& chain) {
      for (const auto& filter : chain.filters()) visit(filter);
    };
    for (const auto& chain : listener.filter_chains()) look(chain);
    if (listener.has_default_filter_chain()) look(listener.default_filter_chain());
  }
}

template <typename Visit>
void ForEachManager(const std::vector<std::string_view>& listeners, Visit visit) {
  ForEachNetworkFilter(listeners, [&](const auto& filter) {
    if (hcm::HttpConnectionManager manager; filter.typed_config().UnpackTo(&manager)) visit(manager);
  });
}

}  // namespace

std::vector<std::string> RdsNames(const std::vector<std::string_view>& listeners) {
  std::set<std::string> out;
  ForEachManager(listeners, [&](const hcm::HttpConnectionManager& manager) {
    if (manager.has_rds()) out.insert(manager.rds().route_config_name());
  });
  return {out.begin(), out.end()};
}

std::vector<std::string> EcdsNames(const std::vector<std::string_view>& listeners) {
  std::set<std::string> out;
  ForEachNetworkFilter(listeners, [&](const auto& filter) {
    if (filter.has_config_discovery()) out.insert(filter.name());
  });
  ForEachManager(listeners, [&](const hcm::HttpConnectionManager& manager) {
    for (const auto& filter : manager.http_filters()) {
      if (filter.has_config_discovery()) out.insert(filter.name());
    }
  });
  return {out.begin(), out.end()};
}

}  // namespace wavetank::golden
