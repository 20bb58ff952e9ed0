// Inputs of a log that make a world do what access logs tell: requests, and what applications answer.
#pragma once

#include <string>

#include "import/evidence/evidence.h"
#include "replay/event_log.h"

namespace wavetank::importing {

// `number`: makes its name one of its own.
replay::LogInput TrafficInput(const InferredInput& input, const std::string& cluster, const std::string& ns,
                              size_t number, Time at);
// `app`: the label of the pods that answer so.
replay::LogInput BehaviourInput(const InferredInput& input, const std::string& cluster, const std::string& ns,
                                const std::string& app, Time at);

}  // namespace wavetank::importing
