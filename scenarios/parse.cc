#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "scenarios/scenario.h"
#include "scenarios/yaml_reader.h"

namespace wavetank::scenario {
namespace {

using Keys = std::vector<std::string_view>;

const Keys& KeysOf(const std::string& mapping) { return KnownFields().at(mapping); }

// "namespace/name".
bool SplitNamespaced(const std::string& text, std::string* ns, std::string* name) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) return false;
  *ns = text.substr(0, slash);
  *name = text.substr(slash + 1);
  return true;
}

NodeSpec ReadNode(const Field& f) {
  f.ExpectKeys(KeysOf("node"));
  return {f["name"].RequiredText(), f["region"].Text(), f["zone"].Text()};
}

ClusterSpec ReadCluster(const Field& f, size_t index) {
  f.ExpectKeys(KeysOf("cluster"));
  ClusterSpec c;
  c.name = f["name"].RequiredText();
  c.network = f["network"].Text("network1");
  c.control_plane = f["controlPlane"].Text(c.name);
  c.pod_cidr = f["pods"].Text(fmt::format("10.{}.0.0/16", index + 1));
  c.service_cidr = f["services"].Text(fmt::format("10.{}.0.0/16", 96 + index));
  c.load_balancer_cidr = f["loadBalancers"].Text(fmt::format("172.30.{}.0/24", index + 1));
  c.load_balancer_hostname = f["loadBalancerHostnames"].Flag(false);
  for (const Field& node : f["nodes"].Items()) c.nodes.push_back(ReadNode(node));
  if (c.nodes.empty()) c.nodes.push_back({c.name + "-node1", "region1", "zone1"});
  for (const Field& manifest : f["manifests"].Items()) {
    if (manifest.IsScalar()) {
      c.manifests.push_back({manifest.Text(), "", ""});
      continue;
    }
    manifest.ExpectKeys(KeysOf("manifest"));
    c.manifests.push_back({manifest["path"].RequiredText(), manifest["namespace"].Text(), manifest["selector"].Text()});
  }
  return c;
}

LinkSpec ReadLink(const Field& f) {
  f.ExpectKeys(KeysOf("link"));
  LinkSpec link;
  const std::vector<Field> ends = f["between"].Items();
  if (ends.size() != 2) {
    f["between"].Fail("a link has two ends", "write [cluster1, cluster2]");
    return link;
  }
  link.a = ends[0].Text();
  link.b = ends[1].Text();
  link.latency = f["latency"].Time(link.latency);
  link.jitter = f["jitter"].Time(link.jitter);
  link.loss_ppm = f["loss"].Share(0);
  return link;
}

// "1h", or "-1h": what has been.
Duration SignedTime(const Field& f, Duration fallback) {
  if (!f.present()) return fallback;
  const std::string text = f.Text();
  const bool negative = text.starts_with("-");
  const std::optional<Duration> time = ParseDuration(text.substr(negative ? 1 : 0));
  if (!time) f.Fail("is no duration", "write 1h, or -1h for what has been");
  return negative ? -time.value_or(0ns) : time.value_or(0ns);
}

void RequireIssuer(const Field& f, const Scenario& scenario) {
  const std::string name = f.Text();
  for (const IssuerSpec& issuer : scenario.issuers) {
    if (issuer.name == name) return;
  }
  f.Fail(fmt::format("no issuer is named '{}'", name), "name one of the scenario's issuers");
}

TokenSpec ReadToken(const Field& f, const Scenario& scenario) {
  f.ExpectKeys(KeysOf("token"));
  TokenSpec token;
  token.issuer = f["issuer"].RequiredText();
  token.signed_by = f["signedBy"].Text();
  // A token may say that it is anybody's, but somebody has to sign it.
  if (f["signedBy"].present()) {
    RequireIssuer(f["signedBy"], scenario);
  } else if (f["issuer"].present()) {
    RequireIssuer(f["issuer"], scenario);
  }
  token.subject = f["subject"].Text();
  for (const Field& audience : f["audiences"].Items()) token.audiences.push_back(audience.Text());
  if (f["claims"].present()) token.claims = f["claims"].KubernetesJson();
  token.expires = SignedTime(f["expires"], token.expires);
  if (f["notBefore"].present()) token.not_before = SignedTime(f["notBefore"], 0ns);
  token.header = absl::AsciiStrToLower(f["header"].Text());
  token.param = f["param"].Text();
  return token;
}

