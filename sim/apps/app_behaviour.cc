#include "sim/apps/app_behaviour.h"

#include <algorithm>

namespace wavetank::sim {
namespace {

constexpr int64_t kWhole = 1'000'000;

bool Fits(const AppAnswer& answer, const envoysim::RequestSpec& request, RandomStream& random) {
  if (!answer.header.empty()) {
    const bool has = std::any_of(request.headers.begin(), request.headers.end(), [&](const auto& header) {
      return header.first == answer.header && header.second == answer.value;
    });
    if (!has) return false;
  }
  return answer.share_ppm >= kWhole || random.Between(0, kWhole - 1) < answer.share_ppm;
}

Duration DrawTime(const std::vector<AppBehaviour::Quantile>& latency, RandomStream& random) {
  const int64_t at = random.Between(0, kWhole - 1);
  AppBehaviour::Quantile below;
  for (const AppBehaviour::Quantile& point : latency) {
    if (at < point.share_ppm) {
      // In microseconds, so that hours fit as well.
      const int64_t span = (point.time - below.time) / 1us;
      return below.time + 1us * (span * (at - below.share_ppm) / (point.share_ppm - below.share_ppm));
    }
    below = point;
  }
  return below.time;
}

}  // namespace

void Behave(const AppBehaviour& behaviour, const envoysim::InboundCall& call, Duration age, RandomStream& random,
            envoysim::AppReply* reply) {
  if (!behaviour.latency.empty()) reply->delay = DrawTime(behaviour.latency, random);
  if (age < behaviour.slow_start) {
    const int64_t left = (behaviour.slow_start - age) / 1ms, all = std::max<int64_t>(behaviour.slow_start / 1ms, 1);
    reply->delay += reply->delay * (behaviour.slow_factor - 1) / all * left;
  }
  reply->body_pace = {behaviour.body_over, behaviour.body_over / std::max<int64_t>(behaviour.body_pieces, 1)};
  for (const AppAnswer& answer : behaviour.answers) {
    if (!Fits(answer, call.spec, random)) continue;
    reply->code = answer.reset ? 0 : answer.code;
    return;
  }
}

std::vector<size_t> DueCalls(const AppBehaviour& behaviour, const envoysim::RequestSpec& request,
                             RandomStream& random) {
  std::vector<size_t> out;
  for (size_t i = 0; i < behaviour.calls.size(); ++i) {
    const AppCall& call = behaviour.calls[i];
    if (!request.path.starts_with(call.on_path)) continue;
    if (call.share_ppm < kWhole && random.Between(0, kWhole - 1) >= call.share_ppm) continue;
    out.push_back(i);
  }
  return out;
}

void AppBehaviours::Set(Rule rule) {
  std::erase_if(rules_, [&](const Rule& old) {
    return old.cluster == rule.cluster && old.ns == rule.ns && old.app == rule.app && old.version == rule.version;
  });
  rules_.push_back(std::move(rule));
}

const AppBehaviour* AppBehaviours::Of(std::string_view cluster, std::string_view ns, std::string_view app,
                                      std::string_view version) const {
  const auto matches = [](const std::string& wanted, std::string_view is) { return wanted.empty() || wanted == is; };
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (matches(rule->cluster, cluster) && matches(rule->ns, ns) && matches(rule->app, app) &&
        matches(rule->version, version)) {
      return &rule->behaviour;
    }
  }
  return nullptr;
}

}  // namespace wavetank::sim
