// The ways between a pod and its address (istiod: pilot/pkg/serviceregistry/kube/controller/pod.go, PodCache).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "core/base/assert.h"
#include "core/kube/object.h"

namespace wavetank::pilot {

// Each mesh holds one for each istiod and cluster, with all pods of that cluster: a pod's names stand once for both
// ways.
class PodAddresses {
 public:
  // The pod that has the address; null if none has. Valid until the next change.
  const kube::NamespacedName* PodAt(std::string_view ip) const {
    const auto it = by_ip_.find(ip);
    return it == by_ip_.end() ? nullptr : &(*it)->pod;
  }
  bool Knows(const kube::NamespacedName& pod) const { return by_pod_.contains(pod); }

  // False if that is known. A pod that had another address has left it; a pod that had this one has lost it, and keeps
  // what Knows says of it until its own deletion.
  bool Put(const std::string& ip, const kube::NamespacedName& pod) {
    const auto present = by_ip_.find(ip);
    if (present != by_ip_.end() && (*present)->pod == pod) return false;
    if (present != by_ip_.end()) by_ip_.erase(present);
    if (const auto other = by_pod_.find(pod); other != by_pod_.end()) {
      by_ip_.erase((*other)->ip);
      by_pod_.erase(other);
    }
    const auto entry = std::make_shared<const Entry>(Entry{ip, pod});
    by_ip_.insert(entry);
    by_pod_.insert(entry);
    WAVETANK_ASSERT(by_ip_.size() <= by_pod_.size(), by_ip_.size(), by_pod_.size());  // a pod has one address here
    return true;
  }

  // False if another pod, or none, has the address.
  bool Erase(std::string_view ip, const kube::NamespacedName& pod) {
    const auto it = by_ip_.find(ip);
    if (it == by_ip_.end() || (*it)->pod != pod) return false;
    by_ip_.erase(it);
    by_pod_.erase(pod);
    return true;
  }

 private:
  struct Entry {
    std::string ip;
    kube::NamespacedName pod;
  };
  using Ref = std::shared_ptr<const Entry>;
  struct IpHash {
    using is_transparent = void;
    size_t operator()(std::string_view ip) const { return absl::Hash<std::string_view>{}(ip); }
    size_t operator()(const Ref& entry) const { return (*this)(std::string_view(entry->ip)); }
  };
  struct SameIp {
    using is_transparent = void;
    static std::string_view Of(std::string_view ip) { return ip; }
    static std::string_view Of(const Ref& entry) { return entry->ip; }
    bool operator()(const auto& a, const auto& b) const { return Of(a) == Of(b); }
  };
  struct PodHash {
    using is_transparent = void;
    size_t operator()(const kube::NamespacedName& pod) const {
      return absl::Hash<std::pair<std::string_view, std::string_view>>{}({pod.ns, pod.name});
    }
    size_t operator()(const Ref& entry) const { return (*this)(entry->pod); }
  };
  struct SamePod {
    using is_transparent = void;
    static const kube::NamespacedName& Of(const kube::NamespacedName& pod) { return pod; }
    static const kube::NamespacedName& Of(const Ref& entry) { return entry->pod; }
    bool operator()(const auto& a, const auto& b) const { return Of(a) == Of(b); }
  };

  absl::flat_hash_set<Ref, IpHash, SameIp> by_ip_;
  absl::flat_hash_set<Ref, PodHash, SamePod> by_pod_;
};

}  // namespace wavetank::pilot
