// Kubernetes objects for tests of registries, as an API server stores them.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

using nlohmann::json;

inline json NamespaceOf(const std::string& name, const json& labels = json::object()) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}, {"labels", labels}}}};
}

inline json NodeOf(const std::string& name, const json& labels, const std::string& external_ip = "") {
  json addresses = json::array();
  if (!external_ip.empty()) addresses.push_back({{"type", "ExternalIP"}, {"address", external_ip}});
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", labels}}},
          {"status", {{"addresses", addresses}}}};
}

// A ClusterIP Service in `shop` with port 80, named http, that leads to 8080 of pods with `selector`.
inline json ServiceOf(const std::string& name, const json& selector, const std::string& cluster_ip = "10.96.0.1") {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", "shop"}}},
          {"spec",
           {{"type", "ClusterIP"},
            {"clusterIP", cluster_ip},
            {"selector", selector},
            {"ports", {{{"name", "http"}, {"port", 80}, {"protocol", "TCP"}, {"targetPort", 8080}}}}}}};
}

// A running and ready pod in `shop`.
inline json PodOf(const std::string& name, const std::string& ip, const json& labels, const std::string& node = "n1") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "shop"}, {"labels", labels}}},
          {"spec",
           {{"serviceAccountName", "web"},
            {"nodeName", node},
            {"containers", {{{"name", "app"}, {"ports", {{{"name", "http"}, {"containerPort", 8080}}}}}}}}},
          {"status", {{"phase", "Running"}, {"podIP", ip}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

// The slice of a Service with ready endpoints, each a pod of `shop` and its address.
inline json SliceOf(const std::string& service, const std::vector<std::pair<std::string, std::string>>& pods) {
  json endpoints = json::array();
  for (const auto& [pod, ip] : pods) {
    endpoints.push_back({{"addresses", {ip}},
                         {"conditions", {{"ready", true}}},
                         {"targetRef", {{"kind", "Pod"}, {"name", pod}, {"namespace", "shop"}}}});
  }
  return {{"apiVersion", "discovery.k8s.io/v1"},
          {"kind", "EndpointSlice"},
          {"metadata",
           {{"name", service + "-1"}, {"namespace", "shop"}, {"labels", {{"kubernetes.io/service-name", service}}}}},
          {"addressType", "IPv4"},
          {"endpoints", endpoints},
          {"ports", {{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}}};
}

// A remote Secret of istio-system that names one cluster.
inline json RemoteSecretOf(const std::string& name, const std::string& cluster, const std::string& kubeconfig) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", name}, {"namespace", "istio-system"}, {"labels", {{"istio/multiCluster", "true"}}}}},
          {"stringData", {{cluster, kubeconfig}}}};
}

}  // namespace wavetank::pilot
