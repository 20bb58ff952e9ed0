// Borders that need more than a parser: a server, a mesh, an istiod.
#pragma once

#include <string_view>

namespace wavetank::fuzz {

// An EnvoyFilter (or another configuration of Istio) as YAML or JSON, as far as Envoys: read, kept, patched into what
// is generated for a sidecar and a gateway, and that compiled as an Envoy does.
void EnvoyFilterPatches(std::string_view bytes);

// What a client of the Kubernetes API sends on its connection: HTTP/1.1, or HTTP/2 if it begins so.
void HttpBytes(std::string_view bytes);

// What a client of an istiod sends by gRPC: a letter for the method (S and D: a stream of xDS, state of the world or
// delta; C: certificates), then messages as gRPC frames them (a byte, four of length, the protobuf). A response's nonce
// "last" stands for the one that was given last.
void GrpcMessages(std::string_view bytes);

}  // namespace wavetank::fuzz
