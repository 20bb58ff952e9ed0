// Gathers update events until they stop coming for a while, and hands them over as one
// (istiod: pilot/pkg/xds/discovery.go, debounce).
//
// The timer of a quiet period starts with the first event and is not restarted by later ones; when it fires too early
// it is set again for what is missing. Only one push is under way at a time; what comes meanwhile waits for its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/model/push_request.h"
#include "core/xds/merged_causes.h"

namespace wavetank::pilot {

// What istiod logs when it lets gathered events go: how many, what for, how long since the last and the first.
std::string DebouncedLine(uint64_t number, int64_t events, std::string_view what, Duration since_change,
                          Duration since_push, bool full);
// `what` of several keys ("ServiceEntry/sample/helloworld...."), of which it names the first.
std::string DebouncedConfigs(std::string_view first, size_t keys);

class Debouncer {
 public:
  struct Options {
    Duration after = 100ms;    // PILOT_DEBOUNCE_AFTER
    Duration max = 10s;        // PILOT_DEBOUNCE_MAX
    bool debounce_eds = true;  // PILOT_ENABLE_EDS_DEBOUNCE; without it incremental requests pass at once
  };
  // `done` is to be called once, when the push context of a full push stands and every connection has been told.
  using Push = std::function<void(PushRequest merged, Callback done)>;

  Debouncer(Host& host, Options options, Push push) : host_(host), options_(options), push_(std::move(push)) {}
  ~Debouncer() { host_.Cancel(timer_); }
  Debouncer(const Debouncer&) = delete;
  Debouncer& operator=(const Debouncer&) = delete;

  void Add(PushRequest request);

  // Events that came in, and those whose push has been started (istiod: InboundUpdates, CommittedUpdates).
  uint64_t inbound() const { return inbound_; }
  uint64_t committed() const { return committed_; }
  bool idle() const { return inbound_ == committed_; }

 private:
  void SetTimer(Duration delay);
  void MaybePush();
  void Start(PushRequest request, int events, bool debounced);

  Host& host_;
  const Options options_;
  const Push push_;
  std::optional<PushRequest> pending_;  // without its causes
  MergedCauses causes_;                 // those
  int events_ = 0;                      // in pending_
  Time start_{}, last_{};
  TimerId timer_ = kNoTimer;
  bool free_ = true;
  uint64_t inbound_ = 0, committed_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
