#include "serve/pods/pod_access.h"

#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "serve/grpc/pod_logs.h"
#include "serve/pods/pod_connection.h"
#include "serve/pods/stream_tunnel.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::serve {

namespace http = fakekube::http;

struct PodAccess::State {
  State(Loop& its_loop, const HeldConfig& its_held, const PodLogs& its_logs)
      : loop(its_loop), held(its_held), commands(its_loop, its_held), logs(its_logs) {}

  Loop& loop;
  const HeldConfig& held;
  PodCommands commands;
  ListenerOf listener_of;
  PodMetrics metrics;
  const PodLogs& logs;
};

namespace {

using State = PodAccess::State;

// "/api/v1/namespaces/NS/pods/NAME[:PORT]/SUBRESOURCE[/REST]".
struct PodPath {
  std::string ns, pod, subresource, rest;
  uint16_t port = 0;
};

std::optional<PodPath> ReadPath(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  if (parts.size() < 8 || parts[1] != "api" || parts[2] != "v1" || parts[3] != "namespaces" || parts[5] != "pods") {
    return std::nullopt;
  }
  PodPath out{parts[4], parts[6], parts[7], ""};
  for (size_t i = 8; i < parts.size(); ++i) out.rest += "/" + parts[i];
  if (out.subresource != "exec" && out.subresource != "portforward" && out.subresource != "proxy" &&
      out.subresource != "log") {
    return std::nullopt;
  }
  if (const absl::StatusOr<std::string> decoded = http::PercentDecode(out.pod); decoded.ok()) out.pod = *decoded;
  // "http:NAME:PORT" is allowed, too.
  if (out.pod.starts_with("http:")) out.pod.erase(0, 5);
  if (const size_t colon = out.pod.find(':'); colon != std::string::npos) {
    int32_t port = 0;
    if (!absl::SimpleAtoi(out.pod.substr(colon + 1), &port) || port < 1 || port > 65535) return std::nullopt;
    out.port = static_cast<uint16_t>(port);
    out.pod.erase(colon);
  }
  return out;
}

// Every value of a query's name, in order.
std::vector<std::string> Values(const std::string& query, std::string_view name) {
  std::vector<std::string> out;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(query, '&', absl::SkipEmpty()))) {
    const size_t equals = part.find('=');
    if (std::string_view(part).substr(0, equals) != name || equals == std::string::npos) continue;
    const absl::StatusOr<std::string> value = http::PercentDecode(part.substr(equals + 1), true);
    if (value.ok()) out.push_back(*value);
  }
  return out;
}
bool Flag(const std::string& query, std::string_view name) {
  const std::vector<std::string> values = Values(query, name);
  return !values.empty() && (values[0] == "true" || values[0] == "1");
}

// How a command ended, as the error stream of v4 tells it.
std::string StatusText(const CommandResult& result) {
  nlohmann::ordered_json status{{"metadata", nlohmann::ordered_json::object()}};
  if (!result.failure.empty()) {
    status["status"] = "Failure";
    status["message"] = result.failure;
    status["reason"] = "InternalError";
    status["code"] = 500;
  } else if (result.exit_code == 0) {
    status["status"] = "Success";
  } else {
    status["status"] = "Failure";
    status["reason"] = "NonZeroExitCode";
    status["message"] = fmt::format("command terminated with non-zero exit code: error executing command, exit code {}",
                                    result.exit_code);
    status["details"]["causes"] =
        nlohmann::ordered_json::array({{{"reason", "ExitCode"}, {"message", std::to_string(result.exit_code)}}});
  }
  return JsonText(status);
}

