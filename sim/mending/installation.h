// What `istioctl install` and the multi-cluster guides leave in a cluster: istiod, its webhook configuration, the
// reader's ServiceAccount; in a remote cluster the way to the primary's istiod.
//
// Everything is applied only where it is missing, so that manifests that bring it themselves have the last word.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/base/observers.h"
#include "core/profile/profile.h"
#include "fakes/kube/store/api_server.h"
#include "sim/mending/mending.h"

namespace wavetank::sim {

inline constexpr const char* kSystemNamespace = "istio-system";  // of what is installed here

// A pod, or a template of pods, that runs an istiod: its label and its container are the chart's. Where the world's own
// installations are, the label does.
bool IsIstiod(const nlohmann::json& pod, std::string_view ns);

// Where the cluster's control plane is installed: the namespace of its istiod, or what a remote cluster's says that
// names one; else where the world would put it.
std::string SystemNamespaceOf(const fakekube::ApiServer& api);

struct Installation {
  std::string cluster, network, control_plane;
  pilot::Profile profile;   // its release is installed
  std::string mesh_config;  // YAML; empty: defaults
  Mending mending;
  std::function<void(Mend)> mended;  // told what was done
};

// Whether nothing that was applied there is a control plane of its own: no istiod whose environment says anything, and
// no way to one.
bool IsSketch(const fakekube::ApiServer& api);

// The first refusal of the API server.
absl::Status InstallPrimary(fakekube::ApiServer& api, const Installation& what);
absl::Status InstallRemote(fakekube::ApiServer& api, const Installation& what);

// As soon as the primary's east-west gateway has an address, and once only: that address becomes remotePilotAddress of
// the remote cluster. Both servers must live as long as each other.
Subscription ConnectRemoteWhenExposed(fakekube::ApiServer& primary, fakekube::ApiServer& remote);

// "https://host:port/path". InvalidArgument says what is expected.
absl::Status ParseWebhookUrl(std::string_view url, std::string* host, uint16_t* port, std::string* path);

}  // namespace wavetank::sim
