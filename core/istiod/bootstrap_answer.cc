#include "core/istiod/bootstrap_answer.h"

#include <google/protobuf/message.h>

#include <memory>

#include "core/agent/bootstrap.h"
#include "core/base/json_access.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_reader.h"
#include "core/model/proxy.h"
#include "core/profile/changes.h"
#include "core/profile/profile.h"
#include "core/push/push_context.h"
#include "core/xds/messages.h"

namespace wavetank::pilot {

absl::StatusOr<std::string> BootstrapFor(const PushContext& push, const Profile& profile, const Node& node) {
  const absl::StatusOr<Proxy> proxy = ParseServiceNode(node.id, node.metadata);
  if (!proxy.ok()) return proxy.status();
  ProxyBootstrap described;
  described.node_id = node.id;
  described.node_cluster = node.cluster;
  described.metadata = node.metadata;
  described.region = node.locality.region;
  described.zone = node.locality.zone;
  described.sub_zone = node.locality.sub_zone;
  described.proxy_config = At(node.metadata, "PROXY_CONFIG");
  agent::EnvoyBootstrapOptions options;
  options.upstream_envoy = profile.Has(Change::kUpstreamEnvoy);
  options.status_port = static_cast<uint16_t>(Number(node.metadata, "ENVOY_STATUS_PORT", options.status_port));
  options.prometheus_port =
      static_cast<uint16_t>(Number(node.metadata, "ENVOY_PROMETHEUS_PORT", options.prometheus_port));
  const absl::StatusOr<nlohmann::ordered_json> made = agent::MakeEnvoyBootstrap(described, options);
  if (!made.ok()) return made.status();
  const std::unique_ptr<google::protobuf::Message> bootstrap = NewEnvoyMessage("envoy.config.bootstrap.v3.Bootstrap");
  if (absl::Status status = ReadEnvoyJson(nlohmann::json(*made), *bootstrap); !status.ok()) return status;
  if (const auto patches = push.envoy_filters().For(*proxy); patches != nullptr) {
    for (const EnvoyPatch* patch : patches->Of(EnvoyPatches::ApplyTo::kBootstrap)) {
      if (patch->operation == EnvoyPatch::Operation::kMerge && patch->value != nullptr && patch->Matches(*proxy))
        bootstrap->MergeFrom(*patch->value);
    }
  }
  return bootstrap->SerializeAsString();
}

}  // namespace wavetank::pilot
