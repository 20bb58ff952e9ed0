#include "cli/recorder.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "cli/verb.h"
#include "core/base/text/temporary_folder.h"
#include "core/kube/time_format.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "record/http_transport.h"
#include "record/kubeconfig_file.h"
#include "record/recording.h"
#include "sim/kernel/kernel.h"

namespace wavetank::cli {
namespace {

volatile sig_atomic_t stop_asked = 0;
void AskToStop(int) { stop_asked = 1; }

// Notes for a terminal: of what is true of many kinds ("context a: pods: no route") one line names them all.
class GroupedNotes {
 public:
  explicit GroupedNotes(Progress& progress) : progress_(progress) {}
  void Add(const std::string& note) {
    const size_t kind = note.find(": "), what = kind == note.npos ? note.npos : note.find(": ", kind + 2);
    if (!note.starts_with("context ") || what == note.npos) {
      Flush();
      return Print(note);
    }
    std::string context = note.substr(0, kind), rest = note.substr(what);
    if (context != context_ || rest != rest_) Flush();
    context_ = std::move(context);
    rest_ = std::move(rest);
    kinds_.push_back(note.substr(kind + 2, what - kind - 2));
  }
  void Flush() {
    if (!kinds_.empty()) Print(fmt::format("{}: {}{}", context_, fmt::join(kinds_, ", "), rest_));
    kinds_.clear();
  }

 private:
  void Print(const std::string& note) {
    progress_.Say("");
    std::cerr << "note: " << note << "\n";
  }
  Progress& progress_;
  std::string context_, rest_;
  std::vector<std::string> kinds_;
};

}  // namespace

absl::StatusOr<RecordedClusters> RecordClusters(const ClustersToRecord& what) {
  using Clock = std::chrono::steady_clock;
  const int64_t unix_now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()) /
      std::chrono::seconds(1);
  // Timers, at the pace of the real clock.
  sim::Kernel kernel(1);
  Host& host = kernel.NewHost("record", 0, nullptr);
  record::HttpLoop loop;
  std::vector<std::unique_ptr<record::Transport>> transports;
  record::RecordingOptions options;
  for (const kube::KubeConfig& config : what.configs) {
    absl::StatusOr<std::unique_ptr<record::Transport>> transport = loop.Connect(config);
    if (!transport.ok()) return transport.status();
    transports.push_back(*std::move(transport));
    options.clusters.push_back({config.context, transports.back().get()});
  }
  options.namespaces = what.namespaces;
  options.keep_secrets = what.keep_secrets;
  options.log = what.log;
  options.program_version = WAVETANK_VERSION;
  options.started = kube::FormatRfc3339(unix_now);
  // Real certificates are valid in their own time only.
  if (what.keep_secrets) options.world_start = Time{} + std::chrono::seconds(unix_now - kWorldEpochUnixSeconds);

  struct sigaction action {};
  action.sa_handler = AskToStop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<record::Recording>> started = record::Recording::Start(host, std::move(options));
  if (!started.ok()) return started.status();
  record::Recording& recording = **started;
  Progress progress;
  GroupedNotes notes(progress);
  recording.on_note = [&](const std::string& note) { notes.Add(note); };
  const Clock::time_point begin = Clock::now();
  std::optional<Time> end;
  while (stop_asked == 0 && recording.status().ok()) {
    if (recording.recording() && !end && what.length) end = kernel.Now() + *what.length;
    if (end && kernel.Now() >= *end) break;
    Duration wait = 500ms;
    if (const std::optional<Time> next = kernel.NextTime()) wait = std::min(wait, *next - kernel.Now());
    if (end) wait = std::min(wait, *end - kernel.Now());
    loop.Wait(std::max(wait, Duration::zero()));
    kernel.RunUntil(Time{} + std::chrono::duration_cast<Duration>(Clock::now() - begin));
    loop.Deliver();
    kernel.RunUntil(kernel.Now());
    notes.Flush();
    if (recording.recording()) {
      progress.Say(fmt::format("recording: {} inputs", recording.inputs()));
    } else {
      const auto [have, of] = recording.Progress();
      progress.Say(fmt::format("listing: {} of {}", have, of));
    }
  }
  if (absl::Status status = recording.Finish(); !status.ok()) return status;
  progress.Say("");
  RecordedClusters out;
  out.inputs = recording.inputs();
  out.took = kernel.Now() - Time{};
  out.clusters = recording.world().clusters;
  out.interrupted = stop_asked != 0;
  return out;
}

LivePicture::~LivePicture() {
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
}

absl::StatusOr<std::shared_ptr<const LivePicture>> TakeLivePicture(const std::vector<std::string>& kubeconfigs,
                                                                   const std::vector<std::string>& contexts) {
  ClustersToRecord what;
  for (const std::string& file : kubeconfigs) {
    absl::StatusOr<std::vector<kube::KubeConfig>> configs = record::LoadKubeConfigFile(file, contexts);
    if (!configs.ok()) return configs.status();
    std::move(configs->begin(), configs->end(), std::back_inserter(what.configs));
  }
  const auto picture = std::make_shared<LivePicture>();
  absl::StatusOr<std::string> folder = MakeTemporaryFolder("picture");
  if (!folder.ok()) return folder.status();
  picture->folder = *std::move(folder);
  picture->log = picture->folder + "/mesh.wtlog";
  what.log = picture->log;
  what.length = Duration::zero();
  const absl::StatusOr<RecordedClusters> recorded = RecordClusters(what);
  if (!recorded.ok()) return recorded.status();
  if (recorded->interrupted) return absl::CancelledError("interrupted");
  return picture;
}

}  // namespace wavetank::cli
