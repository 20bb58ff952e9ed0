// The API servers of a golden case: objects as they were written, nothing defaulted, changes delivered at once (in
// virtual time: at the same instant, after what is already due). docs/golden-cases.md states the rules.
//
// Fault model: none; always there, history never ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/kube/client.h"
#include "core/kube/object.h"

namespace wavetank::golden {

class CaseServer {
 public:
  explicit CaseServer(Host& host) : host_(host) {}

  // Stamps uid, resourceVersion (1001 and up) and, on a Namespace, the label with its name. InvalidArgument, of both:
  // it is no object of Kubernetes; NotFound: what is to be deleted is not there.
  absl::Status Apply(nlohmann::json body);
  absl::Status Delete(const nlohmann::json& body);

  // No list is answered before `first_answer`.
  std::unique_ptr<kube::Client> MakeClient(Time first_answer = {});
  // The name of a Pod that has the IP; empty: there is none.
  std::string PodAt(std::string_view ns, std::string_view ip) const;
  // Watches that still have an owner.
  size_t WatchCount() const;

 private:
  friend class CaseClient;
  // Kind, then name: lists are in key order, as etcd's are.
  using Key = std::tuple<std::string, kube::NamespacedName>;
  struct Subscription;

  void Notify(kube::WatchEventType type, const kube::ObjectRef& object, const kube::ObjectRef& previous);

  Host& host_;
  std::map<Key, kube::ObjectRef> objects_;
  std::vector<std::weak_ptr<Subscription>> watches_;
  int64_t resource_version_ = 1000;
};

// Leads from a kubeconfig to the server that its current context names: https://<ID>.api.test:6443. Clusters come one
// after the other: istiod 1.30 starts them side by side, so that their order would be a race.
class CaseClientFactory final : public kube::ClientFactory {
 public:
  CaseClientFactory(Host& host, std::map<std::string, std::unique_ptr<CaseServer>>& servers)
      : host_(host), servers_(servers) {}
  absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string& cluster_id,
                                                        const std::string& kubeconfig) override;

 private:
  Host& host_;
  std::map<std::string, std::unique_ptr<CaseServer>>& servers_;
  Time first_answer_{};
};

}  // namespace wavetank::golden
