#include "check/diff/diff.h"

#include <algorithm>
#include <set>

#include "check/rules/look.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using GroupKey = std::pair<std::string, std::string>;  // proxy group, cluster

struct Picture {
  std::map<std::string, FlowState> flows;
  std::map<GroupKey, std::map<std::string, int>> endpoints;               // what an endpoint stands for -> weight
  std::map<std::string, std::string> gateways;                            // addresses, and whose each is
  std::map<std::pair<std::string, std::string>, nlohmann::json> objects;  // by cluster and name: what was written
};

// Addresses differ between two worlds; what stands behind them is what counts. Pods of one application are told by
// their number.
class Names {
 public:
  explicit Names(const Mesh& mesh) {
    for (const auto& cluster : mesh.clusters()) {
      for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
        const std::string version = kube::VersionOf(pod->pod()->meta.labels);
        pods_[{cluster->network, kube::ParsePod(*pod->pod()).ip}] = fmt::format(
            "{}{}.{}@{}", pod->app(), version.empty() ? "" : "-" + version, pod->pod()->meta.ns, cluster->name);
      }
      for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *cluster)) {
        for (const auto& ingress : kube::ParseService(*service).ingress)
          gateways_[ingress.ip] = "gateway of " + cluster->name;
      }
    }
  }
  std::string Of(const std::string& network, const std::string& address) const {
    const std::string ip = address.substr(0, address.rfind(':'));
    if (const auto pod = pods_.find({network, ip}); pod != pods_.end()) return pod->second;
    if (const auto gateway = gateways_.find(ip); gateway != gateways_.end()) return gateway->second;
    for (const auto& [key, name] : pods_) {
      if (key.second == ip) return name + " by its own address, in another network";
    }
    return address;
  }
  const std::map<std::string, std::string>& gateways() const { return gateways_; }

 private:
  std::map<std::pair<std::string, std::string>, std::string> pods_;
  std::map<std::string, std::string> gateways_;
};

void AddEndpoints(const Mesh& mesh, Picture* out) {
  const Names names(mesh);
  out->gateways = names.gateways();
  std::set<std::string> seen;  // groups; their first proxy speaks for them
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (pod->envoy() == nullptr) continue;
      const std::string group = fmt::format("{}.{}@{}", pod->app(), pod->pod()->meta.ns, cluster->name);
      if (!seen.insert(group).second) continue;
      for (const envoysim::EndpointStatus& e : pod->envoy()->Endpoints()) {
        const bool out_bound =
            e.cluster.starts_with("outbound|") || (pod->router() && e.cluster.starts_with("outbound_"));
        if (out_bound) out->endpoints[{group, e.cluster}][names.Of(cluster->network, e.address)] += 1;
      }
    }
  }
}

// Of an object what its writer says: neither its status nor what an API server notes of each write.
nlohmann::json Written(const kube::Object& object) {
  nlohmann::json out = object.body;
  if (!out.is_object()) return out;
  out.erase("status");
  if (const auto meta = out.find("metadata"); meta != out.end() && meta->is_object()) {
    for (const char* noted : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
      meta->erase(noted);
  }
  return out;
}

// What control planes and controllers write for themselves.
bool OfItself(const kube::Object& object) {
  if (object.kind == "Secret") {
    const std::string type = Text(object.body, "type");
    return type == "istio.io/ca-root" || type == "kubernetes.io/service-account-token";
  }
  return object.kind == "ConfigMap" &&
         (object.meta.annotations.contains("control-plane.alpha.kubernetes.io/leader") ||
          object.meta.name == "istio-ca-root-cert" || object.meta.name == "kube-root-ca.crt");
}

void AddObjects(const Mesh& mesh, Picture* out) {
  std::vector<std::string> kinds = {"Namespace", "Service", "Deployment", "StatefulSet",
                                    "DaemonSet", "Secret",  "ConfigMap",  "NetworkPolicy.networking.k8s.io"};
  for (int kind = 0; kind < config::kKinds; ++kind) {
    const kube::ResourceKind& resource = config::ResourceKindOf(static_cast<config::Kind>(kind));
    kinds.push_back(fmt::format("{}.{}", resource.kind, resource.group));
  }
  for (const auto& cluster : mesh.clusters()) {
    for (const std::string& kind : kinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        if (!OfItself(*object)) out->objects[{cluster->name, NameOf(*object)}] = Written(*object);
      }
    }
  }
}

