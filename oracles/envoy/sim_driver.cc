#include "oracles/envoy/sim_driver.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "core/x509/calendar.h"
#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/apps/app.h"
#include "fakes/envoy/apps/ext_authz_app.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/http/arrival.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tls/tls.h"
#include "fmt/format.h"
#include "oracles/envoy/access_logs.h"
#include "oracles/envoy/ads_script.h"
#include "oracles/envoy/http.h"
#include "sim/kernel/kernel.h"

namespace wavetank::envoydiff {
namespace {

using namespace envoysim;  // NOLINT: this file is about nothing else

class Loopback final : public Path {
 public:
  bool local() const override { return true; }
  std::optional<Duration> Transit(Time) override { return Duration::zero(); }
};

// To a backend: a request that waits is not served at the very instant in which a connection is asked for.
class Kernels final : public Path {
 public:
  std::optional<Duration> Transit(Time) override { return std::chrono::microseconds(20); }
};

// One machine: backends listen on their addresses, the Envoy on its listeners'.
class OneMachine final : public Network {
 public:
  Route Resolve(const Origin& origin, const SocketAddress& destination, uint64_t flow) override {
    Route route;
    route.path =
        origin.who == Origin::Who::kProxy && apps.contains(destination) ? static_cast<Path*>(&kernels_) : &path_;
    route.info.workload = route.info.acceptor = origin.workload;
    constexpr uint64_t kPorts = 28'000;
    route.info.source = {IpAddress::V4(127, 0, 0, 1), static_cast<uint16_t>(32'768 + flow % kPorts)};
    route.info.destination = destination;
    if (!origin.source.empty()) route.info.source.ip = origin.source;
    if (const auto redirected = redirects.find(origin.source); redirected != redirects.end()) {
      route.acceptor = redirected->second;
    } else {
      const auto app = apps.find(destination);
      route.acceptor = app != apps.end() ? app->second : envoy;
    }
    route.outcome = route.acceptor == nullptr ? Route::Outcome::kRefused : Route::Outcome::kAccepting;
    if (silent.contains(destination) && !redirects.contains(origin.source)) route.outcome = Route::Outcome::kBlackholed;
    return route;
  }
  std::map<SocketAddress, Acceptor*> apps;
  std::set<SocketAddress> silent;
  std::map<IpAddress, Acceptor*> redirects;  // by where connections come from
  Acceptor* envoy = nullptr;

 private:
  Loopback path_;
  Kernels kernels_;
};

class Agent final : public SecretProvider {
 public:
  Agent(const Case& c, Host& host) : case_(c), host_(host), secrets_(c.secrets) {}
  void Subscribe(std::string_view name, OnSecret on_secret) override {
    const std::string key(name);
    if (case_.any_secret && !secrets_.contains(key)) secrets_[key] = SecretForAnyName(key);
    std::vector<OnSecret>& subscribers = subscribers_[key];
    subscribers.push_back(std::move(on_secret));
    // A stream is opened for it, so that endpoints on the ADS stream are there first.
    host_.RunAfter(case_.names.has_value() ? kFetchAfterNames : kFetch, [this, key, which = subscribers.size() - 1] {
      if (const auto at = secrets_.find(key); at != secrets_.end()) subscribers_[key][which](at->second.secret);
    });
  }
  void Rotate(const Secrets& fresh) {
    for (const auto& [name, secret] : fresh) {
      secrets_[name] = secret;
      for (OnSecret& on_secret : subscribers_[name]) on_secret(secret.secret);
    }
  }

 private:
  // A real Envoy asks for a cluster's secrets after its names and endpoints, the simulated one with them.
  static constexpr Duration kFetch = 5ms, kFetchAfterNames = 120ms;
  const Case& case_;
  Host& host_;
  Secrets secrets_;
  std::map<std::string, std::vector<OnSecret>> subscribers_;
};

class Resolver final : public DnsResolver {
 public:
  Resolver(const Case& c, Host& host) : host_(host), names_(c.names.value_or(Names{})) {
    names_["localhost"].addresses = {"127.0.0.1"};
  }
  void Change(const Names& names) {
    for (const auto& [name, answer] : names) names_[name] = answer;
  }
  void Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<DnsAnswer>)> done) override {
    Duration after{};
    absl::StatusOr<DnsAnswer> out = absl::NotFoundError("NXDOMAIN");
    if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok()) {
      out = DnsAnswer{{*literal}, 60s};
    } else {
      const NameAnswer answer = AnswerOf(names_, std::string(name));
      after = std::chrono::milliseconds(answer.delay_ms);
      if (answer.kind == NameAnswer::Kind::kSilence) after = std::chrono::seconds(kNamePatienceSeconds);
      out = Say(answer);
    }
    host_.RunAfter(after, [answer = std::move(out), tell = std::move(done)]() mutable { tell(std::move(answer)); });
  }

