// A rate limit service as Envoy asks one (envoy.service.ratelimit.v3), modelled: limits by descriptor, counted in
// windows that begin with their first request.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "fakes/envoy/apps/app.h"

namespace wavetank::envoysim {

using LimitedDescriptor = std::vector<std::pair<std::string, std::string>>;

struct ServiceLimit {
  LimitedDescriptor descriptor;  // of an empty value: any, each of its own
  uint32_t requests = 0;
  uint32_t window_seconds = 60;
  std::string name;
};

struct LimitVerdict {
  bool over = false;
  struct Status {
    const ServiceLimit* limit = nullptr;  // none
    bool over = false;
    uint32_t remaining = 0, reset_seconds = 0;
  };
  std::vector<Status> statuses;  // of each descriptor
};

class RateLimiter {
 public:
  explicit RateLimiter(std::vector<ServiceLimit> limits) : limits_(std::move(limits)) {}
  LimitVerdict Ask(const std::vector<LimitedDescriptor>& descriptors, Time now);

 private:
  struct Window {
    Time start{};
    uint32_t taken = 0;
  };
  const ServiceLimit* LimitOf(const LimitedDescriptor& descriptor) const;

  std::vector<ServiceLimit> limits_;
  std::map<LimitedDescriptor, Window> windows_;
};

// What an Envoy asks; nothing: it asks something else.
struct LimitQuestion {
  std::string domain;
  std::vector<LimitedDescriptor> descriptors;
};
std::optional<LimitQuestion> ReadLimitQuestion(const RequestSpec& question);
// The answer in the model. `headers`: lines for the client. The texts of it live in `*kept`.
AppReply LimitAnswer(const LimitVerdict& verdict, std::string_view headers, std::string* kept);
AppReply RateLimiterReply(const RequestSpec& question, RateLimiter& limiter, Time now, std::string_view headers,
                          std::string* kept);

}  // namespace wavetank::envoysim
