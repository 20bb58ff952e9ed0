// Evidence for people and programs. No credential leaves here: texts that a source printed pass the one list of them
// (core/kube/credentials/sealing.h).
#pragma once

#include <string>
#include <string_view>

#include "import/evidence/evidence.h"
#include "import/evidence/traffic.h"
#include "nlohmann/json.hpp"

namespace wavetank::importing {

// A text of a source without credentials, cut to `most` bytes.
std::string Harmless(std::string_view text, size_t most = 4096);
// The same of what was printed as JSON, as JSON in one line: its values by their names, too.
std::string HarmlessPrinted(std::string_view text);

// docs/import.md says what each field is.
nlohmann::ordered_json ToJson(const Evidence& evidence);
nlohmann::ordered_json ToJson(const InferredInput& input);
nlohmann::ordered_json ToJson(const Claim& claim);

// What the evidence covers, how much of each kind there is, and what could not be read.
std::string Summary(const Evidence& evidence);
std::string TrafficSummary(const Traffic& traffic);  // of access logs; empty if there are none
// One line for each input: "02:49:52.593  config  PeerAuthentication/alpha/wl-svc1  (istiod.log:215)".
std::string Timeline(const Evidence& evidence);

}  // namespace wavetank::importing
