// The agent of one simulated pod: the parts of core/agent that every proxy has, put together as pilot-agent does
// (istiod: pkg/istio-agent/agent.go, Run).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/agent/dns_table.h"
#include "core/agent/health_checker.h"
#include "core/agent/secret_manager.h"
#include "core/agent/xds_relay.h"
#include "core/base/host.h"
#include "core/base/ip.h"
#include "fakes/envoy/process/ads_transport.h"
#include "sim/agent/pod_files.h"

namespace wavetank::sim {

class OpenRelay;

class PodAgent {
 public:
  struct Options {
    agent::SecretOptions secrets;              // `files` and `log` are the agent's own
    std::optional<agent::DnsOptions> dns;      // nothing: names are not captured (ISTIO_META_DNS_CAPTURE)
    std::function<void()> on_ready;            // ready() has become true
    std::optional<agent::HealthProbe> health;  // ProxyConfig's readinessProbe
    agent::HealthChecker::Probe probe;         // asks the application
    bool dynamic_config = false;               // asks istiod for its configuration, too (PROXY_CONFIG_XDS_AGENT)
  };
  // `host`, `client` and `api` outlive it.
  PodAgent(Host& host, security::CaClient& client, const fakekube::ApiServer& api, kube::ObjectRef pod,
           Options options);
  ~PodAgent();

  void Start();
  // The Envoy's way to istiod, through the agent.
  std::unique_ptr<envoysim::AdsTransport> Through(std::unique_ptr<envoysim::AdsTransport> upstream);
  // An SDS stream of the Envoy.
  void Subscribe(std::string_view name, agent::SecretManager::OnSecret on_secret);

  // Whether the agent itself keeps its pod from being ready: names are captured, and there is no table yet.
  bool ready() const { return dns_ == nullptr || dns_->ready(); }

  // A name as an application of the pod asks for it, where names are captured: with the search list, each question
  // answered here or by `upstream`, which gets fully qualified names with the dot at their end. Nothing: they are not.
  using Upstream = std::function<absl::StatusOr<std::vector<IpAddress>>(std::string_view name)>;
  std::optional<absl::StatusOr<std::vector<IpAddress>>> Resolve(std::string_view name, const Upstream& upstream);

  const agent::SecretManager& secrets() const { return secrets_; }
  const agent::DnsTable* dns() const { return dns_.get(); }
  PodFiles& files() { return *files_; }
  // The newest of what it has said, as "kubectl logs -c istio-proxy" shows it.
  const std::deque<std::pair<Time, std::string>>& log() const { return lines_; }
  uint64_t forgotten_lines() const { return forgotten_lines_; }  // before those

 private:
  agent::Log MakeLog();
  void WatchFiles();

  Host& host_;
  std::deque<std::pair<Time, std::string>> lines_;
  uint64_t forgotten_lines_ = 0;
  std::shared_ptr<PodFiles> files_;
  std::vector<std::string> search_;
  std::unique_ptr<agent::DnsTable> dns_;
  RandomStream random_;  // of the order in which addresses are answered
  agent::XdsRelay relay_;
  std::shared_ptr<OpenRelay> open_relay_;
  std::unique_ptr<agent::HealthChecker> health_;  // null: nothing is to be probed
  agent::SecretManager secrets_;
  std::map<std::string, std::string> watched_;  // a file's content, as it was last seen
  bool watching_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::sim
