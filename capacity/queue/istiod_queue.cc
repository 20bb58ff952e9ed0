#include "capacity/queue/istiod_queue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

#include "core/base/assert.h"

namespace wavetank::capacity {
namespace {

constexpr Duration kSlice = 10ms;  // Go's

Duration Ms(double ms) { return Duration(static_cast<int64_t>(std::llround(ms * 1e6))); }

// What a proxy is sent in one push, per set of kinds that were merged.
struct ProxyCost {
  struct Stage {
    Duration cost{};
    double kilobytes = 0;
    bool sent = false, yields = false;
  };
  std::array<Stage, CostModel::kTypes> stages;
  Duration miss{};
  int first = -1, last = 0;  // stages
};

class Queue {
 public:
  Queue(const CostModel& model, const MeshSize& mesh, const QueueOptions& options,
        const std::vector<ChangeEvent>& events)
      : model_(model), mesh_(mesh), options_(options), events_(events) {
    const int whole = std::max(1, static_cast<int>(std::ceil(options.cpus)));
    processors_.resize(static_cast<size_t>(whole));
    slowness_ = static_cast<double>(whole) / std::max(options.cpus, 0.001);
    proxies_.resize(static_cast<size_t>(mesh.proxies));
    result_.arrivals.resize(events.size());
    for (size_t i = 0; i < events.size(); ++i) result_.arrivals[i] = {events[i].change, events[i].at, {}, {}, {}};
    arrived_.resize(events.size());
  }

  QueueResult Run() {
    for (;;) {
      const Duration event = next_event_ < events_.size() ? EventAt(next_event_) : Duration::max();
      const Duration timer = timer_.value_or(Duration::max());
      const auto done = std::min_element(processors_.begin(), processors_.end(),
                                         [](const auto& a, const auto& b) { return a.until < b.until; });
      const Duration finished = done->task ? done->until : Duration::max();
      const Duration next = std::min({event, timer, finished});
      if (next == Duration::max()) break;
      WAVETANK_ASSERT(next >= now_, next, now_);  // time never runs backwards
      now_ = next;
      OpenBuckets();
      if (finished == next) {
        Finish(*done);
      } else if (event == next) {
        OnEvent(next_event_++);
      } else {
        timer_.reset();
        OnTimer();
      }
    }
    result_.end = now_;
    std::vector<Arrivals> known;
    for (size_t i = 0; i < arrived_.size(); ++i) {
      if (arrived_[i]) known.push_back(result_.arrivals[i]);
    }
    result_.arrivals = std::move(known);
    return std::move(result_);
  }

 private:
  struct Push {
    unsigned kinds = 0;  // bits of Change
    std::vector<size_t> events;
    Duration start{};
    std::vector<int64_t> arrived;  // ns after start, one for each proxy
  };
  static constexpr int kPushItself = -1, kAnEvent = -2;
  // A goroutine's piece of work.
  struct Task {
    int proxy = kPushItself;
    int stage = 0;  // of kAnEvent: which
    unsigned kinds = 0;
    bool client = false;       // the bench's client takes the response of `stage`
    int64_t from = 0, to = 0;  // pushes that it carries
  };
  struct Processor {
    std::optional<Task> task;
    Duration until = Duration::max();
    Duration slice{};
  };
  struct Proxy {
    int64_t from = 0, to = 0;            // waits with these pushes; to 0: does not wait
    int64_t busy_from = 0, busy_to = 0;  // came while it was pushed to
    bool processing = false;
  };

  Duration EventAt(size_t i) const { return events_[i].at + options_.before_debounce; }

  // Null: nobody wants to know.
  QueueBucket* BucketAt(Duration at) {
    if (options_.bucket <= Duration::zero()) return nullptr;
    const auto i = static_cast<size_t>(at / options_.bucket);
    if (i >= result_.buckets.size()) result_.buckets.resize(i + 1);
    return &result_.buckets[i];
  }
  // Who waits at the beginning of a bucket waits in it, though nothing may happen there.
  void OpenBuckets() {
    while (options_.bucket > Duration::zero() && (opened_ + 1) * options_.bucket <= now_) {
      if (++opened_; !waiting_.empty()) CountWaiting(opened_ * options_.bucket);
    }
  }
  void CountWaiting(Duration at) {
    const auto waiting = static_cast<int64_t>(waiting_.size());
    result_.most_waiting = std::max(result_.most_waiting, waiting);
    if (QueueBucket* bucket = BucketAt(at)) bucket->most_waiting = std::max(bucket->most_waiting, waiting);
  }
  // `cost` of processor time, evenly from now on for as long as it takes.
  void CountBusy(Duration cost, Duration takes) {
    result_.busy += cost;
    Duration left = cost;
    for (Duration at = now_; options_.bucket > Duration::zero() && left > Duration::zero();) {
      const Duration end = std::min((at / options_.bucket + 1) * options_.bucket, now_ + takes);
      const double until = static_cast<double>((now_ + takes - end).count()) / static_cast<double>(takes.count());
      const auto later = Duration(static_cast<int64_t>(static_cast<double>(cost.count()) * until));
      BucketAt(at)->busy += left - later;
      left = later;
      at = end;
    }
  }

