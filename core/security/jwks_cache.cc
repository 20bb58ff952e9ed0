#include "core/security/jwks_cache.h"

#include <algorithm>
#include <vector>

#include "core/base/assert.h"
#include "core/base/json_text.h"

namespace wavetank::security {
namespace {

constexpr Duration kRefreshInterval = 20min, kIntervalAfterFailure = 1min, kLongestInterval = 60min,
                   kEvictionAge = 24h * 7, kRetryInterval = 1s;
constexpr int kRetries = 7;
constexpr size_t kChannel = 5;  // the places of jwksuriChannel

std::vector<nlohmann::json> ByKid(const nlohmann::json& keys) {
  const auto kid = [](const nlohmann::json& key) {
    return key.is_object() && key.contains("kid") && key["kid"].is_string() ? key["kid"].get<std::string>()
                                                                            : std::string();
  };
  std::vector<nlohmann::json> out(keys.begin(), keys.end());
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return kid(a) < kid(b); });
  return out;
}

bool ListsKeys(const nlohmann::json& set) { return set.is_object() && set.contains("keys") && set["keys"].is_array(); }

}  // namespace

std::optional<bool> KeysDiffer(const std::string& before, const std::string& now) {
  if (before == now) return false;
  const nlohmann::json new_set = ParseJson(now);
  if (!new_set.is_object() && !new_set.is_null()) return std::nullopt;
  const nlohmann::json old_set = ParseJson(before);
  return !ListsKeys(old_set) || !ListsKeys(new_set) || ByKid(old_set["keys"]) != ByKid(new_set["keys"]);
}

JwksCache::JwksCache(Host& host, WebFetch fetch, std::function<void()> changed)
    : host_(host),
      fetch_(std::move(fetch)),
      changed_(std::move(changed)),
      last_reset_(host.Now()),
      interval_(kRefreshInterval) {}

JwksCache::~JwksCache() { host_.Cancel(timer_); }

std::optional<std::string> JwksCache::Discover(const std::string& issuer) const {
  const std::optional<std::string> body = fetch_(issuer + "/.well-known/openid-configuration");
  if (!body) return std::nullopt;
  const nlohmann::json said = ParseJson(*body);
  if (!said.is_object() || !said.contains("jwks_uri") || !said["jwks_uri"].is_string()) return std::nullopt;
  return said["jwks_uri"].get<std::string>();
}

std::optional<std::string> JwksCache::KeySet(const std::string& issuer, const std::string& uri) {
  const Time now = host_.Now();
  if (const auto known = entries_.find({issuer, uri}); known != entries_.end()) {
    known->second.used = now;
    if (known->second.keys.empty()) return std::nullopt;
    return known->second.keys;
  }
  const Key key(issuer, uri);
  if (std::find(missed_.begin(), missed_.end(), key) != missed_.end()) return std::nullopt;
  std::optional<std::string> keys;
  if (const auto at = uri.empty() ? Discover(issuer) : std::optional(uri)) keys = fetch_(*at);
  if (keys) {
    entries_[key] = {*keys, now, now};
    Arm();
    return keys;
  }
  if (missed_.empty()) {
    // For callers that do not wait.
    host_.Post([this, alive = std::weak_ptr<char>(alive_)] {
      if (!alive.expired() && MustWait()) Wait([] {});
    });
  }
  missed_.push_back(key);
  return std::nullopt;
}

void JwksCache::Wait(Callback then) { Tell({std::exchange(missed_, {}), std::move(then)}); }

// Each is kept, as missing, when its turn has come: GetPublicKey fetches one after the other and is stuck in between.
void JwksCache::Tell(Teller teller) {
  const Time now = host_.Now();
  while (!teller.keys.empty()) {
    const bool news = entries_.try_emplace(teller.keys.front(), Entry{"", now, now}).second;
    if (!news) {  // another push was faster
      teller.keys.pop_front();
      continue;
    }
    if (channel_ == kChannel) {
      blocked_.push_back(std::move(teller));
      return;
    }
    teller.keys.pop_front();
    ++channel_;
    Take();
    Arm();
  }
  teller.then();
}

