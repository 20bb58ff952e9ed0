// The key sets that RequestAuthentications name by jwksUri, as istiod fetches, keeps and refreshes them
// (istiod: pilot/pkg/model/jwks_resolver.go).
//
// What is asked for the first time is fetched at once, by the push that needs it; if that fails, the push goes on with
// a key that verifies nothing, and a refresh in the background tries again, seven times more, a second apart. All are
// refreshed every 20 minutes, a minute after a refresh that failed, then after twice as long each time, up to an hour.
// Other keys than before cause a full push. A fetch takes no time of its own here.
//
// Pushes tell the refresher of each key set that they did not get through a channel with room for five, and it serves
// one after the other: with seven dead URIs or more the push itself waits for a place there, seven seconds and more
// (jwksuriChannel). MustWait() and Wait() are that wait, asked for after each generation.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/host.h"
#include "core/base/time.h"
#include "core/model/environment.h"

namespace wavetank::security {

// What a URL answers; nullopt: no server is there, or it answers with an error.
using WebFetch = std::function<std::optional<std::string>(const std::string& url)>;

// Other keys, whatever their order by "kid"; what is said beside two lists of keys does not count. nullopt: `now` is no
// JSON object, so that it is not said to differ.
std::optional<bool> KeysDiffer(const std::string& before, const std::string& now);

class JwksCache final : public pilot::JwksResolver {
 public:
  // `changed`: push everything. `host` must outlive it.
  JwksCache(Host& host, WebFetch fetch, std::function<void()> changed);
  ~JwksCache() override;

  std::optional<std::string> KeySet(const std::string& issuer, const std::string& uri) override;

  // Whether what was generated last, in this very task, has asked for key sets in vain.
  bool MustWait() const { return !missed_.empty(); }
  // Tells the refresher of them; `then` is called when the last is told, perhaps at once.
  void Wait(Callback then);

 private:
  using Key = std::pair<std::string, std::string>;  // issuer, URI; no URI: the issuer's OpenID discovery names it
  struct Entry {
    std::string keys;  // empty: none was had yet
    Time refreshed{}, used{};
  };

  // A push that tells of what it missed.
  struct Teller {
    std::deque<Key> keys;
    Callback then;
  };

  std::optional<std::string> Discover(const std::string& issuer) const;
  void Tell(Teller teller);
  // The refresher takes the next out of the channel, if it is free.
  void Take();
  // Of those without keys only, or of all; as far as they were known then.
  void Refresh(bool only_missing, const std::map<Key, Entry>& known);
  void RefreshOne(Key key, const Entry& entry);
  void Attempt(const Key& key, Entry entry, int more_times);
  void DoneOne();
  void Arm();

  Host& host_;
  const WebFetch fetch_;
  const std::function<void()> changed_;
  std::map<Key, Entry> entries_;
  std::deque<Key> missed_;      // by the generation under way
  size_t channel_ = 0;          // how many wait in it
  std::deque<Teller> blocked_;  // that wait for a place in it
  // The refresher, which does one thing at a time.
  int under_way_ = 0;
  bool refreshing_ = false, differs_ = false, failed_ = false, failed_before_ = false;
  Time last_reset_;
  Duration interval_;
  TimerId timer_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
