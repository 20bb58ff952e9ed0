#include "replay/replayer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "core/base/status.h"
#include "tests/replay/temp_folder.h"
#include "tests/replay/toy_world.h"

namespace wavetank::replay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<Throw> kReplayedThrows = {{Time(0s), "red", 40}, {Time(5ms), "blue", 30}, {Time(9ms), "red", 7}};

class Replayer : public ::testing::Test {
 protected:
  void Record(const LogWriterOptions& options = {}) {
    const absl::StatusOr<std::string> digest = RecordToy(path_, 7, kReplayedThrows, Time(1s), options);
    ASSERT_TRUE(digest.ok()) << digest.status();
    digest_ = *digest;
  }
  ReplayResult Run(ReplayTarget& target, const ReplayOptions& options = {}) {
    auto log = LogReader::Open(path_);
    EXPECT_TRUE(log.ok()) << log.status();
    absl::StatusOr<ReplayResult> result = Replay(**log, target, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  TempFolder folder_;
  std::string path_ = folder_ / "log";
  std::string digest_;
};

TEST_F(Replayer, TheSameInputsLeadToTheSameEventsAndDigest) {
  Record({.checkpoint_every = 7});
  ToyTarget target;
  const ReplayResult result = Run(target);
  EXPECT_FALSE(result.divergence) << Describe(*result.divergence);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.inputs, 3u);
  EXPECT_EQ(result.events, 80u);
  EXPECT_EQ(result.checkpoints, 80u / 7 + 1);
  EXPECT_EQ(result.end, Time(1s));
  EXPECT_EQ(result.trace_digest, digest_);
}

TEST_F(Replayer, TheFirstDifferingEventIsNamedWithWhatCameBefore) {
  Record();
  ToyTarget flawed(23);
  const ReplayResult result = Run(flawed, {.context = 2});
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->kind, Divergence::Kind::kDiffers);
  EXPECT_EQ(result.divergence->event, 23u);
  EXPECT_EQ(result.events, 23u);
  EXPECT_FALSE(result.complete);
  EXPECT_THAT(result.divergence->before, ::testing::ElementsAre(HasSubstr("event 21 "), HasSubstr("event 22 ")));
  EXPECT_THAT(Describe(*result.divergence), AllOf(HasSubstr("first difference at event 23"), HasSubstr("got:"),
                                                  HasSubstr("a=-1"), HasSubstr("because of input")));
}

TEST_F(Replayer, ADifferenceInTheVeryFirstEventIsNamedToo) {
  Record();
  ToyTarget flawed(0);
  EXPECT_EQ(Run(flawed).divergence->event, 0u);
}

TEST_F(Replayer, UntilStopsThereWithTheWorldOfThatTime) {
  Record();
  ToyTarget target;
  const ReplayResult result = Run(target, {.until = Time(6ms)});
  EXPECT_FALSE(result.divergence);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.end, Time(6ms));
  EXPECT_EQ(result.inputs, 2u);
  EXPECT_GT(result.events, 0u);
  EXPECT_LT(result.events, 20u);
}

TEST_F(Replayer, UntilAfterTheEndIsTheEnd) {
  Record();
  ToyTarget target;
  EXPECT_TRUE(Run(target, {.until = Time(60s)}).complete);
}

class SilentTarget final : public ReplayTarget {
 public:
  absl::Status Start(const LogHeader&, Sink) override { return absl::OkStatus(); }
  void AdvanceTo(Time) override {}
  absl::Status Do(const LogInput&) override { return absl::OkStatus(); }
  std::string TraceDigest() const override { return ""; }
};

TEST_F(Replayer, AnEventThatDoesNotHappenIsADifference) {
  Record();
  SilentTarget silent;
  const ReplayResult result = Run(silent);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->kind, Divergence::Kind::kMissing);
  EXPECT_EQ(result.divergence->event, 0u);
}