FlowSpec ReadFlow(const Field& f, const Scenario& scenario) {
  f.ExpectKeys(KeysOf("flow"));
  FlowSpec flow;
  flow.name = f["name"].RequiredText();
  const Field from = f["from"];
  from.ExpectKeys(KeysOf("client"));
  if (!from.present()) from.Fail("is required but missing", "add {cluster, namespace, app}");
  flow.from_cluster = from["cluster"].RequiredText();
  flow.from_namespace = from["namespace"].Text("default");
  flow.from_app = from["app"].RequiredText();
  const Field to = f["to"];
  const std::string target = to.RequiredText();
  const size_t colon = target.rfind(':');
  flow.host = target.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string port = target.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) {
      to.Fail(fmt::format("'{}' is no port", port), "write host:port, helloworld.sample:5000");
    } else {
      flow.port = std::stoi(port);
    }
  }
  flow.path = f["path"].Text("/");
  flow.method = f["method"].Text("GET");
  for (const auto& [name, value] : f["headers"].Entries()) flow.headers[absl::AsciiStrToLower(name)] = value.Text();
  if (f["token"].present()) flow.token = ReadToken(f["token"], scenario);
  flow.keep_alive = f["connections"].OneOf({"new", "keep-alive"}, "new") == "keep-alive";
  flow.tcp = f["protocol"].OneOf({"http", "tcp"}, "http") == "tcp";
  flow.rate_per_kilosecond = f["rate"].RatePerKilosecond(flow.rate_per_kilosecond);
  return flow;
}

Traffic ReadTraffic(const Field& f, const Scenario& scenario) {
  f.ExpectKeys(KeysOf("traffic"));
  Traffic t;
  t.flow = f["flow"].RequiredText();
  if (scenario.FindFlow(t.flow) == nullptr && f["flow"].present()) {
    f["flow"].Fail(fmt::format("no flow is named '{}'", t.flow), "name one of the scenario's flows");
  }
  t.requests = f["requests"].Integer(0, 1, 10'000'000);
  t.rate_per_kilosecond = f["rate"].RatePerKilosecond(0);
  return t;
}

void RequireCluster(const Field& f, const Scenario& scenario) {
  const std::string name = f.RequiredText();
  if (!name.empty() && scenario.FindCluster(name) == nullptr) {
    f.Fail(fmt::format("no cluster is named '{}'", name), "name one of the scenario's clusters");
  }
}

void RequireNamespaced(const Field& f) {
  std::string ns, name;
  if (!SplitNamespaced(f.RequiredText(), &ns, &name)) {
    f.Fail(fmt::format("'{}' is not namespace/name", f.Text()), "write sample/helloworld-v2");
  }
}

