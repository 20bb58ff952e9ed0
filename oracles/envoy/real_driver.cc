#include "oracles/envoy/real_driver.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "envoy/service/secret/v3/sds.grpc.pb.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "oracles/envoy/access_logs.h"
#include "oracles/envoy/ads_script.h"
#include "oracles/envoy/curl_client.h"
#include "oracles/envoy/grpc_server.h"
#include "oracles/envoy/http.h"
#include "oracles/envoy/peers/name_server.h"
#include "oracles/envoy/peers/process.h"

namespace wavetank::envoydiff {
namespace {

using envoysim::XdsType;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace discovery = envoy::service::discovery::v3;
namespace secret = envoy::service::secret::v3;
using Json = nlohmann::json;

using Sotw = grpc::ServerReaderWriter<discovery::DiscoveryResponse, discovery::DiscoveryRequest>;
using Delta = grpc::ServerReaderWriter<discovery::DeltaDiscoveryResponse, discovery::DeltaDiscoveryRequest>;

constexpr char kIdHeader[] = "x-diff-id";

// The one ADS stream of the Envoy under test.
class AdsServer final : public discovery::AggregatedDiscoveryService::Service {
 public:
  AdsServer(World world, bool any_secret) : script_(std::move(world), any_secret) {}

  void Push(const envoydiff::Push& push, bool delta) {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = Clock::now();
    if (delta) {
      for (const auto& r : script_.ChangeDelta(push)) {
        if (delta_ != nullptr) delta_->Write(r);
      }
    } else {
      for (const auto& r : script_.Change(push)) {
        if (sotw_ != nullptr) sotw_->Write(r);
      }
    }
  }
  // Whether anything was said, and how long ago the last of it was.
  bool Quiet(milliseconds since) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !script_.log().empty() && Clock::now() - changed_ >= since;
  }
  std::vector<std::string> Log() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return script_.log();
  }

 private:
  template <typename Stream, typename Request, typename Handle>
  grpc::Status Serve(Stream* stream, Stream** slot, Handle handle) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      script_.StreamOpened();
      *slot = stream;
    }
    Request request;
    while (stream->Read(&request)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      changed_ = Clock::now();
      for (const auto& r : handle(request)) stream->Write(r);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    *slot = nullptr;
    return grpc::Status::OK;
  }
  grpc::Status StreamAggregatedResources(grpc::ServerContext*, Sotw* stream) override {
    return Serve<Sotw, AdsScript::Request>(stream, &sotw_, [&](const auto& r) { return script_.OnRequest(r); });
  }
  grpc::Status DeltaAggregatedResources(grpc::ServerContext*, Delta* stream) override {
    return Serve<Delta, AdsScript::DeltaRequest>(stream, &delta_,
                                                 [&](const auto& r) { return script_.OnDeltaRequest(r); });
  }

  std::mutex mutex_;
  AdsScript script_;
  Sotw* sotw_ = nullptr;
  Delta* delta_ = nullptr;
  Clock::time_point changed_ = Clock::now();
};

// The agent's SDS: a stream per secret, as Envoy opens them.
class SdsServer final : public secret::SecretDiscoveryService::Service {
 public:
  explicit SdsServer(const Case& c) : any_(c.any_secret), secrets_(c.secrets) {}

  void Push(const Secrets& fresh) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, one] : fresh) {
      secrets_[name] = one;
      for (const auto& [stream, wanted] : streams_) {
        if (wanted == name) Send(stream, name);
      }
    }
  }

 private:
  void Send(Sotw* stream, const std::string& name) {
    if (any_ && !secrets_.contains(name)) secrets_[name] = SecretForAnyName(name);
    const auto at = secrets_.find(name);
    if (at == secrets_.end()) return;
    discovery::DiscoveryResponse response;
    response.set_type_url(std::string(XdsTypeUrl(XdsType::kSds)));
    response.set_version_info(fmt::format("s{}", ++count_));
    response.set_nonce(response.version_info());
    auto* any = response.add_resources();
    any->set_type_url(response.type_url());
    any->set_value(SecretBytes(name, at->second));
    stream->Write(response);
  }
  grpc::Status StreamSecrets(grpc::ServerContext*, Sotw* stream) override {
    discovery::DiscoveryRequest request;
    while (stream->Read(&request)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (request.resource_names().empty() || streams_[stream] == request.resource_names(0)) continue;
      streams_[stream] = request.resource_names(0);
      Send(stream, request.resource_names(0));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(stream);
    return grpc::Status::OK;
  }

  const bool any_;
  std::mutex mutex_;
  Secrets secrets_;
  std::map<Sotw*, std::string> streams_;  // what each is about
  int count_ = 0;
};

