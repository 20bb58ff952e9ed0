// xDS resources as JSON: one way of writing for what istiod made and for what was recorded, so that two of them are
// equal exactly if the messages are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::golden {

// `kind`: "cds", "eds", "lds", "rds", "ecds". In the canonical orders of docs/golden-cases.md. InvalidArgument if the
// bytes are no such message or hold an Any of an unknown type.
absl::StatusOr<nlohmann::json> ResourceToJson(std::string_view kind, std::string_view bytes);

// A recorded resource, read as a message: a field that the message does not have is an error, none is ignored.
absl::StatusOr<nlohmann::json> NormalizeRecorded(std::string_view kind, const nlohmann::json& resource);

// What a client asks for after a response: names of EDS clusters' assignments, of listeners' route configurations and
// of the HTTP filters that ECDS configures; sorted, unique.
std::vector<std::string> EdsNames(const std::vector<std::string_view>& clusters);
std::vector<std::string> RdsNames(const std::vector<std::string_view>& listeners);
std::vector<std::string> EcdsNames(const std::vector<std::string_view>& listeners);

}  // namespace wavetank::golden