Action ReadAction(const Field& f, const Scenario& scenario) {
  Action action;
  action.line = f.line();
  f.ExpectKeys(KeysOf("action"));
  const auto entries = f.Entries();
  if (entries.size() != 1) {
    f.Fail("an action is one mapping", fmt::format("its name is one of {}", fmt::join(KeysOf("action"), ", ")));
    return action;
  }
  action.kind = entries[0].first;
  const Field& a = entries[0].second;
  if (KnownFields().count("action." + action.kind) == 0) return action;  // was refused above
  a.ExpectKeys(KeysOf("action." + action.kind));
  action.arguments = a.Json();
  if (action.kind == "apply") {
    RequireCluster(a["cluster"], scenario);
    if (a["manifest"].present() == a["objects"].present()) {
      a.Fail("give either manifest (a file) or objects (inline)");
    }
    for (const Field& object : a["objects"].Items()) action.objects.push_back(object.KubernetesJson());
  } else if (action.kind == "delete") {
    RequireCluster(a["cluster"], scenario);
    a["kind"].RequiredText();
    a["name"].RequiredText();
  } else if (action.kind == "scale") {
    RequireCluster(a["cluster"], scenario);
    if (a["deployment"].present() == a["statefulSet"].present()) {
      a.Fail("names no workload, or two", "give either deployment or statefulSet: namespace/name");
    } else {
      RequireNamespaced(a["deployment"].present() ? a["deployment"] : a["statefulSet"]);
    }
    if (!a["replicas"].present()) a["replicas"].Fail("is required but missing", "add it");
    a["replicas"].Integer(1, 0, 100'000);
  } else if (action.kind == "label") {
    RequireCluster(a["cluster"], scenario);
    a["kind"].RequiredText();
    a["name"].RequiredText();
    if (!a["set"].present() && !a["remove"].present())
      a.Fail("changes no label", "add set: {name: value} or remove: [name]");
  } else if (action.kind == "loadBalancer") {
    RequireCluster(a["cluster"], scenario);
    RequireNamespaced(a["service"]);
    a["address"].RequiredText();
  } else if (action.kind == "remoteSecret") {
    RequireCluster(a["of"], scenario);
    RequireCluster(a["in"], scenario);
    a["state"].OneOf({"deleted", "restored", "rotated", "broken"}, "");
  } else if (action.kind == "link") {
    if (a["between"].Items().size() != 2) a["between"].Fail("a link has two ends", "write [cluster1, cluster2]");
    for (const Field& end : a["between"].Items()) RequireCluster(end, scenario);
    a["state"].OneOf({"cut", "healed", "changed"}, "changed");
    a["latency"].Time(0ns);
    a["jitter"].Time(0ns);
    a["loss"].Share(0);
  } else if (action.kind == "kill") {
    RequireCluster(a["cluster"], scenario);
    a["app"].RequiredText();
  } else if (action.kind == "apiServer") {
    RequireCluster(a["cluster"], scenario);
    a["fault"].OneOf({"unreachable", "slow", "watches-dropped", "history-gone", "unauthorized", "too-many-requests",
                      "stale-reads", "clock-skew", "none"},
                     "");
    a["latency"].Time(0ns);
    a["retryAfter"].Time(0ns);
    const std::string skew = a["skew"].present() ? a["skew"].Text() : std::string("0s");
    if (!ParseDuration(skew.substr(skew.starts_with("-") ? 1 : 0)).has_value())
      a["skew"].Fail("is no duration", "write 90s, or -90s for a clock that is behind");
  } else if (action.kind == "dns") {
    a["name"].RequiredText();
    for (const Field& address : a["addresses"].Items()) {
      if (!IpAddress::Parse(address.Text()).ok()) address.Fail("is no IP address", "write one such as 172.30.1.9");
    }
  } else if (action.kind == "keySet") {
    a["uri"].RequiredText();
  }
  return action;
}

const char* Example(Range::Unit unit) {
  switch (unit) {
    case Range::Unit::kShare:
      return ">= 10%";
    case Range::Unit::kDuration:
      return "<= 500ms";
    default:
      return "<= 3";
  }
}

// Nothing is nothing in any unit; any other quantity has to be of one that it can have.
void ReadRange(const Field& f, const std::string& name, std::initializer_list<Range::Unit> units, Expectation* e) {
  if (!f.present()) return;
  absl::StatusOr<Range> range = ParseRange(f.Text());
  if (!range.ok()) return f.Fail(Message(range.status()), "write 0, <= 3, >= 10%, 40..60% or <= 500ms");
  if (range->text != "0" && std::find(units.begin(), units.end(), range->unit) == units.end()) {
    std::vector<std::string> examples;
    for (const Range::Unit unit : units) examples.emplace_back(Example(unit));
    return f.Fail(fmt::format("'{}' has another unit than {} has", range->text, name),
                  fmt::format("write something like {}", fmt::join(examples, " or ")));
  }
  e->ranges[name] = *std::move(range);
}

Expectation ReadExpectation(const Field& f, const Scenario& scenario) {
  Expectation e;
  e.line = f.line();
  f.ExpectKeys(KeysOf("expectation"));
  Field body = f;
  for (const auto& [key, value] : f.Entries()) {
    if (key == "always" || key == "eventually") {
      e.mode = key;
      body = value;
      body.ExpectKeys(KeysOf("expectation." + key));
      if (key == "eventually") e.within = body["within"].Time(10s);
    }
  }
  int kinds = 0;
  for (const auto& [key, value] : body.Entries()) {
    if (KnownFields().count("expect." + key) == 0) continue;
    e.kind = key;
    ++kinds;
    value.ExpectKeys(KeysOf("expect." + key));
  }
  if (kinds != 1) {
    f.Fail("an expectation names one quantity", "one of split, requests, flags, converged, endpoints, hops, mtls");
    return e;
  }
  const Field k = body[e.kind];
  e.flow = k["flow"].Text();
  if (!e.flow.empty() && scenario.FindFlow(e.flow) == nullptr) {
    k["flow"].Fail(fmt::format("no flow is named '{}'", e.flow), "name one of the scenario's flows");
  }
  // What holds always or eventually is about the whole step, unless it says otherwise.
  using Phase = Expectation::Phase;
  using Unit = Range::Unit;
  const bool meanwhile = k["of"].OneOf({"then", "meanwhile"}, "then") == "meanwhile";
  e.phase = meanwhile ? Phase::kMeanwhile : e.mode.empty() || k["of"].present() ? Phase::kThen : Phase::kAll;
  if (e.kind == "split") {
    e.by = k["by"].OneOf({"version", "cluster", "pod"}, "version");
    e.confidence_ppm = k["confidence"].Share(e.confidence_ppm);
    if (e.confidence_ppm >= 1'000'000) k["confidence"].Fail("no test is certain", "write 99.9%");
    int64_t sum = 0;
    for (const auto& [name, share] : k["is"].Entries()) sum += e.shares_ppm[name] = share.Share(0);
    if (e.shares_ppm.empty()) k["is"].Fail("is required but missing", "write is: {v1: 50%, v2: 50%}");
    if (!e.shares_ppm.empty() && (sum < 999'000 || sum > 1'001'000)) {
      k["is"].Fail(fmt::format("shares add up to {:.1f} %", static_cast<double>(sum) / 1e4), "make them 100 %");
    }
  } else if (e.kind == "requests") {
    for (const char* name : {"failed", "retried"}) ReadRange(k[name], name, {Unit::kCount, Unit::kShare}, &e);
    ReadRange(k["sent"], "sent", {Unit::kCount}, &e);
    for (const char* name : {"p50", "p99"}) ReadRange(k[name], name, {Unit::kDuration}, &e);
    if (e.ranges.empty()) k.Fail("names no quantity", "write failed: 0");
    if (!e.mode.empty() && k["sent"].present()) {
      k["sent"].Fail("counts the requests of a whole step, of which no instant has all",
                     "write it outside of " + e.mode);
    }
  } else if (e.kind == "flags") {
    for (const Field& flag : k["only"].Items()) {
      const std::vector<std::string> each = absl::StrSplit(flag.Text(), ',');
      e.names.insert(e.names.end(), each.begin(), each.end());
    }
    if (!k["only"].present()) k["only"].Fail("is required but missing", "write only: [UF, URX], or only: [] for none");
  } else if (e.kind == "converged") {
    ReadRange(k["within"], "within", {Unit::kDuration}, &e);
    ReadRange(k["proxies"], "proxies", {Unit::kCount}, &e);
    if (e.ranges.empty()) k.Fail("names no quantity", "write within: <= 500ms");
  } else if (e.kind == "endpoints") {
    const Field proxy = k["of_proxy"];
    proxy.ExpectKeys(KeysOf("client"));
    e.cluster = proxy["cluster"].RequiredText();
    e.ns = proxy["namespace"].Text("default");
    e.app = proxy["app"].RequiredText();
    e.host = k["host"].RequiredText();
    e.port = static_cast<int>(k["port"].Integer(80, 1, 65535));
    ReadRange(k["count"], "count", {Unit::kCount}, &e);
    for (const Field& address : k["are"].Items()) e.names.push_back(address.Text());
    if (e.ranges.empty() && !k["are"].present()) k.Fail("names no quantity", "write count: 2 or are: [10.1.0.5:5000]");
  } else if (e.kind == "hops") {
    ReadRange(k["remote"], "remote", {Unit::kCount}, &e);
    ReadRange(k["local"], "local", {Unit::kCount}, &e);
    e.sni = k["sni"].Text();
  } else if (e.kind == "mtls") {
    ReadRange(k["verified"], "verified", {Unit::kShare}, &e);
    if (e.ranges.empty()) k.Fail("names no quantity", "write verified: 100%");
  }
  return e;
}

Step ReadStep(const Field& f, const Scenario& scenario) {
  f.ExpectKeys(KeysOf("step"));
  Step step;
  step.line = f.line();
  step.name = f["name"].RequiredText();
  if (f["at"].present()) step.at = f["at"].Time(0ns);
  if (f["after"].present() && f["after"].Text() != "converged") step.after = f["after"].Time(0ns);
  for (const Field& action : f["do"].Items()) step.actions.push_back(ReadAction(action, scenario));
  if (const Field repeat = f["repeat"]; repeat.present()) {
    repeat.ExpectKeys(KeysOf("repeat"));
    step.repeat = repeat["times"].Integer(0, 1, 100'000);
    step.every = repeat["every"].Time(0ns);
    if (step.repeat == 0) repeat.Fail("how often, and at what distance?", "write repeat: {times: 50, every: 20ms}");
    if (step.actions.empty()) repeat.Fail("there is nothing to repeat", "say what under do:");
  }
  for (const Field& traffic : f["meanwhile"].Items()) step.meanwhile.push_back(ReadTraffic(traffic, scenario));
  for (const Field& traffic : f["then"].Items()) {
    step.then.push_back(ReadTraffic(traffic, scenario));
    if (step.then.back().requests == 0) traffic.Fail("how many requests?", "write requests: 1000");
  }
  step.linger = f["linger"].Time(step.linger);
  for (const Field& e : f["expect"].Items()) step.expectations.push_back(ReadExpectation(e, scenario));
  return step;
}

absl::StatusOr<Scenario> Read(Document& document, const std::vector<ClusterSpec>& mesh) {
  Scenario s;
  s.file = document.name();
  const Field root = document.root();
  if (!root.present()) return absl::InvalidArgumentError(fmt::format("{}: is empty; write a scenario", s.file));
  root.ExpectKeys(KeysOf("scenario"));
  s.name = root["name"].RequiredText();
  s.description = root["description"].Text();
  s.seed = static_cast<uint64_t>(root["seed"].Integer(1, 0, INT64_MAX));
  s.profile = root["profile"].Text(s.profile);
  const std::string ca = root["ca"].OneOf({"common-root", "own-roots", "self-signed"}, "common-root");
  s.ca = ca == "common-root" ? CaPlan::kCommonRoot : ca == "own-roots" ? CaPlan::kOwnRoots : CaPlan::kSelfSigned;
  for (const Field& cluster : root["clusters"].Items()) s.clusters.push_back(ReadCluster(cluster, s.clusters.size()));
  if (!root["clusters"].present()) s.clusters = mesh;
  if (s.clusters.empty()) root["clusters"].Fail("is required but missing", "name at least one cluster");
  std::set<std::string> names;
  for (const Field& cluster : root["clusters"].Items()) {
    if (!names.insert(cluster["name"].Text()).second) {
      cluster["name"].Fail(fmt::format("two clusters are named '{}'", cluster["name"].Text()), "rename one");
    }
    const Field control_plane = cluster["controlPlane"];
    if (control_plane.present() && s.FindCluster(control_plane.Text()) == nullptr) {
      control_plane.Fail(fmt::format("no cluster is named '{}'", control_plane.Text()),
                         "name the cluster whose istiod serves this one");
    }
  }
  for (const Field& link : root["links"].Items()) {
    s.links.push_back(ReadLink(link));
    for (const Field& end : link["between"].Items()) RequireCluster(end, s);
  }
  for (const Field& secret : root["remoteSecrets"].Items()) {
    secret.ExpectKeys(KeysOf("remoteSecret"));
    RequireCluster(secret["of"], s);
    RequireCluster(secret["in"], s);
    s.remote_secrets.push_back({secret["of"].Text(), secret["in"].Text()});
  }
  for (const Field& set : root["keySets"].Items()) {
    set.ExpectKeys(KeysOf("action.keySet"));
    set["uri"].RequiredText();
    s.key_sets.push_back(set.Json());
  }
  for (const Field& issuer : root["issuers"].Items()) {
    issuer.ExpectKeys(KeysOf("issuer"));
    s.issuers.push_back({issuer["name"].RequiredText(), issuer["jwksUri"].Text()});
  }
  for (const auto& [name, value] : root["timing"].Entries()) s.timing[name] = value.Text();
  if (root["meshConfig"].present()) s.mesh_config = root["meshConfig"].KubernetesJson();
  for (const Field& flow : root["flows"].Items()) {
    s.flows.push_back(ReadFlow(flow, s));
    if (s.FindCluster(s.flows.back().from_cluster) == nullptr) {
      flow["from"]["cluster"].Fail(fmt::format("no cluster is named '{}'", s.flows.back().from_cluster),
                                   "name one of the scenario's clusters");
    }
  }
  for (const Field& step : root["steps"].Items()) s.steps.push_back(ReadStep(step, s));
  if (!document.status().ok()) return document.status();
  return s;
}

}  // namespace

const std::map<std::string, std::vector<std::string_view>>& KnownFields() {
  static const auto* const kFields = new std::map<std::string, std::vector<std::string_view>>{
      {"scenario",
       {"name", "description", "seed", "profile", "ca", "clusters", "links", "remoteSecrets", "keySets", "issuers",
        "timing", "meshConfig", "flows", "steps"}},
      {"cluster",
       {"name", "network", "controlPlane", "pods", "services", "loadBalancers", "loadBalancerHostnames", "nodes",
        "manifests"}},
      {"manifest", {"path", "namespace", "selector"}},
      {"node", {"name", "region", "zone"}},
      {"link", {"between", "latency", "jitter", "loss"}},
      {"remoteSecret", {"of", "in"}},
      {"issuer", {"name", "jwksUri"}},
      {"flow", {"name", "from", "to", "path", "method", "headers", "token", "connections", "protocol", "rate"}},
      {"token", {"issuer", "subject", "audiences", "claims", "expires", "notBefore", "signedBy", "header", "param"}},
      {"client", {"cluster", "namespace", "app"}},
      {"step", {"name", "at", "after", "do", "repeat", "meanwhile", "then", "linger", "expect"}},
      {"repeat", {"times", "every"}},
      {"traffic", {"flow", "requests", "rate"}},
      {"action",
       {"apply", "delete", "scale", "label", "loadBalancer", "remoteSecret", "link", "kill", "apiServer", "dns",
        "keySet"}},
      {"action.apply", {"cluster", "manifest", "objects"}},
      {"action.delete", {"cluster", "kind", "namespace", "name"}},
      {"action.scale", {"cluster", "deployment", "statefulSet", "replicas"}},
      {"action.label", {"cluster", "kind", "namespace", "name", "set", "remove"}},
      {"action.loadBalancer", {"cluster", "service", "address"}},
      {"action.remoteSecret", {"of", "in", "state"}},
      {"action.link", {"between", "state", "latency", "jitter", "loss"}},
      {"action.kill", {"cluster", "namespace", "app"}},
      {"action.apiServer", {"cluster", "fault", "latency", "retryAfter", "skew"}},
      {"action.dns", {"name", "addresses"}},
      {"action.keySet", {"uri", "keys", "issuer"}},
      {"expectation", {"always", "eventually", "split", "requests", "flags", "converged", "endpoints", "hops", "mtls"}},
      {"expectation.always", {"endpoints", "requests"}},
      {"expectation.eventually", {"within", "endpoints", "requests", "split"}},
      {"expect.split", {"flow", "of", "by", "is", "confidence"}},
      {"expect.requests", {"flow", "of", "failed", "sent", "retried", "p50", "p99"}},
      {"expect.flags", {"flow", "of", "only"}},
      {"expect.converged", {"within", "proxies"}},
      {"expect.endpoints", {"of_proxy", "host", "port", "count", "are"}},
      {"expect.hops", {"flow", "of", "remote", "local", "sni"}},
      {"expect.mtls", {"flow", "of", "verified"}},
  };
  return *kFields;
}

std::string Action::Describe() const {
  const auto text = [&](const char* key) {
    const auto it = arguments.find(key);
    if (it == arguments.end()) return std::string();
    return it->is_string() ? it->get<std::string>() : it->dump();
  };
  const auto texts = [&](const char* key) {
    std::vector<std::string> out;
    const auto it = arguments.find(key);
    if (it == arguments.end()) return out;
    for (const nlohmann::json& one : it->is_array() ? *it : nlohmann::json::array({*it}))
      out.push_back(one.is_string() ? one.get<std::string>() : JsonText(one));
    return out;
  };
  if (kind == "scale")
    return fmt::format("scale {} in {} to {}", text("deployment") + text("statefulSet"), text("cluster"),
                       text("replicas"));
  if (kind == "loadBalancer") {
    return fmt::format("address of {} in {} becomes {}", text("service"), text("cluster"), text("address"));
  }
  if (kind == "remoteSecret") return fmt::format("remote Secret of {} in {} {}", text("of"), text("in"), text("state"));
  if (kind == "link") {
    return fmt::format("link of {} {}", fmt::join(texts("between"), " and "), arguments.value("state", "changed"));
  }
  if (kind == "label") {
    std::vector<std::string> changes;
    if (const auto set = arguments.find("set"); set != arguments.end()) {
      for (const auto& [label, value] : set->items())
        changes.push_back(label + "=" + (value.is_string() ? value.get<std::string>() : JsonText(value)));
    }
    for (const std::string& label : texts("remove")) changes.push_back(label + "-");  // as kubectl has it
    return fmt::format("label {} {} in {}: {}", text("kind"), text("name"), text("cluster"), fmt::join(changes, " "));
  }
  if (kind == "dns") {
    const std::vector<std::string> addresses = texts("addresses");
    if (addresses.empty()) return fmt::format("DNS knows {} no more", text("name"));
    return fmt::format("DNS says {} for {}", fmt::join(addresses, ", "), text("name"));
  }
  if (kind == "apply" && arguments.contains("manifest")) {
    return fmt::format("apply {} in {}", text("manifest"), text("cluster"));
  }
  if (kind == "apply") {  // by name: an inline Secret's data belongs in no report
    const auto text_at = [](const nlohmann::json& object, const char* path) {
      const nlohmann::json::json_pointer pointer(path);
      return object.contains(pointer) && object[pointer].is_string() ? object[pointer].get<std::string>() : "?";
    };
    std::vector<std::string> names;
    for (const nlohmann::json& object : objects) {
      names.push_back(text_at(object, "/kind") + " " + text_at(object, "/metadata/name"));
    }
    return fmt::format("apply {} in {}", fmt::join(names, ", "), text("cluster"));
  }
  if (kind == "delete") return fmt::format("delete {} {} in {}", text("kind"), text("name"), text("cluster"));
  if (kind == "kill") return fmt::format("kill {} in {}", text("app"), text("cluster"));
  if (kind == "apiServer") {
    std::string how;
    for (const char* detail : {"latency", "retryAfter", "skew"}) how += text(detail).empty() ? "" : " " + text(detail);
    return fmt::format("API server of {}: {}{}", text("cluster"), text("fault"), how);
  }
  return fmt::format("{} {}", kind, JsonText(arguments));
}

const FlowSpec* Scenario::FindFlow(std::string_view flow_name) const {
  for (const FlowSpec& flow : flows) {
    if (flow.name == flow_name) return &flow;
  }
  return nullptr;
}

const ClusterSpec* Scenario::FindCluster(std::string_view cluster_name) const {
  for (const ClusterSpec& cluster : clusters) {
    if (cluster.name == cluster_name) return &cluster;
  }
  return nullptr;
}

absl::StatusOr<Range> ParseRange(std::string_view text) {
  Range range;
  range.text = std::string(text);
  const auto number = [&range](std::string_view s) -> std::optional<int64_t> {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    if (std::optional<Duration> duration = ParseDuration(s)) {
      range.unit = Range::Unit::kDuration;
      return duration->count();
    }
    const bool percent = !s.empty() && s.back() == '%';
    range.unit = percent ? Range::Unit::kShare : Range::Unit::kCount;
    if (percent) s.remove_suffix(1);
    int64_t whole = 0, fraction = 0, scale = percent ? 10'000 : 1;
    size_t i = 0;
    for (; i < s.size() && s[i] >= '0' && s[i] <= '9' && whole < (int64_t{1} << 40); ++i)
      whole = whole * 10 + (s[i] - '0');
    if (i == 0) return std::nullopt;
    if (percent && i < s.size() && s[i] == '.') {
      int64_t weight = 1000;
      for (++i; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i, weight /= 10) fraction += (s[i] - '0') * weight;
    }
    if (i != s.size()) return std::nullopt;
    return whole * scale + fraction;
  };
  const auto bad = [&] { return absl::InvalidArgumentError(fmt::format("'{}' is no number or range", text)); };
  const size_t dots = text.find("..");
  if (dots != std::string_view::npos) {
    // "40..60%": the unit of the end counts for both.
    std::string_view tail = text.substr(dots + 2);
    std::string low(text.substr(0, dots));
    if (low.find_first_not_of("0123456789. ") == std::string::npos) {
      const size_t unit = tail.find_first_not_of("0123456789. ");
      if (unit != std::string_view::npos) low += std::string(tail.substr(unit));
    }
    const std::optional<int64_t> a = number(low);
    const Range::Unit unit = range.unit;
    const std::optional<int64_t> b = number(tail);
    if (!a || !b || *a > *b || unit != range.unit) return bad();
    range.low = *a, range.high = *b;
    return range;
  }
  for (const auto& [sign, low_side, strict] :
       {std::tuple{"<=", false, false}, {">=", true, false}, {"<", false, true}, {">", true, true}}) {
    if (text.substr(0, std::string_view(sign).size()) != sign) continue;
    const std::optional<int64_t> value = number(text.substr(std::string_view(sign).size()));
    if (!value) return bad();
    if (low_side) {
      range.low = *value + (strict ? 1 : 0);
    } else {
      range.high = *value - (strict ? 1 : 0);
    }
    return range;
  }
  const std::optional<int64_t> value = number(text);
  if (!value) return bad();
  range.low = range.high = *value;
  return range;
}

absl::StatusOr<Scenario> ParseScenario(const std::string& name, const std::string& text,
                                       const std::vector<ClusterSpec>& mesh) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Parse(name, text);
  if (!document.ok()) return document.status();
  return Read(**document, mesh);
}

absl::StatusOr<Scenario> LoadScenario(const std::string& path, const std::vector<ClusterSpec>& mesh) {
  std::error_code error;
  std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, error)) file /= "scenario.yaml";
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Load(file.string());
  if (!document.ok()) {
    if (absl::IsNotFound(document.status())) {
      return absl::NotFoundError(
          fmt::format("{}: no such scenario; give a scenario file or a folder with a scenario.yaml", file.string()));
    }
    return document.status();
  }
  absl::StatusOr<Scenario> scenario = Read(**document, mesh);
  if (!scenario.ok()) return scenario;
  const std::filesystem::path folder = file.parent_path();
  const auto resolve = [&](const std::string& relative) { return (folder / relative).lexically_normal().string(); };
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) {
      manifest.path = resolve(manifest.path);
      if (!std::filesystem::exists(manifest.path, error)) {
        return absl::NotFoundError(fmt::format("{}: cluster {}: manifest {} does not exist; check the path",
                                               file.string(), cluster.name, manifest.path));
      }
    }
  }
  for (Step& step : scenario->steps) {
    for (Action& action : step.actions) {
      if (!action.arguments.is_object() || !action.arguments.contains("manifest")) continue;
      const std::string manifest = resolve(action.arguments["manifest"].get<std::string>());
      if (!std::filesystem::exists(manifest, error)) {
        return absl::NotFoundError(
            fmt::format("{}:{}: manifest {} does not exist; check the path", file.string(), action.line, manifest));
      }
      action.arguments["manifest"] = manifest;
    }
  }
  return scenario;
}

}  // namespace wavetank::scenario