// An access log in every HTTP connection manager of a listener; anything else is left as it is, broken or not.
std::string WithAccessLog(const std::string& bytes, const std::string& path, bool tls_clients) {
  envoy::config::listener::v3::Listener listener;
  if (!listener.ParseFromString(bytes)) return bytes;
  envoy::extensions::access_loggers::file::v3::FileAccessLog log;
  log.set_path(path);
  log.mutable_log_format()->mutable_text_format_source()->set_inline_string(fmt::format(
      "%REQ({})%\t%RESPONSE_CODE%\t%RESPONSE_FLAGS%\t%RESPONSE_CODE_DETAILS%\t%ROUTE_NAME%\t%UPSTREAM_CLUSTER_RAW%\t"
      "%UPSTREAM_HOST%\t%UPSTREAM_REQUEST_ATTEMPT_COUNT%\t%UPSTREAM_TRANSPORT_FAILURE_REASON%\t%FILTER_CHAIN_NAME%\n",
      kIdHeader));
  bool changed = false;
  for (envoy::config::listener::v3::FilterChain* chain : ChainsOf(&listener)) {
    // The far end of a request that is logged at the near one, unless clients are there themselves.
    if (chain->has_transport_socket() && !tls_clients) continue;
    for (auto& filter : *chain->mutable_filters()) {
      envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager manager;
      if (!filter.typed_config().Is<decltype(manager)>() || !filter.typed_config().UnpackTo(&manager)) continue;
      auto* access_log = manager.add_access_log();
      access_log->set_name("diff");
      access_log->mutable_typed_config()->PackFrom(log);
      filter.mutable_typed_config()->PackFrom(manager);
      changed = true;
    }
  }
  return changed ? listener.SerializeAsString() : bytes;
}

Json ConfigSource() {
  return {{"ads", Json::object()}, {"resource_api_version", "V3"}, {"initial_fetch_timeout", "0s"}};
}

// A gRPC server on a Unix socket: in its own network the Envoy reaches nothing else of ours.
Json GrpcCluster(const std::string& name, const std::string& socket) {
  const Json endpoint = {{"endpoint", {{"address", {{"pipe", {{"path", socket}}}}}}}};
  return {{"name", name},
          {"type", "STATIC"},
          {"connect_timeout", "1s"},
          {"typed_extension_protocol_options",
           {{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
             {{"@type", "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"},
              {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}}}}},
          {"load_assignment", {{"cluster_name", name}, {"endpoints", {{{"lb_endpoints", Json::array({endpoint})}}}}}}};
}

// c-ares, which asks the case's server and nobody else, once.
Json NameResolver(const std::string& server) {
  const size_t colon = server.rfind(':');
  return {{"name", "envoy.network.dns_resolver.cares"},
          {"typed_config",
           {{"@type", "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig"},
            {"resolvers",
             {{{"socket_address",
                {{"address", server.substr(0, colon)}, {"port_value", std::stoi(server.substr(colon + 1))}}}}}},
            {"dns_resolver_options", {{"no_default_search_domain", true}}},
            {"query_timeout_seconds", kNamePatienceSeconds},
            {"query_tries", 1}}}};
}

