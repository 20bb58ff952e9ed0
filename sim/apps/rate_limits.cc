#include "sim/apps/rate_limits.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

struct Unit {
  std::string_view name;
  uint32_t seconds;
};
constexpr Unit kUnits[] = {{"SECOND", 1},    {"MINUTE", 60},     {"HOUR", 3600},    {"DAY", 86400},
                           {"WEEK", 604800}, {"MONTH", 2592000}, {"YEAR", 31536000}};

// 0: it is none.
uint32_t SecondsOf(const std::string& unit) {
  const std::string upper = absl::AsciiStrToUpper(unit);
  const auto* const found =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return u.name == upper; });
  return found == std::end(kUnits) ? 0 : found->seconds;
}

absl::Status Wrong(const std::string& file, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", file, what));
}

// What a field of the file takes, as the service's structures say (YamlRoot, YamlDescriptor, YamlRateLimit).
enum class Takes : uint8_t { kText, kCount, kFlag, kMap, kMaps, kAnything };
struct Field {
  std::string_view name;
  Takes takes;
};
constexpr Field kFields[] = {
    {"domain", Takes::kText},
    {"key", Takes::kText},
    {"value", Takes::kText},
    {"descriptors", Takes::kMaps},
    {"rate_limit", Takes::kMap},
    {"unit", Takes::kText},
    {"requests_per_unit", Takes::kCount},
    {"unlimited", Takes::kFlag},
    {"shadow_mode", Takes::kFlag},
    {"quota_mode", Takes::kFlag},
    {"name", Takes::kText},
    {"replaces", Takes::kMaps},
    {"detailed_metric", Takes::kFlag},
    {"value_to_metric", Takes::kFlag},
    {"share_threshold", Takes::kFlag},
    {"metadata", Takes::kAnything},
};

// A text takes any scalar, a count a fraction, as Go's YAML does; null is a field's absence.
bool Fits(const json& value, Takes takes) {
  if (value.is_null()) return true;
  switch (takes) {
    case Takes::kText:
      return value.is_primitive();
    case Takes::kCount:
      return value.is_number() && value.get<double>() >= 0 && value.get<double>() <= UINT32_MAX;
    case Takes::kFlag:
      return value.is_boolean();
    case Takes::kMap:
      return value.is_object();
    case Takes::kMaps:
      return value.is_array();
    case Takes::kAnything:
      return true;
  }
  return true;
}

std::string_view Words(Takes takes) {
  switch (takes) {
    case Takes::kText:
      return "a string";
    case Takes::kCount:
      return "a uint32";
    case Takes::kFlag:
      return "a bool";
    case Takes::kMap:
      return "a map";
    case Takes::kMaps:
      return "a list of maps";
    case Takes::kAnything:
      break;
  }
  return "anything";
}

// validateYamlKeys, and what the structures refuse after it: at any depth, but for `metadata`, which is anybody's.
absl::Status CheckFields(const json& in, const std::string& file) {
  for (const auto& [key, value] : Members(in)) {
    const auto* const field =
        std::find_if(std::begin(kFields), std::end(kFields), [&k = key](const Field& f) { return f.name == k; });
    if (field == std::end(kFields)) return Wrong(file, fmt::format("config error, unknown key '{}'", key));
    if (!Fits(value, field->takes)) {
      return Wrong(file, fmt::format("error loading config file: {}: cannot unmarshal {} into {}", key, JsonText(value),
                                     Words(field->takes)));
    }
    if (field->takes == Takes::kAnything) continue;
    for (const json& each : Items(value)) {
      if (!each.is_object()) return Wrong(file, "config error, yaml file contains list of type other than map");
      if (absl::Status below = CheckFields(each, file); !below.ok()) return below;
    }
    if (value.is_object()) {
      if (absl::Status below = CheckFields(value, file); !below.ok()) return below;
    }
  }
  return absl::OkStatus();
}

std::string ScalarText(const json& in, std::string_view key) {
  const json& value = At(in, key);
  if (value.is_string() || value.is_null()) return TextOf(value);
  return JsonText(value);
}

// A '*' stands for any text, an empty one among them. O(text), whatever the pattern: the first place that fits will do.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  for (pattern.remove_prefix(star + 1);;) {
    const size_t next = pattern.find('*');
    if (next == pattern.npos) return text.ends_with(pattern);
    const size_t at = text.find(pattern.substr(0, next));
    if (at == text.npos) return false;
    text.remove_prefix(at + next);
    pattern.remove_prefix(next + 1);
  }
}

}  // namespace

absl::StatusOr<RateLimits> RateLimits::Read(const std::map<std::string, std::string>& files) {
  RateLimits out;
  for (const auto& [path, text] : files) {
    const absl::StatusOr<json> root = kube::ParseYaml(text, path);
    if (!root.ok()) return Wrong(path, fmt::format("error loading config file: {}", Message(root.status())));
    if (absl::Status keys = CheckFields(*root, path); !keys.ok()) return keys;
    const std::string domain = ScalarText(*root, "domain");
    if (domain.empty()) return Wrong(path, "config file cannot have empty domain");
    const auto [it, fresh] = out.domains_.try_emplace(domain);
    if (!fresh) return Wrong(path, fmt::format("duplicate domain '{}' in config file", domain));
    if (absl::Status below = ReadBelow(At(*root, "descriptors"), path, domain + ".", &it->second); !below.ok())
      return below;
  }
  return out;
}

