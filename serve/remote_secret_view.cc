#include "serve/remote_secret_view.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/security/remote_secret.h"
#include "sim/world.h"

namespace wavetank::serve {
namespace {

// A port that is nobody's: whoever dials it is refused at once.
constexpr const char* kNobody = "http://127.0.0.1:1";

class RemoteSecretView final : public fakekube::http::ObjectView {
 public:
  RemoteSecretView(std::string name, std::map<std::string, std::string> servers)
      : name_(std::move(name)), servers_(std::move(servers)) {}

  kube::ObjectRef See(const kube::ObjectRef& object) const override {
    if (object->kind != "Secret") return object;
    const auto label = object->meta.labels.find(security::kMultiClusterLabel);
    if (label == object->meta.labels.end() || label->second != "true") return object;
    const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*object);
    if (!data.ok()) return object;
    auto seen = std::make_shared<kube::Object>(*object);
    seen->body.erase("stringData");
    for (const auto& [cluster, kubeconfig] : *data) {
      const absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, "kubeconfig");
      const std::string text =
          parsed.ok() ? kube::RenderKubeConfig({cluster, ServerOf(cluster, parsed->server), "", parsed->token})
                      : kubeconfig;
      seen->body["data"][cluster] = absl::Base64Escape(text);
    }
    return seen;
  }

  const std::string& name() const override { return name_; }

 private:
  std::string ServerOf(const std::string& cluster, const std::string& address) const {
    for (const auto& [name, server] : servers_) {
      if (address == sim::ApiServerUrl(name)) return server;
    }
    const auto it = servers_.find(cluster);
    return it == servers_.end() ? kNobody : it->second;
  }

  const std::string name_;
  const std::map<std::string, std::string> servers_;
};

}  // namespace

std::shared_ptr<const fakekube::http::ObjectView> MakeRemoteSecretView(std::string name,
                                                                       std::map<std::string, std::string> servers) {
  return std::make_shared<RemoteSecretView>(std::move(name), std::move(servers));
}

}  // namespace wavetank::serve
