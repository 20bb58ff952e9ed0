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

// The mesh's configuration, and networks behind "---".
void MeshSettings(std::string_view bytes);

// The injector's ConfigMap, a pod behind "---" and the path that it is asked by behind another.
void Injector(std::string_view bytes);

// The schema of a definition with its rules in CEL, an object behind "---" and the one before behind another.
void SchemaRules(std::string_view bytes);

// istio-csr's arguments, one a line; or a pod that may be its own.
void CsrArguments(std::string_view bytes);

// A Corefile, and behind "---" two files that it may import.
void CoreDns(std::string_view bytes);

// A query to a name server, or its answer, as on the wire.
void DnsMessages(std::string_view bytes);

// Files of kind and MetalLB, and IstioOperators.
void Installers(std::string_view bytes);

// A fleet's page, and behind "---" what it must keep.
void FleetPage(std::string_view bytes);

// What log stores answer, and their consoles export.
void LogStores(std::string_view bytes);

// More small texts, of settings and tables.
void SmallSettings(std::string_view bytes);

}  // namespace wavetank::fuzz
