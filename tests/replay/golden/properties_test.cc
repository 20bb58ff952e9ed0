// What holds of every mesh, tried on generated ones. A failure prints the smallest mesh found and the line that runs it
// again; RC_PARAMS=max_success=10000 is the long run.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/random.h"
#include "core/registry/registries.h"
#include "core/xds/discovery_server.h"
#include "replay/golden/case.h"
#include "replay/golden/case_istiod.h"
#include "replay/golden/fetch.h"
#include "replay/golden/views.h"

namespace wavetank::golden {
namespace {

using nlohmann::json;

constexpr int kServices = 3, kPods = 3;
const char* const kClusters[] = {"east", "west"};

json Meta(const std::string& name, const std::string& ns, json labels = json::object()) {
  json out = {{"name", name}, {"creationTimestamp", "2023-09-02T10:00:00Z"}, {"labels", std::move(labels)}};
  if (!ns.empty()) out["namespace"] = ns;
  return out;
}
std::string ServiceName(int service) { return "svc" + std::to_string(service); }

// A mesh of two clusters as its objects, by cluster and key, and the changes that may happen to it. Pods of a Service
// are ready or not (bits of `ready`); the first always is, as 1.18.2 remembers the service accounts of a service whose
// endpoints have all gone.
class Mesh {
 public:
  explicit Mesh(bool two_networks) {
    for (int c = 0; c < 2; ++c) {
      json labels = json::object();
      if (two_networks) labels["topology.istio.io/network"] = std::string("net-") + kClusters[c];
      Put(c, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Meta("istio-system", "", labels)}});
      Put(c, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Meta("shop", "")}});
      if (two_networks) Gateway(c, 1);
      for (int s = 0; s < kServices; ++s) {
        Service(c, s);
        for (int p = 0; p < kPods; ++p) Pod(c, s, p, true);
        Slice(c, s, 7);
      }
    }
    Put(0, {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"metadata", Meta("remote-west", "istio-system", {{"istio/multiCluster", "true"}})},
            {"stringData",
             {{"west",
               "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: "
               "https://west.api.test:6443\n    insecure-skip-tls-verify: true\nusers:\n- name: u\n  user:\n"
               "    token: t\ncontexts:\n- name: x\n  context:\n    cluster: c\n    user: u\ncurrent-context: x\n"}}}});
  }

  // One of the changes below; every combination of numbers is one.
  void Change(int what, int cluster, int service, int detail) {
    cluster %= 2;
    service %= kServices;
    switch (what % 6) {
      case 0: {
        if (!objects[cluster].contains("Service/shop/" + ServiceName(service))) return;
        const int ready = (detail % 8) | 1;
        for (int p = 0; p < kPods; ++p) Pod(cluster, service, p, (ready >> p & 1) != 0);
        return Slice(cluster, service, ready);
      }
      case 1:
        // Slices come and go with their Service, as in every cluster.
        if (detail % 3 == 0) {
          Remove(cluster, "Service/shop/" + ServiceName(service));
          return Remove(cluster, "EndpointSlice/shop/" + ServiceName(service) + "-1");
        }
        Service(cluster, service);
        for (int p = 0; p < kPods; ++p) Pod(cluster, service, p, true);
        return Slice(cluster, service, 7);
      case 2:
        return Put(0, {{"apiVersion", "networking.istio.io/v1alpha3"},
                       {"kind", "ServiceEntry"},
                       {"metadata", Meta("entry" + std::to_string(service), "shop")},
                       {"spec",
                        {{"hosts", {"out" + std::to_string(service) + ".test"}},
                         {"addresses", {"240.0.0." + std::to_string(service + 1)}},
                         {"location", "MESH_INTERNAL"},
                         {"resolution", "STATIC"},
                         {"ports", {{{"number", 80}, {"name", "http"}, {"protocol", "HTTP"}}}},
                         {"endpoints", {{{"address", "192.0.2." + std::to_string(detail % 5 + 1)}}}}}}});
      case 3:
        if (detail % 3 == 0) return Remove(0, "DestinationRule/shop/" + ServiceName(service));
        return Put(0, {{"apiVersion", "networking.istio.io/v1alpha3"},
                       {"kind", "DestinationRule"},
                       {"metadata", Meta(ServiceName(service), "shop")},
                       {"spec",
                        {{"host", ServiceName(service) + ".shop.svc.cluster.local"},
                         {"trafficPolicy", {{"tls", {{"mode", detail % 3 == 1 ? "DISABLE" : "ISTIO_MUTUAL"}}}}},
                         {"subsets", {{{"name", "one"}, {"labels", {{"version", "v1"}}}}}}}}});
      case 4:
        if (detail % 3 == 0) return Remove(0, "PeerAuthentication/shop/default");
        return Put(0, {{"apiVersion", "security.istio.io/v1beta1"},
                       {"kind", "PeerAuthentication"},
                       {"metadata", Meta("default", "shop")},
                       {"spec", {{"mtls", {{"mode", detail % 3 == 1 ? "DISABLE" : "STRICT"}}}}}});
      default:
        if (objects[cluster].contains("Service/istio-system/gateway")) Gateway(cluster, detail % 3 + 1);
        return;
    }
  }

  std::map<std::string, json> objects[2];
  std::vector<Operation> changes;  // since the start, in order

 private:
  void Put(int cluster, json object) {
    const json& metadata = object["metadata"];
    const std::string ns = metadata.value("namespace", "");
    objects[cluster][object["kind"].get<std::string>() + "/" + (ns.empty() ? "" : ns + "/") +
                     metadata["name"].get<std::string>()] = object;
    changes.push_back({Operation::Kind::kApply, kClusters[cluster], std::move(object)});
  }
  void Remove(int cluster, const std::string& key) {
    const auto it = objects[cluster].find(key);
    if (it == objects[cluster].end()) return;
    changes.push_back({Operation::Kind::kDelete, kClusters[cluster], it->second});
    objects[cluster].erase(it);
  }
  void Service(int c, int s) {
    Put(c, {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", Meta(ServiceName(s), "shop")},
            {"spec",
             {{"type", "ClusterIP"},
              {"clusterIP", "10." + std::to_string(90 + c) + ".0." + std::to_string(s + 1)},
              {"ports", {{{"name", "http"}, {"port", 80}, {"protocol", "TCP"}, {"targetPort", 8080}}}},
              {"selector", {{"app", ServiceName(s)}}}}}});
  }
  std::string PodIp(int c, int s, int p) {
    return "10." + std::to_string(10 + c) + "." + std::to_string(s) + "." + std::to_string(p + 1);
  }
  // Names differ between clusters, as generated ones do: 1.18.2 takes pods of one name for one.
  std::string PodName(int c, int s, int p) { return ServiceName(s) + "-" + kClusters[c] + "-" + std::to_string(p); }
  void Pod(int c, int s, int p, bool ready) {
    Put(c, {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", Meta(PodName(c, s, p), "shop",
                              {{"app", ServiceName(s)},
                               {"version", "v" + std::to_string(p)},
                               {"security.istio.io/tlsMode", "istio"}})},
            {"spec", {{"serviceAccountName", "default"}}},
            {"status",
             {{"phase", "Running"},
              {"podIP", PodIp(c, s, p)},
              {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}});
  }
  void Slice(int c, int s, int ready) {
    json endpoints = json::array();
    for (int p = 0; p < kPods; ++p) {
      endpoints.push_back({{"addresses", {PodIp(c, s, p)}},
                           {"conditions", {{"ready", (ready >> p & 1) != 0}}},
                           {"targetRef", {{"kind", "Pod"}, {"name", PodName(c, s, p)}, {"namespace", "shop"}}}});
    }
    Put(c, {{"apiVersion", "discovery.k8s.io/v1"},
            {"kind", "EndpointSlice"},
            {"metadata", Meta(ServiceName(s) + "-1", "shop", {{"kubernetes.io/service-name", ServiceName(s)}})},
            {"addressType", "IPv4"},
            {"endpoints", std::move(endpoints)},
            {"ports", {{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}}});
  }
  void Gateway(int c, int addresses) {
    json ingress = json::array();
    for (int i = 0; i < addresses; ++i) {
      ingress.push_back({{"ip", "198.51." + std::to_string(100 + c) + "." + std::to_string(i + 1)}});
    }
    Put(c, {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata",
             Meta("gateway", "istio-system", {{"topology.istio.io/network", std::string("net-") + kClusters[c]}})},
            {"spec",
             {{"type", "LoadBalancer"},
              {"clusterIP", "10." + std::to_string(90 + c) + ".1.1"},
              {"ports", {{{"name", "tls"}, {"port", 15443}, {"protocol", "TCP"}, {"targetPort", 15443}}}}}},
            {"status", {{"loadBalancer", {{"ingress", std::move(ingress)}}}}}});
  }
};

