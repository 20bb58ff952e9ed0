#include "serve/agent/agent_run.h"

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>
#include <utility>

#include "core/agent/health_checker.h"
#include "core/agent/listen_retries.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/gen/nds/name_table.h"
#include "fmt/format.h"
#include "serve/agent/bootstrap_dial.h"
#include "serve/agent/ca_dial.h"
#include "serve/agent/dns_server.h"
#include "serve/agent/envoy_child.h"
#include "serve/agent/health_prober.h"
#include "serve/agent/real_files.h"
#include "serve/agent/real_host.h"
#include "serve/agent/status_port.h"
#include "serve/agent/tokens/sts_port.h"
#include "serve/agent/uds_server.h"

namespace wavetank::serve {
namespace {

using agent::Level;

constexpr Duration kFilePeriod = 500ms;

// Serialises what several threads say.
agent::Log Serialised(agent::Log log) {
  return [log = std::move(log), mutex = std::make_shared<std::mutex>()](Level level, std::string_view scope,
                                                                        std::string_view text) {
    const std::lock_guard<std::mutex> lock(*mutex);
    Say(log, level, scope, text);
  };
}

// Everything that a running agent has. Made and ended by Run(); what is in it runs on the host's thread but for the
// servers' own.
class RunningAgent {
 public:
  RunningAgent(AgentSetup setup, const AgentRun& run, std::shared_ptr<agent::Files> files, agent::Log log)
      : setup_(std::move(setup)),
        environment_(run.environment),
        files_(std::move(files)),
        log_(std::move(log)),
        // What gRPC's threads still post after the end finds a host.
        host_(*new RealHost()) {}

