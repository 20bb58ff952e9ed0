// The files of a container of a pod, the proxy's if nothing is said: entries of the Secrets and ConfigMaps that are
// mounted there, as the API server has them, and what its agent wrote into folders of its own (emptyDir).
//
// Fault model: what is mounted may not be there, or no longer; the disk is never full, so Write never fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/files.h"
#include "core/kube/object.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

class PodFiles final : public agent::Files {
 public:
  PodFiles(const fakekube::ApiServer& api, kube::ObjectRef pod, std::string container = "istio-proxy")
      : api_(api), pod_(std::move(pod)), container_(std::move(container)) {}

  absl::StatusOr<std::string> Read(std::string_view path) override;
  std::vector<std::string> List(std::string_view folder) override;
  absl::Status Write(std::string_view path, std::string_view bytes) override;

 private:
  // A folder of the container and the Secret or ConfigMap that it shows. All of it stands in the pod's body.
  struct Mount {
    std::string_view folder;  // with no '/' at its end
    bool secret = false;      // or of a ConfigMap
    kube::NamespacedName object;
    const nlohmann::json* items = nullptr;
  };
  static std::string_view KindOf(const Mount& mount) { return mount.secret ? "Secret" : "ConfigMap"; }
  const std::vector<Mount>& Mounts();

  const fakekube::ApiServer& api_;
  const kube::ObjectRef pod_;
  const std::string container_;
  std::optional<std::vector<Mount>> mounts_;  // once they were asked for: a pod's never change
  std::map<std::string, std::string, std::less<>> written_;
};

}  // namespace wavetank::sim
