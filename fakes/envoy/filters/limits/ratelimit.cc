#include "fakes/envoy/filters/limits/ratelimit.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/type/v3/http_status.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/http/header_operations.h"
#include "fakes/envoy/http/rate_limit_actions.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/rate_limit_names.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

using Json = nlohmann::json;

// RateLimitPerRoute
struct LimitsOfRoute final : RouteFilterConfig {
  int options = 0;  // VhRateLimitsOptions: 0 OVERRIDE, 1 INCLUDE, 2 IGNORE
  std::string domain;
  std::optional<RateLimitActions> actions;  // in place of the route's
};

// What the service said for the client, on its way to the answer.
struct SaidByLimiter final : FilterState {
  std::string lines;
};

// "x-ratelimit-*" of the descriptors that have a limit: the one with the least left.
// Envoy: filters/http/ratelimit/ratelimit_headers.cc
std::string RateLimitHeaders(std::string_view lines) {
  uint64_t least = UINT64_MAX;
  std::string limit, remaining, reset, policy;
  ForEachHeader(lines, [&](std::string_view name, std::string_view value) {
    if (name != kRateLimitStatus) return;
    const std::vector<std::string> parts = absl::StrSplit(std::string(value), absl::MaxSplits('/', 4));
    uint64_t left = 0;
    if (parts.size() != 5 || !absl::SimpleAtoi(parts[2], &left)) return;
    policy += fmt::format(", {};w={}", parts[0], parts[1]);
    if (!parts[4].empty()) policy += fmt::format(";name=\"{}\"", parts[4]);
    if (left >= least && !limit.empty()) return;
    least = left;
    limit = parts[0];
    remaining = parts[2];
    reset = parts[3];
  });
  std::string out;
  if (limit.empty()) return out;
  AddHeaderLine("x-ratelimit-limit", limit + policy, &out);
  AddHeaderLine("x-ratelimit-remaining", remaining, &out);
  AddHeaderLine("x-ratelimit-reset", reset, &out);
  return out;
}

