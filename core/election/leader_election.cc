#include "core/election/leader_election.h"

#include <cstdint>
#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::election {
namespace {

// wait.JitterUntil: the period, and up to 1.2 of it more.
constexpr double kJitterFactor = 1.2;

}  // namespace

LeaderElection::LeaderElection(Host& host, kube::Client& client, Options options, Surroundings surroundings)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      around_(std::move(surroundings)),
      jitter_(options_.seed, fmt::format("leader election/{}/{}", options_.lock.Describe(), options_.identity)) {}

LeaderElection::~LeaderElection() {
  alive_.reset();
  host_.Cancel(deadline_);
}

void LeaderElection::Say(std::string_view level, std::string_view scope, std::string text) const {
  if (around_.log) around_.log({level, scope, std::move(text)});
}

void LeaderElection::Run() {
  WAVETANK_ASSERT(state_ == State::kNew, id());
  if (around_.contested()) return Acquire();
  state_ = State::kAlone;
  acquired_ = host_.WallClock();
  Say("info", "klog", fmt::format("attempting to acquire leader lease {}...", options_.lock.Describe()));
  Say("info", "klog", fmt::format("successfully acquired lease {}", options_.lock.Describe()));
  Say("info", "", "leader election lock obtained: " + id());
  around_.started();
}

void LeaderElection::Contest() {
  if (state_ != State::kAlone) return;
  state_ = State::kLeading;
  ++epoch_;
  Observe(Own());
  RenewRound();
}

void LeaderElection::Acquire() {
  state_ = State::kAcquiring;
  ++epoch_;
  ++cycle_;
  observed_ = {};
  observed_raw_.clear();
  observed_at_ = {};
  Say("info", "klog", fmt::format("attempting to acquire leader lease {}...", options_.lock.Describe()));
  AcquireOnce();
}

void LeaderElection::AcquireOnce() {
  Try(Current([this](bool held) {
    if (held) return Lead();
    const Duration period = options_.ttl / 4;
    const auto more = static_cast<int64_t>(static_cast<double>(period.count()) * kJitterFactor);
    host_.RunAfter(period + Duration(jitter_.Between(0, more)), Current([this] { AcquireOnce(); }));
  }));
}

void LeaderElection::Lead() {
  state_ = State::kLeading;
  ++epoch_;
  acquired_ = observed_.acquired;
  Say("info", "klog", fmt::format("successfully acquired lease {}", options_.lock.Describe()));
  Say("info", "", "leader election lock obtained: " + id());
  around_.started();
  if (state_ == State::kLeading) RenewRound();
}

// PollImmediateUntil: tried at once and each retry period, until the deadline.
void LeaderElection::RenewRound() {
  WAVETANK_ASSERT(deadline_ == kNoTimer, id());
  deadline_ = host_.RunAfter(options_.ttl / 2, Current([this] {
                               deadline_ = kNoTimer;
                               Lost();
                             }));
  RenewOnce();
}

void LeaderElection::RenewOnce() {
  const Time begun = host_.Now();
  Try(Current([this, begun](bool held) {
    const Duration period = options_.ttl / 4;
    if (!held) {
      const Duration spent = host_.Now() - begun;
      host_.RunAfter(spent < period ? period - spent : Duration::zero(), Current([this] { RenewOnce(); }));
      return;
    }
    host_.Cancel(std::exchange(deadline_, kNoTimer));
    host_.RunAfter(period, Current([this] { RenewRound(); }));
  }));
}

void LeaderElection::Lost() {
  Say("info", "klog",
      fmt::format("failed to renew lease {}: timed out waiting for the condition", options_.lock.Describe()));
  ++epoch_;
  if (IsHolder()) Release([] {});
  Say("info", "", "leader election lock lost: " + id());
  state_ = State::kAcquiring;
  around_.stopped();
  if (state_ != State::kAcquiring) return;
  Say("info", "", fmt::format("Leader election cycle {} lost. Trying again", cycle_));
  Acquire();
}

void LeaderElection::Stop(std::function<void()> ended) {
  const bool led = leads(), written = state_ == State::kLeading && IsHolder();
  state_ = State::kStopped;
  ++epoch_;
  host_.Cancel(std::exchange(deadline_, kNoTimer));
  if (!led) return ended();
  Say("info", "", "leader election lock lost: " + id());
  around_.stopped();
  if (!written) return ended();
  Release(std::move(ended));
}

