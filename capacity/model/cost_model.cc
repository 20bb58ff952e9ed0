#include "capacity/model/cost_model.h"

#include <algorithm>

namespace wavetank::capacity {

double CostModel::Sum(Place place, const Situation& s) const {
  double sum = 0;
  for (const Term& term : Terms()) {
    if (term.place == place) sum += parameters_[term.name] * term.count(s);
  }
  return sum;
}

double CostModel::Cpu(const Situation& s) const {
  if (s.change == Change::kStart) return Sum(Place::kProcess, s);
  if (s.change == Change::kConnect) return s.mesh.proxies * Sum(Place::kClient, s);
  const double misses = std::min(s.mesh.proxies, parameters_["shape.misses"]);
  double per_proxy = 0;
  for (const Place place : {Place::kCds, Place::kEds, Place::kLds, Place::kRds}) per_proxy += Sum(place, s);
  return Sum(Place::kPush, s) + s.mesh.proxies * per_proxy + misses * Sum(Place::kMiss, s);
}

double CostModel::Resident(const Situation& s) const { return Sum(Place::kResident, s); }

double CostModel::Kilobytes(const Situation& s) const { return Sum(Place::kBytes, s); }

CostModel::PushCost CostModel::Push(const Situation& s) const {
  PushCost cost;
  cost.before_ms = Sum(Place::kPush, s);
  cost.stages[kCds] = {Sum(Place::kCds, s), 0, IsFull(s.change)};
  cost.stages[kEds] = {Sum(Place::kEds, s), 0, true};
  cost.stages[kLds] = {Sum(Place::kLds, s), 0, IsFull(s.change)};
  cost.stages[kRds] = {Sum(Place::kRds, s), 0, PushesRoutes(s.change)};
  for (const Term& term : Terms()) {
    if (term.place != Place::kBytes) continue;
    const std::string_view type = term.name.substr(6, 3);
    const int at = type == "cds" ? kCds : type == "eds" ? kEds : type == "lds" ? kLds : kRds;
    cost.stages[static_cast<size_t>(at)].kilobytes += parameters_[term.name] * term.count(s);
  }
  cost.miss_ms = Sum(Place::kMiss, s);
  cost.misses = static_cast<int>(parameters_["shape.misses"]);
  return cost;
}

}  // namespace wavetank::capacity