void JwksCache::Take() {
  WAVETANK_ASSERT(channel_ <= kChannel, channel_);
  WAVETANK_ASSERT(blocked_.empty() || channel_ == kChannel, channel_);  // pushes wait for a full channel alone
  if (refreshing_ || channel_ == 0) return;
  --channel_;
  refreshing_ = true;
  host_.Post([this, known = entries_, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) Refresh(true, known);
  });
  if (blocked_.empty()) return;
  // The push that waited longest gets the place. What it tells of is kept already.
  Teller next = std::move(blocked_.front());
  blocked_.pop_front();
  next.keys.pop_front();
  ++channel_;
  host_.Post([this, next = std::move(next), alive = std::weak_ptr<char>(alive_)]() mutable {
    if (!alive.expired()) Tell(std::move(next));
  });
}

// istiod's ticker runs from its start on. With nothing to refresh nobody would notice, so it is only thought of then.
void JwksCache::Arm() {
  if (timer_ != kNoTimer || refreshing_ || entries_.empty()) return;
  const Time now = host_.Now();
  Time next = last_reset_ + interval_;
  while (next <= now) {  // it found nothing, and nothing failed
    last_reset_ = next;
    interval_ = kRefreshInterval;
    failed_before_ = false;
    next += interval_;
  }
  WAVETANK_ASSERT(next > now, next, now);
  timer_ = host_.RunAfter(next - now, [this] {
    timer_ = kNoTimer;
    if (!refreshing_) Refresh(false, std::map<Key, Entry>(entries_));
  });
}

void JwksCache::Refresh(bool only_missing, const std::map<Key, Entry>& known) {
  host_.Cancel(timer_);
  timer_ = kNoTimer;
  refreshing_ = true;
  differs_ = failed_ = false;
  under_way_ = 1;  // this loop
  const Time now = host_.Now();
  for (const auto& [key, entry] : known) {
    if (!entries_.contains(key) || (only_missing && !entry.keys.empty())) continue;
    if (now - entry.used >= kEvictionAge || now - entry.refreshed >= kEvictionAge) {
      entries_.erase(key);
      continue;
    }
    ++under_way_;
    RefreshOne(key, entry);
  }
  DoneOne();
}

void JwksCache::RefreshOne(Key key, const Entry& entry) {
  if (key.second.empty()) {
    const std::optional<std::string> uri = Discover(key.first);
    if (!uri) {
      failed_ = true;
      return DoneOne();
    }
    // From here on it is kept under its URI, where nobody who knows the issuer alone will look for it.
    entries_.erase(key);
    key.second = *uri;
  }
  Entry fresh = entry;
  fresh.refreshed = host_.Now();
  Attempt(key, std::move(fresh), kRetries);
}

void JwksCache::Attempt(const Key& key, Entry entry, int more_times) {
  WAVETANK_ASSERT(refreshing_);
  WAVETANK_ASSERT(more_times >= 0, more_times);
  const std::optional<std::string> keys = fetch_(key.second);
  if (!keys && more_times > 0) {
    host_.RunAfter(kRetryInterval,
                   [this, key, entry = std::move(entry), more_times, alive = std::weak_ptr<char>(alive_)]() mutable {
                     if (!alive.expired()) Attempt(key, std::move(entry), more_times - 1);
                   });
    return;
  }
  if (!keys) {
    failed_ = true;
    if (entry.keys.empty()) entries_.erase(key);
    return DoneOne();
  }
  const std::optional<bool> differ = KeysDiffer(entry.keys, *keys);
  failed_ = failed_ || !differ;
  differs_ = differs_ || differ.value_or(false);
  entry.keys = *keys;
  entries_[key] = std::move(entry);
  DoneOne();
}

void JwksCache::DoneOne() {
  WAVETANK_ASSERT(refreshing_);
  WAVETANK_ASSERT(under_way_ > 0, under_way_);  // each ends once
  if (--under_way_ > 0) return;
  if (differs_) changed_();
  if (!failed_) {
    interval_ = kRefreshInterval;
  } else {
    interval_ = failed_before_ ? std::min(2 * interval_, kLongestInterval) : kIntervalAfterFailure;
  }
  failed_before_ = failed_;
  last_reset_ = host_.Now();
  refreshing_ = false;
  Take();
  Arm();
}

}  // namespace wavetank::security