 private:
  static absl::StatusOr<DnsAnswer> Say(const NameAnswer& answer) {
    switch (answer.kind) {
      case NameAnswer::Kind::kUnknown:
        return absl::NotFoundError("NXDOMAIN");
      case NameAnswer::Kind::kFailure:
        return absl::UnavailableError("no answer");
      case NameAnswer::Kind::kSilence:
        return absl::DeadlineExceededError("no answer in time");
      case NameAnswer::Kind::kAddresses:
        break;
    }
    DnsAnswer out{{}, std::chrono::seconds(answer.ttl_seconds)};
    for (const std::string& text : answer.addresses) out.addresses.push_back(*IpAddress::Parse(text));
    return out;
  }

  Host& host_;
  Names names_;
};

class Backend final : public Application {
 public:
  Backend(NameId name, std::string text) : name_(name), text_(std::move(text)) {}
  AppReply Serve(const InboundCall& call) override {
    if (only_http2 && call.spec.protocol != HttpProtocol::kHttp2) {
      AppReply out;
      out.unheard = true;
      return out;
    }
    if (limiter != nullptr) return Limit(call.spec);
    if (grpc) return Call(call.spec.path);
    if (state.authorizer && state.code == 200) {
      AppReply out = AuthorizerReply(call.spec, name_, state.allow);
      out.delay = std::chrono::milliseconds(state.delay_ms);
      std::string headers(out.headers);
      for (const auto& [name, value] : state.headers) AddHeaderLine(name, value, &headers);
      out.headers = said_.emplace_back(std::move(headers));
      return out;
    }
    AppReply out;
    out.code = static_cast<uint16_t>(state.code);
    out.delay = std::chrono::milliseconds(state.delay_ms);
    out.server = name_;
    if (const std::string type = UpgradeOf(call.spec); state.upgrade && !type.empty()) {
      out.code = 101;
      std::string headers;
      AddHeaderLine("upgrade", type, &headers);
      AddHeaderLine("connection", "Upgrade", &headers);
      for (const auto& [name, value] : state.headers) AddHeaderLine(name, value, &headers);
      out.headers = said_.emplace_back(std::move(headers));
      return out;
    }
    std::vector<std::optional<std::string>> values;
    for (const std::string& name : state.echo) values.push_back(Echoed(call, name));
    const std::string body = PaddedBody(EchoBody(text_, state.echo, values), state.body);
    if (call.spec.method != "HEAD") out.body = said_.emplace_back(body);
    std::string headers;
    for (const auto& [name, value] : state.headers) AddHeaderLine(name, value, &headers);
    if (state.trailers.empty()) {
      AddHeaderLine("content-length", std::to_string(body.size()), &headers);
    } else {
      std::string lines;
      for (const auto& [name, value] : state.trailers) AddHeaderLine(name, value, &lines);
      out.trailers = said_.emplace_back(std::move(lines));
    }
    if (!headers.empty()) out.headers = said_.emplace_back(std::move(headers));
    out.body_pace.takes = out.body_pace.gap = std::chrono::milliseconds(state.body_ms);
    return out;
  }
  BackendState state;
  bool grpc = false, only_http2 = false;
  std::unique_ptr<RateLimiter> limiter;
  Host* host = nullptr;

