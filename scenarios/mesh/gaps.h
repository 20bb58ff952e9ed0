// What people do by hand after an installation, which its manifests may lack: the network label, remote Secrets.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/mesh/system_namespaces.h"

namespace wavetank::scenario {

// The network that a cluster's manifests speak of: the label of its system namespace, or of its east-west gateway.
std::string NetworkOf(const std::vector<nlohmann::json>& objects, const SystemNamespaceSet& system, bool* labelled);
// The namespace with that label.
nlohmann::json LabelledNamespace(const std::string& name, const std::string& network);

// Whether an istiod among them is told anything; and whether there is any.
bool BringsControlPlane(const std::vector<nlohmann::json>& objects, const SystemNamespaceSet& system);
bool BringsIstiod(const std::vector<nlohmann::json>& objects);
// CLUSTER_ID of all istiods that say one; empty: none does, or they differ.
std::string ClusterIdOfIstiods(const std::vector<nlohmann::json>& objects);
// ISTIO_META_CLUSTER_ID of all that say one; empty: none does, or they differ.
std::string ClusterIdOfProxies(const std::vector<nlohmann::json>& objects);

bool IsRemoteSecret(const nlohmann::json& object);
bool BringsRemoteSecrets(const std::vector<nlohmann::json>& objects);

// Secret cacerts, which istiod signs with, or believes the roots of.
bool BringsRoots(const std::vector<nlohmann::json>& objects, const SystemNamespaceSet& system);

// What somebody cut out of a dump before it was given away (fakes/kube/objects/dumped.h), and a mesh does not run
// without.
struct CutOut {
  bool roots = false;                 // what Secret cacerts holds
  std::vector<std::string> clusters;  // of which there were kubeconfigs
};
// Takes those Secrets out of the objects, for stand-ins to come in their place.
CutOut TakeCutOut(std::vector<nlohmann::json>* objects, const SystemNamespaceSet& system);

}  // namespace wavetank::scenario
