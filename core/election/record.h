// Who leads, until when: as it is kept in an annotation of a ConfigMap, or in the spec of a Lease
// (istiod: pilot/pkg/leaderelection/k8sleaderelection/k8sresourcelock).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/kube/object.h"

namespace wavetank::election {

inline constexpr std::string_view kLeaderAnnotation = "control-plane.alpha.kubernetes.io/leader";
inline constexpr kube::ResourceKind kLease{"coordination.k8s.io", "v1", "Lease", "leases"};

struct LeaderRecord {
  std::string holder;  // empty: whoever asks may have it
  std::string key;     // the holder's revision, "^" before it if it is of another cluster; Leases have none
  int lease_seconds = 30;
  Time acquired{}, renewed{};
  int64_t transitions = 0;
};

// What the object that keeps an election is named, and of which of the two kinds it is.
struct LockName {
  std::string ns, name;
  bool lease = false;
  const kube::ResourceKind& kind() const { return lease ? kLease : kube::kinds::kConfigMap; }
  std::string Describe() const { return ns + "/" + name; }
};

// Compared byte by byte by those who wait: who leads has renewed if it differs.
struct StoredRecord {
  LeaderRecord record;
  std::string raw;
};

// Of an object that holds no record: one without holder. What cannot be read is InvalidArgument, as istiod then waits.
absl::StatusOr<StoredRecord> ReadRecord(const LockName& lock, const kube::Object& object);

// The object with that record in it; `before` is null where there is none. Then it may not overwrite what somebody else
// has made meanwhile.
nlohmann::json WithRecord(const LockName& lock, const kube::ObjectRef& before, const LeaderRecord& record);

}  // namespace wavetank::election
