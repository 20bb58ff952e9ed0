// TLS that listeners terminate, as encoded TransportSockets
// (istiod: pilot/pkg/security/authn/utils/utils.go, listener.go BuildListenerTLSContext).
#pragma once

#include <string>

#include "core/config/kinds/typed_config.h"
#include "core/config/mesh/mesh_config.h"
#include "core/model/proxy.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// Mutual TLS between sidecars: the workload's certificate, peers of the mesh's trust domains. `http`: of a chain that
// ends in an HTTP connection manager; others also offer "istio-peer-exchange".
std::string InboundMutualTlsSocket(const Proxy& proxy, const config::MeshConfig& mesh, const Profile& profile,
                                   bool validates, bool http);

// What a Gateway server asks for. `tcp`: the decrypted stream is not HTTP.
std::string ServerTlsSocket(const config::ServerTlsSettings& settings, const Proxy& proxy,
                            const config::MeshConfig& mesh, const Profile& profile, bool tcp);

}  // namespace wavetank::pilot
