#include "capacity/page/plan_page.h"

#include "capacity/page/scripts.h"
#include "capacity/plan/plan_texts.h"
#include "reports/page.h"

namespace wavetank::capacity {
namespace {

using Json = nlohmann::ordered_json;

Json Told(const PlanText& text) {
  return {{"fleet", text.fleet},     {"verdict", text.verdict},          {"figures", text.figures},
          {"kinds", text.kinds},     {"settings", text.settings},        {"binds", text.binds},
          {"assumed", text.assumed}, {"extrapolates", text.extrapolates}};
}

Json Drawn(const Curves& curves) {
  Json churn = Json::array(), time = Json::array();
  for (const ChurnPoint& p : curves.churn) {
    churn.push_back({{"times", p.times},
                     {"p50Ns", p.p50.count()},
                     {"p99Ns", p.p99.count()},
                     {"p99LowNs", p.p99_low.count()},
                     {"p99HighNs", p.p99_high.count()},
                     {"cpus", p.cpus},
                     {"changes", p.changes},
                     {"missing", p.missing},
                     {"kept", p.kept}});
  }
  for (const TimePoint& p : curves.time) {
    time.push_back({{"atNs", p.at.count()},
                    {"cpus", p.cpus},
                    {"memoryMB", p.resident_mb},
                    {"waiting", p.waiting},
                    {"kilobytesPerSecond", p.kilobytes_per_second}});
  }
  const auto ramp = [](const std::vector<RampPoint>& points) {
    Json out = Json::array();
    for (const RampPoint& p : points) out.push_back({{"atNs", p.at.count()}, {"served", p.served}});
    return out;
  };
  return {{"churn", churn}, {"churnEnds", curves.churn_ends},           {"spanNs", curves.span.count()},
          {"time", time},   {"istiodDeath", ramp(curves.istiod_death)}, {"allConnect", ramp(curves.all_connect)}};
}

}  // namespace

std::string PlanPage(const Plan& plan, const Curves& curves, const std::vector<std::string>& notes) {
  const Json data = {{"plan", PlanJson(plan)},
                     {"text", Told(TextOf(plan))},
                     {"curves", Drawn(curves)},
                     {"sloNs", plan.slo.limit.count()},
                     {"sloText", plan.slo.Text()},
                     {"seconds", static_cast<double>(plan.fleet.duration.count()) / 1e9},
                     {"fleetMemoryMB", plan.fleet.istiod.memory_mb},
                     {"proxies", ProxiesOf(plan.fleet)},
                     {"notes", notes}};
  return report::PageHtml(plan.fleet.name + ": plan", PlanScript(), data);
}

}  // namespace wavetank::capacity