absl::StatusOr<Picture> Look(const MeshSource& source, const DiffOptions& options) {
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  if (!settled.ok()) return settled.status();
  const Mesh mesh(*std::move(settled));
  Picture out;
  AddEndpoints(mesh, &out);
  AddObjects(mesh, &out);
  const std::vector<scenario::FlowSpec> flows = FlowsOf(mesh, options.flow_limit);
  std::vector<std::string> names;
  for (const scenario::FlowSpec& flow : flows) names.push_back(flow.name);
  // A log's own requests, with the path, the headers and the protocol that rules may ask for.
  std::vector<sim::inputs::StartTraffic> traffic = mesh.traffic();
  if (traffic.size() > options.flow_limit) traffic.resize(options.flow_limit);
  for (const sim::inputs::StartTraffic& t : traffic) names.push_back(t.flow);
  absl::StatusOr<std::unique_ptr<FlowMeter>> meter =
      FlowMeter::Start(mesh.world(), flows, options.rate, std::move(traffic));
  if (!meter.ok()) return meter.status();
  mesh.world().RunUntil(mesh.world().Now() + Duration(options.requests * 1'000'000'000 / options.rate));
  (*meter)->Finish(30s);
  for (size_t i = 0; i < names.size(); ++i) {
    const Window w = (*meter)->Between(i, 0, INT64_MAX);
    FlowState state;
    state.sent = w.sent;
    state.failed = w.failed;
    state.by_cluster = w.by_cluster;
    state.p50 = w.Percentile(50);
    state.p99 = w.Percentile(99);
    int64_t most = 0;
    for (const auto& [reason, count] : w.reasons) {
      if (count > most) most = count, state.reason = reason.Text();
    }
    out.flows[names[i]] = std::move(state);
  }
  return out;
}

int64_t SharePerMille(const FlowState& state, const std::string& cluster) {
  const auto it = state.by_cluster.find(cluster);
  const int64_t answered = state.sent - state.failed;
  return it == state.by_cluster.end() || answered <= 0 ? 0 : it->second * 1000 / answered;
}

// Half a hundredth of the requests may fail or not by chance, a tenth may go elsewhere.
std::vector<std::string> Changes(const FlowState& a, const FlowState& b) {
  std::vector<std::string> out;
  const auto lost = [](const FlowState& s) { return s.sent == 0 ? 0 : s.failed * 1000 / s.sent; };
  if (std::abs(lost(a) - lost(b)) > 5) out.emplace_back("fate");
  std::set<std::string> clusters;
  for (const FlowState* state : {&a, &b}) {
    for (const auto& [name, count] : state->by_cluster) clusters.insert(name);
  }
  const bool moved = std::any_of(clusters.begin(), clusters.end(), [&](const std::string& name) {
    return std::abs(SharePerMille(a, name) - SharePerMille(b, name)) > 100;
  });
  if (moved) out.emplace_back("share");
  const Duration least = std::min(a.p50, b.p50), most = std::max(a.p50, b.p50);
  if (least > Duration::zero() && most > least * 5 / 4 && most - least > 500us) out.emplace_back("latency");
  return out;
}

std::vector<std::string> Missing(const std::map<std::string, int>& from, const std::map<std::string, int>& in) {
  std::vector<std::string> out;
  for (const auto& [name, count] : from) {
    const auto it = in.find(name);
    const int there = it == in.end() ? 0 : it->second;
    if (count <= there) continue;
    out.push_back(count - there == 1 ? name : fmt::format("{} x{}", name, count - there));
  }
  return out;
}

std::string Share(const FlowState& s) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : s.by_cluster)
    parts.push_back(fmt::format("{} {} %", name, (SharePerMille(s, name) + 5) / 10));
  if (s.failed > 0)
    parts.push_back(fmt::format("**{} of {} fail**{}", s.failed, s.sent, s.reason.empty() ? "" : ": " + s.reason));
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string Latency(const FlowState& s) {
  return fmt::format("{}.{:02} ms", s.p50.count() / 1'000'000, s.p50.count() / 10'000 % 100);
}

// A proxy may hold an address that its gateway has lost: it is that gateway's still, and no other endpoint.
void NameByOther(const Picture& other, Picture* picture) {
  for (auto& [key, endpoints] : picture->endpoints) {
    std::map<std::string, int> named;
    for (const auto& [name, weight] : endpoints) {
      const auto gateway = other.gateways.find(name.substr(0, name.rfind(':')));
      named[gateway == other.gateways.end() ? name : gateway->second] += weight;
    }
    endpoints = std::move(named);
  }
}

}  // namespace

absl::StatusOr<MeshDiff> Diff(const MeshSource& before, const MeshSource& after, const DiffOptions& options) {
  absl::StatusOr<Picture> a = Look(before, options);
  if (!a.ok()) return absl::Status(a.status().code(), fmt::format("before: {}", Message(a.status())));
  absl::StatusOr<Picture> b = Look(after, options);
  if (!b.ok()) return absl::Status(b.status().code(), fmt::format("after: {}", Message(b.status())));
  NameByOther(*b, &*a);
  NameByOther(*a, &*b);
  MeshDiff out;
  std::set<std::string> flows;
  for (const Picture* picture : {&*a, &*b}) {
    for (const auto& [name, state] : picture->flows) flows.insert(name);
  }
  out.flows_compared = static_cast<int>(flows.size());
  for (const std::string& name : flows) {
    FlowChange change;
    change.flow = name;
    const auto x = a->flows.find(name), y = b->flows.find(name);
    change.before_there = x != a->flows.end();
    change.after_there = y != b->flows.end();
    if (change.before_there) change.before = x->second;
    if (change.after_there) change.after = y->second;
    if (!change.before_there) {
      change.what = {"appears"};
    } else if (!change.after_there) {
      change.what = {"vanishes"};
    } else {
      change.what = Changes(x->second, y->second);
    }
    if (!change.what.empty()) out.flows.push_back(std::move(change));
  }
  std::set<GroupKey> keys;
  for (const Picture* picture : {&*a, &*b}) {
    for (const auto& [key, endpoints] : picture->endpoints) keys.insert(key);
  }
  static const std::map<std::string, int> kNone;
  for (const GroupKey& key : keys) {
    const auto x = a->endpoints.find(key), y = b->endpoints.find(key);
    const auto& was = x == a->endpoints.end() ? kNone : x->second;
    const auto& is = y == b->endpoints.end() ? kNone : y->second;
    if (was == is) continue;
    out.endpoints.push_back({key.first, key.second, Missing(is, was), Missing(was, is)});
  }
  std::set<std::pair<std::string, std::string>> objects;
  for (const Picture* picture : {&*a, &*b}) {
    for (const auto& [key, object] : picture->objects) objects.insert(key);
  }
  for (const auto& key : objects) {
    const auto x = a->objects.find(key), y = b->objects.find(key);
    const bool was = x != a->objects.end(), is = y != b->objects.end();
    if (was && is && x->second == y->second) continue;
    out.objects.push_back({key.first, key.second, !was ? "appears" : !is ? "vanishes" : "changes"});
  }
  return out;
}

std::string DiffMarkdown(const MeshDiff& diff) {
  std::string out = "### Wavetank: what this change does\n\n";
  const std::string flows = fmt::format("{} flow{}", diff.flows_compared, diff.flows_compared == 1 ? "" : "s");
  if (diff.Empty()) {
    out += fmt::format("Nothing: {} and all proxies' endpoints are as before.\n", flows);
  } else {
    out += fmt::format("{} of {} change{}.\n", diff.flows.size(), flows, diff.flows.size() == 1 ? "s" : "");
  }
  if (!diff.flows.empty()) {
    out += "\n| flow | changes | before | after | p50 before | p50 after |\n| --- | --- | --- | --- | --- | --- |\n";
    for (const FlowChange& f : diff.flows) {
      out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", f.flow, fmt::join(f.what, ", "),
                         f.before_there ? Share(f.before) : "-", f.after_there ? Share(f.after) : "-",
                         f.before_there ? Latency(f.before) : "-", f.after_there ? Latency(f.after) : "-");
    }
  }
  if (!diff.endpoints.empty()) {
    out += "\n| proxies | cluster | endpoints that appear | that vanish |\n| --- | --- | --- | --- |\n";
    for (const EndpointChange& e : diff.endpoints) {
      std::string name = e.cluster;
      for (size_t at = 0; (at = name.find('|', at)) != std::string::npos; at += 2) name.replace(at, 1, "\\|");
      out += fmt::format("| {} | `{}` | {} | {} |\n", e.group, name,
                         e.appear.empty() ? "-" : fmt::format("{}", fmt::join(e.appear, ", ")),
                         e.vanish.empty() ? "-" : fmt::format("{}", fmt::join(e.vanish, ", ")));
    }
  }
  if (!diff.objects.empty()) {
    constexpr size_t kMost = 100;  // of a comment's length
    out += "\n| cluster | object | |\n| --- | --- | --- |\n";
    for (size_t i = 0; i < std::min(kMost, diff.objects.size()); ++i) {
      const ObjectChange& o = diff.objects[i];
      out += fmt::format("| {} | {} | {} |\n", o.cluster, o.object, o.what);
    }
    if (diff.objects.size() > kMost)
      out += fmt::format("\nand {} more (`--json` has them)\n", diff.objects.size() - kMost);
  }
  return out;
}

