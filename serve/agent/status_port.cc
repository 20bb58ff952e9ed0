#include "serve/agent/status_port.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/status.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/transport/fetch.h"
#include "fakes/kube/http/transport/server.h"
#include "fmt/format.h"
#include "serve/agent/envoy_child.h"
#include "serve/agent/tap.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

// Whether somebody takes a connection.
bool Connects(const std::string& ip, uint16_t port, Duration timeout) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (inet_pton(AF_INET, ip.c_str(), &to.sin_addr) != 1) return false;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  bool open = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  if (!open && errno == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    int error = 1;
    socklen_t size = sizeof error;
    open = poll(&wait, 1, static_cast<int>(timeout / 1ms)) == 1 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  close(fd);
  return open;
}

class StatusPortImpl final : public StatusPort {
 public:
  explicit StatusPortImpl(Options options)
      : options_(std::move(options)),
        server_({.max_connections = 256},
                [this](uint64_t, absl::AnyInvocable<void()> task) { Give(std::move(task)); }) {}
  ~StatusPortImpl() override {
    server_.Stop();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
      wake_.notify_all();
    }
    if (worker_.joinable()) worker_.join();
  }

  absl::Status Start() {
    absl::StatusOr<uint16_t> port = server_.Listen(options_.address, options_.port,
                                                   [this](const http::Request& request) { return Answer(request); });
    if (!port.ok()) return port.status();
    port_ = *port;
    if (options_.tap_port != 0) {
      const absl::StatusOr<uint16_t> tap = server_.Listen(
          "127.0.0.1", options_.tap_port, [this](const http::Request& request) { return AnswerTap(request); });
      if (!tap.ok()) {
        return absl::Status(tap.status().code(),
                            fmt::format("failed to start istio tap server: {}", Message(tap.status())));
      }
      Say(options_.log, agent::Level::kInfo, "", fmt::format("starting Http service at 127.0.0.1:{}", *tap));
    }
    worker_ = std::thread([this] { Work(); });
    server_.Start();
    return absl::OkStatus();
  }
  uint16_t port() const override { return port_; }

 private:
  void Give(absl::AnyInvocable<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;
    tasks_.push_back(std::move(task));
    wake_.notify_all();
  }
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!over_) {
      if (tasks_.empty()) {
        wake_.wait(lock);
        continue;
      }
      absl::AnyInvocable<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  absl::Status Ready() {
    if (options_.terminating()) return agent::ReadyProbe::Terminating();
    if (probe_.needs_updates()) {
      const absl::Status status =
          probe_.OnUpdates(EnvoyChild::Page(options_.admin_port, "GET", agent::kUpdateStatsQuery));
      if (!status.ok()) return status;
    }
    if (probe_.needs_state()) {
      const absl::Status status = probe_.OnState(EnvoyChild::Page(options_.admin_port, "GET", agent::kReadyStatsQuery));
      if (!status.ok()) return status;
    }
    return options_.check();
  }

  http::Response Answer(const http::Request& request) {
    if (request.path == "/healthz/ready") {
      const absl::Status status = Ready();
      if (status.ok()) {
        if (!std::exchange(was_ready_, true)) Say(options_.log, agent::Level::kInfo, "", "Envoy proxy is ready");
        return http::PlainResponse(200, "");
      }
      Say(options_.log, agent::Level::kWarn, "", fmt::format("Envoy proxy is NOT ready: {}", Message(status)));
      was_ready_ = false;
      return http::PlainResponse(503, "");
    }
    if (request.path == "/quitquitquit") {
      if (request.method != "POST") return http::PlainResponse(405, "Method Not Allowed\n");
      options_.quit();
      return http::PlainResponse(200, "OK");
    }
    if (request.path == "/stats/prometheus" || request.path == "/metrics") {
      absl::StatusOr<std::string> page = EnvoyChild::Page(options_.admin_port, "GET", "/stats/prometheus");
      return http::PlainResponse(200, page.ok() ? *std::move(page) : "");
    }
    if (request.path == "/debug/ndsz") {
      std::string names = options_.names();
      http::Response out = http::PlainResponse(names.empty() ? 404 : 200, names.empty() ? "{}" : std::move(names));
      out.content_type = "application/json";
      return out;
    }
    if (const auto prober = options_.probers.find(request.path); prober != options_.probers.end()) {
      const int status = AskApplication(prober->second, options_.pod_ip);
      if (status == 0) {
        Say(options_.log, agent::Level::kError, "",
            fmt::format("Request to probe app failed: original URL path = {}", request.path));
      }
      return http::PlainResponse(agent::AppProbeStatus(status), "");
    }
    if (request.path.starts_with("/app-health/")) {
      Say(options_.log, agent::Level::kError, "", fmt::format("Prober does not exists url {}", request.path));
      return http::PlainResponse(400, fmt::format("app prober config does not exists for {}", request.path));
    }
    return http::NoSuchPath();
  }

  http::Response AnswerTap(const http::Request& request) {
    TapQuestion question = ReadTap(request);
    if (!question.ask) return std::move(question.refusal);
    http::Response out;
    out.later = std::make_shared<http::LaterResponse>();
    options_.tap(*std::move(question.ask), [this, later = out.later](absl::StatusOr<std::string> page) {
      Give([later, page = std::move(page)] { later->Set(TapResponse(page)); });
    });
    return out;
  }

  const Options options_;
  agent::ReadyProbe probe_;
  bool was_ready_ = false;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  bool over_ = false;
  std::thread worker_;
  http::Server server_;
};

}  // namespace

