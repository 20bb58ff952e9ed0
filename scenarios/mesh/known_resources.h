// Whose kinds are known whole: Kubernetes', Istio's, the Gateway API's and MetalLB's; and what an API server says of a
// kind that none of them has.
#pragma once

#include <string>

#include "core/profile/profile.h"
#include "fakes/kube/http/api/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// Of an object's kind, with its fields; one of Istio's in versions that came later, too. `later`: with the fields that
// came after 1.18. Null: nobody here knows it.
const fakekube::http::Resource* ResourceOf(const nlohmann::json& object, bool later);

// Of a kind that Istio's definitions bring.
bool OfIstio(const nlohmann::json& object);

// "no matches for kind "Servce" in version "v1": did you mean 'Service'?", as kubectl says it, with what was meant:
// the kind is misspelt, of another group, or the version is none that is served (its group's, or one that Kubernetes
// removed). Empty: the kind is served, or of a group of others, whose definitions may be elsewhere.
// O(kinds) where there is no match.
std::string NoMatch(const nlohmann::json& object);

// Of an object of a version that Istio's definitions serve in later releases, and not in the profile's:
// "networking.istio.io/v1 came with Istio 1.22; 1.18.2 serves networking.istio.io/v1alpha3 and
// networking.istio.io/v1beta1". Empty: it is served.
std::string NotServedYet(const nlohmann::json& object, const pilot::Profile& profile);

}  // namespace wavetank::scenario
