// The names of MeshConfig's, ProxyConfig's and MeshNetworks' fields, to tell words that none has. istiod takes a
// document that has some, and says nothing (pkg/util/protomarshal, ApplyJSON(): it reads again and allows unknown
// fields).
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
  std::string_view elsewhere;           // a field of it, "defaultConfig", within which it stands; empty: none
  bool at_root = false;                 // it is a field of the document itself
};

// Of a document that is a `message` ("MeshConfig", "ProxyConfig", "MeshNetworks"), by path. Both spellings of a field
// are known, as protobuf's JSON takes both: proxyListenPort, proxy_listen_port. O(size of the document).
std::vector<UnknownMeshField> UnknownMeshFields(std::string_view message, const nlohmann::json& document);

}  // namespace wavetank::config
