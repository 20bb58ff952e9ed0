#include "sim/apps/rate_limit_service.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
#include "core/base/text/parse_bool.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr Duration kSyncPeriod = 60s;  // in which the kubelet brings changes of ConfigMaps into pods
constexpr uint16_t kUnknown = 2;       // gRPC's code of Go errors
constexpr std::string_view kImage = "ratelimit";

std::string Variable(const json& container, std::string_view name, std::string_view otherwise = {}) {
  for (const json& each : Items(At(container, "env"))) {
    if (Text(each, "name") == name) return Text(each, "value", otherwise);
  }
  return std::string(otherwise);
}
bool Set(const json& container, std::string_view name) { return ParseBool(Variable(container, name)).value_or(false); }

}  // namespace

std::optional<RateLimitSettings> RateLimitSettings::Of(const json& pod) {
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    std::string image = Text(container, "image");
    image.erase(0, image.rfind('/') + 1);
    if (image.substr(0, image.find_first_of(":@")) != kImage) continue;
    RateLimitSettings out;
    out.container = Text(container, "name");
    const std::string below = Variable(container, "RUNTIME_SUBDIRECTORY");
    out.folder = fmt::format("{}{}{}/{}", Variable(container, "RUNTIME_ROOT", "/srv/runtime_data/current"),
                             below.empty() ? "" : "/", below, Variable(container, "RUNTIME_APPDIRECTORY", "config"));
    out.dot_files = !Set(container, "RUNTIME_IGNOREDOTFILES");
    out.config_type = Variable(container, "CONFIG_TYPE", "FILE");
    const bool memcache = Variable(container, "BACKEND_TYPE") == "memcache";
    if (memcache) out.redis_port = 11211;
    std::string redis = Variable(container, memcache ? "MEMCACHE_HOST_PORT" : "REDIS_URL");
    redis = redis.substr(0, redis.find(','));  // the first of a cluster's
    redis.erase(0, redis.rfind('@') + 1);      // npos: nothing
    if (const size_t scheme = redis.find("://"); scheme != redis.npos) redis.erase(0, scheme + 3);
    const size_t colon = redis.rfind(':');
    out.redis_host = redis.substr(0, colon);
    if (uint32_t port = 0; colon != redis.npos && absl::SimpleAtoi(redis.substr(colon + 1), &port) && port <= 65535)
      out.redis_port = static_cast<uint16_t>(port);
    out.shadow = Set(container, "SHADOW_MODE");
    out.tells = Set(container, "LIMIT_RESPONSE_HEADERS_ENABLED");
    out.limit_header = Variable(container, "LIMIT_LIMIT_HEADER", "RateLimit-Limit");
    out.remaining_header = Variable(container, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining");
    out.reset_header = Variable(container, "LIMIT_RESET_HEADER", "RateLimit-Reset");
    return out;
  }
  return std::nullopt;
}

RateLimitService::RateLimitService(RateLimitSettings settings, Files files, Redis redis, Keep keep, Time now)
    : settings_(std::move(settings)), files_(std::move(files)), redis_(std::move(redis)), keep_(std::move(keep)) {
  Reload(now);
}

// SetConfig: what cannot be read leaves what was there.
void RateLimitService::Reload(Time now) {
  if (limits_ && now - looked_ < kSyncPeriod) return;
  looked_ = now;
  if (settings_.config_type != "FILE") {
    trouble_ = absl::UnimplementedError(fmt::format(
        "CONFIG_TYPE {}: limits that come by xDS are not simulated; it answers with errors", settings_.config_type));
    return;
  }
  std::map<std::string, std::string> files = files_();
  if (!settings_.dot_files) {
    std::erase_if(files, [](const auto& file) { return file.first.find("/.") != std::string::npos; });
  }
  if (limits_ && files == read_) return;
  absl::StatusOr<RateLimits> limits = RateLimits::Read(files);
  trouble_ = limits.status();
  if (!limits.ok()) return;
  limits_ = *std::move(limits);
  read_ = std::move(files);
}

// Of the descriptor that has the least left.
std::string RateLimitService::Lines(const envoysim::LimitVerdict& verdict) const {
  const envoysim::LimitVerdict::Status* least = nullptr;
  for (const envoysim::LimitVerdict::Status& status : verdict.statuses) {
    if (status.limit != nullptr && (least == nullptr || status.over || status.remaining < least->remaining))
      least = &status;
  }
  std::string out;
  if (!settings_.tells || least == nullptr) return out;
  envoysim::AddHeaderLine(settings_.limit_header, fmt::format("{}", least->limit->requests), &out);
  envoysim::AddHeaderLine(settings_.remaining_header, fmt::format("{}", least->remaining), &out);
  envoysim::AddHeaderLine(settings_.reset_header, fmt::format("{}", least->reset_seconds), &out);
  return out;
}

envoysim::AppReply RateLimitService::Serve(const envoysim::RequestSpec& question, Time now) {
  envoysim::AppReply out;
  const std::optional<envoysim::LimitQuestion> asked = envoysim::ReadLimitQuestion(question);
  if (asked && question.protocol != envoysim::HttpProtocol::kHttp2) {
    out.unheard = true;  // gRPC's port
    return out;
  }
  if (!asked) {
    if (question.path != "/healthcheck") out.code = 404;
    return out;
  }
  Reload(now);
  const absl::StatusOr<RateLimitCounts*> counts = redis_();
  if (!limits_ || !counts.ok() || asked->domain.empty() || asked->descriptors.empty()) {
    out.grpc_status = kUnknown;
    return out;
  }
  const int64_t unix_now = kWorldEpochUnixSeconds + now.time_since_epoch() / 1s;
  envoysim::LimitVerdict verdict = limits_->Judge(asked->domain, asked->descriptors, unix_now, *counts);
  verdict.over = verdict.over && !settings_.shadow;
  std::string text;
  out = envoysim::LimitAnswer(verdict, Lines(verdict), &text);
  out.headers = keep_(text);
  return out;
}

}  // namespace wavetank::sim
