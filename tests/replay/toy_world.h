// A world small enough to be seen through: balls that bounce between hosts, thrown by inputs. Everything that a real
// world does with a kernel is here: timers, random draws, causes, names.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/base/assert.h"
#include "core/base/random.h"
#include "replay/recorder.h"
#include "replay/replayer.h"
#include "sim/kernel/kernel.h"

namespace wavetank::replay {

class ToyWorld {
 public:
  // `flaw`: at this bounce the world does something else, as a changed program would.
  explicit ToyWorld(uint64_t seed, uint64_t flaw = UINT64_MAX)
      : kernel_(seed), host_(kernel_.NewHost("toy", 0, nullptr)), jitter_(seed, "bounce"), flaw_(flaw) {}

  sim::Kernel& kernel() { return kernel_; }

  absl::Status Do(uint64_t seq, const std::string& kind, const nlohmann::json& body) {
    if (kind != "throw") return absl::InvalidArgumentError("unknown input '" + kind + "': a newer program wrote it");
    ScopedCause cause(host_, kernel_.causes().Of(seq));
    Bounce(body.value("ball", "red"), body.value("bounces", 3));
    return absl::OkStatus();
  }

  std::string StateDigest() const { return std::to_string(bounces_); }

 private:
  void Bounce(const std::string& ball, int left) {
    if (ball == "glass") WAVETANK_ASSERT(left > 2, ball, left);  // it does not stand so many
    const bool flawed = bounces_++ == flaw_;
    host_.Emit({.kind = TraceKind::kStep,
                .subject = host_.Intern(ball),
                .object = host_.Intern(left == 0 ? "ground" : "wall"),
                .a = flawed ? -1 : left,
                .b = static_cast<int64_t>(bounces_),
                .detail = left % 2 == 0 ? "even" : ""});
    if (left == 0) return;
    host_.RunAfter(Duration(1'000'000 + jitter_.Between(0, 999'999)), [=, this] { Bounce(ball, left - 1); });
  }

  sim::Kernel kernel_;
  Host& host_;
  RandomStream jitter_;
  uint64_t flaw_;
  uint64_t bounces_ = 0;
};

class ToyTarget final : public ReplayTarget {
 public:
  explicit ToyTarget(uint64_t flaw = UINT64_MAX) : flaw_(flaw) {}

  absl::Status Start(const LogHeader& header, Sink sink) override {
    world_ = std::make_unique<ToyWorld>(header.seed, flaw_);
    sim::Kernel& kernel = world_->kernel();
    kernel.AddObserver(
        [&kernel, sink = std::move(sink)](const sim::TraceEvent& event) { sink(Logged(kernel, event)); });
    return absl::OkStatus();
  }
  void AdvanceTo(Time time) override { world_->kernel().RunUntil(time); }
  absl::Status Do(const LogInput& input) override { return world_->Do(input.seq, input.kind, input.body); }
  std::string TraceDigest() const override { return world_->kernel().digest().Hex(); }
  std::string StateDigest() const override { return world_->StateDigest(); }

 private:
  uint64_t flaw_;
  std::unique_ptr<ToyWorld> world_;
};

struct Throw {
  Time at{};
  std::string ball;
  int bounces = 0;
};

// Runs the throws, which are sorted by time, until `end` and records them. Returns the trace's digest.
inline absl::StatusOr<std::string> RecordToy(const std::string& path, uint64_t seed, const std::vector<Throw>& throws,
                                             Time end, const LogWriterOptions& options = {}) {
  LogHeader header{.seed = seed,
                   .program_version = "0.1.0",
                   .profile = "1.18.2",
                   .scenario_name = "toy",
                   .scenario_text = "name: toy\n"};
  ToyWorld world(seed);
  absl::StatusOr<std::unique_ptr<LogWriter>> writer = LogWriter::Create(path, header, options);
  if (!writer.ok()) return writer.status();
  Recorder recorder(world.kernel(), *std::move(writer), [&] { return world.StateDigest(); });
  uint64_t seq = 0;
  for (const Throw& each : throws) {
    world.kernel().RunUntil(each.at);
    const nlohmann::json body = {{"ball", each.ball}, {"bounces", each.bounces}};
    if (absl::Status status = recorder.Input(++seq, "throw", body); !status.ok()) return status;
    if (absl::Status status = world.Do(seq, "throw", body); !status.ok()) return status;
  }
  world.kernel().RunUntil(end);
  if (absl::Status status = recorder.Finish(); !status.ok()) return status;
  return world.kernel().digest().Hex();
}

}  // namespace wavetank::replay
