#include "fakes/envoy/filters/limits/local_ratelimit.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/filters/limits/token_bucket.h"
#include "fakes/envoy/http/header_operations.h"
#include "fakes/envoy/http/rate_limit_actions.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

using LocalRateLimitProto = envoy::extensions::filters::http::local_ratelimit::v3::LocalRateLimit;

struct DescriptorLimit {
  RateLimitDescriptor entries;
  TokenBucketSpec bucket;
};

// Of the filter, or of a route.
struct LocalLimit final : RouteFilterConfig {
  uint64_t id = NextFilterId();
  std::string prefix;  // of its counters
  uint16_t status = 429;
  uint16_t grpc_status = kNoGrpcStatus;
  std::optional<TokenBucketSpec> bucket;
  std::vector<DescriptorLimit> descriptors;  // the strictest first
  uint32_t enabled_per_million = 0, enforced_per_million = 0;
  uint32_t stage = 0;
  bool always_default = true, per_connection = false, tells = false;
  envoy::extensions::common::ratelimit::v3::VhRateLimitsOptions vh_rate_limits{};
  HeaderOperations reply, request;
  RateLimitActions actions;  // in place of the route's
};

absl::StatusOr<TokenBucketSpec> BucketSpecOf(const envoy::type::v3::TokenBucket& proto) {
  const auto broken = [](std::string_view field, std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("Proto constraint validation failed (TokenBucketValidationError.{}: {})", field, why));
  };
  TokenBucketSpec out{proto.max_tokens(), proto.has_tokens_per_fill() ? proto.tokens_per_fill().value() : 1,
                      ToDuration(proto.fill_interval())};
  if (out.max_tokens == 0) return broken("MaxTokens", "value must be greater than 0");
  if (proto.has_tokens_per_fill() && out.tokens_per_fill == 0) {
    return broken("TokensPerFill", "value must be greater than 0");
  }
  if (!proto.has_fill_interval()) return broken("FillInterval", "value is required");
  if (IsZero(proto.fill_interval())) return broken("FillInterval", "value must be greater than 0s");
  if (out.fill_interval < 50ms) {
    return absl::InvalidArgumentError("local rate limit token bucket fill timer must be >= 50ms");
  }
  return out;
}

// Whole tokens a second, by which Envoy sorts.
int64_t TokensPerSecond(const TokenBucketSpec& spec) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(spec.fill_interval).count();
  return spec.tokens_per_fill / std::max<int64_t>(seconds, 1);
}

