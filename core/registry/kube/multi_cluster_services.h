// Kubernetes multi-cluster services of one cluster: which of its Services ServiceExports let the mesh see, and under
// which addresses ServiceImports bring Services of the clusterset into it
// (istiod: pilot/pkg/serviceregistry/kube/controller/{serviceexportcache,serviceimportcache}.go).
//
// Its kinds need definitions, which most clusters lack: it reads them once they are there, and nothing waits for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "core/kube/filtered_informer.h"
#include "core/model/clusterset.h"
#include "core/profile/profile.h"
#include "core/registry/kube/mcs_options.h"

namespace wavetank::pilot {

// ServiceExports of that group and version; `options` outlives it.
kube::ResourceKind ExportKind(const McsOptions& options);
// "web.shop.svc.clusterset.local"
std::string ClusterSetHostname(const kube::NamespacedName& service);

class MultiClusterServices {
 public:
  // References must outlive it.
  MultiClusterServices(kube::Client& client, Host& host, const McsOptions& options, const Profile& profile,
                       kube::FilteredInformer::Filter filter);
  ~MultiClusterServices();

  // Handlers of both informers; before Start.
  kube::FilteredInformer& exports() { return exports_; }
  const kube::FilteredInformer& exports() const { return exports_; }
  kube::FilteredInformer& imports() { return imports_; }
  const kube::FilteredInformer& imports() const { return imports_; }

  // `on_synced`: whenever more of it has.
  void Start(std::function<void()> on_synced);
  void Stop();
  // What has definitions has been read.
  bool HasSynced() const;

  // Endpoints of this cluster under that host are for its own proxies alone. `known`: the registry has that Service.
  bool Confines(std::string_view hostname, const kube::NamespacedName& service, bool known) const;
  // Addresses of the clusterset, sorted; empty: it is not imported here.
  std::vector<std::string> ImportedIps(const kube::NamespacedName& service) const;

 private:
  const McsOptions options_;
  const Profile profile_;
  kube::Client& client_;
  kube::FilteredInformer exports_, imports_;
  std::function<void()> on_synced_;
  bool exports_started_ = false, imports_started_ = false, stopped_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