TEST_F(Replayer, AnEventThatWasNotLoggedIsADifference) {
  auto writer = LogWriter::Create(path_, {.seed = 7});
  ASSERT_TRUE((*writer)->Add(LogInput{.seq = 1, .kind = "throw", .body = {{"ball", "red"}, {"bounces", 2}}}).ok());
  ASSERT_TRUE((*writer)->Finish(Time(1s), "none").ok());
  ToyTarget target;
  const ReplayResult result = Run(target);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->kind, Divergence::Kind::kNotLogged);
  EXPECT_THAT(Describe(*result.divergence), HasSubstr("in the replay only"));
}

class OtherState final : public ReplayTarget {
 public:
  absl::Status Start(const LogHeader& header, Sink sink) override { return toy_.Start(header, std::move(sink)); }
  void AdvanceTo(Time time) override { toy_.AdvanceTo(time); }
  absl::Status Do(const LogInput& input) override { return toy_.Do(input); }
  std::string TraceDigest() const override { return toy_.TraceDigest(); }
  std::string StateDigest() const override { return toy_.StateDigest() == "14" ? "other" : toy_.StateDigest(); }

 private:
  ToyTarget toy_;
};

TEST_F(Replayer, AStateThatDiffersBehindEqualEventsIsFoundAtTheNextCheckpoint) {
  Record({.checkpoint_every = 7});
  OtherState target;
  const ReplayResult result = Run(target);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->kind, Divergence::Kind::kStateDigest);
  EXPECT_EQ(result.divergence->event, 14u);
  EXPECT_EQ(result.divergence->got, "other");
}

TEST_F(Replayer, AnInterruptedLogIsReplayedAsFarAsItGoes) {
  Record();
  // What an interrupted run lacks is the last checkpoint, and perhaps events before it.
  auto log = LogReader::Open(path_);
  auto writer = LogWriter::Create(folder_ / "torn", (*log)->header());
  NameTable names;
  CauseTable causes;
  for (int events = 0; events < 50;) {
    const auto item = (*log)->Next();
    if (*item == LogReader::Item::kInput) {
      ASSERT_TRUE((*writer)->Add((*log)->input()).ok());
    }
    if (*item != LogReader::Item::kEvent) continue;
    const LoggedEvent& event = (*log)->event();
    CauseId cause = kNoCause;
    for (uint64_t input : event.inputs) cause = causes.Merge(cause, causes.Of(input));
    const TraceRecord record{event.kind,  names.Intern(event.subject), names.Intern(event.object), event.a, event.b,
                             event.detail};
    ASSERT_TRUE((*writer)->Add(event.time, record, cause, names, causes, 0).ok());
    ++events;
  }
  ASSERT_TRUE((*writer)->AddCheckpoint("", "").ok());
  // Give it its name as a crash would not, then take the end away.
  ASSERT_TRUE((*writer)->Finish((*log)->event().time, "").ok());
  ASSERT_EQ(std::system(("sqlite3 " + (folder_ / "torn") + " 'DELETE FROM checkpoint'").c_str()), 0);
  ASSERT_EQ(std::system(("sqlite3 " + (folder_ / "torn") + " 'VACUUM'").c_str()), 0);
  path_ = folder_ / "torn";
  ToyTarget target;
  const ReplayResult result = Run(target);
  EXPECT_FALSE(result.divergence) << Describe(*result.divergence);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.events, 50u);
}

TEST_F(Replayer, ADamagedLogIsNeverStarted) {
  Record();
  ASSERT_EQ(std::system(("sqlite3 " + path_ + " \"UPDATE checkpoint SET at=at+1 WHERE last\"").c_str()), 0);
  auto log = LogReader::Open(path_);
  ToyTarget target;  // would crash in AdvanceTo without Start, and is not asked
  const absl::StatusOr<ReplayResult> result = Replay(**log, target);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Replayer, AnInputThatTheWorldRefusesIsNamed) {
  auto writer = LogWriter::Create(path_, {.seed = 7});
  ASSERT_TRUE((*writer)->Add(LogInput{.at = Time(2s), .seq = 4, .kind = "levitate"}).ok());
  ASSERT_TRUE((*writer)->Finish(Time(3s), "").ok());
  auto log = LogReader::Open(path_);
  ToyTarget target;
  const absl::StatusOr<ReplayResult> result = Replay(**log, target);
  EXPECT_THAT(std::string(Message(result.status())),
              AllOf(HasSubstr("input 4 at 2.000000 s: levitate"), HasSubstr("unknown input")));
}

