#include "cli/tables/envoy_dump.h"

#include <google/protobuf/message.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "cli/tables/declared_order.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/proto_json_name.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_printer.h"
#include "core/envoyapi/json_reader.h"
#include "fmt/format.h"

namespace wavetank::cli::tables {
namespace {

void Add(const json& section, std::string_view list, std::initializer_list<std::string_view> path,
         std::vector<json>& out) {
  for (const json& entry : List(section, list)) {
    if (const json& resource = Field(entry, path); resource.is_object()) out.push_back(resource);
  }
}

}  // namespace

const json& Field(const json& in, std::string_view name) {
  const json& original = At(in, name);
  return original.is_null() ? At(in, ProtoJsonName(name)) : original;
}
const json& Field(const json& in, std::initializer_list<std::string_view> path) {
  const json* at = &in;
  for (const std::string_view name : path) at = &Field(*at, name);
  return *at;
}
const json& List(const json& in, std::string_view name) { return Items(Field(in, name)); }
std::string TextField(const json& in, std::string_view name) { return TextOf(Field(in, name)); }
int64_t NumberField(const json& in, std::string_view name) {
  const json& field = Field(in, name);
  const json& value = field.is_object() ? At(field, "value") : field;
  int64_t number = 0;
  if (value.is_string()) return absl::SimpleAtoi(value.get_ref<const std::string&>(), &number) ? number : 0;
  return NumberOf(value);
}

absl::StatusOr<EnvoyDump> EnvoyDump::Read(std::string_view text, const std::string& what) {
  json dump = ParseJson(text);
  if (dump.is_discarded()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: no JSON; give what GET /config_dump of an Envoy's admin port answers", what));
  }
  if (!Field(dump, "configs").is_array() && !Field(dump, "cluster_statuses").is_array()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: no config_dump: a list `configs` is missing (nor are there the `cluster_statuses` of "
                    "/clusters?format=json)",
                    what));
  }
  return EnvoyDump(std::move(dump));
}

const json& EnvoyDump::Section(std::string_view type) const {
  for (const json& section : List(dump_, "configs")) {
    const std::string url = Text(section, "@type");
    if (url.size() > type.size() && url.ends_with(type) && url[url.size() - type.size() - 1] == '.') return section;
  }
  return Null();
}

bool EnvoyDump::HasSection(std::string_view type) const { return !Section(type).is_null(); }

std::vector<json> EnvoyDump::Clusters() const {
  std::vector<json> out;
  const json& section = Section("ClustersConfigDump");
  Add(section, "dynamic_active_clusters", {"cluster"}, out);
  Add(section, "static_clusters", {"cluster"}, out);
  return out;
}

std::vector<json> EnvoyDump::Listeners() const {
  std::vector<json> out;
  const json& section = Section("ListenersConfigDump");
  Add(section, "dynamic_listeners", {"active_state", "listener"}, out);
  Add(section, "static_listeners", {"listener"}, out);
  return out;
}

std::vector<json> EnvoyDump::Routes() const {
  std::vector<json> out;
  const json& section = Section("RoutesConfigDump");
  Add(section, "dynamic_route_configs", {"route_config"}, out);
  Add(section, "static_route_configs", {"route_config"}, out);
  return out;
}

std::vector<json> EnvoyDump::Endpoints() const {
  std::vector<json> out;
  const json& section = Section("EndpointsConfigDump");
  Add(section, "dynamic_endpoint_configs", {"endpoint_config"}, out);
  Add(section, "static_endpoint_configs", {"endpoint_config"}, out);
  return out;
}

std::vector<DumpedSecret> EnvoyDump::Secrets() const {
  std::vector<DumpedSecret> out;
  const json& section = Section("SecretsConfigDump");
  for (const json& entry : List(section, "dynamic_warming_secrets")) {
    out.push_back({TextField(entry, "name"), "WARMING", Field(entry, "secret")});
  }
  for (const json& entry : List(section, "dynamic_active_secrets")) {
    const bool empty = TextField(entry, "version_info") == "uninitialized";
    std::string name = TextField(entry, "name");
    if (name.empty()) name = TextField(Field(entry, "secret"), "name");
    out.push_back({std::move(name), empty ? "UNINITIALIZED" : "ACTIVE", Field(entry, "secret")});
  }
  return out;
}

const json& EnvoyDump::Bootstrap() const { return Section("BootstrapConfigDump"); }
const json& EnvoyDump::SecretSection() const { return Section("SecretsConfigDump"); }
const json& EnvoyDump::ExtensionSection() const { return Section("EcdsConfigDump"); }
const json& EnvoyDump::ClusterStatuses() const { return Field(dump_, "cluster_statuses"); }

nlohmann::ordered_json AsPrinted(const json& resource, std::string_view type) {
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  json content = resource;
  if (content.is_object()) content.erase("@type");
  if (message == nullptr || !pilot::ReadEnvoyJson(content, *message).ok()) return ParseOrderedJson(JsonText(content));
  const std::string bytes = message->SerializeAsString();
  json named = pilot::EnvoyJson("type.googleapis.com/" + std::string(type), {bytes}).front();
  named.erase("@type");
  return InDeclaredOrder(named, *message->GetDescriptor());
}

}  // namespace wavetank::cli::tables
