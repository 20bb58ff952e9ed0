// docs/incidents.md, made of the incidents' heads.
#pragma once

#include <string>
#include <vector>

#include "scenarios/library/library.h"

namespace wavetank::scenario {

// Markdown: symptom -> cause -> how to see it, and the verdict of each profile.
std::string IncidentPage(const std::vector<IncidentStory>& stories);

}  // namespace wavetank::scenario