  // Debouncer, as core/xds/debouncer.cc.
  void OnEvent(size_t i) {
    Ready({kAnEvent, static_cast<int>(i), 0, false, 0, 0}, Ms(model_.parameters()["push.event"]));
  }
  void Add(size_t i) {
    if (pending_.empty()) {
      first_ = now_;
      timer_ = now_ + options_.debounce_after;
    }
    pending_.push_back(i);
    last_ = now_;
  }
  void OnTimer() {
    if (pending_.empty() || pushing_) return;
    const Duration quiet = now_ - last_;
    if (now_ - first_ >= options_.debounce_max || quiet >= options_.debounce_after) return StartPush();
    timer_ = now_ + options_.debounce_after - quiet;
  }
  void StartPush() {
    WAVETANK_ASSERT(!pushing_, last_push_);  // contexts are made one after the other
    WAVETANK_ASSERT(!pending_.empty(), last_push_);
    Push push;
    push.start = now_;
    push.events.swap(pending_);
    for (const size_t i : push.events) {
      push.kinds |= 1u << static_cast<int>(events_[i].change);
      result_.waited += now_ - EventAt(i);
    }
    push.arrived.reserve(proxies_.size());
    double before = 0;
    for (int kind = 0; kind < kChanges; ++kind) {
      if ((push.kinds >> kind & 1u) == 0) continue;
      before = std::max(before, model_.Push({mesh_, static_cast<Change>(kind), 0, true}).before_ms);
    }
    const int full = (push.kinds >> static_cast<int>(Change::kService)) != 0 ? 1 : 0;
    ++result_.pushes;
    result_.full_pushes += full;
    if (QueueBucket* bucket = BucketAt(now_)) {
      ++bucket->pushes;
      bucket->full_pushes += full;
    }
    const int64_t number = ++last_push_;
    pushes_.emplace(number, std::move(push));
    pushing_ = true;
    Ready({kPushItself, 0, 0, false, number, number}, Ms(before));
  }
  // Its context stands: every proxy is told.
  void Enqueue(int64_t number) {
    WAVETANK_ASSERT(pushing_, number);
    WAVETANK_ASSERT(number == last_push_, number, last_push_);
    pushing_ = false;
    if (!pending_.empty()) {
      timer_.reset();
      OnTimer();
    }
    Push& push = pushes_.at(number);
    if (proxies_.empty()) return Complete(number, push);
    for (size_t i = 0; i < proxies_.size(); ++i) {
      Proxy& proxy = proxies_[i];
      if (proxy.processing) {
        result_.merged += proxy.busy_to != 0 ? 1 : 0;
        if (proxy.busy_to == 0) proxy.busy_from = number;
        proxy.busy_to = number;
      } else if (proxy.to != 0) {
        ++result_.merged;
        proxy.to = number;
      } else {
        proxy.from = proxy.to = number;
        waiting_.push_back(static_cast<int>(i));
      }
    }
    CountWaiting(now_);
    Dispatch();
  }
  void Dispatch() {
    while (in_flight_ < options_.push_throttle && !waiting_.empty()) {
      const int at = waiting_.front();
      waiting_.pop_front();
      ++in_flight_;
      ++result_.proxy_pushes;
      Proxy& proxy = proxies_[static_cast<size_t>(at)];
      WAVETANK_ASSERT(!proxy.processing, at);
      WAVETANK_ASSERT(proxy.from > 0, at);
      WAVETANK_ASSERT(proxy.from <= proxy.to, proxy.from, proxy.to);
      proxy.processing = true;
      Task task{at, 0, 0, false, proxy.from, proxy.to};
      for (int64_t n = proxy.from; n <= proxy.to; ++n) task.kinds |= KindsOf(n);
      task.stage = CostOf(task.kinds).first;
      WAVETANK_ASSERT(task.stage >= 0, task.kinds);  // a push that waits brings something
      proxy.from = proxy.to = 0;
      Ready(task, CostOf(task));
    }
  }
  unsigned KindsOf(int64_t push) const {
    const auto it = pushes_.find(push);
    return it == pushes_.end() ? 0 : it->second.kinds;
  }