class RateLimit final : public HttpFilter {
 public:
  RouteEntry service;  // a route to its cluster
  std::string domain, counters, request_type;
  uint32_t stage = 0;
  bool deny_on_failure = false, tells = false, marks = true;
  uint16_t status = 429, status_on_error = 500, grpc_status = kNoGrpcStatus;
  uint32_t enabled_per_million = 1'000'000, enforced_per_million = 1'000'000;
  HeaderOperations reply;
  std::optional<RateLimitActions> actions;

  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    if (stream.route() == nullptr || !Drawn(enabled_per_million, stream)) return FilterStatus::kContinue;
    const bool internal = FindHeader(stream.request(), "x-envoy-internal").value_or("") == "true";
    if (internal ? request_type == "external" : request_type == "internal") return FilterStatus::kContinue;
    // A request that leads to no cluster is nobody's to limit. Envoy: ratelimit.cc, initiateCall
    if (stream.ClusterCounters().empty()) return FilterStatus::kContinue;
    const std::vector<RateLimitDescriptor> descriptors = DescriptorsOf(stream);
    if (descriptors.empty()) return FilterStatus::kContinue;
    stream.Call(service, Question(stream, descriptors),
                [this](HttpStream& asked, const Reply& answer, Duration ahead) { Answered(asked, answer, ahead); });
    return FilterStatus::kStop;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& head) const override {
    const auto* const said = static_cast<const SaidByLimiter*>(stream.Memory().get());
    if (said != nullptr) head.headers += said->lines;
  }

 private:
  static bool Drawn(uint32_t per_million, HttpStream& stream) {
    return per_million >= 1'000'000 || (per_million > 0 && stream.random().Chance(per_million));
  }

  std::vector<RateLimitDescriptor> DescriptorsOf(HttpStream& stream) const {
    const auto* const of_route = static_cast<const LimitsOfRoute*>(stream.RouteConfig());
    RateLimitSubject subject;
    subject.request = &stream.request();
    const std::string local = stream.LocalCluster(), cluster(stream.RouteCluster());
    subject.local_cluster = local;
    subject.route_cluster = cluster;
    subject.remote = stream.ForwardedFor().value_or(stream.connection().connection_source);
    std::vector<RateLimitDescriptor> out;
    if (of_route != nullptr && of_route->actions) {
      of_route->actions->Describe(stage, subject, &out);
    } else if (actions) {
      actions->Describe(stage, subject, &out);
    } else {
      stream.DescribeForLimits(stage, subject, of_route != nullptr ? of_route->options : 0, &out);
    }
    return out;
  }

  std::shared_ptr<const RequestSpec> Question(HttpStream& stream,
                                              const std::vector<RateLimitDescriptor>& descriptors) const {
    const auto* const of_route = static_cast<const LimitsOfRoute*>(stream.RouteConfig());
    auto out = std::make_shared<RequestSpec>();
    out->protocol = HttpProtocol::kHttp2;
    out->method = "POST";
    out->path = kRateLimitMethod;
    out->authority = service.cluster;
    out->headers.emplace_back(kRateLimitDomain,
                              of_route != nullptr && !of_route->domain.empty() ? of_route->domain : domain);
    for (const RateLimitDescriptor& descriptor : descriptors) {
      std::string text;
      for (const auto& [key, value] : descriptor) {
        text += fmt::format("{}{}={}", text.empty() ? "" : "|", EscapedForLimiter(key), EscapedForLimiter(value));
      }
      out->headers.emplace_back(kRateLimitDescriptor, text);
    }
    return out;
  }

  void Answered(HttpStream& stream, const Reply& answer, Duration lead) const {
    const std::string prefix = stream.ClusterCounters() + counters;
    if (answer.from_proxy || answer.code != 200 || answer.grpc_status != 0) {
      ++stream.Counter(prefix + "error");
      if (deny_on_failure) {
        return stream.Answer({status_on_error, kRateLimitServiceError, "rate_limiter_error", ""}, lead);
      }
      ++stream.Counter(prefix + "failure_mode_allowed");
      return stream.Continue(lead);
    }
    bool over = false;
    auto said = std::make_shared<SaidByLimiter>();
    ForEachHeader(answer.headers, [&](std::string_view name, std::string_view value) {
      if (name == kRateLimitOver) over = value == "true";
      if (name.starts_with(kRateLimitReply)) {
        AddHeaderLine(name.substr(std::string_view(kRateLimitReply).size()), value, &said->lines);
      }
    });
    ++stream.Counter(prefix + (over ? "over_limit" : "ok"));
    if (over && marks) AddHeaderLine("x-envoy-ratelimited", "true", &said->lines);
    if (tells) said->lines += RateLimitHeaders(answer.headers);
    if (over) stream.CountForCluster(status);
    if (over && Drawn(enforced_per_million, stream)) {
      AccessLogEntry entry;
      entry.request = &stream.request();
      reply.Apply(entry, &said->lines);
      stream.Memory() = std::move(said);
      return stream.Answer({status, kRateLimited, "request_rate_limited", "", {}, grpc_status}, lead);
    }
    stream.Memory() = std::move(said);
    stream.Continue(lead);
  }
};

