#include "cli/questions/why_request.h"

#include <charconv>
#include <map>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

struct HostPort {
  std::string host;
  int port = 80;
};

std::optional<HostPort> SplitHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  HostPort out{text.substr(0, colon), 80};
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + colon + 1, end, out.port);
    if (error != std::errc() || at != end || out.port < 1 || out.port > 65535) return std::nullopt;
  }
  return out.host.empty() ? std::nullopt : std::optional(out);
}

// Names in lower case, as proxies have them. InvalidArgument: a text without a name and a colon.
absl::StatusOr<std::map<std::string, std::string>> ReadHeaders(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0)
      return absl::InvalidArgumentError(fmt::format("--header '{}': write it as 'name: value'", text));
    out[absl::AsciiStrToLower(text.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(absl::string_view(text).substr(colon + 1)));
  }
  return out;
}

}  // namespace

absl::Status CheckQuestion(const RequestQuestion& q) {
  if (q.probe() && (q.from.empty() || q.to.empty())) {
    return absl::InvalidArgumentError(
        "--from and --to go together: a pod (sleep@cluster1) and where it sends a request (HOST:PORT)");
  }
  if (q.probe() && q.of_run()) {
    return absl::InvalidArgumentError(
        "--from and --to send a request of their own: leave out --flow, --request, --failed and --retried");
  }
  if (!q.probe() && (q.path != "/" || q.method != "GET" || q.protocol != "http" || !q.headers.empty())) {
    return absl::InvalidArgumentError(
        "--path, --method, --protocol and --header are of a request that is sent now: add --from and --to");
  }
  if (!q.path.starts_with('/'))
    return absl::InvalidArgumentError(fmt::format("--path '{}': a path begins with /", q.path));
  if (absl::Status status = ReadHeaders(q.headers).status(); !status.ok()) return status;
  if (q.number && *q.number < 1) return absl::InvalidArgumentError("--request: requests are counted from 1");
  return absl::OkStatus();
}

// A pod that is not ready sends nothing: its words, and those of what else in its cluster does not come up.
std::string WhyNothingIsSent(const sim::World& world, const std::string& name) {
  const sim::PodProcess* const pod = world.FindPod(name);
  if (pod == nullptr || pod->Trouble().empty()) return {};
  std::string out = ": it is not ready, and sends none: " + pod->Trouble();
  for (const std::string& complaint : world.Complaints()) {
    if (complaint.starts_with(pod->site().name + ": ")) out += "\n  " + complaint;
  }
  return out;
}

absl::StatusOr<scenario::RequestStory> Probe(const RequestQuestion& q, sim::World& world) {
  const std::optional<HostPort> to = SplitHostPort(q.to);
  if (!to) return absl::InvalidArgumentError(fmt::format("--to '{}' is no HOST:PORT", q.to));
  const absl::StatusOr<std::string> name = scenario::FindOnePod("pod", q.from, scenario::PodNames(world), world);
  if (!name.ok()) return name.status();
  const sim::PodProcess& pod = *world.FindPod(*name);
  scenario::AddressNames addresses(world);
  addresses.Learn();
  std::optional<scenario::RequestStory> story;
  // Requests of an application come from its pods in turn: as many as there are, and that of the pod is told.
  const auto pods = world.Pods(pod.site().name, pod.pod()->meta.ns, pod.app());
  sim::inputs::StartTraffic traffic;
  traffic.id = traffic.flow = "why";
  traffic.cluster = pod.site().name;
  traffic.ns = pod.pod()->meta.ns;
  traffic.app = pod.app();
  traffic.host = to->host;
  traffic.port = to->port;
  traffic.path = q.path;
  traffic.method = q.protocol == "grpc" ? "POST" : q.method;
  if (q.protocol != "http") traffic.protocol = q.protocol;
  traffic.headers = *ReadHeaders(q.headers);  // CheckQuestion() has looked at them
  traffic.requests = static_cast<int64_t>(pods.size());
  absl::Status sent = world.Do(std::move(traffic));
  if (sent.ok()) {
    const Subscription requests = world.commons().on_request.Add([&](const sim::TrafficRecord& record) {
      if (record.spec.id == "why" && record.client == *name) story = scenario::TellRequest(world, addresses, record);
    });
    constexpr Duration kPatience = 60s;
    for (const Time end = world.Now() + kPatience; !story && world.Now() < end;) world.RunUntil(world.Now() + 50ms);
  }
  if (!sent.ok()) return sent;
  if (story) return *std::move(story);
  return absl::DeadlineExceededError(
      fmt::format("{} got no answer from {} within a minute{}", *name, q.to, WhyNothingIsSent(world, *name)));
}

void RequestWatch::Attach(scenario::RunOptions* options) {
  options->on_request = [this](sim::World& world, const sim::TrafficRecord& t) {
    if (!question_.flow.empty() && t.spec.flow != question_.flow) return;
    ++seen_;
    const envoysim::RequestRecord& r = t.record;
    const bool failed = !sim::Answered(t);
    if ((question_.failed && !failed) || (question_.retried && r.attempts < 2)) return;
    if (++fitting_ != question_.number.value_or(1)) return;
    scenario::AddressNames addresses(world);
    addresses.Learn();
    beginning_ = world.options().start;
    story_ = scenario::TellRequest(world, addresses, t);
  };
}

absl::StatusOr<scenario::RequestStory> RequestWatch::Found() const {
  if (story_) return *story_;
  return absl::NotFoundError(fmt::format("no such request: of {} that ended{} {} {}", seen_,
                                         question_.flow.empty() ? "" : " of flow " + question_.flow, fitting_,
                                         fitting_ == 1 ? "fits" : "fit"));
}

}  // namespace wavetank::cli
