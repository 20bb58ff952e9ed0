#include <array>

#include "core/gen/lds/inbound_listeners.h"

namespace wavetank::pilot {
namespace {

using P = ListenerProtocol;
using Matches = std::vector<InboundMatch>;

// A port that is known to carry one protocol: in PERMISSIVE mode whatever offers Istio's ALPN is mTLS.
Matches OfKnownProtocol(MutualTlsMode mode, P protocol) {
  switch (mode) {
    case MutualTlsMode::kStrict:
      return {{protocol, kTlsTransport, {}, true}};
    case MutualTlsMode::kPermissive: {
      Matches out = {{protocol, kTlsTransport, AllMutualTlsAlpns(), true}};
      // The application's own TLS; a port that says HTTP has none.
      if (protocol == P::kTcp) out.push_back({protocol, kTlsTransport, {}, false});
      out.push_back({protocol, kRawBufferTransport, {}, false});
      return out;
    }
    default:
      return {{protocol, kRawBufferTransport, {}, false}};
  }
}

// A port that may carry anything: the client's sidecar says in its ALPN what it saw, plain text is inspected here.
Matches OfSniffed(MutualTlsMode mode, bool http10) {
  const InboundMatch plain_http{P::kHttp, kRawBufferTransport, PlaintextHttpAlpns(http10), false};
  const InboundMatch mutual_http{P::kHttp, kTlsTransport, MutualTlsHttpAlpns(), true};
  switch (mode) {
    case MutualTlsMode::kStrict:
      return {mutual_http, {P::kTcp, kTlsTransport, {}, true}};
    case MutualTlsMode::kPermissive:
      return {mutual_http,
              plain_http,
              {P::kTcp, kTlsTransport, MutualTlsTcpAlpns(), true},
              {P::kTcp, kRawBufferTransport, {}, false},
              {P::kTcp, kTlsTransport, {}, false}};
    default:
      return {plain_http, {P::kTcp, kRawBufferTransport, {}, false}};
  }
}

}  // namespace

const Matches& InboundMatches(MutualTlsMode mode, ListenerProtocol protocol, bool http10) {
  static const auto& table = *[] {
    auto* out = new std::array<std::array<Matches, 4>, 4>;
    for (size_t m = 0; m < out->size(); ++m) {
      const auto row = static_cast<MutualTlsMode>(m);
      (*out)[m] = {OfKnownProtocol(row, P::kHttp), OfSniffed(row, false), OfSniffed(row, true),
                   OfKnownProtocol(row, P::kTcp)};
    }
    return out;
  }();
  const size_t column = protocol == P::kHttp ? 0 : protocol != P::kAuto ? 3 : http10 ? 2 : 1;
  return table[static_cast<size_t>(mode)][column];
}

}  // namespace wavetank::pilot
