// Units of work whose real-world cost is modelled. core/ says what it did; only the host knows what that costs.
#pragma once

#include <cstdint>

namespace wavetank {

enum class WorkKind : uint8_t {
  kRegistryEvent,    // one informer event through istiod's registry queue (units: endpoints touched)
  kSecretSync,       // creating a remote cluster's client and syncing its informers (units: objects)
  kPushContextInit,  // a full push makes it (units: services, extra: endpoints), others look it up (none)
  kPushStart,        // queueing a push (units: connections); taking a proxy out (extra: merged changes)
  kGenerateCds,      // per proxy (units: resources generated, extra: bytes)
  kGenerateEds,      // per proxy (units: cluster load assignments, extra: endpoints)
  kGenerateLds,      // per proxy (units: resources, extra: bytes)
  kGenerateRds,      // per proxy (units: resources, extra: bytes)
  kGenerateSds,      // per proxy (units: resources)
  kProxyState,       // per proxy and full push: service targets, sidecar scope
  kSendResponse,     // marshalling and writing one response (units: bytes)
  kReceiveRequest,   // reading one ADS request (units: resource names)
  kConnect,          // a new ADS stream: authentication and initialisation of the proxy
  kSignCertificate,  // one CSR
  kInjectPod,        // one admission review
};

// `cached` says that the result came out of the XDS cache, which real istiod pays less for.
struct Work {
  WorkKind kind;
  int64_t units = 1;
  int64_t extra = 0;
  bool cached = false;
};

}  // namespace wavetank