Json Bootstrap(const Case& c, const std::string& admin, const std::string& grpc) {
  Json out = {{"node", {{"id", "diff"}, {"cluster", "diff"}}},
              {"admin", {{"address", {{"pipe", {{"path", admin}}}}}}},
              {"dynamic_resources",
               {{"ads_config",
                 {{"api_type", c.delta ? "DELTA_GRPC" : "GRPC"},
                  {"transport_api_version", "V3"},
                  {"set_node_on_first_message_only", true},
                  {"grpc_services", {{{"envoy_grpc", {{"cluster_name", "xds"}}}}}}}},
                {"cds_config", ConfigSource()},
                {"lds_config", ConfigSource()}}},
              {"static_resources", {{"clusters", {GrpcCluster("xds", grpc), GrpcCluster("sds-grpc", grpc)}}}}};
  if (c.names.has_value()) out["typed_dns_resolver_config"] = NameResolver(c.name_server);
  return out;
}

class RealRun {
 public:
  RealRun(const Case& c, std::string envoy, const std::string& directory)
      : case_(c),
        envoy_(std::move(envoy)),
        directory_(std::filesystem::absolute(directory).string()),
        admin_(directory_ + "/admin.sock"),
        grpc_(directory_ + "/xds.sock"),
        access_log_(directory_ + "/access.log"),
        log_requests_(
            std::any_of(c.steps.begin(), c.steps.end(), [](const Step& s) { return s.kind == Step::Kind::kRequests; })),
        tls_clients_(
            std::any_of(c.steps.begin(), c.steps.end(), [](const Step& s) { return s.requests.tls.has_value(); })),
        ads_(Logged(c.resources), c.any_secret),
        sds_(c) {}

