#include "serve/pods/container_log.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "core/x509/calendar.h"
#include "fakes/kube/http/message/line_stream.h"
#include "fakes/kube/http/message/status.h"
#include "fmt/format.h"
#include "sim/world.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;
using nlohmann::json;
using LogLines = std::vector<std::pair<Time, std::string>>;

std::vector<std::string> NamesIn(const json& pod, const char* list) {
  std::vector<std::string> out;
  for (const json& one : Items(At(pod, {"spec", list}))) out.push_back(Text(one, "name"));
  return out;
}

// kubernetes: pkg/registry/core/pod/strategy.go, validateContainer(). InvalidArgument: why not.
absl::StatusOr<std::string> ContainerOf(const kube::Object& pod, const std::string& asked) {
  const std::vector<std::string> containers = NamesIn(pod.body, "containers");
  const std::vector<std::string> init = NamesIn(pod.body, "initContainers");
  const std::vector<std::string> ephemeral = NamesIn(pod.body, "ephemeralContainers");
  if (asked.empty()) {
    if (containers.size() == 1) return containers.front();
    std::string why = fmt::format("a container name must be specified for pod {}", pod.meta.name);
    if (!containers.empty()) why += fmt::format(", choose one of: [{}]", absl::StrJoin(containers, " "));
    if (!containers.empty() && !init.empty())
      why += fmt::format(" or one of the init containers: [{}]", absl::StrJoin(init, " "));
    return absl::InvalidArgumentError(why);
  }
  for (const auto* names : {&containers, &init, &ephemeral}) {
    if (std::find(names->begin(), names->end(), asked) != names->end()) return asked;
  }
  return absl::InvalidArgumentError(fmt::format("container {} is not valid for pod {}", asked, pod.meta.name));
}

// Whether the container has come to its end.
bool HasEnded(const kube::Object& pod, const std::string& container) {
  for (const char* list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const json& status : Items(At(pod.body, {"status", list}))) {
      if (Text(status, "name") == container) return !At(status, {"state", "terminated"}).is_null();
    }
  }
  return false;
}

int64_t UnixNanoseconds(Time time) {
  return kWorldEpochUnixSeconds * 1'000'000'000 + time.time_since_epoch() / std::chrono::nanoseconds(1);
}

// What of a log a client wants (kubernetes: PodLogOptions).
struct Wanted {
  std::optional<int64_t> tail, bytes;
  std::optional<Time> since;
  bool timestamps = false;

