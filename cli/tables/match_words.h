// What a route or a filter chain matches, in istioctl's words.
#pragma once

#include <string>

#include "cli/tables/envoy_dump.h"

namespace wavetank::cli::tables {

// RouteMatch: "/productpage", "/static*", "regex ..."; headers are not told.
std::string MatchWords(const json& match);
// FilterChainMatch: "SNI: outbound_.5000_._.h; App: TCP TLS", "Trans: tls; Addr: *:5000"; "ALL".
std::string ChainMatchWords(const json& match);
// Where the filters of a chain lead: "Route: 80", "Cluster: outbound|...", "Inline Route: ...", "Non-HTTP/Non-TCP".
std::string DestinationWords(const json& chain);

}  // namespace wavetank::cli::tables
