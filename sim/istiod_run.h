// What surrounds one istiod of a cluster: its clients of API servers and what those let it do, its resolver, its host,
// its files and ports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kube/client.h"
#include "core/registry/network_manager.h"
#include "fakes/kube/client/client.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"

namespace wavetank::pilot {
class ValidationController;
}
namespace wavetank::envoysim {
class AppServer;
}
namespace wavetank::kube {
struct KubeConfig;
}

namespace wavetank::sim {

class OwnAccount;
class PodFiles;

struct World::Site::IstiodRun final : kube::ClientFactory, pilot::GatewayResolver {
  IstiodRun(World& w, Site& s, std::string n, WorkloadId pod);
  ~IstiodRun() override;

  bool Idle() const;

  std::unique_ptr<kube::Client> ClientOf(Site& to, fakekube::ClientPermit permit = nullptr);
  // What its own cluster's API server lets its pod's account do.
  fakekube::ClientPermit PermitAtHome(const std::string& account);
  // What it may do there; null: all.
  fakekube::ClientPermit PermitFor(const Site& to, std::string_view cluster) const;
  absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string& id, const std::string& kubeconfig) override;
  Answer Resolve(const std::string& hostname) override;
  // Of a cluster by its ID; null: it knows none of that ID.
  kube::TokenReviewer* ReviewerOf(std::string_view cluster);
  const kube::AccessReviewer* AuthorizerOf(std::string_view cluster);
  // Whether elections whose locks nobody sees can be taken for won (core/election): what may not be written is not.
  bool MayLock() const;
  // Null: it knows no such cluster.
  const Site* SiteOf(std::string_view cluster) const;
  // How traces call the cluster of that ID.
  std::string NameOf(std::string_view cluster) const;

  World& world;
  Site& site;
  std::string name;
  std::string pod_ns = kSystemNamespace;
  WorkloadId workload;
  std::string cluster_id;  // that this istiod gives its own cluster
  bool external = false;   // serves other clusters, too
  Host* host;
  std::map<std::string, Site*, std::less<>> registered;  // by cluster ID, those that remote Secrets have led to
  std::map<std::string, fakekube::ClientPermit, std::less<>> permits;  // by cluster ID
  // (cluster, request) -> what an API server said to it last; outlives requests that are on their way.
  // The cluster's name is empty of its own.
  using Refused = std::map<std::pair<std::string, std::string>, std::string>;
  std::shared_ptr<Refused> refused = std::make_shared<Refused>();
  std::shared_ptr<OwnAccount> own;  // whose rights at_home asks for
  fakekube::ClientPermit at_home;   // null: all is allowed
  std::map<std::string, std::unique_ptr<Authorizer>> authorizers;
  std::string watches;  // ISTIO_WATCH_NAMESPACE; empty: all namespaces
  std::unique_ptr<kube::Client> config_cluster;
  std::unique_ptr<PodFiles> files;  // mounted into its container
  std::map<std::string, std::unique_ptr<Reviewer>> reviewers;
  std::unique_ptr<IstiodProcess> process;
  // Its other ports: 15010 in clear text, 15014 and 8080 for people and Prometheus.
  std::unique_ptr<ChannelServer> plaintext;
  std::unique_ptr<IstiodPages> pages;
  std::vector<std::unique_ptr<envoysim::AppServer>> http;
  IstiodLog log{std::make_shared<debug::LogScopes>()};
  // Of its own cluster's ValidatingWebhookConfigurations; null until there is one.
  std::unique_ptr<pilot::ValidationController> validation;
  bool patches_validation = true, awaits_bundle = false;
  std::string bundle;  // that it has written there
  std::shared_ptr<int> alive = std::make_shared<int>(0);

 private:
  // What that cluster's API server lets the bearer of the kubeconfig do. What it refused last is remembered.
  fakekube::ClientPermit PermitOf(Site& to, const std::string& cluster, const kube::KubeConfig& config);
  // By the ID that istiod knows a cluster by: its own, or its remote Secret's.
  bool IsCalled(const Site& candidate, std::string_view cluster) const;
};

}  // namespace wavetank::sim
