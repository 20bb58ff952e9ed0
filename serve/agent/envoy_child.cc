#include "serve/agent/envoy_child.h"

#include <signal.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/base/text/percent.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

constexpr Duration kLookPeriod = 50ms;
constexpr Duration kAdminPatience = 3s;

}  // namespace

EnvoyChild::EnvoyChild(RealHost& host, Options options, std::function<void(const agent::ProcessEnd&)> on_exit)
    : host_(host), options_(std::move(options)), on_exit_(std::move(on_exit)) {}

EnvoyChild::~EnvoyChild() { alive_.reset(); }

absl::Status EnvoyChild::Start() {
  ChildProcess::Options child;
  child.arguments = options_.arguments;
  child.arguments.insert(child.arguments.begin(), options_.program);
  for (const auto& [name, value] : options_.environment) child.environment[name] = value;
  child.folder = ".";
  Say(options_.log, agent::Level::kInfo, "",
      fmt::format("Envoy command: [{}]", absl::StrJoin(options_.arguments, " ")));
  if (absl::Status status = CheckProgram(options_.program); !status.ok()) {
    return absl::NotFoundError(fmt::format("fork/exec {}", Message(status)));
  }
  if (absl::Status status = child_.Start(child); !status.ok()) return status;
  Look();
  return absl::OkStatus();
}

void EnvoyChild::Look() {
  host_.RunAfter(kLookPeriod, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    if (child_.running()) return Look();
    // "exit code 1", "signal 9"
    agent::ProcessEnd end;
    const std::string& text = child_.end();
    int number = 0;
    if (absl::SimpleAtoi(text.substr(text.rfind(' ') + 1), &number)) {
      (text.starts_with("signal") ? end.signal : end.code) = number;
    }
    on_exit_(end);
  });
}

absl::StatusOr<std::string> EnvoyChild::Page(uint16_t admin_port, std::string_view method, std::string_view path) {
  fakekube::http::Outgoing call;
  call.server = fmt::format("http://127.0.0.1:{}", admin_port);
  call.method = method;
  call.path = PercentEncoded(path, "-._~/?&=");  // a query, too
  absl::StatusOr<fakekube::http::Answer> answer = fakekube::http::Send(call, kAdminPatience);
  if (!answer.ok()) return answer.status();
  if (answer->status != 200) return absl::UnavailableError(fmt::format("status {}", answer->status));
  return answer->body;
}

// Asking waits, and the host must not: an Envoy that drains answers at once, or not at all.
void EnvoyChild::Drain(absl::AnyInvocable<void(absl::Status)> done) {
  std::thread([this, port = options_.admin_port, sidecar = options_.sidecar, done = std::move(done)]() mutable {
    const auto page =
        Page(port, "POST", sidecar ? "/drain_listeners?inboundonly&graceful" : "/drain_listeners?graceful");
    host_.Call([done = std::move(done), status = page.status()]() mutable { done(status); });
  }).detach();
}

void EnvoyChild::ActiveConnections(absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) {
  std::thread([this, port = options_.admin_port, done = std::move(done)]() mutable {
    auto page = Page(port, "GET", "/stats?usedonly&filter=downstream_cx_active$");
    host_.Call([done = std::move(done), page = std::move(page)]() mutable { done(std::move(page)); });
  }).detach();
}

void EnvoyChild::Kill() {
  if (child_.running()) kill(child_.pid(), SIGKILL);
}

}  // namespace wavetank::serve
