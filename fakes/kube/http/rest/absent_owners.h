// What clients make in the name of owners that are not there: the garbage collector finds it out and ends it
// (kubernetes: pkg/controller/garbagecollector). Owners that go take their dependents along in the store itself.
#pragma once

#include <memory>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube::http {

// To be called with an object that a client has just made. While `alive` lives, an object all of whose owners are
// absent is deleted a moment later.
void CollectIfOwnersAreAbsent(ApiServer& server, const kube::Object& made, std::weak_ptr<const void> alive);

}  // namespace wavetank::fakekube::http
