// The objects that a skeleton is made of, as small as istiod takes them. `turn`: which of their versions; two that
// differ in it differ in what istiod looks at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::importing {

inline constexpr const char* kSystemNamespace = "istio-system";  // as istioctl installs it

nlohmann::json NamespaceObject(const std::string& name, const std::string& network);
nlohmann::json IstiodPod();
nlohmann::json IstiodService();
nlohmann::json IstiodEndpoints();
nlohmann::json MeshConfigMap(const std::string& mesh, const std::string& networks);
nlohmann::json ProxyPod(const std::string& cluster, const std::string& ns, const std::string& name, int number);
nlohmann::json WorkloadPod(const std::string& ns, const std::string& name, const std::string& ip,
                           const std::string& account);
// A Service's port and where its pods listen for it.
struct PortPart {
  std::string name = "http";
  int port = 80, target = 8080;
};
nlohmann::json ServiceObject(const std::string& ns, const std::string& name, int number, int64_t turn,
                             const std::vector<PortPart>& ports = {PortPart()});
// `number`: which cluster's; networks and addresses of two are apart.
nlohmann::json GatewayService(const std::string& name, int64_t turn, int number = 0);
nlohmann::json NodePortGateway(int number = 0);
nlohmann::json NodeObject(int64_t turn, int number = 0);
struct EndpointPart {
  std::string ip;
  std::string pod;  // empty: of no pod
};
nlohmann::json SliceObject(const std::string& ns, const std::string& service,
                           const std::vector<EndpointPart>& endpoints,
                           const std::vector<PortPart>& ports = {PortPart()});
// A pod that answers at these ports; its label app is its name.
nlohmann::json ServerPod(const std::string& ns, const std::string& name, const std::string& ip,
                         const std::vector<PortPart>& ports);
nlohmann::json ServiceEntryObject(const std::string& ns, const std::string& host, int64_t turn);
nlohmann::json WorkloadEntryObject(const std::string& ns, const std::string& host, int64_t turn,
                                   const std::string& account);
nlohmann::json SecretObject(const std::string& ns, const std::string& name, int64_t turn);
// The remote Secret with a kubeconfig for each cluster: its text, which holds no credential.
nlohmann::json RemoteSecretObject(const std::string& ns, const std::string& name,
                                  const std::vector<std::pair<std::string, std::string>>& kubeconfigs, int64_t turn);
std::string KubeconfigFor(const std::string& cluster, int64_t turn);
// Of a kind of Istio's configuration; null: none that this knows.
nlohmann::json ConfigObject(const std::string& kind, const std::string& ns, const std::string& name, int64_t turn);

}  // namespace wavetank::importing
