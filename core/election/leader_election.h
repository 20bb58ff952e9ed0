// One candidate of one election: asks for the lock until it has it, then renews it, and starts and stops the work that
// only the leader does (istiod: pilot/pkg/leaderelection/leaderelection.go, k8sleaderelection/leaderelection.go).
//
// A lease lasts 30 s since a candidate last saw it change, by the candidate's own clock. The leader renews each 7.5 s
// and gives up when it could not for 15 s; others ask each 7.5 to 16.5 s. Whoever stops in order hands the lock back.
//
// An election that nobody else can take part in is not written: its one candidate leads at once, and from when there
// may be another (Contest) the object shows what it would have shown all along. So a lone istiod costs nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/base/random.h"
#include "core/election/record.h"
#include "core/kube/client.h"

namespace wavetank::election {

class LeaderElection {
 public:
  struct Options {
    LockName lock;
    std::string identity;  // the pod's name
    std::string key;       // of a ConfigMap's record
    uint64_t seed = 0;
    Duration ttl = 30s;
  };
  struct Surroundings {
    // Whether anybody else may be a candidate, now or before.
    std::function<bool()> contested;
    // Whether this candidate takes the lock from a living holder with that key. Null: it never does.
    std::function<bool(const std::string& holder_key)> evicts;
    std::function<void()> started, stopped;  // the leader's work
    LogSink log;                             // may be empty
  };

  // `host` and `client` outlive it. Its end without Stop() is the process's death: the lease runs out.
  LeaderElection(Host& host, kube::Client& client, Options options, Surroundings surroundings);
  ~LeaderElection();

  void Run();
  // Somebody else may ask from now on.
  void Contest();
  // In order: the work stops and the lock is handed back; then, or at once if there is none, `ended` is called. It is
  // not run again.
  void Stop(std::function<void()> ended);

  bool leads() const { return state_ == State::kAlone || state_ == State::kLeading; }
  const std::string& id() const { return options_.lock.name; }
  // What the lock would hold if it were written; nullopt: this candidate does not lead, or has written.
  std::optional<nlohmann::json> Unwritten() const;

 private:
  enum class State : uint8_t { kNew, kAlone, kAcquiring, kLeading, kStopped };

  void Acquire();
  void AcquireOnce();
  void Lead();
  void RenewRound();
  void RenewOnce();
  void Lost();
  void Release(std::function<void()> then);
  // tryAcquireOrRenew: `done` hears whether this candidate holds the lock now.
  void Try(std::function<void(bool)> done);
  void Judge(const kube::ObjectRef& object, const std::function<void(bool)>& done);
  void Write(const LeaderRecord& record, std::function<void(bool)> done);
  void Observe(LeaderRecord record);
  bool IsHolder() const { return observed_.holder == options_.identity; }
  LeaderRecord Own() const;
  void Say(std::string_view level, std::string_view scope, std::string text) const;
  // Runs unless the state has changed since.
  template <class Fn>
  auto Current(Fn fn) {
    return [fn = std::move(fn), epoch = epoch_, this, alive = std::weak_ptr<char>(alive_)](auto&&... args) mutable {
      if (!alive.expired() && epoch == epoch_) fn(std::forward<decltype(args)>(args)...);
    };
  }

  Host& host_;
  kube::Client& client_;
  const Options options_;
  const Surroundings around_;
  RandomStream jitter_;
  State state_ = State::kNew;
  uint64_t epoch_ = 0;  // counts changes of the state: what was asked for in an earlier one is not heard
  int cycle_ = 0;
  LeaderRecord observed_;
  std::string observed_raw_;
  Time observed_at_{}, acquired_{};
  kube::ObjectRef object_;  // as last read or written
  TimerId deadline_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::election