absl::Status RateLimits::ReadBelow(const json& descriptors, const std::string& file, const std::string& parent,
                                   Node* to) {
  for (const json& descriptor : Items(descriptors)) {
    std::string key = ScalarText(descriptor, "key");
    if (key.empty()) return Wrong(file, "descriptor has empty key");
    if (const std::string value = ScalarText(descriptor, "value"); !value.empty()) key += "_" + value;
    const auto [it, fresh] = to->below.try_emplace(key);
    if (!fresh) return Wrong(file, fmt::format("duplicate descriptor composite key '{}{}'", parent, key));
    absl::StatusOr<std::unique_ptr<Limit>> limit = ReadLimit(descriptor, file);
    if (!limit.ok()) return limit.status();
    it->second.limit = *std::move(limit);
    if (key.find('*') != key.npos) to->wildcards.push_back(key);
    it->second.shares = Flag(descriptor, "share_threshold");
    if (it->second.shares && key.find('*') == key.npos) {
      return Wrong(file,
                   fmt::format("share_threshold can only be used with wildcard values (containing '*'), but found "
                               "key '{}'",
                               key));
    }
    const std::string path = fmt::format("{}{}.", parent, key);
    if (absl::Status below = ReadBelow(At(descriptor, "descriptors"), file, path, &it->second); !below.ok())
      return below;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RateLimits::Limit>> RateLimits::ReadLimit(const json& descriptor,
                                                                         const std::string& file) {
  const json& said = At(descriptor, "rate_limit");
  if (!said.is_object()) return nullptr;
  auto out = std::make_unique<Limit>();
  out->unlimited = Flag(said, "unlimited");
  out->shadow = Flag(descriptor, "shadow_mode");
  out->quota = Flag(descriptor, "quota_mode");
  out->is.name = ScalarText(said, "name");
  if (const json& requests = At(said, "requests_per_unit"); requests.is_number()) {
    out->is.requests = static_cast<uint32_t>(requests.get<double>());
  }
  out->is.window_seconds = SecondsOf(ScalarText(said, "unit"));
  if (out->unlimited && out->is.window_seconds != 0) {
    return Wrong(file, "should not specify rate limit unit when unlimited");
  }
  if (!out->unlimited && out->is.window_seconds == 0) {
    return Wrong(file, fmt::format("invalid rate limit unit '{}'", ScalarText(said, "unit")));
  }
  for (const json& each : Items(At(said, "replaces"))) {
    std::string name = ScalarText(each, "name");
    if (name.empty()) return Wrong(file, "should not have an empty replaces entry");
    if (name == out->is.name) return Wrong(file, "replaces should not contain name of same descriptor");
    out->replaces.push_back(std::move(name));
  }
  return out;
}

// GetLimit: a value before a pattern before any value, entry by entry; a limit counts where the last entry ends.
const RateLimits::Limit* RateLimits::Find(std::string_view domain, const envoysim::LimitedDescriptor& descriptor,
                                          std::string* counted_as) const {
  const auto root = domains_.find(domain);
  if (root == domains_.end() || descriptor.empty()) return nullptr;
  *counted_as = domain;
  const Node* at = &root->second;
  for (const auto& [key, value] : descriptor) {
    const std::string exact = fmt::format("{}_{}", key, value);
    auto next = at->below.find(exact);
    if (next == at->below.end()) {
      const auto pattern = std::find_if(at->wildcards.begin(), at->wildcards.end(),
                                        [&](const std::string& wildcard) { return Matches(wildcard, exact); });
      next = at->below.find(pattern == at->wildcards.end() ? key : *pattern);
    }
    if (next == at->below.end()) return nullptr;
    at = &next->second;
    counted_as->append("_").append(at->shares ? next->first : exact);
  }
  return at->limit.get();
}

envoysim::LimitVerdict RateLimits::Judge(std::string_view domain,
                                         const std::vector<envoysim::LimitedDescriptor>& descriptors, int64_t unix_now,
                                         RateLimitCounts* counts) const {
  std::vector<const Limit*> limits;
  std::vector<std::string> keys(descriptors.size());
  std::set<std::string, std::less<>> replaced;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    const Limit* const limit = limits.emplace_back(Find(domain, descriptors[i], &keys[i]));
    if (limit != nullptr) replaced.insert(limit->replaces.begin(), limit->replaces.end());
  }
  envoysim::LimitVerdict out;
  int quotas = 0, spent = 0;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    envoysim::LimitVerdict::Status& status = out.statuses.emplace_back();
    const Limit* const limit = limits[i];
    if (limit == nullptr || limit->unlimited) continue;
    if (!limit->is.name.empty() && replaced.contains(limit->is.name)) continue;
    status.limit = &limit->is;
    // GenerateCacheKey: windows of the calendar, not of the first request.
    const int64_t length = limit->is.window_seconds, window = unix_now / length * length;
    RateLimitCount& count = (*counts)[keys[i]];
    if (count.window != window) count = {window, 0};
    if (count.taken < UINT32_MAX) ++count.taken;
    const bool over = count.taken > limit->is.requests;
    status.over = over && !limit->shadow;
    status.remaining = over ? 0 : limit->is.requests - count.taken;
    status.reset_seconds = static_cast<uint32_t>(window + length - unix_now);
    quotas += limit->quota;
    spent += limit->quota && status.over;
    out.over |= status.over && !limit->quota;
  }
  out.over |= quotas > 0 && quotas == spent;
  return out;
}

}  // namespace wavetank::sim