 private:
  AppReply Limit(const RequestSpec& question) {
    AppReply out;
    if (state.code != 200) {
      out.grpc_status = 14;
    } else {
      std::string lines;
      for (const auto& [name, value] : state.headers) AddHeaderLine(name, value, &lines);
      out = RateLimiterReply(question, *limiter, host->Now(), lines, &said_.emplace_back());
    }
    out.server = name_;
    out.delay = std::chrono::milliseconds(state.delay_ms);
    return out;
  }
  // As oracles/envoy/grpc_server.h: an empty message, or a status alone.
  AppReply Call(std::string_view path) {
    AppReply out;
    out.server = name_;
    out.delay = std::chrono::milliseconds(state.delay_ms);
    out.grpc_status = static_cast<uint16_t>(state.grpc_status);
    std::string headers = "content-type: application/grpc\n", trailers;
    // Without a message its trailers are headers: a status alone.
    std::string& last = state.grpc_status == 0 ? trailers : headers;
    AddHeaderLine("grpc-status", std::to_string(state.grpc_status), &last);
    if (state.grpc_status != 0 && !state.grpc_message.empty()) AddHeaderLine("grpc-message", state.grpc_message, &last);
    for (const auto& [name, value] : state.trailers) AddHeaderLine(name, value, &last);
    out.headers = said_.emplace_back(std::move(headers));
    out.trailers = said_.emplace_back(std::move(trailers));
    if (state.grpc_status == 0) {
      out.body = kEmptyMessage;
      if (path == kHealthMethod) out.body = said_.emplace_back(std::string("\0\0\0\0\2", 5) + std::string(kServing));
    }
    return out;
  }

  static std::optional<std::string> Echoed(const InboundCall& call, const std::string& name) {
    if (name == ":proxy") {
      if (call.announced == nullptr) return std::nullopt;
      const AnnouncedAddresses& said = *call.announced;
      const auto ip = [](const SocketAddress& a) { return a == SocketAddress{} ? "" : a.ip.ToString(); };
      return fmt::format("v{} {} {}", said.version, ip(said.source), ip(said.destination));
    }
    if (name.starts_with(kTrailerEcho)) {
      for (const auto& [key, value] : call.spec.trailers) {
        if (key == name.substr(kTrailerEcho.size())) return value;
      }
      return std::nullopt;
    }
    if (name == ":bytes") return std::string(FindHeader(call.spec, "content-length").value_or("0"));
    return All(call.spec, name);
  }
  static std::optional<std::string> All(const RequestSpec& spec, const std::string& name) {
    if (name.starts_with(':') || name == "host") {
      const std::optional<std::string_view> value = FindHeader(spec, name);
      return value ? std::optional<std::string>(*value) : std::nullopt;
    }
    std::optional<std::string> out;
    for (const auto& [key, value] : spec.headers) {
      if (key == name) out = (out ? *out + "," : "") + value;
    }
    return out;
  }

  NameId name_;
  std::string text_;
  std::deque<std::string> said_;
};

class Ads final : public AdsTransport {
 public:
  Ads(Host& host, AdsScript& script) : host_(host), script_(script) {}
  std::unique_ptr<AdsStream> Open(Protocol, AdsStreamObserver* observer) override {
    observer_ = observer;
    script_.StreamOpened();
    return std::make_unique<Stream>(*this);
  }
  void Deliver(std::vector<AdsScript::Response> responses) {
    for (auto& r : responses) {
      host_.Post([this, shared = std::make_shared<const AdsScript::Response>(std::move(r))] {
        if (observer_ != nullptr) observer_->OnResponse(shared);
      });
    }
  }
  void Deliver(std::vector<AdsScript::DeltaResponse> responses) {
    for (auto& r : responses) {
      host_.Post([this, shared = std::make_shared<const AdsScript::DeltaResponse>(std::move(r))] {
        if (observer_ != nullptr) observer_->OnDeltaResponse(shared);
      });
    }
  }

