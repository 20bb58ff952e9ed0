// What runs in one pod: its applications and, if it was injected, agent and Envoy. All that these know they take from
// the pod, from files mounted into it, from DNS and from istiod.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/inject/proxy_bootstrap.h"
#include "sim/cluster_site.h"
#include "sim/istiod_client.h"

namespace wavetank::agent {
class SecretManager;
}

namespace wavetank::sim {

class AgentStart;
class PodAgent;
class PodCalls;
class IstioCsr;
class RateLimitService;

class PodProcess final : public envoysim::EnvoyContext,
                         public envoysim::SecretProvider,
                         public envoysim::DnsResolver,
                         public envoysim::Application {
 public:
  // Joins the network at the pod's address; nothing runs yet. `site` outlives it.
  PodProcess(ClusterSite& site, kube::ObjectRef pod);
  ~PodProcess() override;  // gone at once: its connections are reset

  // `ready`: whether the pod may serve, now and whenever that changes.
  void Start(std::function<void(bool)> ready);
  // A newer version of its object. It takes the place of the one that was started, which nobody else holds any more, as
  // long as they say the same of what runs here.
  void Restated(const kube::ObjectRef& newer);
  // SIGTERM: Envoy drains; applications go on until the end.
  void Terminate();

  // The ADS stream to this world's istiod breaks; the Envoy opens another (World::MoveAds).
  void BreakAds(const absl::Status& why) {
    if (istiod_ != nullptr) istiod_->BreakAds(why);
  }

  // The rule for its applications may be another one (Commons::behaviours).
  void TakeBehaviour();

  const kube::ObjectRef& pod() const { return pod_; }
  WorkloadId workload() const { return workload_; }
  ClusterSite& site() { return site_; }
  const ClusterSite& site() const { return site_; }
  // As trace records and reports name it, as istiod does too: "sleep-6d4f.sample@cluster1".
  const std::string& name() const { return name_; }
  const std::string& app() const { return app_; }
  NameId server() const { return server_; }  // its applications, in answers (AppReply::server)
  // An application of the pod, whose container declares the port.
  bool Listens(uint16_t port) const { return site_.commons->network->at(workload_).ports.contains(port); }
  // Why the proxy does not start, if it cannot.
  const absl::Status& failure() const { return failure_; }
  // What an application of it logs of its own mistakes; OK: nothing.
  absl::Status complaint() const;
  // Why a container or the proxy is not ready, in the words of kubelet, agent and Envoy; empty: it is.
  std::string Trouble() const;

  // Null without a sidecar or gateway.
  envoysim::Envoy* envoy() { return envoy_.get(); }
  const envoysim::Envoy* envoy() const { return envoy_.get(); }
  // Nothing: not injected. Its metadata are the node's.
  const std::optional<pilot::ProxyBootstrap>& bootstrap() const { return bootstrap_; }
  const pilot::Node& node() const { return *node_; }
  // Both null without a proxy that has started. What its secrets are, and all that it does.
  const wavetank::agent::SecretManager* agent() const;
  const PodAgent* pod_agent() const { return agent_.get(); }
  // A name as the pod's applications ask for it: of its agent, where that captures names, else of the cluster's DNS.
  // DeadlineExceeded: a NetworkPolicy keeps its queries from DNS, and nobody answers.
  absl::StatusOr<std::vector<IpAddress>> ResolveName(std::string_view name) const;
  bool router() const { return bootstrap_.has_value() && bootstrap_->role == pilot::ProxyBootstrap::Role::kRouter; }
  // Made when first asked for.
  envoysim::AppClient& client();

 private:
  // Of a proxy that is not ready, as its agent's probe says it (pilot-agent: status/ready/probe.go).
  std::string WhatProbeFinds() const;
  void StartContainers();
  // A container of envoyproxy/ratelimit, if there is one. Unavailable: it finds no Redis, and ends.
  absl::Status StartRateLimits();
  // A container of cert-manager's istio-csr, if there is one. NotFound: a file that its arguments name is not there.
  absl::Status StartIstioCsr();
  void StartProxy();
  void TryLater(Callback again);  // as the kubelet does, ever more seldom
  // Before it answers, its application calls others; false: it has nothing to call for this request.
  bool CallFirst(const AppBehaviour& behaviour, const envoysim::InboundCall& call, const envoysim::AppReply& reply);
  const AppBehaviour* Behaviour() const;  // null: no rule is for this pod
  // What its application says behind a body.
  void SayTrailers(envoysim::AppReply* reply) const;
  // Tells the kubelet what both of them make of it: the proxy, where there is one, and the application.
  void TellReady();
  // The application is ready, or is not, until the next turn.
  void TurnReady(bool ready, uint64_t generation);
  absl::StatusOr<std::string> RootCertificates() const;

  // EnvoyContext
  Host& host() override { return host_; }
  envoysim::AdsTransport& ads() override { return *ads_; }
  envoysim::SecretProvider& secrets() override { return *this; }
  envoysim::DnsResolver& dns() override { return *this; }
  void FillNode(envoy::config::core::v3::Node* node) override;
  bool AgentHas(pilot::Change change) const;
  bool SpeaksDelta() const;
  void OnLive() override;
  // SecretProvider
  void Subscribe(std::string_view name, OnSecret on_secret) override;
  // DnsResolver
  void Resolve(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<envoysim::DnsAnswer>)> done) override;
  // Application
  envoysim::AppReply Serve(const envoysim::InboundCall& call) override;
  bool SpeaksTls(const envoysim::AcceptInfo& connection) const override;
  envoysim::HandshakeResult ShakeHands(const envoysim::AcceptInfo& connection,
                                       const envoysim::FirstFlight& hello) override;

  ClusterSite& site_;
  kube::ObjectRef pod_;
  Host& host_;  // of its node
  std::string name_, app_;
  NameId server_ = kNoName;
  bool authorizer_ = false;                   // a container's image is Istio's sample authorizer, ".../ext-authz:TAG"
  bool httpbin_ = false;                      // one's is Istio's sample httpbin
  std::unique_ptr<RateLimitService> limits_;  // null: no container of it is one
  std::unique_ptr<IstioCsr> csr_;             // null: no container of it signs certificates
  WorkloadId workload_{};
  std::optional<pilot::ProxyBootstrap> bootstrap_;  // nothing: not injected, or its agent cannot start
  std::shared_ptr<AgentStart> agent_start_;
  std::shared_ptr<const pilot::Node> node_;
  std::function<void(bool)> ready_;
  bool proxy_ready_ = false, app_ready_ = true, told_ready_ = false;
  Time started_{};
  RandomStream random_;     // of what the application leaves to chance
  uint64_t behaviour_ = 0;  // which rule's turns count
  absl::Status failure_;
  Duration mount_backoff_ = 500ms;

  std::unique_ptr<IstiodClient> istiod_;
  std::unique_ptr<IstiodClient> ca_;  // where certificates come from elsewhere
  std::unique_ptr<PodAgent> agent_;
  std::unique_ptr<envoysim::AdsTransport> ads_;
  std::unique_ptr<envoysim::Envoy> envoy_;
  std::vector<std::unique_ptr<envoysim::AppServer>> servers_;
  std::unique_ptr<envoysim::AppClient> client_;
  std::unique_ptr<PodCalls> calls_;  // null: its application has called nobody
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::sim
