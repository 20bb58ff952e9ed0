// How a cluster encrypts: what the DestinationRule says, else what automatic mTLS derives
// (istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go, buildAutoMtlsSettings, applyUpstreamTLSSettings).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/destination_rule.h"
#include "core/config/mesh/mesh_config.h"
#include "core/gen/cds/cluster_policy.h"
#include "core/model/proxy.h"
#include "core/push/policies/authentication.h"

namespace wavetank::pilot {

// What a cluster's TLS depends on besides the rule.
struct TlsInputs {
  const std::vector<std::string>* service_accounts = nullptr;  // identities of the service; null: none
  std::string default_sni;
  bool mesh_external = false;
  bool external_registry = false;  // the service is a ServiceEntry's
  bool rule_has_workload_selector = false;
  MutualTlsMode service_mode = MutualTlsMode::kUnknown;
  const config::ProxyProtocolVersion* proxy_protocol = nullptr;  // the header before TLS, or before plain text
};

// `tls`: of the rule; null if it says nothing.
void ApplyUpstreamTls(const Proxy& proxy, const config::MeshConfig& mesh, const Profile& profile,
                      const config::ClientTlsSettings* tls, const TlsInputs& inputs, ClusterDraft& draft);

}  // namespace wavetank::pilot
