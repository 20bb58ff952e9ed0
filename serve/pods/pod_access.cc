#include "serve/pods/pod_access.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "serve/debug/control_z_port.h"
#include "serve/grpc/pod_logs.h"
#include "serve/pods/container_log.h"
#include "serve/pods/pod_connection.h"
#include "serve/pods/pod_exec.h"
#include "serve/pods/query_values.h"
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
              std::optional<http::Response> page =
                  ControlZAnswer(world, {where.cluster, where.ns, where.pod, where.port}, request, state->metrics);
              if (!page.has_value()) page = AnswerInPod(world, state->held, where, request, state->metrics);
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

http::Response Forward(const std::shared_ptr<State>& state, const PodPort& where, const http::Request& request,
                       bool istiod) {
  TunnelOffer offer;
  offer.spdy_protocols = {"portforward.k8s.io"};
  offer.websocket_protocols = {"SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io"};
  offer.port_channels = true;
  for (const std::string& port : QueryValues(request.query, "ports")) {
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

// A pod that has not started, or has ended: what API server (pkg/registry/core/pod/strategy.go) and kubelet say.
http::Response NotRunning(const kube::Object& pod, const http::Request& request) {
  const nlohmann::json& spec = At(pod.body, "spec");
  if (Text(spec, "nodeName").empty())
    return http::BadRequest(fmt::format("pod {} does not have a host assigned", pod.meta.name));
  const std::vector<std::string> asked = QueryValues(request.query, "container");
  const nlohmann::json& containers = Items(At(spec, "containers"));
  const std::string container = !asked.empty()       ? asked.front()
                                : containers.empty() ? std::string()
                                                     : Text(containers[0], "name");
  return http::PlainResponse(500, fmt::format("container not found (\"{}\")", container));
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
  const std::string name = path->pod + "." + path->ns + "@" + cluster;
  const sim::PodProcess* const pod = world.FindPod(name);
  if (pod == nullptr || path->subresource == "log") {
    const kube::ObjectRef object = api.server().Get("Pod", {path->ns, path->pod});
    if (object == nullptr) return http::Failure(404, "NotFound", fmt::format("pods \"{}\" not found", path->pod));
    if (path->subresource == "log") {
      const absl::StatusOr<http::Query> query = http::Query::Parse(request.query);
      if (!query.ok()) return http::BadRequest(Message(query.status()));
      return ContainerLog(state_->loop, state_->logs, *object, name, *query);
    }
    return NotRunning(*object, request);
  }
  if (path->subresource == "exec") {
    return ExecInPod(state_->loop, std::shared_ptr<PodCommands>(state_, &state_->commands), where, request);
  }
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
