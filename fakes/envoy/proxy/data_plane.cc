#include "fakes/envoy/proxy/data_plane.h"

#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/filters/registry.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

DataPlane::DataPlane(Host& host, Network& network, const Options& options)
    : options_(options),
      fabric_([&] {
        Fabric::Options f;
        f.tcp_hop = options.latencies.tcp_hop;
        return std::make_unique<Fabric>(host, network, f);
      }()),
      configs_(std::make_unique<ConfigStore>(
          Extensions(options.extensions, options.release, &AllFilters(), &without_effect_))),
      tls_(std::make_unique<TlsSessions>(options.release.Has(EnvoyChange::kTlsErrorsAreFramed))),
      router_(std::make_unique<Router>(*this)) {}

DataPlane::~DataPlane() = default;

}  // namespace wavetank::envoysim
