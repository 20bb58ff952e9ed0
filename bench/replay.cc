// The event log: what recording costs a run, how fast a log is read with its chain checked.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/digest.h"
#include "replay/event_log.h"

namespace wavetank::replay {
namespace {

constexpr int kEvents = 200'000;

// Events as a run has them: some thousand names, causes of one input, now and then a word of detail.
class Events {
 public:
  Events() {
    for (int i = 0; i < 2'000; ++i) names_.Intern("sidecar~10.0.0.1~helloworld-v1-" + std::to_string(i) + ".sample");
    for (uint64_t i = 0; i < 50; ++i) causes_.Of(i);
    for (int i = 0; i < kEvents; ++i) {
      const auto n = static_cast<uint32_t>(i);
      records_.push_back({.kind = TraceKind(400 + n % 5),
                          .subject = NameId(1 + n * 7919 % 2'000),
                          .object = NameId(1 + n % 5),
                          .a = n % 300,
                          .b = n % 40'000,
                          .detail = n % 10 == 0 ? "outbound|5000||helloworld" : ""});
    }
  }

  uint64_t Write(const std::string& path) const {
    auto writer = LogWriter::Create(path, {.seed = 1, .program_version = "bench", .profile = "1.18.2"});
    for (int i = 0; i < kEvents; ++i) {
      const auto& record = records_[static_cast<size_t>(i)];
      (void)(*writer)->Add(Time(Duration(i * 10'000)), record, CauseId(1 + static_cast<uint32_t>(i) % 50), names_,
                           causes_, 0);
      if ((*writer)->CheckpointDue()) (void)(*writer)->AddCheckpoint("0123456789abcdef0123456789abcdef");
    }
    if (!(*writer)->Finish(Time(Duration(int64_t{kEvents} * 10'000)), "end").ok()) std::abort();
    return std::filesystem::file_size(path);
  }

  void Digest(TraceDigest& digest) const {
    for (int i = 0; i < kEvents; ++i) {
      const auto& record = records_[static_cast<size_t>(i)];
      digest.Add(Time(Duration(i * 10'000)), record, names_.Text(record.subject), names_.Text(record.object),
                 causes_.Inputs(CauseId(1 + static_cast<uint32_t>(i) % 50)));
    }
  }

 private:
  NameTable names_;
  CauseTable causes_;
  std::vector<TraceRecord> records_;
};

const Events& TheEvents() {
  static const Events events;
  return events;
}

std::string File() {
  return (std::filesystem::temp_directory_path() / ("wavetank-bench-" + std::to_string(getpid()))).string();
}

// What every run pays, log or not: the measure of the rest.
void DigestEvents(benchmark::State& state) {
  for (auto _ : state) {
    TraceDigest digest;
    TheEvents().Digest(digest);
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(DigestEvents)->Unit(benchmark::kMillisecond);

void WriteLog(benchmark::State& state) {
  uint64_t bytes = 0;
  for (auto _ : state) bytes = TheEvents().Write(File());
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.counters["bytes/event"] = static_cast<double>(bytes) / kEvents;
  std::filesystem::remove(File());
}
BENCHMARK(WriteLog)->Unit(benchmark::kMillisecond);

// Inputs as `serve -o` writes them: so many share one commit, which is on the disk before their answers leave.
void WriteDurableInputs(benchmark::State& state) {
  constexpr int kInputs = 20'000;
  const nlohmann::json pod = {
      {"cluster", "cluster1"},
      {"object",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", "helloworld-v1-5"}, {"namespace", "sample"}, {"labels", {{"app", "helloworld"}}}}},
        {"spec", {{"containers", {{{"name", "helloworld"}, {"image", "example/helloworld:1"}}}}}}}}};
  LogInput input{.kind = "apply", .body = pod};
  for (auto _ : state) {
    auto writer = LogWriter::Create(File(), {.seed = 1, .program_version = "bench", .profile = "1.18.2"},
                                    {.durable_commits = true});
    for (int i = 0; i < kInputs; ++i) {
      input.at = Time(Duration(int64_t{i} * 1'000));
      input.seq = static_cast<uint64_t>(i);
      if (!(*writer)->Add(input).ok()) std::abort();
      if ((i + 1) % state.range(0) == 0 && !(*writer)->Commit().ok()) std::abort();
    }
    if (!(*writer)->Finish(Time(Duration(int64_t{kInputs} * 1'000)), "end").ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * kInputs);
  std::filesystem::remove(File());
}
BENCHMARK(WriteDurableInputs)->Arg(16)->Arg(1'000)->Arg(20'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadLog(benchmark::State& state) {
  TheEvents().Write(File());
  for (auto _ : state) {
    auto log = LogReader::Open(File());
    if ((*log)->Verify()->events != kEvents) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  std::filesystem::remove(File());
}
BENCHMARK(ReadLog)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::replay