Case EmptyCase(bool two_networks) {
  Case out;
  out.config_cluster = "east";
  out.mesh_config = json::object();
  for (int c = 0; c < 2; ++c) {
    out.clusters[kClusters[c]];
    ProxySpec proxy;
    proxy.name = "client";
    proxy.cluster = kClusters[c];
    proxy.network = two_networks ? std::string("net-") + kClusters[c] : "";
    proxy.type = "sidecar";
    proxy.ns = "shop";
    proxy.ip = "10." + std::to_string(10 + c) + ".9.9";
    out.proxies.push_back(std::move(proxy));
  }
  return out;
}

Case CaseOf(const Mesh& mesh, bool two_networks) {
  Case out = EmptyCase(two_networks);
  for (int c = 0; c < 2; ++c) {
    for (const auto& [key, object] : mesh.objects[c]) out.clusters[kClusters[c]].push_back(object);
  }
  return out;
}

// Everything that proxies and observers can see.
json StateOf(CaseIstiod& istiod) {
  json out;
  out["gateways"] = GatewaysView(*istiod.istiod().registries().networks().Gateways());
  out["shards"] = ShardsView(istiod.istiod().discovery().endpoints());
  json proxies = json::array();
  for (const auto& fetch : istiod.FetchAll()) {
    json& types = proxies.emplace_back(json::object());
    RC_ASSERT(fetch->done());
    for (const auto& [type, resources] : fetch->resources()) {
      for (const pilot::Resource& resource : resources)
        types[type][resource.name] = std::hash<std::string>()(*resource.bytes);
    }
  }
  out["proxies"] = std::move(proxies);
  return out;
}