class ExecOwner final : public StreamOwner, public std::enable_shared_from_this<ExecOwner> {
 public:
  ExecOwner(std::shared_ptr<State> state, PodPort where, std::string query, bool json_status)
      : state_(std::move(state)), where_(std::move(where)), query_(std::move(query)), json_status_(json_status) {
    for (const char* stream : {"stdin", "stdout", "stderr"}) {
      if (Flag(query_, stream)) ++missing_;
    }
    ++missing_;  // error
    // A terminal takes both.
    if (Flag(query_, "tty") && Flag(query_, "stderr")) --missing_;
  }
  void OnOpen(std::weak_ptr<Streams> streams) override { streams_ = std::move(streams); }
  void OnStream(uint32_t stream, const StreamHeaders& headers) override {
    const auto type = headers.find("streamtype");
    if (type == headers.end()) return;
    by_type_[type->second] = stream;
    if (type->second != "resize" && --missing_ == 0) Run();
  }
  void OnData(uint32_t, std::string_view) override {}  // no command here reads its input
  void OnEnd(uint32_t) override {}
  void OnClosed() override {}

 private:
  void Run() {
    auto done = [self = shared_from_this()](CommandResult result) {
      self->state_->loop.WhenDurable([self, result = std::move(result)](const absl::Status& logged) mutable {
        if (!logged.ok()) result.failure = "the event log of this run cannot be written";
        self->Tell(result);
      });
    };
    state_->loop.Post([self = shared_from_this(), done](sim::World& world) {
      self->state_->commands.Run(world, self->where_, Values(self->query_, "command"), done);
    });
  }
  void Tell(const CommandResult& result) {
    const std::shared_ptr<Streams> streams = streams_.lock();
    if (streams == nullptr) return;
    const auto say = [&](const char* type, const std::string& text) {
      const auto it = by_type_.find(type);
      if (it == by_type_.end()) return;
      if (!text.empty()) streams->Data(it->second, text);
      streams->End(it->second);
    };
    say("stdout", by_type_.contains("stderr") ? result.out : result.out + result.err);
    say("stderr", result.err);
    const bool good = result.exit_code == 0 && result.failure.empty();
    say("error", json_status_ ? StatusText(result) : good ? "" : result.failure + " ");
    streams->Close();
  }

  const std::shared_ptr<State> state_;
  const PodPort where_;
  const std::string query_;
  const bool json_status_;
  int missing_ = 0;
  std::weak_ptr<Streams> streams_;
  std::map<std::string, uint32_t> by_type_;
};

class ForwardOwner final : public StreamOwner {
 public:
  ForwardOwner(std::shared_ptr<State> state, PodPort where, bool istiod)
      : state_(std::move(state)), where_(std::move(where)), istiod_(istiod) {}
  void OnOpen(std::weak_ptr<Streams> streams) override { streams_ = std::move(streams); }
  void OnStream(uint32_t stream, const StreamHeaders& headers) override {
    const auto value = [&](const char* name) {
      const auto it = headers.find(name);
      return it == headers.end() ? std::string() : it->second;
    };
    const std::string key = value("requestid") + "/" + value("port");
    if (value("streamtype") == "error") {
      errors_[key] = stream;
      return;
    }
    int32_t port = 0;
    if (!absl::SimpleAtoi(value("port"), &port) || port < 1 || port > 65535) return;
    Connect(stream, errors_.contains(key) ? errors_[key] : 0, static_cast<uint16_t>(port));
  }
  void OnData(uint32_t stream, std::string_view bytes) override {
    if (const auto it = connections_.find(stream); it != connections_.end()) it->second->OnBytes(bytes);
  }
  void OnEnd(uint32_t stream) override {
    if (const auto it = connections_.find(stream); it != connections_.end()) it->second->OnEnd();
  }
  void OnClosed() override { connections_.clear(); }

