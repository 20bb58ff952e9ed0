// What one istiod asks of API servers: requests, bytes, and how fast TokenReviews let proxies connect.
#pragma once

#include "capacity/fleet/fleet.h"
#include "capacity/model/cost_model.h"

namespace wavetank::capacity {

// Of a fleet's changes, each second.
struct ChangeRates {
  double endpoints = 0;  // slices that were written
  double objects = 0;    // Services, Istio's objects, Secrets
};

struct ApiLoad {
  double requests_per_second = 0;           // leader elections, and TokenReviews of renewals and of pods that start
  double kilobytes_per_second = 0;          // watches, of all clusters together
  double start_requests = 0, start_mb = 0;  // lists and watches that begin when istiod starts
  double limit = 0;                         // requests a second that its client lets through (kubernetesApiQPS)
};

ApiLoad ApiLoadOf(const CostModel& model, const Fleet& fleet, const MeshSize& mesh, const ChangeRates& rates);

// `proxies` of one istiod connect, each with so many TokenReviews: those beyond the burst wait for the client's limit.
Duration Reviewed(const IstiodSpec& istiod, double proxies, double reviews);
// A proxy whose certificate holds has its stream's token reviewed; a new one that of its certificate request, too.
inline constexpr double kReviewsOfStream = 1, kReviewsOfNewProxy = 2;

}  // namespace wavetank::capacity
