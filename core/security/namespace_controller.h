// Keeps the ConfigMap `istio-ca-root-cert` in every namespace of one cluster at the mesh's root certificates: that is
// where proxies learn which roots to trust when they first call istiod
// (istiod: pilot/pkg/serviceregistry/kube/controller/namespacecontroller.go, security/pkg/k8s/configutil.go).
//
// Of the istiods that share a cluster the leader of `istio-namespace-controller-election` runs it (core/election). Two
// control planes with different roots must not be candidates for one cluster (ShouldLead decides).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/kube/informer.h"

namespace wavetank::security {

inline constexpr std::string_view kCaRootConfigMap = "istio-ca-root-cert";
inline constexpr std::string_view kCaRootConfigMapKey = "root-cert.pem";
// Names the istiods (by cluster, comma separated, or "*") that serve this cluster as its control plane.
inline constexpr std::string_view kControlPlaneClustersAnnotation = "topology.istio.io/controlPlaneClusters";

// Neither injected nor given a root certificate.
bool IsIgnoredNamespace(std::string_view ns);

// Whether the istiod of `own_cluster` serves `cluster` beyond reading it. Its own always; another one only if istiod is
// an external one (EXTERNAL_ISTIOD) and the system namespace there names it. `system_namespace` is null when that
// cluster has none. istiod: Multicluster.checkShouldLead.
bool ShouldLead(std::string_view own_cluster, std::string_view cluster, bool external_istiod,
                const kube::Object* system_namespace);

class NamespaceController {
 public:
  // `host` and `client` outlive it. `ca_bundle` is asked whenever a ConfigMap is compared; `seed` jitters retries.
  NamespaceController(Host& host, kube::Client& client, std::string_view cluster, uint64_t seed,
                      std::function<std::string()> ca_bundle);
  ~NamespaceController();

  // ISTIO_WATCH_NAMESPACE: no namespace but this one is given anything. To be called before Start().
  void LimitTo(std::string ns) { only_ = std::move(ns); }
  void Start();
  // To be called when the bundle changed.
  void OnBundleChanged();

  int64_t writes() const { return writes_; }

 private:
  void Enqueue(std::string ns);
  void Reconcile(const std::string& ns);
  void Finish(const std::string& ns);

  Host& host_;
  kube::Client& client_;
  std::function<std::string()> ca_bundle_;
  kube::Informer namespaces_, config_maps_;
  struct Work {
    int retries = 0;
    bool again = false;  // something happened since it was queued
  };
  std::string only_;                  // empty: all
  std::map<std::string, Work> work_;  // by namespace: queued, being written or waiting for a retry
  int64_t writes_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
