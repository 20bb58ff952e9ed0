#include "core/config/mesh/shared_mesh_config.h"

#include <utility>

#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/proto_json_name.h"
#include "core/kube/yaml.h"

namespace wavetank::config {
namespace {

using nlohmann::json;

// Protobuf's JSON takes both default_config and defaultConfig.
json WithCamelCase(const json& object) {
  json out = json::object();
  for (const auto& [key, value] : Members(object)) out[ProtoJsonName(key)] = value;
  return out;
}

json Overlaid(const json& below, const json& above) {
  json out = WithCamelCase(below);
  out.update(WithCamelCase(above));
  return out;
}

// Later ones of a name take the place of earlier ones.
json ByName(json below, const json& above) {
  for (const json& provider : wavetank::Items(above)) {
    bool found = false;
    for (json& other : below) {
      if (wavetank::Text(other, "name") != wavetank::Text(provider, "name")) continue;
      other = provider;
      found = true;
      break;
    }
    if (!found) below.push_back(provider);
  }
  return below;
}

}  // namespace

absl::StatusOr<std::string> MergeMeshConfigs(std::string_view below, std::string_view above) {
  absl::StatusOr<json> lower = kube::ParseYaml(below, "mesh"), upper = kube::ParseYaml(above, "mesh");
  if (!lower.ok()) return lower.status();
  if (!upper.ok()) return upper.status();
  const json a = WithCamelCase(*lower), b = WithCamelCase(*upper);
  json out = Overlaid(a, b);
  if (At(a, "defaultConfig").is_object() && At(b, "defaultConfig").is_object()) {
    const json x = WithCamelCase(a["defaultConfig"]), y = WithCamelCase(b["defaultConfig"]);
    out["defaultConfig"] = Overlaid(x, y);
    if (x.contains("proxyMetadata") && y.contains("proxyMetadata")) {
      // Names of variables, which are as they are.
      json metadata = x["proxyMetadata"];
      metadata.update(y["proxyMetadata"]);
      out["defaultConfig"]["proxyMetadata"] = std::move(metadata);
    }
  }
  if (At(a, "defaultProviders").is_object() && At(b, "defaultProviders").is_object())
    out["defaultProviders"] = Overlaid(a["defaultProviders"], b["defaultProviders"]);
  if (At(a, "extensionProviders").is_array() && At(b, "extensionProviders").is_array())
    out["extensionProviders"] = ByName(a["extensionProviders"], b["extensionProviders"]);
  if (At(a, "trustDomainAliases").is_array() && At(b, "trustDomainAliases").is_array()) {
    json aliases = a["trustDomainAliases"];
    for (const json& alias : b["trustDomainAliases"]) aliases.push_back(alias);
    out["trustDomainAliases"] = std::move(aliases);
  }
  return JsonText(out);
}

}  // namespace wavetank::config
