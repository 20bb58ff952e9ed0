#include "fakes/envoy/filters/heads/health_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "envoy/extensions/filters/http/health_check/v3/health_check.pb.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/header_lines.h"

namespace wavetank::envoysim {
namespace {

struct HealthCheckConfig {
  uint64_t id = NextFilterId();
  bool pass_through = false;
  Duration cache_time{};
  std::vector<HeaderMatch> headers;
  std::vector<std::pair<std::string, double>> least_healthy;  // cluster, per cent of its hosts
};

// The application's last answer, for as long as it counts.
struct CachedHealth final : FilterState {
  uint16_t code = 0;
  Time until{};
};

// That the request was one of those.
struct AskedForHealth final : FilterState {};

class HealthCheckFilter final : public HttpFilter {
 public:
  explicit HealthCheckFilter(HealthCheckConfig config) : config_(std::move(config)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto fits = [&](const HeaderMatch& m) { return m.Matches(stream.request()); };
    if (!std::all_of(config_.headers.begin(), config_.headers.end(), fits)) return FilterStatus::kContinue;
    stream.Memory() = std::make_shared<AskedForHealth>();
    uint16_t code = 200;
    std::string_view details = "health_check_ok";
    if (config_.pass_through) {
      const auto* const cached = static_cast<const CachedHealth*>(stream.State(config_.id, false).get());
      if (cached == nullptr || stream.now() + lead >= cached->until) return FilterStatus::kContinue;
      code = cached->code;
      details = "health_check_cached";
    } else if (!config_.least_healthy.empty()) {
      details = JudgeClusters(stream);
      if (details != kClusterHealthy) code = 503;
    }
    const bool ok = code >= 200 && code < 300;
    stream.Answer({code, ok ? kNoFlags : kFailedLocalHealthCheck, details, ""}, lead);
    return FilterStatus::kStop;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    if (stream.Memory() == nullptr) return;
    if (config_.pass_through && config_.cache_time > Duration::zero() && reply.from_upstream) {
      auto cached = std::make_shared<CachedHealth>();
      cached->code = reply.code;
      // A timer forgets what is cached, whenever it came. Envoy: HealthCheckCacheManager::onTimer
      const Duration since = stream.now() - stream.listening_since();
      cached->until = stream.listening_since() + (since / config_.cache_time + 1) * config_.cache_time;
      stream.State(config_.id, false) = std::move(cached);
    }
    AddHeaderLine("x-envoy-upstream-healthchecked-cluster", stream.LocalCluster(), &reply.headers);
  }

 private:
  static constexpr std::string_view kClusterHealthy = "health_check_ok_cluster_healthy";

  std::string_view JudgeClusters(const HttpStream& stream) const {
    for (const auto& [cluster, per_cent] : config_.least_healthy) {
      const HttpStream::Membership hosts = stream.MembersOf(cluster);
      if (!hosts.known) return "health_check_failed_no_cluster_found";
      if (hosts.total == 0 && per_cent == 0) continue;
      if (hosts.total == 0) return "health_check_failed_cluster_empty";
      if (static_cast<double>(hosts.healthy) < static_cast<double>(hosts.total) * per_cent / 100.0) {
        return "health_check_failed_cluster_unhealthy";
      }
    }
    return kClusterHealthy;
  }

  const HealthCheckConfig config_;
};

}  // namespace

HttpFilterType HealthCheckFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.health_check.v3.HealthCheck";
  type.name = "envoy.filters.http.health_check";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    envoy::extensions::filters::http::health_check::v3::HealthCheck proto;
    if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
    if (!proto.has_pass_through_mode()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (HealthCheckValidationError.PassThroughMode: value is required and must "
          "not be nil.)");
    }
    HealthCheckConfig out;
    out.pass_through = proto.pass_through_mode().value();
    out.cache_time = ToDuration(proto.cache_time());
    if (!out.pass_through && out.cache_time > Duration::zero()) {
      return absl::InvalidArgumentError("cache_time_ms must not be set when path_through_mode is disabled");
    }
    for (const auto& header : proto.headers()) {
      absl::StatusOr<HeaderMatch> made = HeaderMatch::Make(header);
      if (!made.ok()) return made.status();
      out.headers.push_back(*std::move(made));
    }
    for (const auto& [cluster, per_cent] : proto.cluster_min_healthy_percentages()) {
      out.least_healthy.emplace_back(cluster, per_cent.value());
    }
    std::sort(out.least_healthy.begin(), out.least_healthy.end());  // a map of protobuf's has no order
    return std::make_shared<HealthCheckFilter>(std::move(out));
  };
  return type;
}

}  // namespace wavetank::envoysim
