#include "replay/replayer.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"

namespace wavetank::replay {
namespace {

// The log's events and checkpoints as a queue that the replay's events are held against. Inputs are another reader's
// business: one stands where the world is told, the other where it answers.
class Comparison {
 public:
  Comparison(LogReader& expected, ReplayTarget& target, const ReplayOptions& options, ReplayResult& result)
      : expected_(expected), target_(target), options_(options), result_(result) {}

  // The next event of the log, checkpoints before it being compared on the way; false at the log's end.
  bool Peek() {
    while (!have_ && !end_ && error_.ok()) {
      absl::StatusOr<LogReader::Item> item = expected_.Next();
      if (!item.ok()) {
        error_ = item.status();
      } else if (*item == LogReader::Item::kEvent) {
        have_ = true;
      } else if (*item == LogReader::Item::kCheckpoint) {
        pending_ = expected_.checkpoint();
        if (!pending_->last) CompareCheckpoint();
      } else if (*item == LogReader::Item::kEnd) {
        end_ = true;
      }
    }
    return have_;
  }

  void Take(const LoggedEvent& got) {
    if (result_.divergence || !error_.ok()) return;
    if (!Peek()) {
      // An interrupted log says nothing about what follows; a whole one says that nothing does.
      if (error_.ok() && pending_ && pending_->last)
        Differ(Divergence::Kind::kNotLogged, got.index, got.time, "", Words(got));
      return;
    }
    WAVETANK_ASSERT(have_, got.index);
    const LoggedEvent& want = expected_.event();
    if (!(got == want)) {
      return Differ(Divergence::Kind::kDiffers, want.index, want.time, Words(want), Words(got));
    }
    have_ = false;
    ++result_.events;
    WAVETANK_ASSERT(result_.events == want.index + 1, result_.events, want.index);  // none was left out
    before_.push_back(got);
    if (before_.size() > options_.context) before_.pop_front();
    // A checkpoint right behind this event is to be compared now, while the world stands where it stood.
    if (expected_.AtRecordEnd()) Peek();
  }

  // Everything until `time` was run: what the log has until then must have been seen.
  void ReachedTime(Time time) {
    if (result_.divergence || !error_.ok() || !Peek()) return;
    const LoggedEvent& want = expected_.event();
    if (want.time <= time) {
      Differ(Divergence::Kind::kMissing, want.index, want.time, Words(want), "");
    }
  }

  // The log's end.
  void Finish() {
    if (result_.divergence || !error_.ok()) return;
    if (Peek()) {
      const LoggedEvent& want = expected_.event();
      return Differ(Divergence::Kind::kMissing, want.index, want.time, Words(want), "");
    }
    if (error_.ok() && pending_ && pending_->last) {
      result_.complete = true;
      CompareCheckpoint();
    }
  }

  const absl::Status& error() const { return error_; }

 private:
  void CompareCheckpoint() {
    WAVETANK_ASSERT(pending_.has_value());
    const LogCheckpoint& want = *pending_;
    if (const std::string got = target_.TraceDigest(); got != want.trace_digest) {
      return Differ(Divergence::Kind::kTraceDigest, want.events, want.at, want.trace_digest, got);
    }
    if (const std::string got = target_.StateDigest();
        !got.empty() && !want.state_digest.empty() && got != want.state_digest) {
      return Differ(Divergence::Kind::kStateDigest, want.events, want.at, want.state_digest, got);
    }
    ++result_.checkpoints;
  }

  void Differ(Divergence::Kind kind, uint64_t event, Time at, std::string expected, std::string got) {
    Divergence divergence{kind, event, at, expected_.header().Beginning(), std::move(expected), std::move(got), {}};
    for (const LoggedEvent& each : before_) divergence.before.push_back(Words(each));
    result_.divergence = std::move(divergence);
  }

  std::string Words(const LoggedEvent& event) const { return Describe(event, expected_.header().Beginning()); }