 private:
  class Stream final : public AdsStream {
   public:
    explicit Stream(Ads& ads) : ads_(ads) {}
    ~Stream() override { ads_.observer_ = nullptr; }
    void Send(DiscoveryRequest request) override { ads_.Deliver(ads_.script_.OnRequest(request)); }
    void SendDelta(DeltaDiscoveryRequest request) override { ads_.Deliver(ads_.script_.OnDeltaRequest(request)); }

   private:
    Ads& ads_;
  };
  Host& host_;
  AdsScript& script_;
  AdsStreamObserver* observer_ = nullptr;
};

class Pod final : public EnvoyContext {
 public:
  Pod(Host& host, Ads& ads, Agent& agent, Resolver& dns) : host_(host), ads_(ads), agent_(agent), dns_(dns) {}
  Host& host() override { return host_; }
  AdsTransport& ads() override { return ads_; }
  SecretProvider& secrets() override { return agent_; }
  DnsResolver& dns() override { return dns_; }
  void FillNode(envoy::config::core::v3::Node* node) override {
    node->set_id("diff");
    node->set_cluster("diff");
  }

 private:
  Host& host_;
  Ads& ads_;
  Agent& agent_;
  Resolver& dns_;
};

class SimulatedRun {
 public:
  SimulatedRun(const Case& c, Chance chance)
      : case_(c),
        chance_(std::move(chance)),
        kernel_(chance_.start),
        jitter_(chance_.start, "clients"),
        host_(kernel_.NewHost("diff", 0, nullptr)),
        script_(c.resources, c.any_secret),
        ads_(host_, script_),
        agent_(c, host_),
        dns_(c, host_),
        pod_(host_, ads_, agent_, dns_),
        plane_(host_, network_, Options(chance_.start)),
        envoy_(plane_, pod_, EnvoyOptionsOf(c)) {
    network_.envoy = &envoy_.direct();
    for (const auto& [address, port] : c.redirect) {
      network_.redirects[*IpAddress::Parse(address)] = port == 15006 ? &envoy_.inbound() : &envoy_.outbound();
    }
    plane_.CollectAccessLogs([this](EnvoyContext&, const AccessLogLine& line) {
      if (IsCaseLog(line.path)) logs_[std::string(line.path)] += line.text;
    });
    for (const auto& [name, address] : c.backends) {
      apps_[name].app = std::make_unique<Backend>(host_.Intern(name), name);
      apps_[name].app->state.authorizer = c.grpc_authorizers.contains(name);
      apps_[name].app->grpc = c.grpc_backends.contains(name);
      apps_[name].app->only_http2 =
          c.grpc_authorizers.contains(name) || c.grpc_backends.contains(name) || c.rate_limiters.contains(name);
      apps_[name].app->host = &host_;
      if (const auto limits = c.rate_limiters.find(name); limits != c.rate_limiters.end()) {
        apps_[name].app->limiter = std::make_unique<RateLimiter>(limits->second);
      }
      SetUp(name, true);
    }
  }

