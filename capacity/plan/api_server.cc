#include "capacity/plan/api_server.h"

#include <algorithm>

namespace wavetank::capacity {
namespace {

// A lease of 30 s is looked at by all candidates each quarter of it, and written by the one that has it
// (istiod: pilot/pkg/leaderelection/leaderelection.go).
constexpr double kLeaseRetrySeconds = 7.5, kRequestsOfLeader = 2;
// Workload certificates live 24 h and are renewed at half of it (istio-agent: SECRET_GRACE_PERIOD_RATIO).
constexpr double kRenewalSeconds = 12 * 3600;
// EndpointSlices hold up to 100 endpoints (kube-controller-manager: --max-endpoints-per-slice).
constexpr double kEndpointsOfSlice = 100;

}  // namespace

ApiLoad ApiLoadOf(const CostModel& model, const Fleet& fleet, const MeshSize& mesh, const ChangeRates& rates) {
  const Parameters& p = model.parameters();
  const double of_service = mesh.services > 0 ? mesh.endpoints / mesh.services : 0;
  const double in_slice = std::min(kEndpointsOfSlice, std::max(1.0, of_service));
  ApiLoad out;
  out.limit = static_cast<double>(fleet.istiod.api_qps);
  // Half of the writes of slices are of pods that came; those of this istiod's own proxies are reviewed here.
  const double own = mesh.endpoints > 0 ? std::min(1.0, mesh.proxies / mesh.endpoints) : 0;
  out.requests_per_second = p["api.elections"] * kRequestsOfLeader / kLeaseRetrySeconds +
                            mesh.proxies / kRenewalSeconds + rates.endpoints / 2 * own * kReviewsOfNewProxy;
  out.kilobytes_per_second =
      rates.endpoints * (p["api.slice"] + in_slice * p["api.slice.endpoint"] + p["api.pod.writes"] * p["api.pod"]) +
      rates.objects * p["api.object"];
  out.start_requests = 2 * p["api.informers"] * mesh.clusters;  // a list and a watch each
  out.start_mb = (mesh.services * (p["api.object"] + p["api.slice"] * std::max(1.0, of_service / kEndpointsOfSlice)) +
                  mesh.endpoints * (p["api.pod"] + p["api.slice.endpoint"])) /
                 1000;
  return out;
}

// client-go's token bucket; a refused stream costs no review, since istiod asks its own limit first
// (istiod: pilot/pkg/xds/ads.go, Stream).
Duration Reviewed(const IstiodSpec& istiod, double proxies, double reviews) {
  const double waiting = proxies * reviews - static_cast<double>(istiod.api_burst);
  return Duration(static_cast<int64_t>(std::max(0.0, waiting) / static_cast<double>(istiod.api_qps) * 1e9));
}

}  // namespace wavetank::capacity
