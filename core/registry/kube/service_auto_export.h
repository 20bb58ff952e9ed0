// ENABLE_MCS_AUTO_EXPORT: a ServiceExport for every Service of one cluster that is not cluster-local; it goes with its
// Service (istiod: pilot/pkg/serviceregistry/kube/controller/autoserviceexportcontroller.go).
//
// Simplified: istiods elect a leader per cluster; here each writes what is not there. And where ServiceExports are not
// defined, istiod gives up until its next start; here it waits for them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/kube/informer.h"
#include "core/registry/kube/mcs_options.h"

namespace wavetank::pilot {

class ServiceAutoExport {
 public:
  // References must outlive it. `cluster_local` is asked once for each Service that comes.
  ServiceAutoExport(kube::Client& client, Host& host, const McsOptions& options, std::string domain_suffix,
                    std::function<bool(std::string_view hostname)> cluster_local);

  void Start();

 private:
  void Export(const kube::Object& service);

  const McsOptions options_;
  const std::string domain_suffix_;
  const std::function<bool(std::string_view hostname)> cluster_local_;
  kube::Client& client_;
  kube::Informer exports_, services_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
