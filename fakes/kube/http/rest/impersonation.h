// Requests in somebody else's name (kubectl --as, --as-group, --as-uid).
#pragma once

#include <optional>
#include <variant>

#include "fakes/kube/http/message/message.h"
#include "fakes/kube/http/rest/call.h"

namespace wavetank::fakekube::http {

// Whom `requestor` speaks for, if `request` names somebody: each user, group, uid and extra value is something that he
// must be allowed to impersonate. nullopt: he speaks for himself.
std::optional<std::variant<Caller, Refusal>> Impersonate(const ApiServer& server, const Caller& requestor,
                                                         const Request& request);

}  // namespace wavetank::fakekube::http