// What comes of it changes nothing.
void LeaderElection::Release(std::function<void()> then) {
  LeaderRecord free;
  free.lease_seconds = 1;
  free.acquired = free.renewed = host_.WallClock();
  free.transitions = observed_.transitions;
  Observe(free);
  if (object_ == nullptr) return then();
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(WithRecord(options_.lock, object_, free));
  WAVETANK_ASSERT(object.ok(), id());  // made of one that could be read
  client_.Apply(*std::move(object),
                [then = std::move(then), alive = std::weak_ptr<char>(alive_)](const absl::StatusOr<kube::ObjectRef>&) {
                  if (!alive.expired()) then();
                });
}

LeaderRecord LeaderElection::Own() const {
  LeaderRecord out;
  out.holder = options_.identity;
  out.key = options_.lock.lease ? "" : options_.key;
  out.lease_seconds = static_cast<int>(options_.ttl / 1s);
  out.renewed = host_.WallClock();
  out.acquired = leads() ? acquired_ : host_.WallClock();
  return out;
}

void LeaderElection::Observe(LeaderRecord record) {
  observed_ = std::move(record);
  observed_at_ = host_.Now();
}

void LeaderElection::Try(std::function<void(bool)> done) {
  kube::ListOptions only;
  only.ns = options_.lock.ns;
  only.field_selector = "metadata.name=" + options_.lock.name;
  client_.List(
      options_.lock.kind(), only, Current([this, done](absl::StatusOr<kube::ObjectList> found) {
        if (!found.ok()) {
          Say("error", "klog",
              fmt::format("error retrieving resource lock {}: {}", options_.lock.Describe(), Message(found.status())));
          return done(false);
        }
        if (!found->items.empty()) return Judge(found->items.front(), done);
        object_ = nullptr;
        Write(Own(), done);
      }));
}

void LeaderElection::Judge(const kube::ObjectRef& object, const std::function<void(bool)>& done) {
  absl::StatusOr<StoredRecord> stored = ReadRecord(options_.lock, *object);
  if (!stored.ok()) {
    Say("error", "klog",
        fmt::format("error retrieving resource lock {}: {}", options_.lock.Describe(), Message(stored.status())));
    return done(false);
  }
  object_ = object;
  if (stored->raw != observed_raw_) {
    Observe(stored->record);
    observed_raw_ = stored->raw;
  }
  const bool living = !stored->record.holder.empty() && observed_at_ + options_.ttl > host_.Now();
  if (living && !IsHolder() && (!around_.evicts || !around_.evicts(stored->record.key))) return done(false);
  LeaderRecord own = Own();
  own.transitions = stored->record.transitions;
  if (!IsHolder() && own.transitions < INT64_MAX) ++own.transitions;  // anybody may have written the record
  if (IsHolder()) own.acquired = stored->record.acquired;
  Write(own, done);
}

void LeaderElection::Write(const LeaderRecord& record, std::function<void(bool)> done) {
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(WithRecord(options_.lock, object_, record));
  WAVETANK_ASSERT(object.ok(), id());  // made of one that could be read
  const bool fresh = object_ == nullptr;
  client_.Apply(*std::move(object), Current([this, record, fresh,
                                             done = std::move(done)](absl::StatusOr<kube::ObjectRef> written) {
    if (!written.ok()) {
      Say("error", "klog",
          fmt::format("{}: {}", fresh ? "error initially creating leader election record" : "Failed to update lock",
                      Message(written.status())));
      return done(false);
    }
    object_ = *std::move(written);
    Observe(record);
    done(true);
  }));
}

std::optional<nlohmann::json> LeaderElection::Unwritten() const {
  if (state_ != State::kAlone) return std::nullopt;
  LeaderRecord record = Own();
  const Duration period = options_.ttl / 4;
  record.renewed = acquired_ + (host_.WallClock() - acquired_) / period * period;
  nlohmann::json body = WithRecord(options_.lock, nullptr, record);
  body["metadata"].erase("uid");
  return body;
}

}  // namespace wavetank::election
