#include "fakes/envoy/apps/rate_limiter.h"

#include <algorithm>
#include <chrono>

#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/rate_limit_names.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

// "key=value|key=value"
LimitedDescriptor DescriptorOf(std::string_view text) {
  LimitedDescriptor out;
  while (!text.empty()) {
    const size_t end = text.find('|');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const size_t equals = one.find('=');
    out.emplace_back(UnescapedByLimiter(one.substr(0, equals)),
                     equals == one.npos ? std::string() : UnescapedByLimiter(one.substr(equals + 1)));
  }
  return out;
}

}  // namespace

const ServiceLimit* RateLimiter::LimitOf(const LimitedDescriptor& descriptor) const {
  const auto is = [&](const ServiceLimit& limit) {
    return std::equal(limit.descriptor.begin(), limit.descriptor.end(), descriptor.begin(), descriptor.end(),
                      [](const auto& wanted, const auto& got) {
                        return wanted.first == got.first && (wanted.second.empty() || wanted.second == got.second);
                      });
  };
  const auto found = std::find_if(limits_.begin(), limits_.end(), is);
  return found == limits_.end() ? nullptr : &*found;
}

LimitVerdict RateLimiter::Ask(const std::vector<LimitedDescriptor>& descriptors, Time now) {
  LimitVerdict out;
  for (const LimitedDescriptor& descriptor : descriptors) {
    LimitVerdict::Status& status = out.statuses.emplace_back();
    status.limit = LimitOf(descriptor);
    if (status.limit == nullptr) continue;
    const Duration length = std::chrono::seconds(status.limit->window_seconds);
    Window& window = windows_[descriptor];
    if (window.taken == 0 || now - window.start >= length) window = {now, 0};
    ++window.taken;
    status.over = window.taken > status.limit->requests;
    status.remaining = status.over ? 0 : status.limit->requests - window.taken;
    status.reset_seconds =
        static_cast<uint32_t>(std::chrono::ceil<std::chrono::seconds>(window.start + length - now).count());
    out.over |= status.over;
  }
  return out;
}

std::optional<LimitQuestion> ReadLimitQuestion(const RequestSpec& question) {
  if (question.path != kRateLimitMethod) return std::nullopt;
  LimitQuestion out;
  for (const auto& [name, value] : question.headers) {
    if (name == kRateLimitDomain) out.domain = value;
    if (name == kRateLimitDescriptor) out.descriptors.push_back(DescriptorOf(value));
  }
  return out;
}

AppReply LimitAnswer(const LimitVerdict& verdict, std::string_view headers, std::string* kept) {
  kept->clear();
  AddHeaderLine(kRateLimitOver, verdict.over ? "true" : "false", kept);
  for (const LimitVerdict::Status& status : verdict.statuses) {
    if (status.limit == nullptr) continue;
    AddHeaderLine(kRateLimitStatus,
                  fmt::format("{}/{}/{}/{}/{}", status.limit->requests, status.limit->window_seconds, status.remaining,
                              status.reset_seconds, status.limit->name),
                  kept);
  }
  ForEachHeader(headers, [&](std::string_view name, std::string_view value) {
    AddHeaderLine(std::string(kRateLimitReply).append(name), value, kept);
  });
  AppReply out;
  out.headers = *kept;
  out.grpc_status = 0;
  return out;
}

AppReply RateLimiterReply(const RequestSpec& question, RateLimiter& limiter, Time now, std::string_view headers,
                          std::string* kept) {
  if (question.protocol != HttpProtocol::kHttp2) {
    AppReply out;
    out.unheard = true;
    return out;
  }
  if (const std::optional<LimitQuestion> asked = ReadLimitQuestion(question))
    return LimitAnswer(limiter.Ask(asked->descriptors, now), headers, kept);
  AppReply out;
  out.code = 404;
  return out;
}

}  // namespace wavetank::envoysim
