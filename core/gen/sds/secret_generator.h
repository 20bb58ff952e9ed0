// SDS for routers: certificates named by a Gateway's credentialName (istiod: pilot/pkg/xds/sds.go,
// pilot/pkg/model/credentials/resource.go).
//
// A resource that the router may not have, that is not there or whose certificate is not valid now is left out of the
// answer, which only istiod's log tells, so that one bad reference does not take the others along. What is generated
// holds private keys: a Resource of type SDS must not be printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/security/credentials.h"
#include "core/xds/cache.h"
#include "core/xds/generator.h"

namespace wavetank::security {

struct SecretReference {
  enum class Type : uint8_t {
    kKubernetes,         // kubernetes://name, kubernetes://ns/name: of the proxy's cluster
    kKubernetesGateway,  // kubernetes-gateway://ns/name: of the config cluster, for verified references only
  };
  Type type = Type::kKubernetes;
  std::string ns, name, resource_name, cluster;

  // InvalidArgument for other forms.
  static absl::StatusOr<SecretReference> Parse(std::string_view resource_name, std::string_view proxy_namespace,
                                               std::string_view proxy_cluster, std::string_view config_cluster);
};

// A Secret's own key and the key of its "-cacert" twin: a change of either concerns both.
std::vector<pilot::ConfigKey> RelatedSecrets(std::string_view ns, std::string_view name);

class SecretGenerator final : public pilot::Generator {
 public:
  // All outlive it. `log` hears what is refused, in istiod's words; null: nobody does.
  SecretGenerator(Host& host, Credentials& credentials, pilot::XdsCache& cache, const LogSink* log = nullptr)
      : host_(host), credentials_(credentials), cache_(cache), log_(log) {}

  // Not sent at all: the proxy is not authenticated, the push concerns no Secret, or a cluster is unknown.
  pilot::GeneratedResources Generate(const pilot::Proxy& proxy, const pilot::WatchedResource& watched,
                                     const pilot::PushRequest& request) override;

  // References that were refused, not found or not valid.
  int64_t certificate_errors() const { return certificate_errors_; }

 private:
  bool MayHave(const pilot::Proxy& proxy, std::string_view ns, std::string_view service_account,
               const SecretReference& reference);
  // `proxy_config`: the router's, in JSON; may be null. `verifies`: what is no certificate of today is refused.
  absl::StatusOr<pilot::Resource> Make(const SecretReference& reference, const nlohmann::json* proxy_config,
                                       bool verifies);
  // An error counts, and istiod warns of it.
  void Refuse(std::string why);

  Host& host_;
  Credentials& credentials_;
  pilot::XdsCache& cache_;
  const LogSink* log_;
  int64_t certificate_errors_ = 0;
};

}  // namespace wavetank::security
