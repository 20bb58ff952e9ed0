// ADS of real control planes for simulated Envoys: their streams by gRPC, what comes back on the loop's thread. The
// Envoys' state machine (fakes/envoy/xds/ads_client.h) is the same as ever, and in real time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/loop/loop.h"
#include "sim/cluster_site.h"

namespace wavetank::serve {

class AdsDial final : public sim::AdsElsewhere {
 public:
  // Where a proxy of a cluster goes now: "127.0.0.1:15010"; empty: to nobody.
  using AddressOf = std::function<std::string(const std::string& cluster, const std::string& proxy)>;
  // `address_of` is called on the loop's thread. `loop` must outlive it.
  AdsDial(Loop& loop, AddressOf address_of);
  // Hangs up. Streams that Envoys still hold say nothing any more.
  ~AdsDial() override;

  // On the loop's thread. A proxy without an address: the stream closes, as if no server listened.
  std::unique_ptr<envoysim::AdsStream> Open(const std::string& cluster, const std::string& proxy,
                                            envoysim::AdsTransport::Protocol protocol,
                                            envoysim::AdsStreamObserver* observer) override;

 private:
  class Calls;
  template <class Request, class Response>
  class Call;
  class Stream;

  Loop& loop_;
  const AddressOf address_of_;
  std::shared_ptr<Calls> calls_;
};

}  // namespace wavetank::serve