nlohmann::ordered_json DiffJson(const MeshDiff& diff) {
  using nlohmann::ordered_json;
  const auto state = [](const FlowState& s) {
    return ordered_json{{"sent", s.sent},         {"failed", s.failed},     {"byCluster", s.by_cluster},
                        {"p50Ns", s.p50.count()}, {"p99Ns", s.p99.count()}, {"reason", s.reason}};
  };
  ordered_json out;
  out["flowsCompared"] = diff.flows_compared;
  out["flows"] = ordered_json::array();
  for (const FlowChange& f : diff.flows) {
    ordered_json& each = out["flows"].emplace_back();
    each["flow"] = f.flow;
    each["changes"] = f.what;
    each["before"] = f.before_there ? state(f.before) : ordered_json();
    each["after"] = f.after_there ? state(f.after) : ordered_json();
  }
  out["endpoints"] = ordered_json::array();
  for (const EndpointChange& e : diff.endpoints)
    out["endpoints"].push_back(
        {{"proxies", e.group}, {"cluster", e.cluster}, {"appear", e.appear}, {"vanish", e.vanish}});
  out["objects"] = ordered_json::array();
  for (const ObjectChange& o : diff.objects)
    out["objects"].push_back({{"cluster", o.cluster}, {"object", o.object}, {"change", o.what}});
  return out;
}

}  // namespace wavetank::check