int AskApplication(const agent::AppProber& prober, const std::string& ip) {
  const Duration timeout = prober.timeout > Duration::zero() ? prober.timeout : Duration(1s);
  switch (prober.kind) {
    case agent::AppProber::Kind::kTcp:
      return Connects(ip, prober.port, timeout) ? 200 : 0;
    case agent::AppProber::Kind::kHttp: {
      if (prober.https) return Connects(ip, prober.port, timeout) ? 200 : 0;
      http::Outgoing call;
      call.server = fmt::format("http://{}:{}", ip, prober.port);
      call.path = prober.path;
      const absl::StatusOr<http::Answer> answer = http::Send(call, timeout);
      return answer.ok() ? answer->status : 0;
    }
    case agent::AppProber::Kind::kGrpc: {
      // grpc.health.v1.Health/Check by its bytes: the service's name is field 1, SERVING is field 1 = 1 of the answer.
      const auto channel =
          grpc::CreateChannel(fmt::format("{}:{}", ip, prober.port), grpc::InsecureChannelCredentials());
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + timeout);
      std::string request;
      if (!prober.service.empty() && prober.service.size() < 128) {
        request = fmt::format("\x0a{}{}", static_cast<char>(prober.service.size()), prober.service);
      }
      const grpc::Slice slice(request);
      grpc::ByteBuffer in(&slice, 1), out;
      grpc::internal::BlockingUnaryCallImpl<grpc::ByteBuffer, grpc::ByteBuffer> call(
          channel.get(),
          grpc::internal::RpcMethod("/grpc.health.v1.Health/Check", grpc::internal::RpcMethod::NORMAL_RPC), &context,
          in, &out);
      if (!call.status().ok()) return 0;
      std::vector<grpc::Slice> slices;
      std::string answer;
      if (out.Dump(&slices).ok()) {
        for (const grpc::Slice& each : slices) answer.append(reinterpret_cast<const char*>(each.begin()), each.size());
      }
      return answer == std::string("\x08\x01", 2) ? 200 : 500;
    }
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<StatusPort>> StatusPort::Listen(Options options) {
  auto out = std::make_unique<StatusPortImpl>(std::move(options));
  if (absl::Status status = out->Start(); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::serve