absl::Status ReadActions(const Json& list, std::optional<RateLimitActions>* out) {
  if (!list.is_array() || list.empty()) return absl::OkStatus();
  out->emplace();
  for (const Json& one : list) {
    envoy::config::route::v3::RateLimit limit;
    if (absl::Status s = ReadPart(one, &limit); !s.ok()) return s;
    if (absl::Status s = (*out)->Add(limit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

uint32_t ShareAt(const Json& whole, std::string_view name) {
  const Json& share = JsonAt(whole, std::string(name) + ".default_value");
  if (!share.is_object()) return 1'000'000;
  const std::string unit = TextAt(share, "denominator");
  const uint64_t per = unit == "MILLION" ? 1 : unit == "TEN_THOUSAND" ? 100 : 10'000;
  return static_cast<uint32_t>(std::min<uint64_t>(NumberAt(share, "numerator") * per, 1'000'000));
}

// An HttpStatus's code, which protobuf's JSON names. Envoy: envoy/type/v3/http_status.proto
uint16_t StatusAt(const Json& whole, std::string_view name, uint16_t otherwise) {
  envoy::type::v3::HttpStatus status;
  const Json& part = JsonAt(whole, name);
  if (!part.is_object() || !ReadPart(part, &status).ok()) return otherwise;
  return status.code() >= 400 ? static_cast<uint16_t>(status.code()) : otherwise;
}

absl::Status Broken(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("Proto constraint validation failed (RateLimitValidationError.{}: {})", field, why));
}

absl::StatusOr<std::shared_ptr<const HttpFilter>> MakeRateLimit(const google::protobuf::Any& config,
                                                                const FilterContext& context) {
  absl::StatusOr<Json> read = ConfigJson(config);
  if (!read.ok()) return read.status();
  const Json& whole = *read;
  auto out = std::make_shared<RateLimit>();
  out->domain = TextAt(whole, "domain");
  if (out->domain.empty()) return Broken("Domain", "value length must be at least 1 characters");
  out->stage = static_cast<uint32_t>(NumberAt(whole, "stage"));
  if (out->stage > 10) return Broken("Stage", "value must be less than or equal to 10");
  out->request_type = TextAt(whole, "request_type");
  for (const char* known : {"internal", "external", "both", ""}) {
    if (out->request_type == known) break;
    if (*known == '\0') return Broken("RequestType", "value must be in list [internal external both ]");
  }
  if (!whole.contains("rate_limit_service")) return Broken("RateLimitService", "value is required");
  constexpr Duration kDefaultTimeout = 20ms;
  out->service.cluster = TextAt(whole, "rate_limit_service.grpc_service.envoy_grpc.cluster_name");
  out->service.timeout = DurationAt(whole, "timeout", kDefaultTimeout);
  out->deny_on_failure = BoolAt(whole, "failure_mode_deny");
  out->tells = TextAt(whole, "enable_x_ratelimit_headers") == "DRAFT_VERSION_03";
  out->marks = !BoolAt(whole, "disable_x_envoy_ratelimited_header");
  if (BoolAt(whole, "rate_limited_as_resource_exhausted")) out->grpc_status = 8;
  out->status = StatusAt(whole, "rate_limited_status", out->status);
  out->status_on_error = StatusAt(whole, "status_on_error", out->status_on_error);
  out->enabled_per_million = ShareAt(whole, "filter_enabled");
  out->enforced_per_million = ShareAt(whole, "filter_enforced");
  const std::string prefix = TextAt(whole, "stat_prefix");
  out->counters = prefix.empty() ? "ratelimit." : "ratelimit." + prefix + ".";
  envoy::config::route::v3::RouteConfiguration additions;
  for (const Json& option : JsonAt(whole, "response_headers_to_add")) {
    if (absl::Status s = ReadPart(option, additions.add_response_headers_to_add()); !s.ok()) return s;
  }
  if (absl::Status s =
          HeaderOperations::MakeAdditions(additions.response_headers_to_add(), context.extensions, &out->reply);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = ReadActions(JsonAt(whole, "rate_limits"), &out->actions); !s.ok()) return s;
  return out;
}

absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> LimitsForRoute(const google::protobuf::Any& config,
                                                                        const Extensions&) {
  absl::StatusOr<Json> said = ConfigJson(config);
  if (!said.ok()) return said.status();
  auto out = std::make_shared<LimitsOfRoute>();
  const std::string option = TextAt(*said, "override_option"), of_host = TextAt(*said, "vh_rate_limits");
  if (option == "INCLUDE_POLICY" || (option.empty() && of_host == "INCLUDE")) out->options = 1;
  if (option == "IGNORE_POLICY" || (option.empty() && of_host == "IGNORE")) out->options = 2;
  out->domain = TextAt(*said, "domain");
  if (absl::Status s = ReadActions(JsonAt(*said, "rate_limits"), &out->actions); !s.ok()) return s;
  return out;
}

}  // namespace

HttpFilterType RateLimitFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.ratelimit.v3.RateLimit";
  type.name = "envoy.filters.http.ratelimit";
  type.make = MakeRateLimit;
  type.route_message = "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";
  type.make_for_route = LimitsForRoute;
  return type;
}

}  // namespace wavetank::envoysim
