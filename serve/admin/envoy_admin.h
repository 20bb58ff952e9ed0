// The admin interface of a simulated Envoy by paths: config_dump, clusters, listeners, certs, server_info, stats,
// ready.
#pragma once

#include "fakes/kube/http/message/message.h"
#include "serve/grpc/held_config.h"

namespace wavetank::sim {
class PodProcess;
}

namespace wavetank::serve {

// On the loop's thread. 404 for a page that a simulated Envoy does not have; 503 before its Envoy has started. What
// would change the Envoy (POST) is refused with 501, but for /logging without a query, which shows the levels.
fakekube::http::Response AdminAnswer(const sim::PodProcess& pod, const HeldConfig& held,
                                     const fakekube::http::Request& request);

}  // namespace wavetank::serve