  // The cost of all kinds in one: each stage is generated once, for the dearest of them.
  const ProxyCost& CostOf(unsigned kinds) {
    const auto [it, fresh] = costs_.try_emplace(kinds);
    if (!fresh) return it->second;
    ProxyCost& cost = it->second;
    for (int kind = 0; kind < kChanges; ++kind) {
      if ((kinds >> kind & 1u) == 0) continue;
      const CostModel::PushCost push = model_.Push({mesh_, static_cast<Change>(kind), 1, true});
      for (size_t type = 0; type < push.stages.size(); ++type) {
        ProxyCost::Stage& stage = cost.stages[type];
        stage.cost = std::max(stage.cost, Ms(push.stages[type].ms));
        stage.kilobytes = std::max(stage.kilobytes, push.stages[type].kilobytes);
        stage.sent = stage.sent || push.stages[type].sent;
        stage.yields = stage.kilobytes > model_.parameters()["shape.wait_for_wire"];
        if (!stage.sent) continue;
        if (cost.first < 0) cost.first = static_cast<int>(type);
        cost.last = std::max(cost.last, static_cast<int>(type));
      }
      cost.miss = std::max(cost.miss, Ms(push.miss_ms));
    }
    return cost;
  }
  Duration CostOf(const Task& task) {
    const ProxyCost& cost = CostOf(task.kinds);
    const ProxyCost::Stage& stage = cost.stages[static_cast<size_t>(task.stage)];
    if (task.client) return Ms(options_.client_message_ms + options_.client_kilobyte_ms * stage.kilobytes);
    Duration total = stage.cost;
    if (task.stage == CostModel::kEds && cost.miss > Duration::zero()) {
      const int64_t push = task.to;
      if (push != missed_push_) misses_left_ = static_cast<int>(model_.parameters()["shape.misses"]);
      missed_push_ = push;
      if (misses_left_-- > 0) total += cost.miss;
    }
    return total;
  }

