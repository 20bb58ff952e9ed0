// How far configurations have come: of each that has changed lately, how many of this istiod's proxies have it
// (istiod: pilot/pkg/status/distribution/{report,reporter}.go). Written into ConfigMap POD-distribution, which whoever
// leads reads (status_leader.h).
//
// What counts is not the proxy but each type of resources that it has acknowledged once: clusters, listeners, routes,
// endpoints. A type has a configuration if the proxy's last push holds it and all that was sent is acknowledged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/config/store/store.h"
#include "core/kube/client.h"

namespace wavetank::pilot {

class DiscoveryServer;

inline constexpr std::string_view kReportLabel = "internal.istio.io/distribution-report";
inline constexpr std::string_view kReportKey = "distribution-report";

struct DistributionReport {
  std::string reporter;
  int64_t data_planes = 0;
  std::map<std::string, int64_t> in_progress;  // by "GROUP/VERSION/RESOURCE/NAMESPACE/NAME/GENERATION"
};
std::string ReportYaml(const DistributionReport& report);
// InvalidArgument: it is no report.
absl::StatusOr<DistributionReport> ParseReport(const std::string& yaml);

class DistributionReporter {
 public:
  struct Options {
    std::string ns = "istio-system", pod;
    Duration interval = 500ms;  // PILOT_STATUS_UPDATE_INTERVAL
  };
  // All must outlive it.
  DistributionReporter(Host& host, kube::Client& client, config::ConfigStore& configs, const DiscoveryServer& discovery,
                       Options options);

  void Start();
  // SIGTERM: the ConfigMap goes.
  void Stop();
  // As it stands now.
  DistributionReport Report() const;

 private:
  struct InProgress {
    std::string resource;
    int64_t generation = 0;
    uint64_t push = 0;  // the first one that holds it
    int completed = 0;  // reports of it in everybody's hands
  };

  void OnConfig(config::ConfigEvent event, const config::AnyConfigRef& config);
  void Write();

  Host& host_;
  kube::Client& client_;
  const DiscoveryServer& discovery_;
  const Options options_;
  std::map<std::string, InProgress> in_progress_;  // by resource, without its generation
  std::string written_;
  bool stopped_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
