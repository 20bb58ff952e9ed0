// Connected proxies (istiod: pilot/pkg/xds/debug.go).
#pragma once

#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {
class Connection;
class Istiod;
}  // namespace wavetank::pilot

namespace wavetank::debug {

// Per connection and type which nonce was sent and which ACKed.
nlohmann::ordered_json Syncz(const pilot::Istiod& istiod);
// What connections said of themselves and watch; `only`: one of them alone, or null.
nlohmann::ordered_json Adsz(const pilot::Istiod& istiod, const pilot::Connection* only);
nlohmann::ordered_json Connections(const pilot::Istiod& istiod);
// The service ports that each proxy implements.
nlohmann::ordered_json Instancesz(const pilot::Istiod& istiod);
nlohmann::ordered_json Sidecarz(const pilot::Connection& connection);

// The first connection whose ID holds the text, as istiod finds the proxyID of a query; null: none does.
const pilot::Connection* FindConnection(const pilot::Istiod& istiod, std::string_view proxy_id);

}  // namespace wavetank::debug
