// An Envoy's config_dump (or istiod's, of the same form) as its resources, section by section. Fields may be spelled as
// Envoy's admin interface spells them (version_info) or as protobuf's JSON mapping does (versionInfo).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli::tables {

using nlohmann::json;

// A member by its original name or its lowerCamelCase one; null if neither is there.
const json& Field(const json& in, std::string_view name);
const json& Field(const json& in, std::initializer_list<std::string_view> path);
// The elements of a list that is a member; none of anything else.
const json& List(const json& in, std::string_view name);
std::string TextField(const json& in, std::string_view name);
int64_t NumberField(const json& in, std::string_view name);  // also of quoted numbers and of wrapped ones

struct DumpedSecret {
  std::string name, state;  // "ACTIVE", "WARMING", "UNINITIALIZED"
  json secret;
};

class EnvoyDump {
 public:
  // `what` names the text in messages. InvalidArgument: it is no JSON, or neither a config_dump nor /clusters' JSON.
  static absl::StatusOr<EnvoyDump> Read(std::string_view text, const std::string& what);
  static EnvoyDump Of(json dump) { return EnvoyDump(std::move(dump)); }

  // Each in the order of the dump, dynamic ones first. Null in place of the vectors: no such section.
  bool HasSection(std::string_view type) const;  // "ClustersConfigDump"
  std::vector<json> Clusters() const;
  std::vector<json> Listeners() const;
  std::vector<json> Routes() const;
  std::vector<json> Endpoints() const;  // ClusterLoadAssignments
  std::vector<DumpedSecret> Secrets() const;
  const json& Bootstrap() const;  // the whole section; null: none
  const json& SecretSection() const;
  const json& ExtensionSection() const;  // of typed extension configurations; null: none
  // Of /clusters?format=json: cluster_statuses; null if this is another document.
  const json& ClusterStatuses() const;

 private:
  explicit EnvoyDump(json dump) : dump_(std::move(dump)) {}
  const json& Section(std::string_view type) const;

  json dump_;
};

// A resource as istioctl prints it, which unpacks it: lowerCamelCase, as protobuf's JSON mapping has it, in the order
// in which its type declares its fields, and without "@type". What is of no known type stays as it is.
nlohmann::ordered_json AsPrinted(const json& resource, std::string_view type);

}  // namespace wavetank::cli::tables