absl::StatusOr<std::shared_ptr<LocalLimit>> CompileLocalLimit(const google::protobuf::Any& config,
                                                              const Extensions& extensions, bool of_route) {
  LocalRateLimitProto proto;
  if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
  auto out = std::make_shared<LocalLimit>();
  if (proto.stat_prefix().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (LocalRateLimitValidationError.StatPrefix: value length must be at least 1 "
        "characters)");
  }
  out->prefix = proto.stat_prefix() + ".http_local_rate_limit.";
  if (of_route && !proto.has_token_bucket()) {
    return absl::InvalidArgumentError("local rate limit token bucket must be set for per filter configs");
  }
  if (proto.has_token_bucket()) {
    absl::StatusOr<TokenBucketSpec> bucket = BucketSpecOf(proto.token_bucket());
    if (!bucket.ok()) return bucket.status();
    out->bucket = *bucket;
  }
  // Envoy takes nothing below 400 for an answer.
  if (const auto code = static_cast<uint16_t>(proto.status().code()); code >= 400) out->status = code;
  if (proto.rate_limited_as_resource_exhausted()) out->grpc_status = 8;
  for (const auto& descriptor : proto.descriptors()) {
    absl::StatusOr<TokenBucketSpec> bucket = BucketSpecOf(descriptor.token_bucket());
    if (!bucket.ok()) return bucket.status();
    DescriptorLimit& limit = out->descriptors.emplace_back();
    limit.bucket = *bucket;
    for (const auto& entry : descriptor.entries()) limit.entries.emplace_back(entry.key(), entry.value());
    if (out->bucket && bucket->fill_interval % out->bucket->fill_interval != Duration::zero()) {
      return absl::InvalidArgumentError("local rate descriptor limit is not a multiple of token bucket fill timer");
    }
  }
  std::stable_sort(out->descriptors.begin(), out->descriptors.end(),
                   [](const auto& a, const auto& b) { return TokensPerSecond(a.bucket) < TokensPerSecond(b.bucket); });
  if (proto.has_filter_enabled()) out->enabled_per_million = PartsPerMillion(proto.filter_enabled().default_value());
  if (proto.has_filter_enforced()) {
    out->enforced_per_million = PartsPerMillion(proto.filter_enforced().default_value());
  }
  out->stage = proto.stage();
  out->always_default =
      !proto.has_always_consume_default_token_bucket() || proto.always_consume_default_token_bucket().value();
  out->per_connection = proto.local_rate_limit_per_downstream_connection();
  out->tells = proto.enable_x_ratelimit_headers() == envoy::extensions::common::ratelimit::v3::DRAFT_VERSION_03;
  out->vh_rate_limits = proto.vh_rate_limits();
  if (absl::Status s = HeaderOperations::MakeAdditions(proto.response_headers_to_add(), extensions, &out->reply);
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          HeaderOperations::MakeAdditions(proto.request_headers_to_add_when_not_enforced(), extensions, &out->request);
      !s.ok()) {
    return s;
  }
  return out;
}

// The buckets of one LocalLimit in one Envoy, or on one connection.
struct LimitBuckets final : FilterState {
  std::optional<TokenBucket> general;
  std::vector<TokenBucket> of_descriptors;
};

// What a reply tells of the bucket that decided.
struct DecidedLimit final : FilterState {
  bool tells = false;
  uint32_t limit = 0, remaining = 0;
  int64_t reset = 0;
};

bool DrawnFrom(uint32_t per_million, HttpStream& stream) {
  if (per_million >= 1'000'000) return true;
  return per_million > 0 && stream.random().Chance(per_million);
}

class LocalRateLimitFilter final : public HttpFilter {
 public:
  explicit LocalRateLimitFilter(std::shared_ptr<const LocalLimit> config) : config_(std::move(config)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto* const of_route = dynamic_cast<const LocalLimit*>(stream.RouteConfig());
    const LocalLimit& limit = of_route != nullptr ? *of_route : *config_;
    if (!DrawnFrom(limit.enabled_per_million, stream)) return FilterStatus::kContinue;
    ++stream.Counter(limit.prefix + "enabled");
    if (Allowed(limit, stream)) {
      ++stream.Counter(limit.prefix + "ok");
      return FilterStatus::kContinue;
    }
    ++stream.Counter(limit.prefix + "rate_limited");
    AccessLogEntry entry;
    entry.request = &stream.request();
    if (!DrawnFrom(limit.enforced_per_million, stream)) {
      if (limit.request.empty()) return FilterStatus::kContinue;
      RequestEdit edit(stream.request());
      limit.request.Apply(entry, &edit);
      if (auto changed = edit.Take()) stream.Replace(std::move(changed));
      return FilterStatus::kContinue;
    }
    ++stream.Counter(limit.prefix + "enforced");
    LocalReply reply{limit.status, kNoFlags, "local_rate_limited", "local_rate_limited", {}, limit.grpc_status};
    reply.later_flags = kRateLimited;  // Envoy: local_ratelimit.cc, decodeHeaders
    if (!limit.reply.empty()) reply.edit = [&](std::string* lines) { limit.reply.Apply(entry, lines); };
    stream.Answer(reply, lead);
    return FilterStatus::kStop;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    const auto* const decided = static_cast<const DecidedLimit*>(stream.Memory().get());
    if (decided == nullptr || !decided->tells) return;
    AddHeaderLine("x-ratelimit-limit", std::to_string(decided->limit), &reply.headers);
    AddHeaderLine("x-ratelimit-remaining", std::to_string(decided->remaining), &reply.headers);
    if (decided->reset >= 0) AddHeaderLine("x-ratelimit-reset", std::to_string(decided->reset), &reply.headers);
  }

