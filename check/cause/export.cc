#include "check/cause/export.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "check/cause/yaml_text.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/file_name.h"
#include "core/kube/time_format.h"
#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// What makes the mesh comes without long pauses.
constexpr Duration kPause = 30s;

// As short as it can be told.
std::string DurationText(Duration d) {
  for (const auto& [unit, name] : {std::pair<Duration, const char*>{1s, "s"}, {1ms, "ms"}, {1us, "us"}}) {
    if (d % unit == Duration::zero()) return fmt::format("{}{}", d / unit, name);
  }
  return fmt::format("{}ns", d.count());
}

std::string RateText(Duration period) {
  const double rate = 1e9 / static_cast<double>(std::max<int64_t>(period.count(), 1));
  std::string text = fmt::format("{:.6f}", rate);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + "/s";
}

// The file of a cluster's manifests; one that is called `scenario` has another than the scenario itself.
std::string ManifestsOf(const std::string& cluster) {
  return cluster == "scenario" ? "%73cenario.yaml" : FileName(cluster) + ".yaml";
}

Json Ordered(const json& value) { return Json::parse(JsonText(value)); }

class Export {
 public:
  explicit Export(const Story& story) : story_(story) {}

  absl::StatusOr<Exported> Write(const std::string& folder) {
    absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson(story_.header.world);
    if (!options.ok()) return options.status();
    if (story_.header.OfRealIstiod()) {
      return absl::FailedPreconditionError(
          fmt::format("{}: of a run with a real istiod, whose log holds inputs alone and not what that istiod did; "
                      "`wavetank run --from` takes it as a mesh",
                      story_.path));
    }
    if (absl::Status status = MakeFolder(folder); !status.ok()) return status;
    Exported out;
    if (story_.header.IsRecording()) {
      recorded_ = true;
      mesh_log_ = (fs::path(folder) / kMeshLog).string();
      if (absl::Status status = Recorded(*options); !status.ok()) return status;
      out.mesh_log = mesh_log_;
    } else if (absl::Status status = Mesh(*options); !status.ok()) {
      return status;
    }
    for (const auto& [cluster, objects] : manifests_) {
      std::string text;
      for (const Json& object : objects) text += "---\n" + YamlText(object);
      out.objects += objects.size();
      if (absl::Status status = Put(fs::path(folder) / ManifestsOf(cluster), text); !status.ok()) return status;
    }
    // Times of steps count from when the mesh is up, which a run tells.
    const std::string file = (fs::path(folder) / "scenario.yaml").string();
    if (absl::Status status = Put(file, YamlText(scenario_)); !status.ok()) return status;
    scenario::RunOptions up;
    up.until_step = 0;
    up.on_up = [this](sim::World& world) {
      origin_ = story_.header.Beginning() + (world.Now() - world.options().start);
      return absl::OkStatus();
    };
    if (auto ran = RunFile(file, up); !ran.ok()) return ran.status();
    const Json without_steps = scenario_;
    absl::StatusOr<scenario::RunResult> ran = absl::UnknownError("");
    for (eager_then_ = true;; eager_then_ = false) {
      scenario_ = without_steps;
      flows_.clear();
      begins_.clear();
      throughout_.clear();
      throughout_ends_.clear();
      end_.reset();
      Steps();
      if (absl::Status status = Put(file, YamlText(scenario_)); !status.ok()) return status;
      ran = RunFile(file, {});
      if (!ran.ok()) return ran.status();
      if (!eager_then_ || !AnyLate(*ran)) break;
    }
    Expect(*ran);
    out.steps = scenario_["steps"].size();
    out.claims = static_cast<size_t>(std::count_if(story_.inputs.begin(), story_.inputs.end(),
                                                   [](const auto& input) { return input.kind == "claim"; }));
    out.digest = ran->digest;
    if (absl::Status status = Put(file, YamlText(scenario_)); !status.ok()) return status;
    return out;
  }

