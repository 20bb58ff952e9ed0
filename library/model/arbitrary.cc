#include "wavetank/arbitrary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace wavetank {
namespace {

using List = Value::List;
using Map = Value::Map;

constexpr char kGateway[] = "istio-system/istio-eastwestgateway";

bool Primary(const Cluster& cluster) { return cluster.control_plane.empty() || cluster.control_plane == cluster.name; }

// Its istiod is that of another cluster, too.
bool ServesOthers(const Mesh& mesh, const Cluster& cluster) {
  return std::any_of(mesh.clusters.begin(), mesh.clusters.end(), [&](const Cluster& other) {
    return other.control_plane == cluster.name && other.name != cluster.name;
  });
}

bool HasGateway(const Mesh& mesh, const Cluster& cluster) {
  return (mesh.SeveralNetworks() && cluster.gateway != Gateway::kNone) || ServesOthers(mesh, cluster);
}

// A remote cluster depends on c1's gateway, through which it reaches its istiod.
Cluster ArbitraryCluster(Choices& choices, const Sizes& sizes, int index) {
  Cluster out;
  out.name = "c" + std::to_string(index + 1);
  out.network = "net" + std::to_string(choices.Between(1, std::min(sizes.networks, index + 1)));
  if (index > 0 && sizes.remotes && choices.Between(0, 3) == 3) out.control_plane = "c1";
  // c1's may have to lead remote clusters to their istiod, which node ports do not.
  static constexpr Gateway kKinds[] = {Gateway::kLoadBalancer, Gateway::kLoadBalancerHostname, Gateway::kNodePort};
  out.gateway = kKinds[choices.Between(0, index == 0 ? 1 : 2)];
  out.gateways = static_cast<int>(choices.Between(1, 2));
  if (out.control_plane.empty()) out.istiods = static_cast<int>(choices.Between(1, 2));
  const int64_t zones = choices.Between(1, 2);
  for (int64_t zone = 1; zone <= zones && zones > 1; ++zone) {
    out.nodes.push_back({out.name + "-node" + std::to_string(zone), "region1", "zone" + std::to_string(zone)});
  }
  return out;
}

App ArbitraryApp(Choices& choices, const Sizes& sizes, const Mesh& mesh, int index) {
  App out;
  out.name = "app" + std::to_string(index + 1);
  out.port = 8080;
  const auto clusters = static_cast<int64_t>(mesh.clusters.size());
  const int64_t deployments = choices.Between(1, clusters);
  const int64_t first = choices.Between(0, clusters - 1);
  for (int64_t i = 0; i < deployments; ++i) {
    const Cluster& cluster = mesh.clusters[static_cast<size_t>((first + i) % clusters)];
    out.deployments.push_back(
        {cluster.name, "v" + std::to_string(i + 1), static_cast<int>(choices.Between(1, sizes.replicas))});
  }
  for (const Cluster& cluster : mesh.clusters) out.also_in.push_back(cluster.name);  // so that every client may call
  return out;
}

Value Istio(const char* group, const char* kind, const std::string& name, Map spec) {
  return Map{{"apiVersion", group},
             {"kind", kind},
             {"metadata", Map{{"name", name}, {"namespace", "sample"}}},
             {"spec", std::move(spec)}};
}

// Configuration under which every request is still answered.
Value ArbitraryObject(Choices& choices, const Mesh& mesh, int index) {
  static constexpr char kNetworking[] = "networking.istio.io/v1beta1", kSecurity[] = "security.istio.io/v1beta1";
  const std::string name = "object" + std::to_string(index + 1);
  switch (choices.Between(0, 3)) {
    case 0: {
      static constexpr const char* kSimple[] = {"LEAST_REQUEST", "ROUND_ROBIN", "RANDOM"};
      const App& app = mesh.apps[static_cast<size_t>(choices.Between(0, static_cast<int64_t>(mesh.apps.size()) - 1))];
      return Istio(kNetworking, "DestinationRule", app.name,
                   {{"host", app.name + ".sample.svc.cluster.local"},
                    {"trafficPolicy", Map{{"loadBalancer", Map{{"simple", kSimple[choices.Between(0, 2)]}}}}}});
    }
    case 1:
      return Istio(kSecurity, "PeerAuthentication", "default",
                   {{"mtls", Map{{"mode", choices.Maybe() ? "STRICT" : "PERMISSIVE"}}}});
    case 2:
      return Istio(kNetworking, "Sidecar", "default",
                   {{"egress", List{Map{{"hosts", List{"./*", "istio-system/*"}}}}}});
    default:
      return Istio(kNetworking, "ServiceEntry", name,
                   {{"hosts", List{name + ".example"}},
                    {"location", "MESH_EXTERNAL"},
                    {"resolution", "STATIC"},
                    {"ports", List{Map{{"number", 443}, {"name", "tls"}, {"protocol", "TLS"}}}},
                    {"endpoints", List{Map{{"address", "198.51.100.7"}}}}});
  }
}

struct Place {
  const App* app;
  const Deployment* deployment;
  std::string Name() const {
    return app->ns + "/" + (deployment->name.empty() ? app->name + "-" + deployment->version : deployment->name);
  }
};

std::vector<Place> PlacesOf(const Mesh& mesh) {
  std::vector<Place> out;
  for (const App& app : mesh.apps)
    for (const Deployment& deployment : app.deployments) out.push_back({&app, &deployment});
  return out;
}

template <class T>
const T& One(Choices& choices, const std::vector<T>& of) {
  return of[static_cast<size_t>(choices.Between(0, static_cast<int64_t>(of.size()) - 1))];
}

std::string Pick(Choices& choices, const std::vector<const char*>& of) { return One(choices, of); }

// Workloads come and go, as they do on any day.
Action ArbitraryWave(Choices& choices, const Mesh& mesh, const Sizes& sizes) {
  const Place place = One(choices, PlacesOf(mesh));
  const std::string& cluster = place.deployment->cluster;
  switch (choices.Between(0, 3)) {
    case 0:
      return {
          "scale",
          {{"cluster", cluster}, {"deployment", place.Name()}, {"replicas", choices.Between(0, sizes.replicas + 1)}}};
    case 1:
      return {"restart", {{"cluster", cluster}, {"deployment", place.Name()}}};
    case 2:
      return {"scale",
              {{"cluster", cluster}, {"deployment", place.Name()}, {"replicas", choices.Between(1, sizes.replicas)}}};
    default: {
      std::vector<const Cluster*> primaries;
      for (const Cluster& each : mesh.clusters)
        if (Primary(each)) primaries.push_back(&each);
      return {"restart", {{"cluster", One(choices, primaries)->name}, {"deployment", "istio-system/istiod"}}};
    }
  }
}

Action ArbitraryFault(Choices& choices, const Mesh& mesh) {
  const Cluster& cluster = One(choices, mesh.clusters);
  const Place place = One(choices, PlacesOf(mesh));
  const Cluster& other = One(choices, mesh.clusters);
  switch (choices.Between(0, 6)) {
    case 0:
      return {"kill", {{"cluster", place.deployment->cluster}, {"namespace", place.app->ns}, {"app", place.app->name}}};
    case 1:
      if (!Primary(cluster)) break;
      return {"kill", {{"cluster", cluster.name}, {"namespace", "istio-system"}, {"app", "istiod"}}};
    case 2:
      if (other.name == cluster.name) break;
      return {"link", {{"between", List{cluster.name, other.name}}, {"state", choices.Maybe() ? "cut" : "healed"}}};
    case 3: {
      const std::string fault = Pick(choices, {"none", "watches-dropped", "history-gone", "unreachable", "slow",
                                               "too-many-requests", "stale-reads"});
      Action out{"apiServer", {{"cluster", cluster.name}, {"fault", fault}}};
      if (fault == "slow") out.fields["latency"] = "500ms";
      if (fault == "too-many-requests") out.fields["retryAfter"] = "1s";
      return out;
    }
    case 4:
      if (other.name == cluster.name || !Primary(other)) break;
      return {"remoteSecret",
              {{"of", cluster.name},
               {"in", other.name},
               {"state", Pick(choices, {"restored", "rotated", "deleted", "broken"})}}};
    case 5:
      // Remote clusters were told once at which address their istiod is: another one is nothing that heals.
      if (!HasGateway(mesh, cluster) || cluster.gateway == Gateway::kNodePort || ServesOthers(mesh, cluster)) break;
      return {"loadBalancer",
              {{"cluster", cluster.name}, {"service", kGateway}, {"address", choices.Maybe() ? "none" : "new"}}};
    default:
      if (!HasGateway(mesh, cluster)) break;
      return {"scale",
              {{"cluster", cluster.name},
               {"deployment", "istio-system/istio-eastwestgateway"},
               {"replicas", choices.Between(0, 2)}}};
  }
  return {"kill", {{"cluster", place.deployment->cluster}, {"namespace", place.app->ns}, {"app", place.app->name}}};
}

}  // namespace