 private:
  static LimitBuckets& BucketsOf(const LocalLimit& limit, HttpStream& stream) {
    std::shared_ptr<FilterState>& state = stream.State(limit.id, limit.per_connection);
    if (state == nullptr) {
      auto made = std::make_shared<LimitBuckets>();
      const bool by_timer = !stream.release().Has(EnvoyChange::kTokensFlowBack);
      const Time start = limit.per_connection ? stream.now() : stream.listening_since();
      if (limit.bucket) made->general.emplace(*limit.bucket, start, by_timer);
      for (const DescriptorLimit& d : limit.descriptors) made->of_descriptors.emplace_back(d.bucket, start, by_timer);
      state = std::move(made);
    }
    return static_cast<LimitBuckets&>(*state);
  }

  static std::vector<RateLimitDescriptor> DescriptorsOf(const LocalLimit& limit, HttpStream& stream) {
    std::vector<RateLimitDescriptor> out;
    if (limit.descriptors.empty() || stream.route() == nullptr) return out;
    RateLimitSubject subject;
    subject.request = &stream.request();
    const std::string cluster = stream.LocalCluster();
    subject.local_cluster = cluster;
    subject.route_cluster = stream.RouteCluster();
    subject.remote = stream.ForwardedFor().value_or(stream.connection().connection_source);
    stream.DescribeForLimits(limit.stage, subject, limit.vh_rate_limits, &out);
    return out;
  }

  static bool Allowed(const LocalLimit& limit, HttpStream& stream) {
    LimitBuckets& buckets = BucketsOf(limit, stream);
    const Time now = stream.now();
    const std::vector<RateLimitDescriptor> asked = DescriptorsOf(limit, stream);
    bool matched = false;
    for (size_t i = 0; i < limit.descriptors.size(); ++i) {
      const auto is = [&](const RateLimitDescriptor& d) { return d == limit.descriptors[i].entries; };
      if (std::none_of(asked.begin(), asked.end(), is)) continue;
      matched = true;
      TokenBucket& bucket = buckets.of_descriptors[i];
      const bool taken = bucket.Take(now);
      Remember(limit, stream, bucket);
      if (!taken) return false;
    }
    if ((matched && !limit.always_default) || !buckets.general) return true;
    const bool taken = buckets.general->Take(now);
    if (!matched) Remember(limit, stream, *buckets.general);
    return taken;
  }

  static void Remember(const LocalLimit& limit, HttpStream& stream, TokenBucket& bucket) {
    if (!limit.tells) return;
    auto decided = std::make_shared<DecidedLimit>();
    decided->tells = true;
    decided->limit = bucket.spec().max_tokens;
    decided->remaining = bucket.Remaining(stream.now());
    decided->reset = bucket.SecondsToReset(stream.now());
    stream.Memory() = std::move(decided);
  }

  const std::shared_ptr<const LocalLimit> config_;
};

}  // namespace

HttpFilterType LocalRateLimitFilterType() {
  HttpFilterType type;
  type.message = type.route_message = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
  type.name = "envoy.filters.http.local_ratelimit";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    auto made = CompileLocalLimit(config, context.extensions, /*of_route=*/false);
    if (!made.ok()) return made.status();
    return std::make_shared<LocalRateLimitFilter>(*std::move(made));
  };
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions& extensions) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    return CompileLocalLimit(config, extensions, /*of_route=*/true);
  };
  return type;
}

}  // namespace wavetank::envoysim
