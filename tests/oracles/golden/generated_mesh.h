// Generated meshes for properties of the whole control plane: objects of two clusters, and changes to them.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "oracles/golden/case.h"

namespace wavetank::golden {

using nlohmann::json;

inline constexpr int kServices = 3, kPods = 3;
inline constexpr const char* kClusters[] = {"east", "west"};

inline json Meta(const std::string& name, const std::string& ns, json labels = json::object()) {
  json out = {{"name", name}, {"creationTimestamp", "2023-09-02T10:00:00Z"}, {"labels", std::move(labels)}};
  if (!ns.empty()) out["namespace"] = ns;
  return out;
}
inline std::string ServiceName(int service) { return "svc" + std::to_string(service); }

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

inline Case EmptyCase(bool two_networks) {
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

inline Case CaseOf(const Mesh& mesh, bool two_networks) {
  Case out = EmptyCase(two_networks);
  for (int c = 0; c < 2; ++c) {
    for (const auto& [key, object] : mesh.objects[c]) out.clusters[kClusters[c]].push_back(object);
  }
  return out;
}

using Changes = std::vector<std::tuple<int, int, int, int>>;
inline rc::Gen<Changes> AnyChanges() {
  const auto number = rc::gen::inRange(0, 24);
  return rc::gen::container<Changes>(rc::gen::tuple(number, number, number, number));
}

}  // namespace wavetank::golden
