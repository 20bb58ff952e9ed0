// The one thread that owns a World while it goes along with real time.
//
// Virtual time is (start + what a steady clock has counted since). The thread sleeps until the kernel's next event is
// due or a task is posted, and runs what is due before each task, so that whatever waits to be done, no timer of the
// world is later than one task takes. Tasks that clients cause take turns (PostFor), so that none waits behind all that
// another wants. A task has the virtual time at which it runs. Nothing of a world may be touched by another thread
// between Start() and Stop(); other threads post what they want of it.
//
// A loop may also be driven: it has no thread of its own then, and real time passes while a caller waits in RunUntil(),
// whose thread is the loop's thread. So a scenario's runner, which asks its world for a later time and looks at it in
// between, goes along with real time unchanged (Drive()).
//
// When the machine is too slow the virtual clock falls behind and catches up later; no event is skipped and their order
// stays. To processes of their own that watch the world, what was to be 20 ms apart would then come at once, in any
// order: for them a loop never hurries (NeverHurry()), but stays late. A world stays a function of its inputs: what a
// task does to it goes through World::Do, as ever, and so into the event log with the virtual time of its arrival.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/time.h"
#include "serve/loop/fair_queue.h"
#include "sim/world.h"

namespace wavetank::serve {

// The real calendar as a world counts it: nanoseconds since kWorldEpochUnixSeconds. A world whose certificates must be
// valid for real clients begins there (sim::WorldOptions::start).
Time CalendarTime();

class Loop {
 public:
  using Task = absl::AnyInvocable<void(sim::World&)>;

  explicit Loop(std::unique_ptr<sim::World> world);
  // To be driven; the world is another's and must outlive it.
  explicit Loop(sim::World& world);
  ~Loop();  // Stop(), then the world ends
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From here on the world belongs to the thread. `now`: the virtual time that it is; if that lies ahead of the world's
  // clock, what is due until then runs first, as fast as it goes. Without: the world's clock goes on from where it is.
  void Start(std::optional<Time> now = std::nullopt);
  // Instead of Start(): this thread is the loop's from here on, real time counts, and World::RunUntil() takes it.
  void Drive();
  // Before Start() or Drive(): time that is lost is lost.
  void NeverHurry() { never_hurries_ = true; }
  // Of a loop that is driven, on its thread. Returns when the world's clock stands at `time`; at once after Stop().
  void RunUntil(Time time);
  // Ends the thread after the task under way; tasks that still wait are destroyed without having run. Idempotent. Not
  // from the loop's own thread.
  void Stop();

  // Any thread, the loop's own included; tasks run in the order of their posting. Those posted before Start() wait for
  // it. False: the loop has stopped, and the task was destroyed without having run.
  bool Post(Task task);

  // The same for what a client from outside wants, whose connection is named: tasks of one client run in the order of
  // their posting, and those of several in turn, one at a time, after what Post() was given.
  bool PostFor(const std::string& client, Task task);

  // The same, `delay` of real time from now. Not a timer of the world: what the task does is an input.
  bool PostAfter(Duration delay, Task task);

  // Runs `fn(sim::World&)` on the loop's thread, waits and gives its result; nullopt if the loop stopped before. From
  // the loop's own thread it runs at once. `fn` must not block.
  template <class Fn, class Result = std::invoke_result_t<Fn, sim::World&>>
  std::optional<Result> Call(Fn fn);

  // How what was done to the world so far is made durable, and whether there is any of it that is not. Before Start().
  struct Durability {
    std::function<bool()> pending;
    std::function<absl::Status()> commit;
  };
  void SetDurability(Durability durability) { durability_ = std::move(durability); }

  // Runs `fn` when what was done to the world until now is durable: at once if it is. Else with others that wait for
  // the same, after one commit for all of them; its error is told to each. In the order of calling. On the loop's
  // thread.
  using Release = absl::AnyInvocable<void(const absl::Status&)>;
  void WhenDurable(Release fn);

  bool OnLoopThread() const { return std::this_thread::get_id() == thread_id_; }
  // Only before Start(), after Stop(), or on the loop's thread.
  sim::World& world() { return *world_; }

 private:
  using RealClock = std::chrono::steady_clock;
  void Run(std::optional<Time> now);
  // Sleeps until something is due, `limit` at the latest, and does it. False: the loop has stopped.
  bool Turn(std::optional<Time> limit);
  // Commits and releases, unless more will soon wait for the same commit.
  void MaybeCommit(bool last);
  Time VirtualAt(RealClock::time_point real) const { return start_ + (real - real_start_); }
  // What time it is; one that never hurries is late by what is long due.
  Time VirtualNow();

  const std::unique_ptr<sim::World> owned_;
  sim::World* const world_;
  Time start_{};
  RealClock::time_point real_start_{};
  bool never_hurries_ = false;

  Durability durability_;
  std::deque<Release> held_;  // until what they tell of is durable
  RealClock::time_point held_since_{};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> posted_;  // guarded by mutex_, as the next four
  FairQueue<Task> clients_;
  std::multimap<RealClock::time_point, Task> later_;
  bool stopping_ = false, started_ = false;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
};

template <class Fn, class Result>
std::optional<Result> Loop::Call(Fn fn) {
  if (OnLoopThread()) return fn(*world_);
  // Whether the task runs or is destroyed without having run, `Held` goes and says so.
  struct Answer {
    std::mutex mutex;
    std::condition_variable ready;
    bool over = false;
    std::optional<Result> result;
  };
  struct Held {
    explicit Held(std::shared_ptr<Answer> a) : answer(std::move(a)) {}
    Held(Held&&) = default;
    ~Held() {
      if (answer == nullptr) return;
      const std::lock_guard<std::mutex> lock(answer->mutex);
      answer->over = true;
      answer->ready.notify_all();
    }
    std::shared_ptr<Answer> answer;
  };
  auto answer = std::make_shared<Answer>();
  Post([held = Held(answer), fn = std::move(fn)](sim::World& world) mutable {
    Result result = fn(world);
    const std::lock_guard<std::mutex> lock(held.answer->mutex);
    held.answer->result = std::move(result);
  });
  std::unique_lock<std::mutex> lock(answer->mutex);
  answer->ready.wait(lock, [&] { return answer->over; });
  return std::move(answer->result);
}

}  // namespace wavetank::serve
