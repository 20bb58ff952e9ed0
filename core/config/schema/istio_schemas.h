// The schemas of Istio's kinds: which fields they have, of which types, which values they may take, and which exclude
// each other; so that kubectl explains them and a misspelt field is refused instead of ignored.
#pragma once

#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// An openAPIV3Schema for "VirtualService" and the others of Istio 1.18, as strict as the definitions that Istio
// installs: they require nothing, and istiod itself says what else is wrong. For a kind that is not known: anything
// goes. `later`: with the fields and words that Istio 1.30 has and 1.18 has not.
nlohmann::json IstioSchema(std::string_view kind, bool later = false);

}  // namespace wavetank::pilot