  absl::StatusOr<int> Run(const nlohmann::ordered_json& bootstrap) {
    std::error_code error;
    std::filesystem::create_directories(setup_.config_path, error);
    if (absl::Status status = WriteBootstrap(JsonText(bootstrap, 1)); !status.ok()) return status;
    // 1.18.2 asks when its servers run; here nothing runs yet that would have to be ended.
    if (setup_.bootstrap_of_istiod) {
      const absl::StatusOr<std::string> of_istiod =
          AskForBootstrap(XdsOptions(), bootstrap["node"], log_, [](Duration pause) { return !AwaitEnd(pause); });
      if (absl::IsCancelled(of_istiod.status())) return 0;
      if (!of_istiod.ok()) return of_istiod.status();
      if (absl::Status status = WriteBootstrap(*of_istiod); !status.ok()) return status;
    }

    if (setup_.sts_port != 0) {
      agent::TokenExchange::Options options = setup_.sts;
      options.log = log_;
      const auto post = [&host = host_](Callback fn) { host.Call(std::move(fn)); };
      tokens_ = std::make_unique<agent::TokenExchange>(host_, std::move(options), SendByHttps(post));
      absl::StatusOr<std::unique_ptr<StsPort>> sts =
          StsPort::Listen(post, *tokens_, setup_.sts_address, setup_.sts_port, log_);
      if (!sts.ok()) return sts.status();
      sts_ = *std::move(sts);
    }

    // Names.
    if (setup_.dns) {
      dns_ = std::make_unique<agent::DnsTable>(setup_.dns_options);
      DnsServer::Options options;
      options.address = setup_.dns_address;
      options.name_servers = setup_.name_servers;
      options.log = log_;
      options.lookup = [this](const std::string& name, uint16_t type) {
        agent::DnsDecision out;
        out.kind = agent::DnsDecision::Kind::kServFail;
        host_.CallAndWait([&] { out = dns_->Lookup(name, type); });
        return out;
      };
      absl::StatusOr<std::unique_ptr<DnsServer>> server = DnsServer::Listen(std::move(options));
      if (!server.ok()) {
        return absl::Status(server.status().code(),
                            fmt::format("failed to start local DNS server: {}", Message(server.status())));
      }
      dns_server_ = *std::move(server);
    }

    // Secrets.
    MakeRelay();
    ca_ = std::make_unique<CaDial>(host_, CaOptions());
    agent::SecretOptions secrets = setup_.secrets;
    secrets.files = files_;
    secrets.log = log_;
    secrets.make_key = [key = setup_.key](int64_t) { return MakeRealKey(key); };
    secrets_ = std::make_unique<agent::SecretManager>(host_, *ca_, std::move(secrets));
    UdsServer::Options sockets;
    sockets.xds_socket = setup_.xds_socket;
    sockets.sds_socket = setup_.sds_socket;
    sockets.istiod = XdsOptions();
    sockets.log = log_;
    Say(log_, Level::kInfo, "", "Workload SDS socket not found. Starting Istio SDS Server");
    Say(log_, Level::kInfo, "", fmt::format("CA Endpoint {}, provider Citadel", setup_.proxy.ca_address));
    absl::StatusOr<std::unique_ptr<UdsServer>> server =
        agent::ListenWithRetries([&] { return UdsServer::Listen(host_, *relay_, *secrets_, sockets); }, log_,
                                 [](Duration pause) { std::this_thread::sleep_for(pause); });
    if (!server.ok()) {
      return absl::Status(server.status().code(),
                          fmt::format("failed to start SDS server: {}", Message(server.status())));
    }
    sockets_ = *std::move(server);
    Say(log_, Level::kInfo, "xdsproxy",
        fmt::format("Initializing with upstream address \"{}\" and cluster \"{}\"", setup_.proxy.discovery_address,
                    setup_.cluster_id));

    // The Envoy.
    agent::EnvoyLifeOptions life = setup_.life;
    life.log = log_;
    EnvoyChild::Options child;
    child.program = setup_.binary;
    child.arguments = agent::MakeEnvoyArguments(setup_.envoy);
    child.environment = environment_;
    child.admin_port = setup_.admin_port;
    child.sidecar = setup_.proxy.role == pilot::ProxyBootstrap::Role::kSidecar;
    child.log = log_;
    envoy_ = std::make_unique<EnvoyChild>(host_, std::move(child),
                                          [this](const agent::ProcessEnd& end) { life_->OnExit(end); });
    life_ = std::make_unique<agent::EnvoyLife>(host_, *envoy_, std::move(life), [this](const absl::Status& status) {
      code_ = status.ok() ? 0 : 1;
      host_.Stop();
    });

    if (setup_.status_port != 0) {
      absl::StatusOr<std::unique_ptr<StatusPort>> status = StatusPort::Listen(StatusOptions());
      if (!status.ok()) return status.status();
      Say(log_, Level::kInfo, "", fmt::format("Opening status port {}", (*status)->port()));
      status_ = *std::move(status);
    }
    if (setup_.status_port == 0 && setup_.tap_port != 0)
      Say(log_, Level::kWarn, "", "without a status port istiod's debug pages are not offered either");
    if (absl::Status status = MakeHealth(); !status.ok()) return status;
    std::thread signals([this] { AwaitSignal(); });
    host_.Call([this] {
      secrets_->Start();
      life_->Start();
      WatchFiles();
      if (health_ != nullptr) health_->Start();
    });
    host_.Run();
    over_ = true;
    pthread_kill(signals.native_handle(), SIGTERM);
    signals.join();
    status_ = nullptr;
    sts_ = nullptr;
    dns_server_ = nullptr;
    secrets_->Stop();
    sockets_ = nullptr;
    ca_ = nullptr;
    std::filesystem::remove(setup_.envoy.config, error);
    return code_;
  }

 private:
  absl::Status WriteBootstrap(const std::string& text) {
    const absl::Status status = files_->Write(setup_.envoy.config, text);
    if (status.ok()) return status;
    return absl::Status(status.code(), fmt::format("failed to generate bootstrap config: {}", Message(status)));
  }
  // Whether the process is told to end within that time. Before its signals have a thread of their own.
  static bool AwaitEnd(Duration time) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    const timespec limit{time / 1s, static_cast<long>((time % 1s).count())};
    return sigtimedwait(&signals, nullptr, &limit) > 0;
  }

