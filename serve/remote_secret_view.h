// Remote Secrets as a real istiod on loopback must see them: each names the port at which that istiod reaches the
// cluster here, instead of the world's own address or of some real API server.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fakes/kube/http/message/message.h"

namespace wavetank::serve {

// `servers`: URL by cluster. A kubeconfig that names none of the world's clusters, by address or else by the Secret's
// own name for it, leads to a port without a server; what is no kubeconfig stays as it is, for istiod to refuse.
// `name` tells this view from others.
std::shared_ptr<const fakekube::http::ObjectView> MakeRemoteSecretView(std::string name,
                                                                       std::map<std::string, std::string> servers);

}  // namespace wavetank::serve
