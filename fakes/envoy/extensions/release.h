// Envoy's releases: what changed from one to the next, of that which is simulated. A rule that asks here behaves as the
// release of the profile's Envoys does (Istio 1.18 ships 1.26), or as 1.40, which tests compare with.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace wavetank::envoysim {

enum class EnvoyChange : uint8_t {
  kEjectionCountsItself,        // max_ejection_percent holds after an ejection, not before it
  kEjectionPercentIsStrict,     // ... and for the first host, too
  kFiltersAreDisabled,          // in their chain, until a route enables them; before, the field says nothing
  kTlsErrorsAreFramed,          // "TLS_error:|...:TLS_error_end"
  kRouteFiltersByName,          // typed_per_filter_config is found by the name in the chain alone
  kFlagsInOrderOfSetting,       // "URX,UF"; before in the order of the enum
  kDrainingIsExcluded,          // DRAINING endpoints do not count where a share of a priority has to be healthy
  kRemoteResetsAreFlagged,      // DR in the log of a request that its client has reset
  kTokensFlowBack,              // local rate limits; before a timer adds them
  kEndpointsAreCached,          // for a changed cluster whose endpoints do not come; before it is empty
  kHandshakesAreJudged,         // of WebSocket; before, an answer without an upgrade goes back as any other
  kConnectErrorsAreWords,       // "delayed connect error: Connection refused"; before its number
  kNothingIsInternal,           // without internal_address_config; before, RFC 1918's addresses are
  kStreamsAreBounded,           // HTTP/2: 1024 at a time unless said otherwise; before any number
  kHandshakesAreTimed,          // of WebSocket, and their failures from 400 on are answers as others are
  kActiveOverflowIsCounted,     // upstream_rq_active_overflow; before upstream_rq_pending_overflow
  kRetriesCountWhenMade,        // upstream_rq_retry and upstream_rq_retry_backoff_...; before when they are planned
  kBodiesHideTransportFailure,  // of local replies
  kHybridKeyExchange,           // X25519MLKEM768 before all others, unless curves are named; before, X25519
  kSeveralHealthChecks          // of a cluster, if each has a name; before one alone
};

struct EnvoyChangeRow {
  EnvoyChange change;
  uint32_t minor;  // the first release with it: 1.minor
  std::string_view what, source;
};

struct EnvoyRelease {
  uint32_t minor = 40;
  bool Has(EnvoyChange change) const;
};

// All changes, in the order of the enum.
absl::Span<const EnvoyChangeRow> EnvoyChanges();

}  // namespace wavetank::envoysim
