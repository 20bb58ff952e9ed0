#include "serve/pods/pod_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/inject/proxy_config.h"
#include "core/kube/types.h"
#include "core/security/namespace_controller.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;

constexpr Duration kTokenLifetime = 12h;

// Lines NAME="value", as the downward API writes maps.
std::string DownwardMap(const json& map) {
  std::string out;
  if (!map.is_object()) return out;
  for (const auto& [name, value] : map.items()) {
    if (value.is_string()) out += fmt::format("{}={}\n", name, JsonText(value));
  }
  return out;
}

// For a shell's command line, in one word; lines stay apart from each other.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> PodFolder(sim::World& world, const std::string& name,
                                                             const std::string& discovery, const std::string& envoy) {
  const sim::PodProcess* process = world.FindPod(name);
  if (process == nullptr) return absl::NotFoundError(fmt::format("no pod '{}' runs in this world", name));
  const kube::Object& pod = *process->pod();
  if (!pilot::HasProxy(pod.body)) return absl::FailedPreconditionError(fmt::format("pod '{}' has no proxy", name));
  const absl::StatusOr<pilot::ProxyBootstrap> proxy = pilot::ReadProxyBootstrap(pod.body);
  if (!proxy.ok()) return proxy.status();
  const absl::StatusOr<pilot::ProxyEnvironment> environment = pilot::ReadProxyEnvironment(pod.body);
  if (!environment.ok()) return environment.status();

  std::map<std::string, std::string> out;
  const kube::ObjectRef roots =
      process->site().cluster->api().Get("ConfigMap", {pod.meta.ns, std::string(security::kCaRootConfigMap)});
  const std::string pem =
      roots == nullptr ? "" : Text(At(roots->body, "data"), std::string(security::kCaRootConfigMapKey));
  if (pem.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("ConfigMap {}/{} has no roots", pod.meta.ns, security::kCaRootConfigMap));
  }
  out["var/run/secrets/istio/root-cert.pem"] = pem;

  kube::TokenClaims claims;
  claims.ns = pod.meta.ns;
  claims.service_account = proxy->service_account;
  claims.pod_name = pod.meta.name;
  claims.pod_uid = pod.meta.uid;
  if (!proxy->token_audience.empty()) claims.audiences = {proxy->token_audience};
  claims.issued = world.Now();
  claims.expires = world.Now() + (proxy->token_expiration_seconds > 0
                                      ? Duration(std::chrono::seconds(proxy->token_expiration_seconds))
                                      : kTokenLifetime);
  out["var/run/secrets/tokens/istio-token"] = process->site().tokens->Issue(claims);

  const json& metadata = At(pod.body, "metadata");
  out["etc/istio/pod/labels"] = DownwardMap(At(metadata, "labels"));
  out["etc/istio/pod/annotations"] = DownwardMap(At(metadata, "annotations"));

  pilot::ProxyEnvironment variables = *environment;
  // istiod's name is nobody's on this machine: the address takes its place, and the name is what its certificate has.
  json config = proxy->proxy_config;
  config["discoveryAddress"] = discovery;
  if (!envoy.empty()) config["binaryPath"] = envoy;
  variables["PROXY_CONFIG"] = JsonText(pilot::WithoutDefaults(config));
  variables["ISTIOD_SAN"] = proxy->discovery_san;
  // Where istiod is the CA, too, no CA is named: an agent then takes istiod's address with that name in its
  // certificate.
  if (proxy->ca_address == proxy->discovery_address) variables.erase("CA_ADDR");
  variables["ISTIO_META_ISTIO_VERSION"] = Text(proxy->metadata, "ISTIO_VERSION");
  std::string lines;
  for (const auto& [variable, value] : variables) lines += fmt::format("{}={}\n", variable, Quoted(value));
  out["env"] = std::move(lines);
  return out;
}

absl::Status WritePodFolder(const std::string& folder, const std::map<std::string, std::string>& files) {
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    const int why = errno;
    const bool closed = fd < 0 || close(fd) == 0;
    if (!written || !closed) {
      return absl::UnavailableError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(why)));
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::serve
