// A mesh as a value.
/// \file
/// A mesh as a value: clusters with their networks, Services and applications, or a scenario's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wavetank/result.h"
#include "wavetank/value.h"

namespace wavetank {

struct Node {
  std::string name, region = "region1", zone = "zone1";
  friend bool operator==(const Node&, const Node&) = default;
};

/// Pods of one version of an application, in one cluster: a Deployment.
struct Deployment {
  std::string cluster, version = "v1";
  int replicas = 1;
  std::string name = {};  ///< of the object; empty: the app's name and the version, "web-v1"
  friend bool operator==(const Deployment&, const Deployment&) = default;
};

/// An application: its Service stands in every cluster that has a Deployment of it, and in `also_in`.
struct App {
  std::string name, ns = "sample";
  int port = 80;
  std::vector<Deployment> deployments = {};
  std::vector<std::string> also_in = {};  ///< clusters that have the Service alone, for clients there
  std::string port_name = "http";         ///< by which Istio knows what is spoken: "http", "http2", "grpc", "tcp", ...
  friend bool operator==(const App&, const App&) = default;
};

/// How the pods of other networks are reached.
enum class Gateway : uint8_t { kLoadBalancer, kLoadBalancerHostname, kNodePort, kNone };

struct Cluster {
  std::string name, network = "network1";
  std::string control_plane = {};  ///< the cluster whose istiod serves this one; empty: its own
  int istiods = 1;
  Gateway gateway = Gateway::kLoadBalancer;  ///< where the mesh has several networks
  int gateways = 1;                          ///< pods of it
  std::vector<Node> nodes = {};              ///< empty: one, in region1/zone1
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// An object of any kind that is there from the start: a DestinationRule, a Sidecar, a PeerAuthentication.
struct Object {
  std::string cluster;
  Value object;
  friend bool operator==(const Object&, const Object&) = default;
};

/// Clusters and what runs in them. Each cluster has a client besides: the app `sleep` in namespace `sample`.
/// \code
/// wavetank::Mesh mesh;
/// mesh.clusters = {{.name = "east", .network = "net-east"}, {.name = "west", .network = "net-west"}};
/// mesh.apps = {{.name = "web", .port = 8080, .deployments = {{.cluster = "east"}, {.cluster = "west"}}}};
/// auto world = wavetank::World::Open(mesh);
/// \endcode
class Mesh {
 public:
  std::vector<Cluster> clusters;
  std::vector<App> apps;
  std::vector<Object> objects;
  uint64_t seed = 1;
  std::string profile;  ///< empty: istio-1.18

  Mesh() = default;
  /// The mesh of a scenario, a file or a folder with a scenario.yaml, instead of all of the above.
  static Mesh FromScenario(std::string path);

  /// The scenario that it comes from; empty: it was built.
  const std::string& scenario() const { return scenario_; }
  bool SeveralNetworks() const;
  /// Whether all that names a cluster names one of these, and no two apps have a Service or Deployment of one name in
  /// one cluster (the clients' `sleep` in `sample` among them). World::Open asks it; errors name the field.
  Status Check() const;
  /// Of a value as Print() of its fields would be: {"clusters": [{"name": "c1"}], ...}, names as here. Errors name the
  /// field.
  static Result<Mesh> FromValue(const Value& value);
  /// As a scenario of its own, with all manifests in it: JSON, which is YAML. `wavetank run` takes it.
  /// Empty: the mesh is a scenario's already.
  std::string ToScenario() const;
  /// The same with steps: one for each action in turn, each after the one before had converged.
  std::string ToScenario(const std::vector<Value>& actions) const;
  /// In one line, for a person: "2 clusters on 2 networks, 1 app, 3 pods".
  std::string Describe() const;
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::string scenario_;
};

}  // namespace wavetank