using Changes = std::vector<std::tuple<int, int, int, int>>;
rc::Gen<Changes> AnyChanges() {
  const auto number = rc::gen::inRange(0, 24);
  return rc::gen::container<Changes>(rc::gen::tuple(number, number, number, number));
}

// What the properties compare is not blind: each kind of change shows.
TEST(PropertiesTest, StateTellsMeshesApart) {
  const Mesh plain(true);
  const Case spec = CaseOf(plain, true);
  CaseIstiod istiod(spec, {});
  const json state = StateOf(istiod);
  for (int what = 0; what < 6; ++what) {
    Mesh changed(true);
    changed.Change(what, 1, 1, 1);
    const Case other = CaseOf(changed, true);
    CaseIstiod changed_istiod(other, {});
    // The mesh starts with every Service there is, so that making one anew changes nothing.
    EXPECT_EQ(StateOf(changed_istiod) == state, what == 1) << what;
  }
}

TEST(PropertiesTest, IncrementalStateEqualsStateFromScratch) {
  EXPECT_TRUE(rc::check([] {
    const bool two_networks = *rc::gen::arbitrary<bool>();
    Mesh mesh(two_networks);
    Case before = CaseOf(mesh, two_networks);
    for (const auto& [what, cluster, service, detail] : *AnyChanges()) {
      mesh.changes.clear();
      mesh.Change(what, cluster, service, detail);
      before.steps.push_back({"change", mesh.changes});
    }
    CaseIstiod incremental(before, {});
    for (size_t i = 0; i < before.steps.size(); ++i) RC_ASSERT(incremental.Step(i).ok());
    const Case after = CaseOf(mesh, two_networks);
    CaseIstiod scratch(after, {});
    RC_ASSERT(StateOf(incremental) == StateOf(scratch));
  }));
}

TEST(PropertiesTest, OrderInWhichObjectsComeChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const bool two_networks = *rc::gen::arbitrary<bool>();
    Mesh mesh(two_networks);
    for (const auto& [what, cluster, service, detail] : *AnyChanges()) mesh.Change(what, cluster, service, detail);
    const Case at_once = CaseOf(mesh, two_networks);
    Case one_by_one = EmptyCase(two_networks);
    std::vector<Operation> all;
    for (int c = 0; c < 2; ++c) {
      for (const auto& [key, object] : mesh.objects[c]) all.push_back({Operation::Kind::kApply, kClusters[c], object});
    }
    RandomStream random(*rc::gen::arbitrary<uint64_t>(), "order");
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Below(i)]);
    one_by_one.steps.push_back({"everything", std::move(all)});
    CaseIstiod first(at_once, {}), second(one_by_one, {});
    RC_ASSERT(second.Step(0).ok());
    RC_ASSERT(StateOf(first) == StateOf(second));
  }));
}

TEST(PropertiesTest, RemovedClusterLeavesNoEndpointAndNoService) {
  EXPECT_TRUE(rc::check([] {
    const bool two_networks = *rc::gen::arbitrary<bool>();
    Mesh mesh(two_networks);
    for (const auto& [what, cluster, service, detail] : *AnyChanges()) mesh.Change(what, cluster, service, detail);
    Case spec = CaseOf(mesh, two_networks);
    spec.steps.push_back(
        {"secret", {{Operation::Kind::kDelete, "east", mesh.objects[0].at("Secret/istio-system/remote-west")}}});
    CaseIstiod istiod(spec, {});
    RC_ASSERT(istiod.Step(0).ok());
    const json view = ShardsView(istiod.istiod().discovery().endpoints());
    for (const auto& [service, shards] : view.items()) {
      for (const auto& [shard, endpoints] : shards.items()) RC_ASSERT(shard.find("west") == std::string::npos);
    }
    for (const pilot::Registry* registry : istiod.istiod().registries().aggregate().registries()) {
      RC_ASSERT(registry->cluster() != pilot::ClusterId("west"));
    }
    for (const pilot::ServiceRef& service : istiod.istiod().registries().aggregate().Services()) {
      RC_ASSERT(!service->cluster_vips.contains(pilot::ClusterId("west")));
    }
  }));
}

}  // namespace
}  // namespace wavetank::golden