  Outcome Execute() {
    envoy_.Start();
    // As the real one's driver: until there was nothing to say for a while.
    Time quiet = kernel_.Now();
    for (size_t said = 0; script_.log().empty() || kernel_.Now() - quiet < 250ms;) {
      kernel_.RunUntil(kernel_.Now() + 10ms);
      if (script_.log().size() != said) quiet = kernel_.Now();
      said = script_.log().size();
    }
    for (const Step& step : case_.steps) {
      switch (step.kind) {
        case Step::Kind::kRequests:
          SendAll(step.requests);
          break;
        case Step::Kind::kPush:
          agent_.Rotate(step.push.secrets);
          case_.delta ? ads_.Deliver(script_.ChangeDelta(step.push)) : ads_.Deliver(script_.Change(step.push));
          kernel_.RunUntil(kernel_.Now() + 300ms);
          break;
        case Step::Kind::kBackend:
          apps_.at(step.backend.name).app->state = step.backend;
          if (case_.grpc_authorizers.contains(step.backend.name)) apps_[step.backend.name].app->state.authorizer = true;
          SetUp(step.backend.name, step.backend.up && !step.backend.silent, step.backend.silent);
          kernel_.RunUntil(kernel_.Now() + 10ms);
          break;
        case Step::Kind::kNames:
          dns_.Change(step.names);
          break;
        case Step::Kind::kWait:
          kernel_.RunUntil(kernel_.Now() + std::chrono::milliseconds(step.wait_ms));
          break;
        case Step::Kind::kJoin:
          Join();
          break;
      }
    }
    Join();
    out_.ads = script_.log();
    out_.clusters = envoy_.ClusterNames();
    out_.listeners = envoy_.ListenerNames();
    out_.routes = envoy_.RouteNames();
    for (const EndpointStatus& e : envoy_.Endpoints()) {
      std::string flags = e.outlier_ejected ? "/ejected" : "";
      for (const auto& [set, flag] : {std::pair{e.failed_active_hc, "/failed_active_health_check"},
                                      {e.degraded_active_hc, "/failed_active_degraded_check"},
                                      {e.pending_dynamic_removal, "/pending_dynamic_removal"},
                                      {e.pending_active_hc, "/pending_active_hc"},
                                      {e.excluded_via_immediate_hc_fail, "/excluded_via_immediate_hc_fail"},
                                      {e.active_hc_timeout, "/active_hc_timeout"}}) {
        if (set) flags += flag;
      }
      out_.endpoints.push_back(fmt::format("{}/{}/p{}/w{}{}", e.cluster, e.address, e.priority, e.weight, flags));
    }
    std::sort(out_.endpoints.begin(), out_.endpoints.end());
    for (const auto& [path, text] : logs_) out_.logs[path] = ComparableLines(text);
    for (const std::string& name : case_.stats) out_.stats[name] = envoy_.counter(name);
    return std::move(out_);
  }

 private:
  struct Served {
    std::unique_ptr<Backend> app;
    std::unique_ptr<AppServer> server;
  };

  static DataPlane::Options Options(uint64_t seed) {
    DataPlane::Options o;
    const LatencyRange none;
    o.latencies = StageLatencies{none, none, none, none, none, {}, none, {}, {}, {}, {}};
    o.extensions = ExtensionSet::kStock;
    o.seed = seed;
    o.trace_requests = o.trace_connections = false;
    return o;
  }
  static EnvoyOptions EnvoyOptionsOf(const Case& c) {
    EnvoyOptions o;
    o.name = "diff";
    o.workload = WorkloadId{1};
    o.ip = IpAddress::V4(127, 0, 0, 1);
    o.protocol = c.delta ? AdsTransport::Protocol::kDelta : AdsTransport::Protocol::kSotw;
    return o;
  }

  void SetUp(const std::string& name, bool up, bool silent = false) {
    Served& served = apps_.at(name);
    const SocketAddress address = *SocketAddress::Parse(case_.backends.at(name));
    silent ? void(network_.silent.insert(address)) : void(network_.silent.erase(address));
    if (up == (served.server != nullptr)) return;
    if (up) {
      served.server = std::make_unique<AppServer>(plane_.fabric(), host_, *served.app);
      network_.apps[address] = served.server.get();
    } else {
      network_.apps[address] = &closed_;
      served.server.reset();
    }
  }

  RequestOutcome Convert(const RequestRecord& r, const Requests& requests) {
    const bool head = requests.method == "HEAD";
    RequestOutcome o;
    o.code = r.grpc_status != kNoGrpcStatus ? uint16_t{200} : r.code;  // over HTTP it is that, whatever its status
    if (!head) o.body = r.body;
    ForEachHeader(r.headers, [&](std::string_view key, std::string_view value) {
      if (key == "content-encoding" && !o.body.empty()) o.body = CompressedBody(std::string(value));
    });
    o.seconds = std::chrono::duration<double>(r.latency).count();
    for (const std::string& name : requests.show) {
      std::optional<std::string> all;  // of one name after commas, as the real one's client has them
      for (const std::string_view lines : {r.headers, r.trailers}) {
        ForEachHeader(lines, [&](std::string_view key, std::string_view value) {
          if (key == name) all = (all ? *all + "," : "") + std::string(value);
        });
      }
      if (all) AddHeaderLine(name, *all, &o.headers);
    }
    // The real one's log tells requests apart by a header, which is not in it where no head was read.
    // What it says of one that was upgraded comes later, and is no part of its answer.
    o.logged = !requests.anonymous && !r.listener.empty() && r.details != "low_version" && r.code != 101;
    if (!o.logged) return o;
    o.flags = ResponseFlagsToString(r.flags);
    o.details = r.details;
    o.route = r.route;
    o.cluster = r.cluster;
    o.upstream = r.upstream.empty() ? "" : r.upstream.ToString();
    o.failure = r.transport_failure;
    o.filter_chain = r.filter_chain;
    o.attempts = static_cast<int>(r.attempts);
    return o;
  }