  // Processors.
  // As sim/kernel/kernel.cc: what the end of a piece of work starts goes on where it is, for a time slice; all else
  // waits in order of arrival.
  void Ready(const Task& task, Duration cost) {
    if (holding_ != nullptr && !holding_->task && now_ - holding_->slice < kSlice) {
      return StartOn(*holding_, task, cost, holding_->slice);
    }
    run_queue_.push_back({task, cost});
    if (holding_ == nullptr) StartWaiting();
  }
  void StartWaiting() {
    while (!run_queue_.empty() || !client_queue_.empty()) {
      const auto idle = std::find_if(processors_.begin(), processors_.end(), [](const auto& q) { return !q.task; });
      if (idle == processors_.end()) break;
      const auto [waits, cost] = *Next();
      StartOn(*idle, waits, cost, now_);
    }
  }
  // The next piece of work: of istiod's, or of the bench's clients, who are another process with the same claim to the
  // processors (Linux' scheduler is fair between processes' threads; each has as many running as there are processors).
  std::optional<std::pair<Task, Duration>> Next() {
    const bool clients = !client_queue_.empty() && (run_queue_.empty() || client_time_ < istiod_time_);
    auto& queue = clients ? client_queue_ : run_queue_;
    if (queue.empty()) return std::nullopt;
    const auto next = queue.front();
    queue.pop_front();
    return next;
  }
  void StartOn(Processor& p, const Task& task, Duration cost, Duration slice) {
    const auto slow = Duration(static_cast<int64_t>(static_cast<double>(cost.count()) * slowness_));
    // Neither saves up time while it has nothing to do.
    Duration& own = task.client ? client_time_ : istiod_time_;
    const Duration other = task.client ? istiod_time_ : client_time_;
    own = std::max(own, other - kSlice) + slow;
    if (!task.client) CountBusy(cost, slow);
    WAVETANK_ASSERT(!p.task, now_);
    WAVETANK_ASSERT(cost >= Duration::zero(), cost);
    p.task = task;
    p.slice = slice;
    p.until = now_ + slow;
  }
  void Finish(Processor& p) {
    WAVETANK_ASSERT(p.task.has_value(), now_);
    const Task task = *p.task;
    p.task.reset();
    p.until = Duration::max();
    holding_ = &p;
    if (const std::optional<Task> next = After(task)) {
      const Duration cost = CostOf(*next);
      const bool yields = CostOf(task.kinds).stages[static_cast<size_t>(task.stage)].yields;
      if (yields || now_ - p.slice >= kSlice) {
        run_queue_.push_back({*next, cost});
      } else if (!p.task && (client_queue_.empty() || client_time_ >= istiod_time_)) {
        StartOn(p, *next, cost, p.slice);
      } else {
        run_queue_.push_front({*next, cost});
      }
    }
    holding_ = nullptr;
    StartWaiting();
  }
  // What its goroutine does next.
  std::optional<Task> After(const Task& task) {
    if (task.proxy == kAnEvent) {
      Add(static_cast<size_t>(task.stage));
      return std::nullopt;
    }
    if (task.proxy == kPushItself) {
      Enqueue(task.to);
      return std::nullopt;
    }
    const bool bench = options_.client_message_ms > 0;
    const ProxyCost& cost = CostOf(task.kinds);
    const int observed = options_.observed_type == CostModel::kTypes ? cost.last : options_.observed_type;
    if (task.client) {
      if (task.stage == observed) Arrive(task);
      return std::nullopt;
    }
    const ProxyCost::Stage& stage = cost.stages[static_cast<size_t>(task.stage)];
    if (stage.sent) {
      result_.kilobytes += stage.kilobytes;
      if (QueueBucket* bucket = BucketAt(now_)) bucket->kilobytes += stage.kilobytes;
      if (bench) {
        Task client = task;
        client.client = true;
        client_queue_.push_back({client, CostOf(client)});
      } else if (task.stage == observed) {
        Arrive(task);
      }
    }
    if (task.stage == cost.last) {
      Done(task);
      return std::nullopt;
    }
    Task next = task;
    do {
      ++next.stage;
    } while (!cost.stages[static_cast<size_t>(next.stage)].sent);
    return next;
  }
  void Done(const Task& task) {
    Proxy& proxy = proxies_[static_cast<size_t>(task.proxy)];
    WAVETANK_ASSERT(proxy.processing, task.proxy);
    WAVETANK_ASSERT(in_flight_ > 0, in_flight_);
    --in_flight_;
    proxy.processing = false;
    if (proxy.busy_to != 0) {
      proxy.from = std::exchange(proxy.busy_from, 0);
      proxy.to = std::exchange(proxy.busy_to, 0);
      waiting_.push_back(task.proxy);
    }
    Dispatch();
  }
  void Arrive(const Task& task) {
    for (int64_t number = task.from; number <= task.to; ++number) {
      const auto it = pushes_.find(number);
      if (it == pushes_.end()) continue;
      Push& push = it->second;
      WAVETANK_ASSERT(push.arrived.size() < proxies_.size(), number);  // once at each proxy
      push.arrived.push_back((now_ + options_.wire - push.start).count());
      if (push.arrived.size() == proxies_.size()) Complete(number, push);
    }
  }
  void Complete(int64_t number, Push& push) {
    WAVETANK_ASSERT(push.arrived.size() == proxies_.size(), number, push.arrived.size(), proxies_.size());
    std::vector<int64_t>& at = push.arrived;
    std::sort(at.begin(), at.end());
    const auto rank = [&](size_t ppm) {
      return at.empty() ? Duration::zero() : Duration(at[((at.size() - 1) * ppm + 500'000) / 1'000'000]);
    };
    for (const size_t i : push.events) {
      const Duration since = push.start - events_[i].at;
      Arrivals& a = result_.arrivals[i];
      a.half = since + rank(500'000);
      a.most = since + rank(990'000);
      a.last = since + rank(1'000'000);
      arrived_[i] = true;
    }
    pushes_.erase(number);
  }

  const CostModel& model_;
  const MeshSize mesh_;
  const QueueOptions options_;
  const std::vector<ChangeEvent>& events_;
  size_t next_event_ = 0;
  Duration now_{}, first_{}, last_{};
  std::optional<Duration> timer_;
  std::vector<size_t> pending_;
  bool pushing_ = false;
  int64_t last_push_ = 0, missed_push_ = 0;
  int misses_left_ = 0;
  std::map<int64_t, Push> pushes_;
  std::map<unsigned, ProxyCost> costs_;
  std::vector<Proxy> proxies_;
  std::deque<int> waiting_;
  int in_flight_ = 0;
  std::vector<Processor> processors_;
  Processor* holding_ = nullptr;  // whose piece of work has just ended
  std::deque<std::pair<Task, Duration>> run_queue_, client_queue_;
  Duration istiod_time_{}, client_time_{};  // processor time that each had
  double slowness_ = 1;
  int64_t opened_ = 0;  // the last bucket that has begun
  std::vector<bool> arrived_;
  QueueResult result_;
};

}  // namespace

QueueResult RunQueue(const CostModel& model, const MeshSize& mesh, const QueueOptions& options,
                     const std::vector<ChangeEvent>& events) {
  return Queue(model, mesh, options, events).Run();
}

}  // namespace wavetank::capacity