 private:
  static absl::Status MakeFolder(const std::string& folder) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
      return absl::AlreadyExistsError(fmt::format("{}: holds something already; name a new folder", folder));
    }
    fs::create_directories(folder, error);
    if (!error) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("{}: cannot be made: {}; name another folder", folder, error.message()));
  }
  static absl::Status Put(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (file.flush()) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("{}: cannot be written; name another folder", path.string()));
  }
  absl::StatusOr<scenario::RunResult> RunFile(const std::string& file, scenario::RunOptions options) const {
    std::vector<scenario::ClusterSpec> mesh;
    if (recorded_) {
      absl::StatusOr<std::vector<scenario::ClusterSpec>> of_log = scenario::ClustersOfLog(mesh_log_);
      if (!of_log.ok()) return of_log.status();
      mesh = *std::move(of_log);
      options.from = mesh_log_;
    }
    absl::StatusOr<scenario::Scenario> read = scenario::LoadScenario(file, mesh);
    if (!read.ok()) return read.status();
    return scenario::Run(*read, options);
  }

  // Clusters of a recording hold what was seen there, pods with their addresses and slices with theirs, and none of the
  // controllers and nodes of a scenario's clusters, which would make others: so the mesh stays a log, `run --from`
  // takes it, and the manifests are there to be read. What changed later is the scenario's, claims included, word for
  // word.
  absl::Status Recorded(const sim::WorldOptions& options) {
    scenario_ = {{"name", story_.header.scenario_name.empty() ? "exported" : story_.header.scenario_name},
                 {"description", fmt::format("Written by wavetank export. Its mesh is {}: wavetank run --from {} "
                                             "scenario.yaml",
                                             kMeshLog, kMeshLog)},
                 {"seed", options.seed},
                 {"profile", options.profile}};
    std::map<std::string, std::map<std::string, Json>> last;  // by cluster, by kind and name
    for (const sim::WorldCluster& c : options.clusters) last[c.name];
    Story mesh = story_;
    for (start_ = 0; start_ < story_.inputs.size(); ++start_) {
      const replay::LogInput& input = story_.inputs[start_];
      if (start_ > 0 && input.at - story_.inputs[start_ - 1].at > kPause) break;
      const json& object = At(input.body, "object");
      const json& meta = At(input.kind == "apply" ? object : input.body, "metadata");
      if (input.kind == "apply") {
        last[Text(input.body, "cluster")]
            [Text(object, "kind") + " " + Text(meta, "namespace") + "/" + Text(meta, "name")] = Ordered(object);
      } else if (input.kind == "delete") {
        last[Text(input.body, "cluster")].erase(Text(input.body, "kind") + " " + Text(input.body, "namespace") + "/" +
                                                Text(input.body, "name"));
      }
    }
    for (const auto& [cluster, objects] : last) {
      manifests_[cluster];
      for (const auto& [name, object] : objects) manifests_[cluster].push_back(object);
    }
    mesh.inputs.resize(start_);
    // The mesh has come up by then, and nothing has changed.
    mesh.end = start_ < story_.inputs.size() ? story_.inputs[start_].at - 1s : story_.end;
    if (!mesh.inputs.empty()) mesh.end = std::max(mesh.end, mesh.inputs.back().at);
    return WriteStory(mesh, mesh_log_);
  }

  absl::Status Mesh(const sim::WorldOptions& options) {
    scenario_ = {{"name", story_.header.scenario_name.empty() ? "exported" : story_.header.scenario_name},
                 {"description", "Written by wavetank export."},
                 {"seed", options.seed},
                 {"profile", options.profile}};
    if (options.start != Time{})
      scenario_["date"] = kube::FormatRfc3339(kWorldEpochUnixSeconds + options.start.time_since_epoch() / 1s);
    if (options.mending.chosen()) scenario_["mend"] = options.mending.Text();
    std::set<std::string> roots, own;
    for (const sim::WorldCluster& c : options.clusters) manifests_[c.name];
    Json secrets = Json::array(), key_sets = Json::array(), issuers = Json::array();
    std::optional<Time> last;
    for (start_ = 0; start_ < story_.inputs.size(); ++start_) {
      const replay::LogInput& input = story_.inputs[start_];
      const json& body = input.body;
      if (last && input.at - *last > kPause) break;
      if (input.kind == "apply") {
        manifests_[Text(body, "cluster")].push_back(Ordered(At(body, "object")));
      } else if (input.kind == "cacerts") {
        roots.insert(Text(body, "root"));
        own.insert("root-" + Text(body, "cluster"));
      } else if (input.kind == "remoteSecret" && Text(body, "state") == "present") {
        secrets.push_back({{"of", Text(body, "of")}, {"in", Text(body, "in")}});
      } else if (input.kind == "keySet") {
        key_sets.push_back(Ordered(body));
      } else if (input.kind == "issuer") {
        issuers.push_back(Ordered(body));
      } else if (input.kind != "install") {
        break;
      }
      last = input.at;
    }
    if (!roots.empty() && roots != own && roots != std::set<std::string>{"root"}) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: its clusters have certificate authorities by no plan that a scenario knows (common-root, own-roots, "
          "self-signed)",
          story_.path));
    }
    scenario_["ca"] = roots.empty() ? "self-signed" : roots == own ? "own-roots" : "common-root";
    Clusters(options);
    if (!secrets.empty()) scenario_["remoteSecrets"] = std::move(secrets);
    if (!key_sets.empty()) scenario_["keySets"] = std::move(key_sets);
    if (!issuers.empty()) scenario_["issuers"] = std::move(issuers);
    if (!options.timing.empty()) scenario_["timing"] = options.timing;
    if (const json mesh = ParseJson(options.mesh_config); mesh.is_object()) scenario_["meshConfig"] = Ordered(mesh);
    return absl::OkStatus();
  }

  void Clusters(const sim::WorldOptions& options) {
    for (const sim::WorldCluster& c : options.clusters) {
      Json cluster = {{"name", c.name}, {"network", c.network}};
      if (!c.primary()) cluster["controlPlane"] = c.control_plane;
      for (const auto& [key, cidr] : {std::pair("pods", c.pod_cidr), std::pair("services", c.service_cidr),
                                      std::pair("loadBalancers", c.load_balancer_cidr)}) {
        if (!cidr.empty()) cluster[key] = cidr;
      }
      if (c.load_balancer_hostname) cluster["loadBalancerHostnames"] = true;
      if (!c.enforces_policies) cluster["networkPolicies"] = "ignored";
      if (c.enforces_policies && c.strict_policies) cluster["networkPolicies"] = "strict";
      for (const auto& [key, said] :
           {std::pair("clusterName", c.installed_name), std::pair("network", c.installed_network)}) {
        if (!said.empty()) cluster["installed"][key] = said;
      }
      for (const sim::WorldNode& n : c.nodes) {
        if (c.nodes_untold) break;  // the reader makes it up, too
        Json node = {{"name", n.name}};
        for (const auto& [key, value] :
             {std::pair("region", n.region), std::pair("zone", n.zone), std::pair("externalIP", n.external_ip)}) {
          if (!value.empty()) node[key] = value;
        }
        cluster["nodes"].push_back(std::move(node));
      }
      cluster["manifests"] = Json::array({ManifestsOf(c.name)});
      scenario_["clusters"].push_back(std::move(cluster));
    }
    Physical(options);
    for (const sim::WorldLink& l : options.links) {
      scenario_["links"].push_back({{"between", {l.a, l.b}},
                                    {"latency", DurationText(l.latency)},
                                    {"jitter", DurationText(l.jitter)},
                                    {"loss", fmt::format("{}%", static_cast<double>(l.loss_ppm) / 1e4)}});
    }
  }

  void Physical(const sim::WorldOptions& options) {
    Json physical;
    const auto unless_empty = [](Json& into, const char* key, const auto& value) {
      if (!value.empty()) into[key] = value;
    };
    for (const sim::WorldPlace& p : options.sites) {
      Json& site = physical["sites"].emplace_back(Json{{"name", p.name}});
      unless_empty(site, "clusters", p.clusters);
      unless_empty(site, "private", p.private_ranges);
    }
    for (const sim::WorldRoute& r : options.routes)
      unless_empty(physical["routes"].emplace_back(Json{{"from", r.from}, {"to", r.to}}), "ranges", r.ranges);
    for (const sim::WorldFirewall& f : options.firewalls) {
      Json& rule = physical["firewalls"].emplace_back(Json{{"state", f.allow ? "allow" : "deny"}});
      unless_empty(rule, "name", f.name);
      unless_empty(rule, "from", f.from);
      unless_empty(rule, "to", f.to);
      for (const int64_t port : f.ports) rule["ports"].push_back(std::to_string(port));
      if (f.reject) rule["reject"] = true;
      if (f.established) rule["established"] = true;
    }
    for (const sim::WorldNat& n : options.nat) {
      Json& rule = physical["nat"].emplace_back(Json{{"site", n.site}});
      for (const auto& [key, text] : {std::pair("address", n.address), std::pair("to", n.to), std::pair("as", n.as)})
        unless_empty(rule, key, text);
      if (n.port != 0) rule["port"] = n.port;
      if (n.to_port != 0) rule["toPort"] = n.to_port;
      unless_empty(rule, "source", n.source);
    }
    if (!physical.is_null()) scenario_["physical"] = std::move(physical);
  }

  // What the action of that name would do, where there is one; else the input itself.
  Json Action(const replay::LogInput& input) const {
    const json& b = input.body;
    if (recorded_) return {{"input", {{"kind", input.kind}, {"body", Ordered(b)}}}};
    const std::string named =
        Text(b, "namespace").empty() ? Text(b, "name") : Text(b, "namespace") + "/" + Text(b, "name");
    if (input.kind == "patch" && Text(b, "kind") == "Deployment" &&
        At(b, "patch") == json{{"spec", {{"replicas", At(b, {"patch", "spec", "replicas"})}}}}) {
      return {{"scale",
               {{"cluster", Text(b, "cluster")},
                {"deployment", named},
                {"replicas", Ordered(At(b, {"patch", "spec", "replicas"}))}}}};
    }
    if (input.kind == "apply")
      return {{"apply", {{"cluster", Text(b, "cluster")}, {"objects", Json::array({Ordered(At(b, "object"))})}}}};
    if (input.kind == "loadBalancer")
      return {{"loadBalancer", {{"cluster", Text(b, "cluster")}, {"service", named}, {"address", Text(b, "address")}}}};
    if (input.kind == "delete" || input.kind == "kill") {
      Json body = Ordered(b);
      if (Text(b, "namespace").empty()) body.erase("namespace");
      return {{input.kind, std::move(body)}};
    }
    return {{"input", {{"kind", input.kind}, {"body", Ordered(b)}}}};
  }

  // Whether Flow() says all of it: tokens, TLS and a client's own retries stay word for word.
  bool IsFlow(const replay::LogInput& input) const {
    if (input.kind != "traffic" || recorded_ || !Text(At(input.body, "from"), "pod").empty()) return false;
    for (const char* more : {"token", "retries", "tls"}) {
      if (input.body.contains(more)) return false;
    }
    const auto told = flows_.find(Text(input.body, "flow"));
    return told == flows_.end() || told->second == FlowOf(input);  // a fork may have another of its name
  }

  // Requests that are sent from when the mesh is up until nothing else is done: a scenario's `throughout`.
  void FindThroughout() {
    std::map<std::string, size_t> begun, ended;  // by id
    std::set<std::string> names;
    Time last{};
    for (size_t i = start_; i < story_.inputs.size(); ++i) {
      const replay::LogInput& input = story_.inputs[i];
      last = input.at;
      if (IsFlow(input) && input.at <= origin_ && Number(input.body, "requests") == 0 &&
          names.insert(Text(input.body, "flow")).second)
        begun[Text(input.body, "id")] = i;
      if (input.kind == "stopTraffic") ended[Text(input.body, "id")] = i;
    }
    for (const auto& [id, i] : begun) {
      const auto end = ended.find(id);
      if (end == ended.end() || story_.inputs[end->second].at != last) continue;
      throughout_.insert(i);
      throughout_ends_.insert(end->second);
    }
    if (throughout_.empty()) return;
    end_ = last;
    for (const size_t i : throughout_) {
      const replay::LogInput& input = story_.inputs[i];
      scenario_["throughout"]["traffic"].push_back(Sent(input));
    }
  }

  // A flow's requests that end before anything else happens are a step's own. Loops, ramps and arrivals by chance take
  // as long as they take, and what was sent last may be answered at once: that nothing came in between, a run tells.
  bool IsThen(size_t index) const {
    const replay::LogInput& input = story_.inputs[index];
    const int64_t requests = Number(input.body, "requests");
    if (requests == 0 || !IsFlow(input)) return false;
    bool steady = true;
    for (const char* unsteady : {"poisson", "users", "rampNs"}) steady = steady && !input.body.contains(unsteady);
    if (!eager_then_ && !steady) return false;
    const int64_t periods = !eager_then_ ? requests : steady ? requests - 1 : 0;
    const Time done = input.at + periods * Duration(Number(input.body, "periodNs"));
    return std::none_of(story_.inputs.begin() + static_cast<std::ptrdiff_t>(index), story_.inputs.end(),
                        [&](const replay::LogInput& other) {
                          return other.at <= done && !(other.kind == "traffic" && other.at == input.at);
                        });
  }

  // What goes on beside a step's actions, from a moment before them until it is stopped, with nothing else in between.
  struct Meanwhile {
    size_t actions, stops, next;  // indices: where each begins, and what follows
    Duration linger;
  };
  std::optional<Meanwhile> MeanwhileAt(size_t first) const {
    const std::vector<replay::LogInput>& inputs = story_.inputs;
    const Time at = inputs[first].at;
    std::set<std::string> going;
    size_t i = first;
    for (; i < inputs.size() && inputs[i].at == at; ++i) {
      if (!IsFlow(inputs[i]) || Number(inputs[i].body, "requests") != 0 || throughout_.contains(i)) return std::nullopt;
      going.insert(Text(inputs[i].body, "id"));
    }
    Meanwhile out{i, i, i, {}};
    const Time event = at + scenario::kMeanwhileLeadIn;
    const auto is_traffic = [](const replay::LogInput& input) {
      return input.kind == "traffic" || input.kind == "stopTraffic";
    };
    while (i < inputs.size() && inputs[i].at == event && !is_traffic(inputs[i])) ++i;
    out.stops = i;
    for (; !going.empty(); ++i) {
      if (i == inputs.size() || inputs[i].kind != "stopTraffic" || inputs[i].at != inputs[out.stops].at ||
          inputs[i].at < event || going.erase(Text(inputs[i].body, "id")) == 0)
        return std::nullopt;
    }
    out.next = i;
    out.linger = inputs[out.stops].at - event;
    return out;
  }

  // A stream's messages come by the flow's rate, which tells how long its one user thinks.
  static bool IsStream(const json& b) {
    return (At(b, "tcp") == true || Text(b, "protocol") == "websocket") && At(b, "keepAlive") == true &&
           Number(b, "users") == 1 && Number(b, "thinkNs") > 0;
  }
  // Users of a closed loop have no rate of their own.
  Json Sent(const replay::LogInput& input) {
    const json& b = input.body;
    constexpr Duration kRateLeftOut = 10ms;
    const Duration period(Number(b, "periodNs"));
    const Duration own = IsStream(b) ? Duration(Number(b, "thinkNs")) : kRateLeftOut;
    Json out = {{"flow", Flow(input)}};
    if (Number(b, "users") == 0 || period != own) out["rate"] = RateText(period);
    return out;
  }

  static Json FlowOf(const replay::LogInput& input) {
    const json& b = input.body;
    const std::string name = Text(b, "flow");
    Json flow = {{"name", name},
                 {"from", Ordered(At(b, "from"))},
                 {"to", fmt::format("{}:{}", Text(b, "host"), Number(b, "port", 80))}};
    if (Text(b, "path") != "/" && !Text(b, "path").empty()) flow["path"] = Text(b, "path");
    if (b.contains("method")) flow["method"] = Text(b, "method");
    for (const char* of_request : {"headers", "trailers"}) {
      if (b.contains(of_request)) flow[of_request] = Ordered(b[of_request]);
    }
    if (At(b, "keepAlive") == true) flow["connections"] = "keep-alive";
    if (At(b, "tcp") == true) flow["protocol"] = "tcp";
    if (b.contains("protocol")) {
      flow["protocol"] = Text(b, "protocol");
      // Of these the language keeps connections unless it is told otherwise.
      if (At(b, "keepAlive") != true && Text(b, "protocol") != "http1.0") flow["connections"] = "new";
    }
    if (b.contains("poisson")) flow["arrivals"] = "poisson";
    const auto duration = [&](const char* key) { return DurationText(Duration(Number(b, key))); };
    if (b.contains("timeoutNs")) flow["timeout"] = duration("timeoutNs");
    if (b.contains("rampNs"))
      flow["ramp"] = {{"to", RateText(Duration(Number(b, "lastPeriodNs")))}, {"over", duration("rampNs")}};
    if (IsStream(b)) {
      flow["rate"] = RateText(Duration(Number(b, "thinkNs")));
    } else if (b.contains("users")) {
      flow["closedLoop"]["users"] = Number(b, "users");
      if (b.contains("thinkNs")) flow["closedLoop"]["think"] = duration("thinkNs");
    }
    if (b.contains("bodyBytes")) {
      flow["body"]["bytes"] = Number(b, "bodyBytes");
      if (b.contains("bodyOverNs")) flow["body"]["over"] = duration("bodyOverNs");
      if (b.contains("bodyPieces")) flow["body"]["pieces"] = Number(b, "bodyPieces");
      if (!b.contains("method")) flow["method"] = "GET";  // POST if left out, of one with a body
    }
    return flow;
  }

  // Its name; it stands among the scenario's flows then.
  std::string Flow(const replay::LogInput& input) {
    Json flow = FlowOf(input);
    std::string name = Text(input.body, "flow");
    if (flows_.emplace(name, flow).second) scenario_["flows"].push_back(std::move(flow));
    return name;
  }

  Json Then(const replay::LogInput& input) {
    Json out = Sent(input);
    out["requests"] = Number(input.body, "requests");
    return out;
  }

  void Steps() {
    FindThroughout();
    Json steps = Json::array();
    const auto begin = [&](Time at) -> Json& {
      const Duration since = std::max(at - origin_, Duration::zero());
      begins_.push_back(origin_ + since);
      steps.push_back(
          {{"name", fmt::format("{} at {}", steps.size() + 1, FormatDuration(at - story_.header.Beginning()))},
           {"at", DurationText(since)},
           {"settle", "0s"}});
      return steps.back();
    };
    for (size_t i = start_; i < story_.inputs.size();) {
      const Time at = story_.inputs[i].at;
      if (throughout_.contains(i) || throughout_ends_.contains(i)) {
        ++i;
        continue;
      }
      if (const std::optional<Meanwhile> meanwhile = MeanwhileAt(i)) {
        Json& step = begin(at);
        for (; i < meanwhile->actions; ++i) step["meanwhile"].push_back(Sent(story_.inputs[i]));
        for (; i < meanwhile->stops; ++i) step["do"].push_back(Action(story_.inputs[i]));
        step["linger"] = DurationText(meanwhile->linger);
        i = meanwhile->next;
        continue;
      }
      Json* step = &begin(at);
      for (; i < story_.inputs.size() && story_.inputs[i].at == at; ++i) {
        if (throughout_.contains(i) || throughout_ends_.contains(i)) continue;
        const bool then = IsThen(i);
        // What a step sends comes after what it does.
        if (!then && step->contains("then")) step = &begin(at);
        (*step)[then ? "then" : "do"].push_back(then ? Then(story_.inputs[i]) : Action(story_.inputs[i]));
      }
    }
    Json& end = begin(end_.value_or(story_.end));
    end["name"] = "the end";
    scenario_["steps"] = std::move(steps);
  }

  // A step could not begin when it was to, as one before it was not over.
  bool AnyLate(const scenario::RunResult& ran) const {
    for (size_t i = 0; i < std::min(ran.steps.size(), begins_.size()); ++i) {
      if (ran.steps[i].start > begins_[i]) return true;
    }
    return false;
  }

  // What was so when it ran.
  void Expect(const scenario::RunResult& ran) {
    for (const scenario::StepResult& step : ran.steps) {
      if (step.name != "throughout" || throughout_.empty()) continue;
      for (const scenario::TrafficResult& t : step.traffic)
        scenario_["throughout"]["expect"].push_back({{"requests", {{"flow", t.flow}, {"failed", t.failed}}}});
    }
    for (size_t i = 0; i < ran.steps.size() && i < scenario_["steps"].size(); ++i) {
      const scenario::StepResult& step = ran.steps[i];
      Json expectations = Json::array();
      for (const scenario::TrafficResult& t : step.traffic) {
        Json requests = {{"flow", t.flow}, {"failed", t.failed}};
        if (t.meanwhile) requests["of"] = "meanwhile";
        expectations.push_back({{"requests", std::move(requests)}});
      }
      int64_t nacks = 0;
      for (const scenario::Nack& nack : step.nacks) nacks += nack.count;
      if (nacks > 0) expectations.push_back({{"nacks", nacks}});
      if (!expectations.empty()) scenario_["steps"][i]["expect"] = std::move(expectations);
    }
  }

  static constexpr const char* kMeshLog = "mesh.wtlog";

  const Story& story_;
  bool recorded_ = false;
  std::string mesh_log_;  // of a recording
  Json scenario_;
  std::map<std::string, std::vector<Json>> manifests_;
  std::map<std::string, Json> flows_;              // by name
  std::set<size_t> throughout_, throughout_ends_;  // inputs that its `throughout` says
  std::optional<Time> end_;                        // of that
  std::vector<Time> begins_;                       // of the steps
  bool eager_then_ = true;                         // requests are taken to be over by the next step
  size_t start_ = 0;
  Time origin_{};  // when the mesh is up, on the story's clock
};

}  // namespace

absl::StatusOr<Exported> ExportStory(const Story& story, const std::string& folder) {
  return Export(story).Write(folder);
}

}  // namespace wavetank::check
