// The kinds of generated cases, and what several of them draw. All make the JSON of a case file, but for its name.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "oracles/envoy/generate/draw.h"

namespace wavetank::envoydiff {

// Generated cases have their listener, and their backends a, b, ... at .11, .12, ...
inline constexpr char kListener[] = "127.77.0.1:10000";
std::string BackendName(int index);
std::string BackendAddress(int index);

nlohmann::json HeadsCase(Draw& draw);
nlohmann::json FailingCase(Draw& draw);
nlohmann::json BalancingCase(Draw& draw);
nlohmann::json FilteringCase(Draw& draw);
nlohmann::json ConnectingCase(Draw& draw);
nlohmann::json CompressingCase(Draw& draw);
nlohmann::json LimitingCase(Draw& draw);
nlohmann::json SpeakingCase(Draw& draw);
nlohmann::json CallingCase(Draw& draw);
nlohmann::json AnnouncingCase(Draw& draw);
nlohmann::json PacingCase(Draw& draw);
nlohmann::json WeighingCase(Draw& draw);
nlohmann::json UpgradingCase(Draw& draw);

// envoy.type.matcher.v3.StringMatcher, of a value that may be `about`.
nlohmann::json DrawStringMatch(Draw& draw, const std::string& about);
// envoy.config.route.v3.HeaderMatcher
nlohmann::json DrawHeaderMatch(Draw& draw);
// Into a table, host, route or weighted cluster: {request,response}_headers_to_{add,remove}, each in `percent` cases.
void DrawHeaderOperations(Draw& draw, int percent, nlohmann::json* level);
// Virtual hosts with routes to the clusters "c" and "d".
nlohmann::json DrawVirtualHosts(Draw& draw);
// A step: one request or a few that such routes may take.
nlohmann::json DrawRequest(Draw& draw);
// Steps after which the backends tell what they were sent.
void AddEcho(int backends, nlohmann::json* steps);
// {"a": ADDRESS, ...}
nlohmann::json Backends(int count);

}  // namespace wavetank::envoydiff
