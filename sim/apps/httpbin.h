// What Istio's httpbin sample (docker.io/kennethreitz/httpbin) does by a request's path: /status/CODE, a code of
// several by their weights (/status/200:4,503), and /delay/SECONDS, ten at most. Everything else is answered as by any
// application.
#pragma once

#include <string_view>

#include "core/base/random.h"
#include "fakes/envoy/apps/app.h"

namespace wavetank::sim {

// Of a container's image, whoever's registry it is from: ".../httpbin:TAG", ".../go-httpbin".
bool IsHttpbin(std::string_view image);

// Draws from `random` only what is left to chance.
void AnswerAsHttpbin(const envoysim::RequestSpec& request, RandomStream& random, envoysim::AppReply* reply);

}  // namespace wavetank::sim
