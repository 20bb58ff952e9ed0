// The extensions that upstream Envoy's releases have, by the messages that configure them.
#pragma once

#include <string_view>

#include "fakes/envoy/extensions/release.h"

namespace wavetank::envoysim {

// `type`: a message's full name. Extensions that came between 1.26 and 1.40 are known to all releases after 1.26.
bool HasExtension(EnvoyRelease release, std::string_view type);

// Whether a filter of that type takes nothing from routes.
bool HasNoWordOfRoutes(std::string_view type);

}  // namespace wavetank::envoysim
