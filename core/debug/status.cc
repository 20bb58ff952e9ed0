#include "core/debug/status.h"

#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/debug/clients.h"
#include "core/debug/generated.h"
#include "core/debug/go_text.h"
#include "core/debug/pages.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_reader.h"
#include "core/istiod/istiod.h"
#include "core/profile/changes.h"
#include "core/xds/discovery_server.h"
#include "core/xds/messages.h"
#include "fmt/format.h"

namespace wavetank::debug {
namespace {

using pilot::Change;
using pilot::Connection;
using pilot::XdsType;

constexpr std::string_view kDebug = "istio.io/debug";
constexpr std::string_view kSyncz = "istio.io/debug/syncz";
constexpr std::string_view kConfigDump = "istio.io/debug/config_dump";
constexpr std::string_view kConnect = "istio.io/connect";
constexpr std::string_view kDisconnect = "istio.io/disconnect";
constexpr std::string_view kNack = "istio.io/nack";

std::optional<StatusResource> Message(std::string_view type, const nlohmann::json& json) {
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  if (message == nullptr || !pilot::ReadEnvoyJson(json, *message).ok()) return std::nullopt;
  return StatusResource{"type.googleapis.com/" + std::string(type), message->SerializeAsString()};
}

// istiod: debugSyncStatus.
const char* SyncStatusOf(const pilot::Proxy& proxy, XdsType type) {
  const auto watched = proxy.watched_resources.find(type);
  if (watched == proxy.watched_resources.end() || watched->second.nonce_sent.empty()) return "NOT_SENT";
  return watched->second.nonce_acked == watched->second.nonce_sent ? "SYNCED" : "STALE";
}

nlohmann::json TypesOf(const pilot::Proxy& proxy) {
  nlohmann::json out = nlohmann::json::array();
  for (const XdsType type : {XdsType::kLds, XdsType::kRds, XdsType::kEds, XdsType::kCds, XdsType::kEcds}) {
    out.push_back({{"typeUrl", pilot::TypeUrl(type)}, {"configStatus", SyncStatusOf(proxy, type)}});
  }
  return out;
}

// In the order of their URLs. istiod from 1.23 on: debugSyncz.
nlohmann::json WatchedTypesOf(const pilot::Proxy& proxy) {
  std::map<std::string, nlohmann::json> out;
  for (const auto& [type, watched] : proxy.watched_resources) {
    nlohmann::json& config = out[std::string(pilot::TypeUrl(type))];
    config = {{"typeUrl", pilot::TypeUrl(type)}, {"configStatus", SyncStatusOf(proxy, type)}};
    if (!watched.nonce_sent.empty()) config["lastUpdated"] = GoTime(watched.last_sent);
    if (watched.last_error.empty()) continue;
    config["configStatus"] = "ERROR";
    config["errorState"] = {{"lastUpdateAttempt", GoTime(watched.last_sent)}, {"details", watched.last_error}};
  }
  nlohmann::json list = nlohmann::json::array();
  for (auto& [url, config] : out) list.push_back(std::move(config));
  return list;
}

std::vector<StatusResource> SyncStatus(const pilot::Istiod& istiod) {
  const pilot::Profile& profile = istiod.options().profile;
  std::vector<StatusResource> out;
  for (const Connection* connection : istiod.discovery().Clients()) {
    const pilot::Proxy& proxy = connection->proxy();
    // Clients without one are no proxies: istioctl, for one.
    if (!proxy.metadata.raw->contains("PROXY_CONFIG")) continue;
    nlohmann::json metadata = {{"CLUSTER_ID", proxy.cluster().str()}};
    if (profile.Has(Change::kSyncVersions)) {
      metadata["NAMESPACE"] = proxy.config_namespace;
      metadata["ISTIO_VERSION"] = proxy.metadata.istio_version;
    }
    const nlohmann::json config = {
        {"node", {{"id", proxy.id}, {"metadata", std::move(metadata)}}},
        {"genericXdsConfigs", profile.Has(Change::kSyncOfWatched) ? WatchedTypesOf(proxy) : TypesOf(proxy)}};
    if (auto made = Message("envoy.service.status.v3.ClientConfig", config)) out.push_back(*std::move(made));
  }
  return out;
}

std::optional<StatusResource> NodeOf(const pilot::Proxy& proxy) {
  return Message(
      "envoy.config.core.v3.Node",
      {{"id", proxy.xds_node},
       {"cluster", proxy.service_cluster},
       {"metadata", *proxy.metadata.raw},
       {"locality",
        {{"region", proxy.locality.region}, {"zone", proxy.locality.zone}, {"subZone", proxy.locality.sub_zone}}}});
}

std::vector<StatusResource> Nodes(const pilot::Istiod& istiod) {
  std::vector<StatusResource> out;
  for (const Connection* connection : istiod.discovery().Clients()) {
    if (auto made = NodeOf(connection->proxy())) out.push_back(*std::move(made));
  }
  return out;
}

std::vector<StatusResource> Dump(const pilot::Istiod& istiod, const std::vector<std::string>& names) {
  std::vector<StatusResource> out;
  const Connection* const connection = names.size() == 1 ? FindConnection(istiod, names[0]) : nullptr;
  if (connection == nullptr) return out;
  const nlohmann::ordered_json dump = ConfigDump(istiod, *connection, false);
  for (const nlohmann::ordered_json& section : dump["configs"]) {
    nlohmann::json content = section;
    const std::string url = Text(content, "@type");
    content.erase("@type");
    if (auto made = Message(url.substr(url.rfind('/') + 1), content)) out.push_back(*std::move(made));
  }
  return out;
}

// "spiffe://trust/ns/NAMESPACE/sa/ACCOUNT".
std::string_view NamespaceOf(std::string_view identity) {
  const size_t begin = identity.find("/ns/");
  if (begin == identity.npos) return {};
  const std::string_view rest = identity.substr(begin + 4);
  return rest.substr(0, rest.find('/'));
}

absl::StatusOr<std::vector<StatusResource>> DebugPage(const pilot::Istiod& istiod,
                                                      const std::vector<std::string>& names,
                                                      std::string_view identity) {
  if (identity.empty()) return absl::UnauthenticatedError("authentication required");
  if (names.empty()) return absl::InvalidArgumentError("debug type is required");
  if (names.size() != 1) return absl::InvalidArgumentError("only one debug request is allowed");
  const std::string_view page = std::string_view(names[0]).substr(0, names[0].find('?'));
  const bool of_any_namespace = page == "config_dump" || page == "ndsz" || page == "edsz";
  if (NamespaceOf(identity) != istiod.options().system_namespace && !of_any_namespace) {
    return absl::PermissionDeniedError(
        fmt::format("the debug info is not available for current identity: \"{}\"", identity));
  }
  return std::vector<StatusResource>{{std::string(kDebug), Page(istiod, "/debug/" + names[0]).body}};
}

}  // namespace

bool IsStatusType(std::string_view type_url) { return type_url.starts_with("istio.io/"); }

bool IsEventType(std::string_view type_url) {
  return type_url == kConnect || type_url == kDisconnect || type_url == kNack;
}

std::optional<StatusResource> EventResource(std::string_view type_url, const pilot::ConnectionEvent& event) {
  using Kind = pilot::ConnectionEvent::Kind;
  const pilot::Proxy& proxy = event.connection.proxy();
  if (type_url == kConnect) return event.kind == Kind::kConnect ? NodeOf(proxy) : std::nullopt;
  if (type_url == kDisconnect) return event.kind == Kind::kDisconnect ? NodeOf(proxy) : std::nullopt;
  if (type_url != kNack || event.kind != Kind::kNack) return std::nullopt;
  const pilot::DiscoveryRequest& refused = *event.refused;
  return Message(
      "envoy.service.discovery.v3.DiscoveryRequest",
      {{"node", {{"id", proxy.id}}},
       {"versionInfo", refused.version_info},
       {"typeUrl", pilot::TypeUrl(refused.type)},
       {"resourceNames", std::vector<std::string>(refused.resource_names.begin(), refused.resource_names.end())},
       {"responseNonce", refused.response_nonce},
       {"errorDetail", {{"code", refused.error_detail->code}, {"message", refused.error_detail->message}}}});
}

absl::StatusOr<std::vector<StatusResource>> StatusResources(const pilot::Istiod& istiod, std::string_view type_url,
                                                            const std::vector<std::string>& names,
                                                            std::string_view identity) {
  if (!istiod.Ready()) return absl::UnavailableError("istiod is not ready");
  if (type_url == kDebug) return DebugPage(istiod, names, identity);
  if (type_url == kSyncz) return SyncStatus(istiod);
  if (type_url == kConfigDump) return Dump(istiod, names);
  if (type_url == kConnect && !istiod.options().profile.Has(Change::kNoConnectionEvents)) return Nodes(istiod);
  return std::vector<StatusResource>();
}

std::string ControlPlaneIdentifier(const pilot::Istiod& istiod) {
  // istiod: pkg/version, BuildInfo.
  const std::string version(istiod.options().profile.istio);
  const nlohmann::ordered_json info = {{"version", version},
                                       {"revision", "simulated"},
                                       {"golang_version", "none"},
                                       {"status", "Clean"},
                                       {"tag", version}};
  return GoText({{"Component", "istiod"}, {"ID", istiod.options().name}, {"Info", info}});
}

}  // namespace wavetank::debug