  // Requests of one step, as they go on.
  struct Flow {
    Flow(const Requests& r, size_t which) : requests(r), step(which), left(r.count) {}
    const Requests& requests;
    const size_t step;
    int left, running = 0;
    RequestSpec spec, handshake;
    AppClient::Options options;
    std::unique_ptr<AppClient> client;
    std::vector<std::unique_ptr<AppClient::Session>> sessions;  // of clients that ask for upgrades
  };

  void SendAll(const Requests& requests) {
    const size_t number = out_.requests.size();
    if (number < chance_.steps.size() && chance_.steps[number] != 0) envoy_.DrawAnew(chance_.steps[number]);
    Flow& flow = *flows_.emplace_back(std::make_unique<Flow>(requests, out_.requests.size()));
    out_.requests.emplace_back();
    flow.spec.protocol = requests.http2    ? HttpProtocol::kHttp2
                         : requests.http10 ? HttpProtocol::kHttp10
                                           : HttpProtocol::kHttp11;
    flow.spec.method = requests.method;
    flow.spec.authority = requests.host;
    const int64_t now = x509::UnixSeconds(kernel_.Now());
    flow.spec.path = case_.tokens.Expand(requests.path, now);
    flow.spec.headers = requests.headers;
    for (auto& [name, value] : flow.spec.headers) value = case_.tokens.Expand(value, now);
    flow.spec.trailers = requests.trailers;
    flow.spec.pace.takes = std::chrono::milliseconds(requests.body_ms);
    flow.spec.pace.gap = flow.spec.pace.takes / requests.body_pieces;
    flow.options.keep_alive = requests.keep_alive && !requests.http10;
    flow.options.flight = FlightOf(requests);
    flow.client = std::make_unique<AppClient>(plane_.fabric(), host_, WorkloadId{1}, "client",
                                              requests.from.empty() ? IpAddress() : *IpAddress::Parse(requests.from));
    flow.handshake = flow.spec;
    flow.handshake.TakeNewId();
    for (auto& header : UpgradeHeaders(requests.upgrade)) flow.handshake.headers.push_back(std::move(header));
    flow.sessions.resize(static_cast<size_t>(requests.parallel));
    for (size_t i = 0; i < flow.sessions.size(); ++i) Next(flow, i, std::nullopt);
    if (!requests.background) Await(flow);
  }

  // The next request of one of a flow's clients, which asked before at `asked`.
  void Next(Flow& flow, size_t client, std::optional<Time> asked) {
    if (flow.left == 0) return;
    --flow.left;
    ++flow.running;
    Time at = kernel_.Now();
    if (asked && flow.requests.interval_ms > 0) {
      const int64_t wait = flow.requests.interval_ms + jitter_.Between(0, flow.requests.jitter_ms);
      at = std::max(at, *asked + std::chrono::milliseconds(wait));
    }
    const auto send = [this, &flow, client, at] {
      const bool upgrades = !flow.requests.upgrade.empty();
      const SocketAddress to = *SocketAddress::Parse(flow.requests.to);
      const auto done = [this, &flow, client, at, upgrades](const RequestRecord& record) {
        out_.requests[flow.step].push_back(Convert(record, flow.requests));
        const auto go_on = [this, &flow, client, at] {
          --flow.running;
          Next(flow, client, at);
        };
        if (!upgrades) return go_on();
        // What is answered by a proxy ends its connection, but not within its own call.
        host_.Post([&flow, client, go_on, leave = record.code != 101 && !record.listener.empty()] {
          if (leave) flow.sessions[client] = nullptr;
          go_on();
        });
      };
      if (!upgrades) return flow.client->Send(to, flow.spec, flow.options, done);
      std::unique_ptr<AppClient::Session>& session = flow.sessions[client];
      const bool opened = session == nullptr || !session->open();
      if (opened) session = flow.client->OpenSession(to, FirstFlight::Kind::kHttp1, flow.options.flight);
      session->Send(opened ? flow.handshake : flow.spec, done);
    };
    at == kernel_.Now() ? send() : void(host_.RunAfter(at - kernel_.Now(), send));
  }