TEST(DescribeInput, SaysWhatItWasDoneTo) {
  const LogInput address{.at = Time(2s),
                         .seq = 4,
                         .kind = "loadBalancer",
                         .body = {{"address", "none"}, {"cluster", "c2"}, {"name", "gateway"}, {"namespace", "ns"}}};
  EXPECT_EQ(Describe(address, Time{}),
            "input 4 at 2.000000 s: loadBalancer (address none, cluster c2, name gateway, namespace ns)");
  const LogInput apply{.at = Time(2s),
                       .seq = 5,
                       .kind = "apply",
                       .body = {{"cluster", "c2"},
                                {"object", {{"kind", "Service"}, {"metadata", {{"name", "a"}, {"namespace", "b"}}}}}}};
  EXPECT_EQ(Describe(apply, Time{}), "input 5 at 2.000000 s: apply (cluster c2, Service b/a)");
}

TEST(DescribeInput, CutsNoLetterInTwo) {
  const LogInput input{.kind = "dns", .body = {{"name", std::string(114, 'x') + "\u00e4\u00e4\u00e4"}}};
  EXPECT_EQ(SubjectOf(input), "name " + std::string(114, 'x') + "...");
}

TEST_F(Replayer, EveryRunReplaysEqual) {
  EXPECT_TRUE(rc::check([&] {
    std::vector<Throw> throws;
    Time at{};
    const int count = *rc::gen::inRange(0, 8);
    for (int i = 0; i < count; ++i) {
      at += Duration(*rc::gen::inRange<int64_t>(0, 20'000'000));
      throws.push_back({at, *rc::gen::element<std::string>("red", "blue", "green"), *rc::gen::inRange(0, 60)});
    }
    const auto digest = RecordToy(path_, *rc::gen::arbitrary<uint64_t>(), throws, at + 1s,
                                  {.checkpoint_every = *rc::gen::inRange<uint64_t>(1, 40)});
    RC_ASSERT(digest.ok());
    auto log = LogReader::Open(path_);
    RC_ASSERT(log.ok());
    ToyTarget target;
    const auto result = Replay(**log, target);
    RC_ASSERT(result.ok());
    RC_ASSERT(!result->divergence);
    RC_ASSERT(result->complete);
    RC_ASSERT(result->trace_digest == *digest);
  }));
}

// The defect is in an event between two inputs, behind checkpoints and what was not yet on disk.
TEST(ReplayerDeathTest, AnAssertionLeavesALogThatLeadsToTheSameAssertion) {
  const TempFolder folder;
  const std::string path = folder / "log";
  const std::vector<Throw> throws = {{Time(0s), "red", 40}, {Time(5ms), "glass", 9}, {Time(30ms), "blue", 3}};
  const char* const message =
      "toy_world.h:[0-9]+: left > 2\n  ball = 'glass'\n  left = 2\n  at 0.01[0-9]+ s of virtual time, seed 7\n";
  EXPECT_DEATH(RecordToy(path, 7, throws, Time(1s), {.checkpoint_every = 7}).IgnoreError(),
               std::string(message) +
                   "  the event log as far as here: .*/log.partial; it leads here again: wavetank "
                   "replay .*/log.partial\n");
  auto log = LogReader::Open(path + ".partial");
  ASSERT_TRUE(log.ok()) << log.status();
  const absl::StatusOr<LogReader::Summary> summary = (*log)->Verify();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->complete);
  EXPECT_EQ(summary->inputs, 2u);
  EXPECT_GT(summary->events, 14u);
  ToyTarget again;
  EXPECT_DEATH(Replay(**log, again).IgnoreError(), message);
}

}  // namespace
}  // namespace wavetank::replay
