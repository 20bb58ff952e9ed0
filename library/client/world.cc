#include "wavetank/world.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "library/client/process.h"

namespace wavetank {
namespace {

Nanoseconds Milliseconds(const Value& value) { return Nanoseconds(static_cast<int64_t>(value.Number() * 1e6 + 0.5)); }

std::map<std::string, int64_t> CountsOf(const Value& value) {
  std::map<std::string, int64_t> out;
  for (const auto& [name, count] : value.Entries()) out[name] = count.Integer();
  return out;
}

std::vector<std::string> TextsOf(const Value& value) {
  std::vector<std::string> out;
  for (const Value& item : value.Items()) out.push_back(item.Text());
  return out;
}

Requests RequestsOf(const Value& in) {
  Requests out;
  out.sent = in["sent"].Integer();
  out.failed = in["failed"].Integer();
  out.retried = in["retried"].Integer();
  out.remote = in["remote"].Integer();
  out.mtls_verified = in["mtlsVerified"].Integer();
  out.by_version = CountsOf(in["byVersion"]);
  out.by_cluster = CountsOf(in["byCluster"]);
  out.by_pod = CountsOf(in["byPod"]);
  out.by_flags = CountsOf(in["byFlags"]);
  out.p50 = Milliseconds(in["latencyMs"]["p50"]);
  out.p99 = Milliseconds(in["latencyMs"]["p99"]);
  for (const Value& failure : in["failures"].Items()) {
    if (failure["retried"].Flag()) continue;  // another try followed
    out.failures.push_back({failure["flags"].Text(), failure["upstream"].Text(), failure["cause"].Text(),
                            static_cast<int>(failure["code"].Integer()), failure["count"].Integer()});
  }
  out.all = in;
  return out;
}

Convergence ConvergenceOf(const Value& in) {
  Convergence out;
  out.total = Milliseconds(in["totalMs"]);
  for (const Value& row : in["proxies"].Items()) {
    Convergence::Proxy proxy{row["proxy"].Text(), Milliseconds(row["totalMs"]), {}};
    for (const auto& [stage, time] : row["stagesMs"].Entries()) proxy.stages[stage] = Milliseconds(time);
    out.proxies.push_back(std::move(proxy));
  }
  return out;
}

Value FlowValue(const Flow& flow) {
  Value::Map out{{"from", Value::Map{{"cluster", flow.cluster}, {"namespace", flow.ns}, {"app", flow.app}}},
                 {"to", flow.host},
                 {"rate", flow.rate},
                 {"path", flow.path}};
  if (!flow.headers.empty()) out["headers"] = Value(flow.headers);
  if (flow.keep_alive) out["connections"] = "keep-alive";
  if (flow.tcp) out["protocol"] = "tcp";
  if (!flow.protocol.empty()) out["protocol"] = flow.protocol;
  return out;
}

}  // namespace

// A world as its client knows it.
struct client::Living {
  std::unique_ptr<client::Process> process;
  Mesh mesh;
  std::vector<std::string> notes;
  std::vector<Value> actions;
};

namespace {

// Asks its process, unless it was moved elsewhere.
Result<Value> Ask(const std::unique_ptr<client::Living>& living, Value::Map request) {
  if (living == nullptr) return Error{"this World is empty: it was moved from; ask the one that it was moved to"};
  return living->process->Ask(std::move(request));
}

}  // namespace

World::World(std::unique_ptr<client::Living> living) : living_(std::move(living)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

Result<World> World::Open(const Mesh& mesh, const WorldOptions& options) {
  const uint64_t seed = options.seed.value_or(mesh.seed);
  if (seed > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return Error{"seed: " + std::to_string(seed) + " is no whole number from 0 to 9223372036854775807"};
  if (const Status named = mesh.Check(); !named.ok()) return Error{named.error()};
  Result<std::unique_ptr<client::Process>> process = client::Process::Start(options.program);
  if (!process.ok()) return Error{process.error()};
  auto living = std::make_unique<client::Living>();
  living->process = *std::move(process);
  living->mesh = mesh;
  if (options.seed) living->mesh.seed = *options.seed;
  if (!options.profile.empty()) living->mesh.profile = options.profile;
  Value::Map request{{"op", "open"}, {"trace", options.trace}};
  if (mesh.scenario().empty()) {
    request["text"] = living->mesh.ToScenario();
    request["name"] = "mesh";
  } else {
    request["scenario"] = mesh.scenario();
    if (options.seed) request["seed"] = static_cast<int64_t>(*options.seed);
    if (!living->mesh.profile.empty()) request["profile"] = living->mesh.profile;
  }
  Result<Value> answer = living->process->Ask(std::move(request));
  if (!answer.ok()) return Error{answer.error()};
  living->notes = TextsOf((*answer)["notes"]);
  return World(std::move(living));
}

const std::vector<std::string>& World::notes() const {
  static const auto* const none = new std::vector<std::string>();
  return living_ == nullptr ? *none : living_->notes;
}
Nanoseconds World::Now() const { return Nanoseconds(living_ == nullptr ? 0 : living_->process->now_ns()); }

Status World::Do(const Action& action) {
  Result<Value> answer = Ask(living_, {{"op", "do"}, {"action", action.ToValue()}});
  if (!answer.ok()) return Error{answer.error()};
  living_->actions.push_back(action.ToValue());
  return Nothing{};
}

Status World::Step(Nanoseconds time) {
  Result<Value> answer = Ask(living_, {{"op", "run"}, {"forNs", static_cast<int64_t>(time.count())}});
  if (!answer.ok()) return Error{answer.error()};
  return Nothing{};
}

Result<Settled> World::Settle(Nanoseconds limit) { return Rest(limit, false); }
Result<Settled> World::Recover(Nanoseconds limit) { return Rest(limit, true); }

Result<Settled> World::Rest(Nanoseconds limit, bool connected) {
  Result<Value> answer =
      Ask(living_, {{"op", "settle"}, {"limitNs", static_cast<int64_t>(limit.count())}, {"connected", connected}});
  if (!answer.ok()) return Error{answer.error()};
  return Settled{(*answer)["settled"].Flag(), TextsOf((*answer)["atWork"]), TextsOf((*answer)["complaints"]),
                 TextsOf((*answer)["disconnected"]), ConvergenceOf((*answer)["convergence"])};
}

Result<bool> World::Until(const std::function<bool(World&)>& holds, Nanoseconds limit, Nanoseconds every) {
  if (every <= Nanoseconds::zero()) return Error{"in steps of no time nothing comes; Until() takes `every` above zero"};
  const Nanoseconds end = Now() + limit;
  while (!holds(*this)) {
    if (Now() >= end) return false;
    Status stepped = Step(std::min(every, end - Now()));
    if (!stepped.ok()) return Error{stepped.error()};
  }
  return true;
}

Result<Requests> World::Send(const Flow& flow, int64_t count) {
  if (count <= 0) return Error{"how many requests? Send() takes 1 or more"};
  Result<Value> begun = Ask(living_, {{"op", "start"}, {"flow", FlowValue(flow)}, {"requests", count}});
  if (!begun.ok()) return Error{begun.error()};
  return Finish((*begun)["traffic"].Text());
}

Result<std::string> World::Start(const Flow& flow) {
  Result<Value> begun = Ask(living_, {{"op", "start"}, {"flow", FlowValue(flow)}});
  if (!begun.ok()) return Error{begun.error()};
  return (*begun)["traffic"].Text();
}

Result<Requests> World::Finish(const std::string& traffic) {
  Result<Value> answer = Ask(living_, {{"op", "finish"}, {"traffic", traffic}});
  if (!answer.ok()) return Error{answer.error()};
  return RequestsOf((*answer)["requests"]);
}

Result<std::vector<Service>> World::Services() {
  Result<Value> answer = Ask(living_, {{"op", "services"}});
  if (!answer.ok()) return Error{answer.error()};
  std::vector<Service> out;
  for (const Value& row : (*answer)["services"].Items()) {
    out.push_back({row["cluster"].Text(), row["namespace"].Text(), row["name"].Text(), row["type"].Text(),
                   row["clusterIP"].Text(), row["external"].Text(), row["ports"].Text()});
  }
  return out;
}

Result<std::vector<std::string>> World::Proxies() {
  Result<Value> answer = Ask(living_, {{"op", "proxies"}});
  if (!answer.ok()) return Error{answer.error()};
  return TextsOf((*answer)["proxies"]);
}

Result<std::vector<Endpoint>> World::Endpoints(const std::string& proxy) {
  Result<Value> answer = Ask(living_, {{"op", "endpoints"}, {"proxy", proxy}});
  if (!answer.ok()) return Error{answer.error()};
  std::vector<Endpoint> out;
  for (const Value& row : (*answer)["endpoints"].Items()) {
    out.push_back({row["cluster"].Text(), row["proxy"].Text(), row["endpoint"].Text(), row["status"].Text(),
                   row["outlierCheck"].Text(), row["upstream"].Text()});
  }
  return out;
}

Result<Value> World::Config(const std::string& proxy, const std::string& type) {
  Result<Value> answer = Ask(living_, {{"op", "config"}, {"proxy", proxy}, {"type", type}});
  if (!answer.ok()) return Error{answer.error()};
  return (*answer)["config"];
}

Result<std::vector<TraceEvent>> World::Trace(const std::string& kind, const std::string& subject) {
  Result<Value> answer =
      Ask(living_, {{"op", "trace"}, {"kind", kind}, {"subject", subject}, {"limit", int64_t{100'000'000}}});
  if (!answer.ok()) return Error{answer.error()};
  std::vector<TraceEvent> out;
  for (const Value& row : (*answer)["events"].Items()) {
    TraceEvent event{static_cast<uint64_t>(row["index"].Integer()),
                     Nanoseconds(row["atNs"].Integer()),
                     row["kind"].Text(),
                     row["subject"].Text(),
                     row["object"].Text(),
                     row["detail"].Text(),
                     row["a"].Integer(),
                     row["b"].Integer(),
                     {}};
    for (const Value& input : row["inputs"].Items()) event.inputs.push_back(static_cast<uint64_t>(input.Integer()));
    out.push_back(std::move(event));
  }
  return out;
}

Result<std::vector<Input>> World::Inputs() {
  Result<Value> answer = Ask(living_, {{"op", "inputs"}});
  if (!answer.ok()) return Error{answer.error()};
  std::vector<Input> out;
  for (const Value& row : (*answer)["inputs"].Items()) {
    out.push_back({static_cast<uint64_t>(row["number"].Integer()), Nanoseconds(row["atNs"].Integer()),
                   row["kind"].Text(), row["cluster"].Text()});
  }
  return out;
}

Result<std::vector<Breach>> World::Check() {
  Result<Value> answer = Ask(living_, {{"op", "check"}});
  if (!answer.ok()) return Error{answer.error()};
  std::vector<Breach> out;
  for (const Value& row : (*answer)["breaches"].Items()) out.push_back({row["invariant"].Text(), row["what"].Text()});
  return out;
}

Result<World> World::Fork() {
  if (living_ == nullptr) return Error{"this World is empty: it was moved from; fork the one that it was moved to"};
  Result<std::unique_ptr<client::Process>> copy = living_->process->Fork();
  if (!copy.ok()) return Error{copy.error()};
  auto living = std::make_unique<client::Living>();
  living->process = *std::move(copy);
  living->mesh = living_->mesh;
  living->notes = living_->notes;
  living->actions = living_->actions;
  return World(std::move(living));
}

Result<std::string> World::Digest() {
  Result<Value> answer = Ask(living_, {{"op", "digest"}});
  if (!answer.ok()) return Error{answer.error()};
  return (*answer)["digest"].Text();
}

Status World::WriteLog(const std::string& path) {
  Result<Value> answer = Ask(living_, {{"op", "log"}, {"path", path}});
  if (!answer.ok()) return Error{answer.error()};
  return Nothing{};
}

std::string World::Story() const {
  return living_ == nullptr ? std::string() : living_->mesh.ToScenario(living_->actions);
}

Result<Replay> ReplayLog(const std::string& path, const WorldOptions& options) {
  int code = 0;
  std::string complaint;
  Result<std::string> text = client::OutputOf(options.program, {"replay", "--json", path}, &code, &complaint);
  if (!text.ok()) return Error{text.error()};
  Value answer;
  if (!Value::Parse(*text, &answer)) return Error{complaint.empty() ? path + ": could not be replayed" : complaint};
  Replay out;
  out.identical = answer["identical"].Flag();
  out.digest = answer["digest"].Text();
  out.inputs = answer["inputs"].Integer();
  out.events = answer["events"].Integer();
  const Value& differs = answer["divergence"];
  if (differs.IsMap()) out.difference = "expected " + differs["expected"].Text() + ", got " + differs["got"].Text();
  return out;
}

}  // namespace wavetank