  std::string Line(Time at, const std::string& line) const {
    if (!timestamps) return line;
    const int64_t unix = UnixNanoseconds(at);
    std::string date = kube::FormatRfc3339(unix / 1'000'000'000);
    date.pop_back();  // its Z
    return fmt::format("{}.{:09}Z {}", date, unix % 1'000'000'000, line);
  }
  // The part of `lines` that is wanted, as far as `bytes` lets it; what it leaves is kept for what follows.
  std::string Text(const LogLines& lines) {
    size_t first = 0;
    while (since && first < lines.size() && lines[first].first < *since) ++first;
    if (const int64_t left = static_cast<int64_t>(lines.size() - first); tail && *tail < left)
      first = lines.size() - static_cast<size_t>(*tail);
    std::string out;
    for (size_t i = first; i < lines.size(); ++i) out += Line(lines[i].first, lines[i].second);
    if (bytes) {
      if (static_cast<int64_t>(out.size()) > *bytes) out.resize(static_cast<size_t>(*bytes));
      *bytes -= static_cast<int64_t>(out.size());
    }
    return out;
  }
};

absl::StatusOr<Wanted> Read(const http::Query& query, Time now) {
  Wanted out;
  const auto number = [&](const char* name, int64_t least) -> absl::StatusOr<std::optional<int64_t>> {
    if (!query.Has(name)) return std::optional<int64_t>();
    int64_t value = 0;
    if (!absl::SimpleAtoi(query.Get(name), &value) || value < least) {
      return absl::InvalidArgumentError(
          fmt::format("{}: Invalid value: {}: must be greater than or equal to {}", name, query.Get(name), least));
    }
    return std::optional<int64_t>(value);
  };
  for (const auto& [name, least, where] :
       {std::tuple{"tailLines", int64_t{0}, &out.tail}, std::tuple{"limitBytes", int64_t{1}, &out.bytes}}) {
    absl::StatusOr<std::optional<int64_t>> value = number(name, least);
    if (!value.ok()) return value.status();
    *where = *value;
  }
  absl::StatusOr<std::optional<int64_t>> since = number("sinceSeconds", 1);
  if (!since.ok()) return since.status();
  if (*since) out.since = now - std::min(bounds::Seconds(**since), now.time_since_epoch());
  if (query.Has("sinceTime")) {
    const std::optional<int64_t> date = kube::ParseRfc3339(query.Get("sinceTime"));
    if (!date)
      return absl::InvalidArgumentError(fmt::format("sinceTime: Invalid value: \"{}\"", query.Get("sinceTime")));
    out.since = x509::FromUnixSeconds(*date);
  }
  out.timestamps = query.Flag("timestamps");
  return out;
}

// The log as it grows, until its pod goes.
class FollowedLog final : public http::LineStream {
 public:
  FollowedLog(Loop& loop, const PodLogs& logs, std::string process, std::string container, Wanted wanted)
      : loop_(loop),
        logs_(logs),
        process_(std::move(process)),
        container_(std::move(container)),
        wanted_(std::move(wanted)) {}

  void Start(std::function<void(http::Line)> write, std::function<void()> end) override {
    write_ = std::move(write);
    end_ = std::move(end);
    Look(loop_.world());
    wanted_.tail = std::nullopt;  // of what was there
  }

 private:
  // A log is no resource of the store that could be watched: it is looked at, as a kubelet does with its files.
  void Look(sim::World& world) {
    const sim::PodProcess* const pod = world.FindPod(process_);
    if (pod != nullptr) {
      const std::string text = wanted_.Text(logs_.After(&place_, *pod, container_));
      if (!text.empty()) write_(std::make_shared<const std::string>(text));
    }
    if (pod == nullptr || wanted_.bytes == 0) return end_();
    loop_.PostAfter(std::chrono::milliseconds(100), [this, alive = std::weak_ptr<char>(alive_)](sim::World& later) {
      if (!alive.expired()) Look(later);
    });
  }

  Loop& loop_;
  const PodLogs& logs_;
  const std::string process_, container_;
  Wanted wanted_;
  PodLogs::Place place_;
  std::function<void(http::Line)> write_;
  std::function<void()> end_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace

http::Response ContainerLog(Loop& loop, const PodLogs& logs, const kube::Object& pod, const std::string& process,
                            const http::Query& query) {
  const absl::StatusOr<std::string> container = ContainerOf(pod, query.Get("container"));
  if (!container.ok()) return http::BadRequest(Message(container.status()));
  if (Text(At(pod.body, "spec"), "nodeName").empty())
    return http::BadRequest(fmt::format("pod {} does not have a host assigned", pod.meta.name));
  absl::StatusOr<Wanted> wanted = Read(query, loop.world().Now());
  if (!wanted.ok()) {
    return http::Failure(422, "Invalid",
                         fmt::format("PodLogOptions \"{}\" is invalid: {}", pod.meta.name, Message(wanted.status())));
  }
  // kubernetes: pkg/kubelet/kubelet_pods.go, validateContainerLogStatus(). No container here starts again.
  if (query.Flag("previous")) {
    return http::BadRequest(
        fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", *container, pod.meta.name));
  }
  const sim::PodProcess* const running = loop.world().FindPod(process);
  if (running == nullptr && !HasEnded(pod, *container)) {
    return http::BadRequest(fmt::format("container \"{}\" in pod \"{}\" is waiting to start: ContainerCreating",
                                        *container, pod.meta.name));
  }
  http::Response out;
  out.content_type = "text/plain";
  if (running == nullptr) return out;  // it printed nothing, as all that ends here
  if (query.Flag("follow")) {
    out.watch = std::make_unique<FollowedLog>(loop, logs, process, *container, *std::move(wanted));
  } else {
    PodLogs::Place begin;
    out.body = wanted->Text(logs.After(&begin, *running, *container));
  }
  return out;
}

}  // namespace wavetank::serve