  // ProxyConfig's readinessProbe, of machines outside Kubernetes.
  absl::Status MakeHealth() {
    const nlohmann::json& probe = At(setup_.proxy.proxy_config, "readinessProbe");
    if (!probe.is_object()) return absl::OkStatus();
    absl::StatusOr<agent::HealthProbe> parsed = agent::ParseHealthProbe(probe, setup_.proxy.ip);
    if (!parsed.ok()) return parsed.status();
    health_ = std::make_unique<agent::HealthChecker>(
        host_, *std::move(parsed), ProberOf(host_, setup_.admin_port, environment_),
        [this](bool healthy, const std::string& why) { sockets_->SendOwn(relay_->SetHealth(healthy, why)); }, log_);
    return absl::OkStatus();
  }

  void MakeRelay() {
    relay_ = std::make_unique<agent::XdsRelay>(log_);
    if (dns_ != nullptr) {
      relay_->Handle(agent::kNameTableTypeUrl, [this](std::string_view resource) -> absl::Status {
        absl::StatusOr<pilot::NameTable> table = pilot::DecodeNameTable(resource);
        if (!table.ok()) return table.status();
        dns_->Update(*table);
        return absl::OkStatus();
      });
    }
  }

  std::string Token() const {
    if (setup_.token_path.empty()) return "";
    absl::StatusOr<std::string> token = files_->Read(setup_.token_path);
    if (!token.ok()) {
      Say(log_, Level::kError, "", fmt::format("failed to fetch token: {}", Message(token.status())));
      return "";
    }
    while (!token->empty() && (token->back() == '\n' || token->back() == ' ')) token->pop_back();
    return *std::move(token);
  }
  DialOptions Common(const std::string& address, const std::string& name, const std::string& roots) const {
    DialOptions out;
    out.address = address;
    out.server_name = name;
    out.cluster_id = setup_.cluster_id;
    out.token = [this] { return Token(); };
    out.roots_pem = [files = files_, roots]() -> absl::StatusOr<std::string> {
      if (roots.empty()) return std::string();
      return files->Read(roots);
    };
    return out;
  }
  DialOptions XdsOptions() const {
    DialOptions out = Common(setup_.proxy.discovery_address, setup_.proxy.discovery_san, setup_.xds_roots);
    out.plaintext = setup_.xds_plaintext;
    out.headers = setup_.xds_headers;
    std::string chain, key;
    if (!setup_.ca_provisioned.empty()) {
      chain = setup_.ca_provisioned + "/cert-chain.pem";
      key = setup_.ca_provisioned + "/key.pem";
    } else if (setup_.proxy.file_mounted_certs) {
      chain = setup_.secrets.cert_chain_path;
      key = setup_.secrets.key_path;
    }
    if (!chain.empty()) {
      out.certificate_and_key = [files = files_, chain, key] {
        return std::pair(files->Read(chain).value_or(""), files->Read(key).value_or(""));
      };
    }
    return out;
  }
  DialOptions CaOptions() const {
    DialOptions out = Common(setup_.proxy.ca_address, setup_.proxy.ca_san, setup_.ca_roots);
    out.plaintext = setup_.ca_plaintext;
    if (const auto signer = environment_.find("ISTIO_META_CERT_SIGNER"); signer != environment_.end()) {
      out.cert_signer = signer->second;
    }
    if (!setup_.ca_provisioned.empty()) {
      out.certificate_and_key = [files = files_, folder = setup_.ca_provisioned] {
        return std::pair(files->Read(folder + "/cert-chain.pem").value_or(""),
                         files->Read(folder + "/key.pem").value_or(""));
      };
    }
    return out;
  }