 private:
  void Connect(uint32_t stream, uint32_t error, uint16_t port) {
    PodConnection::Peer peer;
    peer.send = [streams = streams_, stream](const std::string& bytes) {
      if (const auto held = streams.lock()) held->Data(stream, bytes);
    };
    peer.end = [streams = streams_, stream, error] {
      const auto held = streams.lock();
      if (held == nullptr) return;
      held->End(stream);
      if (error != 0) held->End(error);
    };
    PodPort where = where_;
    where.port = port;
    std::shared_ptr<PodConnection> connection;
    if (istiod_ && (port == 15010 || port == 15012) && state_->listener_of) {
      connection = ConnectToListener(peer, state_->listener_of(where.cluster, port));
    } else {
      connection = ConnectToPages(
          peer, [state = state_, where, fail = Refusal(stream, error, port)](http::Request request, auto answer) {
            state->loop.Post([state, where, fail, request = std::move(request),
                              answer = std::move(answer)](sim::World& world) mutable {
              std::optional<http::Response> page = AnswerInPod(world, state->held, where, request, state->metrics);
              if (!page.has_value()) return fail();
              answer(*std::move(page));
            });
          });
    }
    if (connection == nullptr) return Refusal(stream, error, port)();
    connections_[stream] = std::move(connection);
  }
  // As the kubelet tells it.
  std::function<void()> Refusal(uint32_t stream, uint32_t error, uint16_t port) const {
    return [streams = streams_, stream, error, port, pod = where_.pod] {
      const auto held = streams.lock();
      if (held == nullptr) return;
      if (error != 0) {
        held->Data(error, fmt::format("error forwarding port {0} to pod {1}: failed to connect to localhost:{0} inside "
                                      "the pod's network namespace: connect: connection refused",
                                      port, pod));
        held->End(error);
      }
      held->End(stream);
    };
  }

  const std::shared_ptr<State> state_;
  const PodPort where_;
  const bool istiod_;
  std::weak_ptr<Streams> streams_;
  std::map<std::string, uint32_t> errors_;  // by request and port
  std::map<uint32_t, std::shared_ptr<PodConnection>> connections_;
};

http::Response Exec(const std::shared_ptr<State>& state, const PodPort& where, const http::Request& request) {
  TunnelOffer offer;
  offer.spdy_protocols = {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"};
  offer.websocket_protocols = {"v5.channel.k8s.io", "v4.channel.k8s.io"};
  const auto channel = [&](const char* type, bool there) {
    offer.channels.push_back(there ? StreamHeaders{{"streamtype", type}} : StreamHeaders{});
  };
  channel("stdin", Flag(request.query, "stdin"));
  channel("stdout", Flag(request.query, "stdout"));
  channel("stderr", Flag(request.query, "stderr") && !Flag(request.query, "tty"));
  channel("error", true);
  channel("resize", Flag(request.query, "tty"));
  return UpgradeTo(request, offer, [&](const std::string& protocol) {
    const bool json = protocol == "v4.channel.k8s.io" || protocol == "v5.channel.k8s.io";
    return std::make_shared<ExecOwner>(state, where, request.query, json);
  });
}

http::Response Forward(const std::shared_ptr<State>& state, const PodPort& where, const http::Request& request,
                       bool istiod) {
  TunnelOffer offer;
  offer.spdy_protocols = {"portforward.k8s.io"};
  offer.websocket_protocols = {"SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io"};
  offer.port_channels = true;
  for (const std::string& port : Values(request.query, "ports")) {
    const StreamHeaders common{{"port", port}, {"requestid", std::to_string(offer.channels.size())}};
    StreamHeaders data = common, error = common;
    data["streamtype"] = "data";
    error["streamtype"] = "error";
    offer.channels.push_back(std::move(data));
    offer.channels.push_back(std::move(error));
  }
  return UpgradeTo(request, offer,
                   [&](const std::string&) { return std::make_shared<ForwardOwner>(state, where, istiod); });
}

http::Response Log(const State& state, const sim::PodProcess& pod, const http::Request& request) {
  http::Response out;
  out.content_type = "text/plain";
  const std::vector<std::string> container = Values(request.query, "container");
  std::vector<std::string> names;
  for (const nlohmann::json& one : Items(At(pod.pod()->body, {"spec", "containers"})))
    names.push_back(Text(one, "name"));
  const std::string wanted = container.empty() ? names.empty() ? "" : names.front() : container.front();
  bool known = false;
  for (const char* list : {"containers", "initContainers"}) {
    for (const nlohmann::json& one : Items(At(pod.pod()->body, {"spec", list}))) known |= Text(one, "name") == wanted;
  }
  if (!known) {
    return http::BadRequest(fmt::format("container {} is not valid for pod {}", wanted, pod.pod()->meta.name));
  }
  const std::vector<std::string> lines = state.logs.Of(pod, wanted);
  size_t first = 0;
  int64_t tail = 0;
  const std::vector<std::string> asked = Values(request.query, "tailLines");
  if (!asked.empty() && absl::SimpleAtoi(asked[0], &tail) && tail >= 0 && static_cast<size_t>(tail) < lines.size()) {
    first = lines.size() - static_cast<size_t>(tail);
  }
  for (size_t i = first; i < lines.size(); ++i) out.body += lines[i];
  return out;
}

// A pod that has not started, or has ended: what API server (pkg/registry/core/pod/strategy.go) and kubelet say.
http::Response NotRunning(const kube::Object& pod, const std::string& subresource, const http::Request& request) {
  const nlohmann::json& spec = At(pod.body, "spec");
  if (Text(spec, "nodeName").empty())
    return http::BadRequest(fmt::format("pod {} does not have a host assigned", pod.meta.name));
  const std::vector<std::string> asked = Values(request.query, "container");
  const nlohmann::json& containers = Items(At(spec, "containers"));
  const std::string container = !asked.empty()       ? asked.front()
                                : containers.empty() ? std::string()
                                                     : Text(containers[0], "name");
  if (subresource == "log") {
    return http::BadRequest(
        fmt::format("container \"{}\" in pod \"{}\" is waiting to start: ContainerCreating", container, pod.meta.name));
  }
  http::Response out;
  out.code = 500;
  out.content_type = "text/plain; charset=utf-8";
  out.body = fmt::format("container not found (\"{}\")", container);
  return out;
}

}  // namespace

