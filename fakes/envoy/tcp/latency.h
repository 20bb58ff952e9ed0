// How long Envoy's own stages take. One table for all Envoys of a world; a scenario may replace it.
#pragma once

#include "core/base/time.h"

namespace wavetank::envoysim {

// Uniform in [min, max]; both 0 means none.
struct LatencyRange {
  Duration min{};
  Duration max{};
};

// Defaults fitted to real Envoy 1.40 behind a real istiod 1.18.2 (docs/timing.md): an EDS change is routed
// 0.5/2.3/3.2 ms (min/p50/p90) after a light client has the response; a new Service (CDS+EDS+LDS+RDS in a row on one
// main thread) 3.8/11.1/19 ms, of which about 4 ms are the measurement's own resolution.
struct StageLatencies {
  // Main thread, per response: parsing, diffing, posting to the workers. Responses queue for the one main thread.
  LatencyRange apply_cds{1200us, 3200us};
  LatencyRange apply_eds{700us, 2500us};
  LatencyRange apply_lds{1200us, 3600us};
  LatencyRange apply_rds{500us, 1500us};
  LatencyRange apply_sds{500us, 1500us};
  // Added per KiB of resources in the response.
  Duration per_kib{10us};

  // Process start: exec to first ADS request (docs/real-envoy.md 2: 42-151 ms, typically 70).
  LatencyRange start{42ms, 98ms};

  // Worker threads, per request and direction through an HTTP connection manager; per message through tcp_proxy.
  Duration http_hop{150us};
  Duration tcp_hop{25us};
  // Accepting a connection and running listener filters; CPU of one TLS handshake on either side.
  Duration accept{40us};
  Duration tls_handshake{600us};
};

}  // namespace wavetank::envoysim
