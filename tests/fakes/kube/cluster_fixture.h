// One cluster in virtual time, and a small application for it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fakes/kube/cluster.h"
#include "fakes/kube/objects/manifest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::fakekube {

using nlohmann::json;

inline constexpr char kWeb[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: sample}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: sample}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: serve}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: sample}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: v1}}
    spec:
      containers:
        - {name: web, image: x, ports: [{name: serve, containerPort: 8080}]}
)";

class ClusterTest : public ::testing::Test {
 protected:
  ClusterTest() {
    options_.name = "cluster1";
    options_.nodes = {{"node1", "r1", "z1", ""}, {"node2", "r1", "z2", ""}};
    cluster_ = std::make_unique<Cluster>(host_, options_, nullptr, nullptr);
  }

  void ApplyText(const std::string& text) {
    absl::StatusOr<std::vector<Manifest>> manifests = ParseManifests("test.yaml", text);
    ASSERT_TRUE(manifests.ok()) << manifests.status();
    for (const Manifest& m : *manifests) {
      const absl::StatusOr<ObjectRef> applied = cluster_->api().Apply(m.object);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
  }

  // A cluster of other options; what is set anew must be said before the first object.
  void Restart() { cluster_ = std::make_unique<Cluster>(host_, options_, nullptr, nullptr); }

  void Settle() {
    for (int i = 0; i < 1000 && !cluster_->Settled(); ++i) kernel_.RunUntil(kernel_.Now() + 100ms);
    ASSERT_TRUE(cluster_->Settled());
  }

  ApiServer& api() { return cluster_->api(); }

  std::vector<std::string> ReadyAddresses(const std::string& service) {
    std::vector<std::string> out;
    for (const ObjectRef& slice : cluster_->api().List("EndpointSlice", "sample")) {
      if (slice->meta.labels.at("kubernetes.io/service-name") != service) continue;
      for (const json& endpoint : slice->body["endpoints"]) {
        if (endpoint["conditions"]["ready"] == true) out.push_back(endpoint["addresses"][0]);
      }
    }
    return out;
  }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("cluster1", 0, nullptr);
  ClusterOptions options_;
  std::unique_ptr<Cluster> cluster_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