  LogReader& expected_;
  ReplayTarget& target_;
  const ReplayOptions& options_;
  ReplayResult& result_;
  absl::Status error_;
  bool have_ = false, end_ = false;
  std::optional<LogCheckpoint> pending_;  // the last one read
  std::deque<LoggedEvent> before_;
};

}  // namespace

absl::StatusOr<LogReader::Summary> VerifyUsable(LogReader& log) {
  absl::StatusOr<LogReader::Summary> summary = log.Verify();
  if (!summary.ok()) return summary.status();
  // A recorder writes a checkpoint behind the first picture.
  if (!log.header().IsRecording() || summary->checkpoints > 0) return summary;
  return absl::FailedPreconditionError(
      fmt::format("{}: the recording was ended while its first picture of the clusters was being written: there is no "
                  "mesh in it yet; record again",
                  log.path()));
}

absl::StatusOr<ReplayResult> Replay(LogReader& log, ReplayTarget& target, const ReplayOptions& options) {
  absl::StatusOr<LogReader::Summary> summary = VerifyUsable(log);
  if (!summary.ok()) return summary.status();
  absl::StatusOr<std::unique_ptr<LogReader>> events = LogReader::Open(log.path());
  if (!events.ok()) return events.status();
  if ((*events)->chain() != log.chain()) {
    return absl::UnavailableError(fmt::format("{}: the file was replaced while it was read: try again", log.path()));
  }

  ReplayResult result;
  Comparison comparison(**events, target, options, result);
  const auto going_on = [&] { return !result.divergence && comparison.error().ok(); };
  const auto advance = [&](Time time) {
    target.AdvanceTo(time);
    result.end = time;
  };
  result.compared = !(log.header().HoldsInputsAlone() && summary->events == 0);
  ReplayTarget::Sink sink = [&](const LoggedEvent& event) { comparison.Take(event); };
  if (!result.compared) sink = [](const LoggedEvent&) {};
  if (absl::Status status = target.Start(log.header(), std::move(sink)); !status.ok()) {
    return status;
  }
  Time end = summary->end;
  const bool stops_early = options.until && *options.until < end;
  if (stops_early) end = *options.until;
  while (going_on()) {
    absl::StatusOr<LogReader::Item> item = log.Next();
    if (!item.ok()) return item.status();
    if (*item == LogReader::Item::kEnd) break;
    if (*item != LogReader::Item::kInput) continue;
    const LogInput& input = log.input();
    if (input.at > end) break;
    advance(input.at);
    if (!going_on()) break;
    if (absl::Status status = target.Do(input); !status.ok()) {
      return absl::Status(status.code(), fmt::format("{}: {}: {}", log.path(),
                                                     Describe(input, log.header().Beginning()), Message(status)));
    }
    ++result.inputs;
  }
  if (going_on()) {
    advance(end);
    // An interrupted run may have logged only part of what happened at its last instant, and that is no difference.
    if (!result.compared) {
      result.complete = summary->complete && !stops_early;
    } else if (stops_early) {
      comparison.ReachedTime(end);
    } else {
      comparison.Finish();
    }
  }
  if (!comparison.error().ok()) return comparison.error();
  result.trace_digest = target.TraceDigest();
  return result;
}

std::string Describe(const Divergence& divergence) {
  std::string text;
  const double seconds = ToMillis(divergence.at - divergence.beginning) / 1e3;
  switch (divergence.kind) {
    case Divergence::Kind::kDiffers:
      text = fmt::format("first difference at event {}, {:.6f} s\n", divergence.event, seconds);
      break;
    case Divergence::Kind::kNotLogged:
      text = fmt::format("event {}, {:.6f} s, happens in the replay only\n", divergence.event, seconds);
      break;
    case Divergence::Kind::kMissing:
      text = fmt::format("event {}, {:.6f} s, is in the log only\n", divergence.event, seconds);
      break;
    case Divergence::Kind::kTraceDigest:
      text = fmt::format("the trace's digest differs after {} events, {:.6f} s\n", divergence.event, seconds);
      break;
    case Divergence::Kind::kStateDigest:
      text = fmt::format("the state's digest differs after {} equal events, {:.6f} s\n", divergence.event, seconds);
      break;
  }
  for (const std::string& line : divergence.before) text += "  before:   " + line + "\n";
  if (!divergence.expected.empty()) text += "  expected: " + divergence.expected + "\n";
  if (!divergence.got.empty()) text += "  got:      " + divergence.got + "\n";
  return text;
}

}  // namespace wavetank::replay