Mesh ArbitraryMesh(Choices& choices, const Sizes& sizes) {
  Mesh out;
  const int64_t clusters = choices.Between(1, std::max(sizes.clusters, 1));
  for (int i = 0; i < clusters; ++i) out.clusters.push_back(ArbitraryCluster(choices, sizes, i));
  const int64_t apps = choices.Between(1, std::max(sizes.apps, 1));
  for (int i = 0; i < apps; ++i) out.apps.push_back(ArbitraryApp(choices, sizes, out, i));
  const int64_t objects = choices.Between(0, sizes.objects);
  std::set<std::string> names;
  for (int i = 0; i < objects; ++i) {
    const Value object = ArbitraryObject(choices, out, i);
    if (!names.insert(object["kind"].Text() + object["metadata"]["name"].Text()).second) continue;
    for (const Cluster& cluster : out.clusters) out.objects.push_back({cluster.name, object});
  }
  return out;
}

Event ArbitraryEvent(Choices& choices, const Mesh& mesh, const Sizes& sizes) {
  const bool fault = sizes.faults && choices.Maybe();
  Action action = fault ? ArbitraryFault(choices, mesh) : ArbitraryWave(choices, mesh, sizes);
  // Often within the debounce of the one before, sometimes long after it.
  static constexpr int64_t kWaits[] = {0, 50, 120, 1000, 5000, 40'000};
  return {std::move(action), kWaits[choices.Between(0, 5)]};
}

std::vector<Event> ArbitraryHistory(Choices& choices, const Mesh& mesh, const Sizes& sizes) {
  std::vector<Event> out;
  const int64_t events = choices.Between(0, sizes.events);
  for (int64_t i = 0; i < events; ++i) out.push_back(ArbitraryEvent(choices, mesh, sizes));
  return out;
}

bool CanHappen(const Action& action, const std::vector<Event>& history) {
  if (action.kind != "remoteSecret") return true;
  const auto field = [](const Action& of, const char* name) {
    const auto it = of.fields.find(name);
    return it == of.fields.end() ? std::string() : it->second.Text();
  };
  if (field(action, "state") == "restored") return true;
  std::string state;
  for (const Event& event : history) {
    const Action& before = event.action;
    if (before.kind == action.kind && field(before, "of") == field(action, "of") &&
        field(before, "in") == field(action, "in"))
      state = field(before, "state");
  }
  return state != "deleted";
}

std::vector<Action> Heal(const std::vector<Event>& history) {
  // The last word on each thing decides: what it was done to, and the action that ends it (no kind: nothing to end).
  std::map<std::string, Action> ends;
  std::set<std::string> blind;  // remote Secrets that were broken, and not rotated since
  for (const Event& event : history) {
    const Action& a = event.action;
    const auto field = [&](const char* name) -> const Value& {
      static const auto* const none = new Value();
      const auto it = a.fields.find(name);
      return it == a.fields.end() ? *none : it->second;
    };
    const std::string& cluster = field("cluster").Text();
    Action end;
    std::string key = a.kind + " " + cluster;
    if (a.kind == "apiServer") {
      if (field("fault").Text() != "none") end = {"apiServer", {{"cluster", cluster}, {"fault", "none"}}};
    } else if (a.kind == "link") {
      List between = field("between").Items();
      std::sort(between.begin(), between.end(), [](const Value& x, const Value& y) { return x.Text() < y.Text(); });
      for (const Value& each : between) key += " " + each.Text();
      if (field("state").Text() != "healed") end = {"link", {{"between", between}, {"state", "healed"}}};
    } else if (a.kind == "remoteSecret") {
      key += field("of").Text() + " " + field("in").Text();
      const std::string& state = field("state").Text();
      // 1.18.2 stays blind where the broken one is put right again, as scenarios/remote-secret-broken shows.
      if (state == "broken") blind.insert(key);
      if (state == "rotated") blind.erase(key);
      if (state != "rotated" && blind.contains(key)) {
        end = {"remoteSecret", {{"of", field("of")}, {"in", field("in")}, {"state", "rotated"}}};
      } else if (state == "deleted") {
        end = {"remoteSecret", {{"of", field("of")}, {"in", field("in")}, {"state", "restored"}}};
      }
    } else if (a.kind == "loadBalancer") {
      if (field("address").Text() == "none")
        end = {"loadBalancer", {{"cluster", cluster}, {"service", field("service")}, {"address", "new"}}};
    } else if (a.kind == "scale") {
      key += " " + field("deployment").Text();
      if (field("replicas").Integer() == 0)
        end = {"scale", {{"cluster", cluster}, {"deployment", field("deployment")}, {"replicas", 1}}};
    } else {
      continue;
    }
    ends[key] = std::move(end);
  }
  std::vector<Action> out;
  for (auto& [key, action] : ends)
    if (!action.kind.empty()) out.push_back(std::move(action));
  return out;
}

std::string Describe(const std::vector<Event>& history) {
  std::string out;
  for (const Event& event : history) {
    out += event.action.kind + " " + Value(event.action.fields).Print() + ", then " + std::to_string(event.then_ms) +
           " ms\n";
  }
  return out;
}

}  // namespace wavetank