  StatusPort::Options StatusOptions() {
    StatusPort::Options out;
    out.port = setup_.status_port;
    out.admin_port = setup_.admin_port;
    out.pod_ip = setup_.proxy.ip;
    out.probers = setup_.probers;
    out.log = log_;
    out.terminating = [this] { return terminating_.load(); };
    out.check = [this] {
      if (dns_ == nullptr) return absl::OkStatus();
      bool ready = false;
      host_.CallAndWait([&] { ready = dns_->ready(); });
      return agent::DnsReadiness(ready);
    };
    out.names = [this]() -> std::string {
      if (dns_ == nullptr) return "";
      nlohmann::json table = nlohmann::json::object();
      bool ready = false;
      host_.CallAndWait([&] {
        ready = dns_->ready();
        for (const auto& [name, ips] : dns_->Names()) {
          for (const IpAddress& ip : ips) table[name]["ips"].push_back(ip.ToString());
        }
      });
      return ready ? JsonText(nlohmann::json({{"table", std::move(table)}})) : "";
    };
    out.quit = [this] { Terminate(); };
    out.tap_port = setup_.tap_port;
    out.tap = [this](agent::OwnRequest request, std::function<void(absl::StatusOr<std::string>)> done) {
      host_.Call([this, request = std::move(request), done = std::move(done)]() mutable {
        sockets_->Tap(std::move(request), std::move(done));
      });
    };
    return out;
  }

  void Terminate() {
    terminating_ = true;
    host_.Call([this] { life_->Terminate(); });
  }
  void AwaitSignal() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    while (!over_) {
      int number = 0;
      if (sigwait(&signals, &number) == 0 && !over_) Terminate();
    }
  }

  // Files behind secrets: looked at again and again, so that no kind of mount needs a watch of its own.
  void WatchFiles() {
    for (const std::string& path : secrets_->WatchedFiles()) {
      std::string now = files_->Read(path).value_or("");
      const auto [seen, first] = seen_.try_emplace(path, now);
      if (first || seen->second == now) continue;
      seen->second = std::move(now);
      secrets_->OnFileChanged(path);
    }
    if (!sockets_->Reachable() && !std::exchange(told_of_sockets_, true)) {
      Say(log_, Level::kWarn, "", "a socket of the agent was removed: an Envoy that connects anew finds none");
    }
    host_.RunAfter(kFilePeriod, [this] { WatchFiles(); });
  }

  const AgentSetup setup_;
  const Environment environment_;
  const std::shared_ptr<agent::Files> files_;
  const agent::Log log_;
  RealHost& host_;
  std::unique_ptr<agent::DnsTable> dns_;
  std::unique_ptr<DnsServer> dns_server_;
  std::unique_ptr<agent::XdsRelay> relay_;
  std::unique_ptr<CaDial> ca_;
  std::unique_ptr<agent::SecretManager> secrets_;
  std::unique_ptr<UdsServer> sockets_;
  std::unique_ptr<EnvoyChild> envoy_;
  std::unique_ptr<agent::EnvoyLife> life_;
  std::unique_ptr<StatusPort> status_;
  std::unique_ptr<agent::TokenExchange> tokens_;
  std::unique_ptr<StsPort> sts_;
  std::unique_ptr<agent::HealthChecker> health_;
  std::map<std::string, std::string> seen_;
  std::atomic<bool> terminating_{false}, over_{false};
  bool told_of_sockets_ = false;
  int code_ = 0;
};

}  // namespace

absl::StatusOr<int> RunAgent(const AgentRun& run) {
  auto files = std::make_shared<RealFiles>();
  const agent::Log log = Serialised(run.log);
  absl::StatusOr<AgentSetup> setup = ReadSetup(run.environment, run.arguments, *files, MachineAddresses());
  if (!setup.ok()) return setup.status();
  if (!run.bootstrap_only) {
    for (const std::string& note : setup->notes) Say(log, Level::kWarn, "", note);
  }
  const absl::StatusOr<nlohmann::ordered_json> bootstrap = agent::MakeEnvoyBootstrap(setup->proxy, setup->bootstrap);
  if (!bootstrap.ok()) return bootstrap.status();
  if (run.bootstrap_only) {
    std::cout << JsonText(*bootstrap, 1) << std::endl;
    return 0;
  }
  // Its parts are ended in order by Run(); the rest goes with the process.
  auto* const agent = new RunningAgent(*std::move(setup), run, files, log);
  return agent->Run(*bootstrap);
}

}  // namespace wavetank::serve
