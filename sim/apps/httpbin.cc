#include "sim/apps/httpbin.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"

namespace wavetank::sim {
namespace {

constexpr Duration kMostDelay = 10s;

// A decimal number, "1" or "0.25", in thousandths; nothing: it is none.
std::optional<int64_t> Thousandths(std::string_view number) {
  const std::optional<Duration> seconds = ParseGoDuration(std::string(number) + "s");
  if (!seconds || *seconds < Duration::zero() || number.find_first_not_of("0123456789.") != number.npos) return {};
  return *seconds / 1ms;
}

// Of "200", or of "200:4,503". 400 for what is no code, as httpbin answers it (httpbin/core.py, view_status_code).
uint16_t CodeOf(const std::string& text, RandomStream& random) {
  std::vector<std::pair<uint16_t, int64_t>> choices;
  int64_t all = 0;
  const std::vector<std::string> listed = absl::StrSplit(text, ',');
  for (const std::string& each : listed) {
    const size_t colon = each.find(':');
    int code = 0;
    const std::optional<int64_t> weight = Thousandths(colon == each.npos ? "1" : each.substr(colon + 1));
    if (!absl::SimpleAtoi(each.substr(0, colon), &code) || code < 200 || code > 599 || !weight) return 400;
    choices.emplace_back(static_cast<uint16_t>(code), *weight);
    all += choices.back().second;
  }
  if (choices.size() == 1) return choices[0].first;
  if (all == 0) return 400;
  int64_t at = random.Between(0, all - 1);
  for (const auto& [code, weight] : choices) {
    if (at < weight) return code;
    at -= weight;
  }
  return choices.back().first;
}

}  // namespace

bool IsHttpbin(std::string_view image) {
  const std::string_view name = image.substr(image.rfind('/') + 1);
  const std::string_view bare = name.substr(0, name.find_first_of(":@"));
  return bare == "httpbin" || bare == "go-httpbin";
}

void AnswerAsHttpbin(const envoysim::RequestSpec& request, RandomStream& random, envoysim::AppReply* reply) {
  constexpr std::string_view kStatus = "/status/", kDelay = "/delay/";
  const std::string path = request.path.substr(0, request.path.find_first_of("?#"));
  if (path.starts_with(kStatus)) {
    reply->code = CodeOf(path.substr(kStatus.size()), random);
  } else if (path.starts_with(kDelay)) {
    if (const std::optional<int64_t> delay = Thousandths(path.substr(kDelay.size())))
      reply->delay = std::min<Duration>(1ms * *delay, kMostDelay);
  }
}

}  // namespace wavetank::sim
