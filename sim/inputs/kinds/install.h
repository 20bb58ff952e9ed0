// How a cluster of the mesh begins: what `istioctl install` leaves behind, and the CA that was plugged in before; and
// how it gets another release of Istio.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// What `istioctl install` leaves behind, unless it is there.
struct Install {
  static constexpr std::string_view kKind = "install";
  std::string cluster;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// One part of an upgrade to another release, of one cluster. A remote cluster's istiod and injector are its primary's:
// there those parts change nothing.
struct Upgrade {
  static constexpr std::string_view kKind = "upgrade";
  std::string cluster;
  std::string profile;   // "istio-1.30"
  std::string revision;  // beside what runs; empty: in its place
  // istiod, with the injector; injector, without istiod; gateways; workloads: those with sidecars; oldIstiod: what is
  // of no revision but this one goes.
  std::string part = "istiod";

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// Secret cacerts: an intermediate CA of the cluster under the root of that name; root-cert.pem also holds the roots of
// the names in `trusts`. There "istio-ca-secret" is the root that this cluster's istiod signed itself,
// "istio-ca-secret@NAME" that of another cluster. With `rootsAlone` there is no intermediate: what istiod signs itself
// is trusted beside the root and `trusts`.
struct PlugInCa {
  static constexpr std::string_view kKind = "cacerts";
  std::string cluster, root = "root";
  std::vector<std::string> trusts{};
  bool roots_alone = false;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