  ~RealRun() {
    Join();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Execute() {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    std::filesystem::remove(access_log_, error);
    RemoveCaseLogs(directory_);
    std::ofstream(directory_ + "/bootstrap.json") << JsonText(Bootstrap(case_, admin_, grpc_), 2);
    for (const auto& [address, port] : case_.redirect) {
      if (!RedirectFrom(address, port)) return absl::UnimplementedError("iptables cannot redirect here");
    }
    if (case_.names.has_value()) {
      names_ = NameServer::Make(case_.name_server, *case_.names);
      if (names_ == nullptr) return absl::UnavailableError(fmt::format("cannot listen on {}", case_.name_server));
    }
    for (const auto& [name, address] : case_.backends) {
      if (std::unique_ptr<GrpcServer> server = GrpcServerOf(name, address)) {
        BackendState state;
        state.name = name;
        grpc_servers_[name] = std::move(server);
        if (grpc_servers_[name]->Set(state)) continue;
        return absl::UnavailableError(fmt::format("cannot listen on {}", address));
      }
      backends_[name] = std::make_unique<HttpServer>(name, address);
      if (!backends_[name]->Start()) return absl::UnavailableError(fmt::format("cannot listen on {}", address));
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + grpc_, grpc::InsecureServerCredentials());
    builder.RegisterService(&ads_);
    builder.RegisterService(&sds_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError(fmt::format("cannot serve ADS on {}", grpc_));
    if (!process_.Start({envoy_, "-c", directory_ + "/bootstrap.json", "--concurrency", "1", "--disable-hot-restart",
                         "--file-flush-interval-msec", "20", "-l", "warning"},
                        directory_ + "/envoy.log")) {
      return absl::InternalError("cannot start Envoy");
    }
    if (absl::Status s = Settle(milliseconds(250)); !s.ok()) return s;
    for (const Step& step : case_.steps) {
      switch (step.kind) {
        case Step::Kind::kRequests:
          SendAll(step.requests);
          break;
        case Step::Kind::kPush: {
          Push push = step.push;
          push.upserts = Logged(std::move(push.upserts));
          sds_.Push(push.secrets);
          ads_.Push(push, case_.delta);
          if (absl::Status s = Settle(milliseconds(200)); !s.ok()) return s;
          break;
        }
        case Step::Kind::kBackend: {
          if (const auto it = grpc_servers_.find(step.backend.name); it != grpc_servers_.end()) {
            if (!it->second->Set(step.backend)) return absl::UnavailableError("cannot listen again");
            std::this_thread::sleep_for(milliseconds(20));
            break;
          }
          HttpServer& b = *backends_.at(step.backend.name);
          b.Be(step.backend);
          if (step.backend.silent) {
            if (!b.FallSilent()) return absl::UnavailableError("cannot fall silent");
          } else if (!step.backend.up) {
            b.Stop();
          } else if (!b.Start()) {
            return absl::UnavailableError("cannot listen again");
          }
          std::this_thread::sleep_for(milliseconds(20));
          break;
        }
        case Step::Kind::kNames:
          names_->Change(step.names);
          break;
        case Step::Kind::kWait:
          std::this_thread::sleep_for(milliseconds(step.wait_ms));
          break;
        case Step::Kind::kJoin:
          Join();
          break;
      }
    }
    Join();
    out_.ads = ads_.Log();
    if (absl::Status s = ReadAdmin(); !s.ok()) return s;
    if (absl::Status s = ReadAccessLog(); !s.ok()) return s;
    out_.logs = ReadCaseLogs(directory_);
    return absl::OkStatus();
  }

  Outcome outcome() && { return std::move(out_); }

 private:
  // Null: the backend speaks plain HTTP.
  std::unique_ptr<GrpcServer> GrpcServerOf(const std::string& name, const std::string& address) const {
    if (case_.grpc_authorizers.contains(name)) return GrpcServer::Authorizer(address);
    if (case_.grpc_backends.contains(name)) return GrpcServer::Application(address);
    const auto limits = case_.rate_limiters.find(name);
    return limits == case_.rate_limiters.end() ? nullptr : GrpcServer::Limiter(address, limits->second);
  }

  World Logged(World world) const {
    const auto listeners = world.find(XdsType::kLds);
    if (!log_requests_ || listeners == world.end()) return world;
    for (auto& [name, bytes] : listeners->second)
      bytes = WithAccessLog(MoveCaseLogs(bytes, directory_), access_log_, tls_clients_);
    return world;
  }

  // Waits until the Envoy has said nothing for `quiet`.
  absl::Status Settle(milliseconds quiet) {
    const Clock::time_point limit = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < limit) {
      if (ads_.Quiet(quiet)) return absl::OkStatus();
      if (!process_.running()) {
        return absl::InternalError(fmt::format("Envoy ended; see {}/envoy.log", directory_));
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    return absl::DeadlineExceededError(fmt::format("Envoy does not settle; see {}/envoy.log", directory_));
  }

  // Requests of one step, on as many threads as there are at a time.
  void SendAll(const Requests& requests) {
    size_t step = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      step = out_.requests.size();
      out_.requests.emplace_back();
    }
    auto left = std::make_shared<std::atomic<int>>(requests.count);
    std::vector<std::thread> threads;
    for (int i = 0; i < requests.parallel; ++i) {
      threads.emplace_back([this, &requests, step, left, i] { SendSome(requests, step, *left, i); });
    }
    if (requests.background) {
      for (std::thread& t : threads) background_.push_back(std::move(t));
      return;
    }
    for (std::thread& t : threads) t.join();
  }

  void Join() {
    for (std::thread& t : background_) t.join();
    background_.clear();
  }

  void SendSome(const Requests& requests, size_t step, std::atomic<int>& left, int thread) {
    HttpClient plain(requests.to, requests.from, requests.proxy_protocol);
    if (requests.http10) plain.SpeakHttp10();
    if (!requests.trailers.empty()) plain.SendTrailers(requests.chunk, requests.trailers);
    if (requests.body_ms > 0) plain.SendBodiesOver(requests.body_ms, requests.body_pieces);
    std::unique_ptr<CurlClient> curl;
    if (requests.http2 || requests.tls) curl = std::make_unique<CurlClient>(requests, case_.secrets);
    std::mt19937 random(static_cast<unsigned>(thread) + 1);
    Clock::time_point next = Clock::now();
    while (left.fetch_sub(1) > 0) {
      std::this_thread::sleep_until(next);
      next = std::max(Clock::now(), next + milliseconds(requests.interval_ms) +
                                        milliseconds(random() % static_cast<unsigned>(requests.jitter_ms + 1)));
      const int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
      auto headers = requests.headers;
      for (auto& [name, value] : headers) value = case_.tokens.Expand(value, now);
      const int id = ++last_id_;
      if (!requests.anonymous) headers.emplace_back(kIdHeader, std::to_string(id));
      if (!requests.upgrade.empty() && !plain.IsOpen()) {
        for (auto& header : UpgradeHeaders(requests.upgrade)) headers.push_back(std::move(header));
      }
      const std::string path = case_.tokens.Expand(requests.path, now);
      const auto asked = Clock::now();
      const HttpAnswer a = curl != nullptr ? curl->Ask(path, headers)
                                           : plain.Ask(requests.method, requests.host, path, headers,
                                                       requests.keep_alive && !requests.http10);
      const std::chrono::duration<double> took = Clock::now() - asked;
      RequestOutcome outcome;
      outcome.code = a.code;
      outcome.body = BodyOf(a);
      outcome.seconds = took.count();
      for (const std::string& name : requests.show) {
        const std::optional<std::string> value = HeaderValues(a.head, name);
        if (value) envoysim::AddHeaderLine(name, *value, &outcome.headers);
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      where_[id] = {step, out_.requests[step].size()};
      out_.requests[step].push_back(std::move(outcome));
    }
  }

  // Of an answer that is compressed: that it is.
  static std::string BodyOf(const HttpAnswer& answer) {
    const std::optional<std::string> encoding = HeaderValues(answer.head, "content-encoding");
    return encoding && !answer.body.empty() ? CompressedBody(*encoding) : answer.body;
  }

  absl::StatusOr<Json> Admin(const std::string& path) {
    HttpClient client(admin_);
    const HttpAnswer a = client.Ask("GET", "admin", path, {}, /*keep_alive=*/false);
    if (a.code != 200) return absl::UnavailableError(fmt::format("admin {}: {}", path, a.code));
    Json json = Json::parse(a.body, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return absl::InternalError(fmt::format("admin {}: no JSON", path));
    return json;
  }

  absl::Status ReadAdmin() {
    const absl::StatusOr<Json> clusters = Admin("/clusters?format=json");
    if (!clusters.ok()) return clusters.status();
    for (const Json& c : clusters->value("cluster_statuses", Json::array())) {
      const std::string name = c.at("name");
      if (name == "xds" || name == "sds-grpc") continue;
      out_.clusters.push_back(name);
      for (const Json& h : c.value("host_statuses", Json::array())) {
        if (!h.at("address").contains("socket_address")) continue;
        const Json& address = h.at("address").at("socket_address");
        const std::string ip = address.at("address");
        const Json health = h.value("health_status", Json::object());
        std::string flags = health.value("failed_outlier_check", false) ? "/ejected" : "";
        for (const char* flag :
             {"failed_active_health_check", "failed_active_degraded_check", "pending_dynamic_removal",
              "pending_active_hc", "excluded_via_immediate_hc_fail", "active_hc_timeout"}) {
          if (health.value(flag, false)) flags += fmt::format("/{}", flag);
        }
        out_.endpoints.push_back(
            fmt::format("{}/{}:{}/p{}/w{}{}", name, ip.find(':') == std::string::npos ? ip : fmt::format("[{}]", ip),
                        address.at("port_value").get<int>(), h.value("priority", 0), h.value("weight", 1), flags));
      }
    }
    std::sort(out_.clusters.begin(), out_.clusters.end());
    std::sort(out_.endpoints.begin(), out_.endpoints.end());
    const absl::StatusOr<Json> listeners = Admin("/listeners?format=json");
    if (!listeners.ok()) return listeners.status();
    for (const Json& l : listeners->value("listener_statuses", Json::array())) out_.listeners.push_back(l.at("name"));
    std::sort(out_.listeners.begin(), out_.listeners.end());
    // 404 if there is none.
    const absl::StatusOr<Json> routes = Admin("/config_dump?resource=dynamic_route_configs");
    for (const Json& r : routes.ok() ? routes->value("configs", Json::array()) : Json::array()) {
      out_.routes.push_back(r.value("route_config", Json::object()).value("name", ""));
    }
    std::sort(out_.routes.begin(), out_.routes.end());
    if (case_.stats.empty()) return absl::OkStatus();
    const absl::StatusOr<Json> stats = Admin("/stats?format=json");
    if (!stats.ok()) return stats.status();
    std::map<std::string, uint64_t> values;
    for (const Json& s : stats->at("stats")) {
      if (s.contains("name") && s.contains("value") && s["value"].is_number()) values[s["name"]] = s["value"];
    }
    for (const std::string& name : case_.stats) {
      if (!values.contains(name)) out_.unknown_stats.push_back(name);
      out_.stats[name] = values.contains(name) ? values[name] : 0;
    }
    return absl::OkStatus();
  }

  absl::Status ReadAccessLog() {
    size_t expected = 0;
    for (const auto& step : out_.requests) expected += step.size();
    // The log is written with some delay; requests that no connection manager saw are not in it.
    size_t seen = 0;
    for (int tries = 0; tries < 30 && seen < expected; ++tries) {
      std::this_thread::sleep_for(milliseconds(20));
      std::ifstream in(access_log_);
      std::string line;
      size_t lines = 0;
      while (std::getline(in, line)) lines += !line.empty();
      if (lines == seen && tries > 5) break;
      seen = lines;
    }
    std::ifstream in(access_log_);
    std::string line;
    while (std::getline(in, line)) {
      const std::vector<std::string> f = absl::StrSplit(line, '\t');
      if (f.size() < 10) continue;
      const auto at = where_.find(std::atoi(f[0].c_str()));
      if (at == where_.end()) continue;
      const auto text = [&](size_t i) { return f[i] == "-" ? std::string() : f[i]; };
      RequestOutcome& o = out_.requests[at->second.first][at->second.second];
      if (o.code == 101) continue;  // the line is about what came of it
      o.logged = true;
      o.flags = f[2];
      o.details = text(3);
      o.route = text(4);
      o.cluster = text(5);
      o.upstream = text(6);
      o.attempts = std::atoi(f[7].c_str());
      o.failure = text(8);
      o.filter_chain = text(9);
    }
    return absl::OkStatus();
  }

  const Case& case_;
  const std::string envoy_, directory_, admin_, grpc_, access_log_;
  const bool log_requests_, tls_clients_;
  AdsServer ads_;
  SdsServer sds_;
  std::unique_ptr<grpc::Server> server_;
  std::map<std::string, std::unique_ptr<HttpServer>> backends_;
  std::map<std::string, std::unique_ptr<GrpcServer>> grpc_servers_;
  std::mutex mutex_;  // over outcomes
  std::vector<std::thread> background_;
  std::unique_ptr<NameServer> names_;
  Process process_;
  std::atomic<int> last_id_{0};
  std::map<int, std::pair<size_t, size_t>> where_;
  Outcome out_;
};

}  // namespace

absl::StatusOr<Outcome> RunReal(const Case& c, const std::string& envoy, const std::string& directory) {
  const auto run_here = [&]() -> absl::StatusOr<Outcome> {
    RealRun run(c, envoy, directory);
    if (absl::Status status = run.Execute(); !status.ok()) return status;
    return std::move(run).outcome();
  };
  if (!c.own_network) return run_here();
  // A thread's network is that of all it opens and starts.
  absl::StatusOr<Outcome> outcome = absl::UnimplementedError("no network namespace is to be had here");
  std::thread([&] {
    if (EnterOwnNetwork()) outcome = run_here();
  }).join();
  return outcome;
}

}  // namespace wavetank::envoydiff