  void Await(Flow& flow) {
    const Time limit = kernel_.Now() + 120s;
    while (flow.running > 0 && kernel_.Now() < limit && kernel_.Step()) {
    }
    flow.sessions.clear();
    flow.client.reset();  // as the real one's, which close their connections when they have nothing left to ask
    kernel_.RunUntil(kernel_.Now() + 21ms);
  }

  void Join() {
    for (const auto& flow : flows_) {
      if (flow->client != nullptr) Await(*flow);
    }
  }

  // What a client's connection begins with, where that is not plain HTTP.
  std::shared_ptr<const FirstFlight> FlightOf(const Requests& requests) const {
    if (!requests.tls && !requests.proxy_protocol) return nullptr;
    auto flight = std::make_shared<FirstFlight>();
    if (requests.proxy_protocol) {
      const ClientProxyProtocol& said = *requests.proxy_protocol;
      AnnouncedAddresses announced{static_cast<uint8_t>(said.version), {}, {}};
      if (!said.source.empty()) {
        announced.source = *SocketAddress::Parse(said.source);
        announced.destination = *SocketAddress::Parse(said.destination);
      }
      flight->announced = std::make_shared<const AnnouncedAddresses>(announced);
    }
    if (!requests.tls) return flight;
    const ClientTls& tls = *requests.tls;
    flight->kind = FirstFlight::Kind::kTls;
    flight->sni = tls.sni;
    flight->alpn = tls.alpn;
    auto context = std::make_shared<TlsContext>();
    context->sni = tls.sni;
    context->alpn = tls.alpn;
    context->lowest_version = tls.lowest_version;
    context->highest_version = tls.highest_version;
    auto client = std::make_shared<TlsClient>();
    const auto own = case_.secrets.find(tls.certificate), root = case_.secrets.find(tls.root);
    if (own != case_.secrets.end()) context->certificate = client->certificate = own->second.secret.certificate;
    if (root != case_.secrets.end()) {
      context->trusted_ca = client->trusted_ca = root->second.secret.trusted_ca;
      context->validates = true;
    }
    client->context = std::move(context);
    flight->tls = std::move(client);
    return flight;
  }

  class Closed final : public Acceptor {
   public:
    ConnectionHandler* Accept(ConnectionId, const AcceptInfo&) override { return nullptr; }
  };

  const Case& case_;
  const Chance chance_;
  sim::Kernel kernel_;
  RandomStream jitter_;  // of clients
  Host& host_;
  OneMachine network_;
  Closed closed_;
  AdsScript script_;
  Ads ads_;
  Agent agent_;
  Resolver dns_;
  Pod pod_;
  DataPlane plane_;
  std::map<std::string, Served> apps_;
  Envoy envoy_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::map<std::string, std::string> logs_;
  Outcome out_;
};

}  // namespace

absl::StatusOr<Outcome> RunSimulated(const Case& c, const Chance& chance) {
  for (const auto& [name, address] : c.backends) {
    if (!SocketAddress::Parse(address).ok()) {
      return absl::InvalidArgumentError(fmt::format("{}: backend {} has no address", c.name, name));
    }
  }
  return SimulatedRun(c, chance).Execute();
}

}  // namespace wavetank::envoydiff
