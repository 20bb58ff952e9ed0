// The names of MeshConfig's and ProxyConfig's fields, to tell words that neither has. istiod takes a document that has
// some, and says nothing (pkg/util/protomarshal, ApplyJSON(): it reads again and allows unknown fields).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::config {

struct UnknownMeshField {
  std::vector<std::string> path;        // {"defaultConfig", "tracing", "samplin"}: without places in lists
  std::string_view message;             // "Tracing": it has no such field, in 1.18.2 or 1.30.3
  std::vector<std::string_view> known;  // its fields
};

// Of a document that is a `message` ("MeshConfig", "ProxyConfig"), by path. Both spellings of a field are known, as
// protobuf's JSON takes both: proxyListenPort, proxy_listen_port. O(size of the document).
std::vector<UnknownMeshField> UnknownMeshFields(std::string_view message, const nlohmann::json& document);

}  // namespace wavetank::config
