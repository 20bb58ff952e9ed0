// What real clients of a served world say: their ADS streams and their requests for certificates. Who is served how is
// told in sim/outside_clients.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/security/ca_server.h"
#include "core/xds/messages.h"
#include "sim/inputs/input.h"
#include "sim/outside_clients.h"

namespace wavetank::sim::inputs {

// `client`: a number that the server chose, never used twice.
struct XdsOpen {  // a stream to the istiod of that cluster
  static constexpr std::string_view kKind = "xdsOpen";
  uint64_t client = 0;
  std::string cluster, address;
  OutsidePeer peer;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct XdsRequest {
  static constexpr std::string_view kKind = "xdsRequest";
  uint64_t client = 0;
  pilot::DiscoveryRequest request;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct XdsDeltaRequest {
  static constexpr std::string_view kKind = "xdsDeltaRequest";
  uint64_t client = 0;
  pilot::DeltaDiscoveryRequest request;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct XdsClose {  // the client hung up, or was hung up on
  static constexpr std::string_view kKind = "xdsClose";
  uint64_t client = 0;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

struct CertificateRequest {
  static constexpr std::string_view kKind = "certificateRequest";
  uint64_t client = 0;
  std::string cluster;
  OutsidePeer peer;
  security::CertificateRequestMessage request;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