PodAccess::PodAccess(Loop& loop, const HeldConfig& held, const PodLogs& logs)
    : state_(std::make_shared<State>(loop, held, logs)) {}
PodAccess::~PodAccess() = default;
void PodAccess::SetListeners(ListenerOf listener_of) { state_->listener_of = std::move(listener_of); }

void PodAccess::SetMetrics(PodMetrics metrics) {
  state_->metrics = metrics;
  state_->commands.SetMetrics(std::move(metrics));
}

std::optional<http::Response> PodAccess::Answer(sim::World& world, const std::string& cluster,
                                                const http::Request& request) {
  const std::optional<PodPath> path = ReadPath(request.path);
  if (!path.has_value()) return std::nullopt;
  // May the caller? Asked of the subresource itself.
  http::RestApi& api = *world.KubeApi(cluster);
  http::Request plain = request;
  plain.path = fmt::format("/api/v1/namespaces/{}/pods/{}/{}", path->ns, path->pod, path->subresource);
  if (std::optional<http::Response> refused = api.Refuse(api.Open(std::move(plain)))) return refused;
  const PodPort where{cluster, path->ns, path->pod, path->port};
  const sim::PodProcess* const pod = world.FindPod(path->pod + "." + path->ns + "@" + cluster);
  if (pod == nullptr) {
    const kube::ObjectRef object = api.server().Get("Pod", {path->ns, path->pod});
    if (object == nullptr) return http::Failure(404, "NotFound", fmt::format("pods \"{}\" not found", path->pod));
    return NotRunning(*object, path->subresource, request);
  }
  if (path->subresource == "log") return Log(*state_, *pod, request);
  if (path->subresource == "exec") return Exec(state_, where, request);
  if (path->subresource == "portforward") return Forward(state_, where, request, IsIstiod(world, where));
  http::Request inside = request;
  inside.path = path->rest.empty() ? "/" : path->rest;
  std::optional<http::Response> page = AnswerInPod(world, state_->held, where, inside, state_->metrics);
  if (page.has_value()) return page;
  return http::Failure(
      503, "ServiceUnavailable",
      fmt::format("error trying to reach service: dial tcp :{}: connect: connection refused", where.port));
}

}  // namespace wavetank::serve
