#include <algorithm>
#include <tuple>

#include "cli/tables/match_words.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/table_text.h"
#include "core/base/json_text.h"

namespace wavetank::cli::tables {
namespace {

std::vector<json> Chains(const json& listener) {
  std::vector<json> out;
  for (const json& chain : List(listener, "filter_chains")) out.push_back(chain);
  if (const json& last = Field(listener, "default_filter_chain"); last.is_object()) out.push_back(last);
  return out;
}

// istioctl: retrieveListenerType.
std::string TypeOfListener(const json& listener) {
  int http = 0, tcp = 0;
  for (const json& chain : Chains(listener)) {
    for (const json& filter : List(chain, "filters")) {
      const std::string name = TextField(filter, "name");
      if (name == "envoy.filters.network.http_connection_manager") ++http;
      if (name == "envoy.filters.network.tcp_proxy" &&
          JsonText(Field(filter, "typed_config")).find("BlackHoleCluster") == std::string::npos) {
        ++tcp;
      }
    }
  }
  if (http > 0) return tcp == 0 ? "HTTP" : "HTTP+TCP";
  return tcp > 0 ? "TCP" : "UNKNOWN";
}

struct Place {
  std::string address;
  int64_t port = 0;
};
Place PlaceOf(const json& listener) {
  const json& address = Field(listener, "address");
  const json& socket = Field(address, "socket_address");
  if (socket.is_object()) return {TextField(socket, "address"), NumberField(socket, "port_value")};
  return {TextField(Field(address, "pipe"), "path"), 0};
}

bool Matches(const ListenerFilter& filter, const json& listener) {
  const Place place = PlaceOf(listener);
  return (filter.address.empty() || SameLetters(filter.address, place.address)) &&
         (filter.port == 0 || filter.port == place.port) &&
         (filter.type.empty() || SameLetters(filter.type, TypeOfListener(listener)));
}

void VerboseRows(const json& listener, const Place& place, std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::string>> chains;  // destination, match
  for (const json& chain : Chains(listener)) {
    chains.emplace_back(DestinationWords(chain), ChainMatchWords(Field(chain, "filter_chain_match")));
  }
  std::stable_sort(chains.begin(), chains.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [destination, match] : chains) {
    rows.push_back({place.address, std::to_string(place.port), match, destination});
  }
}

}  // namespace

absl::StatusOr<std::string> ListenerTable(const EnvoyDump& dump, const ListenerFilter& filter, Output output) {
  std::vector<json> chosen;
  const std::vector<json> all = dump.Listeners();
  if (all.empty()) return absl::NotFoundError("no listeners found");
  for (const json& listener : all) {
    if (Matches(filter, listener)) chosen.push_back(listener);
  }
  if (output != Output::kShort) {
    nlohmann::ordered_json documents = nlohmann::ordered_json::array();
    for (const json& listener : chosen) documents.push_back(AsPrinted(listener, "envoy.config.listener.v3.Listener"));
    return ListDocument(documents, output);
  }
  const auto key = [](const json& listener) {
    const Place place = PlaceOf(listener);
    return std::make_tuple(place.port, place.address, TypeOfListener(listener));
  };
  std::stable_sort(chosen.begin(), chosen.end(), [&](const json& a, const json& b) { return key(a) < key(b); });
  std::vector<Row> rows = {filter.verbose ? Row{"ADDRESS", "PORT", "MATCH", "DESTINATION"}
                                          : Row{"ADDRESS", "PORT", "TYPE"}};
  for (const json& listener : chosen) {
    const Place place = PlaceOf(listener);
    if (filter.verbose) {
      VerboseRows(listener, place, rows);
    } else {
      rows.push_back({place.address, std::to_string(place.port), TypeOfListener(listener)});
    }
  }
  return TableText(rows, 1);
}

}  // namespace wavetank::cli::tables
