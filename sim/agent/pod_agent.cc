#include "sim/agent/pod_agent.h"

#include <algorithm>
#include <utility>

#include "core/gen/nds/name_table.h"
#include "core/istiod/trust_bundle_generator.h"
#include "fmt/format.h"
#include "sim/agent/relay_transport.h"

namespace wavetank::sim {
namespace {

constexpr size_t kMaxLines = 200;
// The kubelet renews what is mounted about once a minute (kubernetes: syncFrequency); the agent's watcher sees it then.
constexpr Duration kMountPeriod = 60s;

}  // namespace

PodAgent::PodAgent(Host& host, security::CaClient& client, const fakekube::ApiServer& api, kube::ObjectRef pod,
                   Options options)
    : host_(host),
      files_(std::make_shared<PodFiles>(api, std::move(pod))),
      search_(options.dns ? options.dns->search : std::vector<std::string>()),
      dns_(options.dns ? std::make_unique<agent::DnsTable>(*options.dns) : nullptr),
      random_(options.secrets.seed, fmt::format("dns/{}", options.secrets.name)),
      relay_(MakeLog()),
      open_relay_(std::make_shared<OpenRelay>()),
      secrets_(host, client, [&] {
        agent::SecretOptions secrets = std::move(options.secrets);
        secrets.files = files_;
        secrets.log = MakeLog();
        return secrets;
      }()) {
  if (options.health) {
    health_ = std::make_unique<agent::HealthChecker>(
        host_, *std::move(options.health), std::move(options.probe),
        [this](bool healthy, const std::string& why) { open_relay_->Send(relay_.SetHealth(healthy, why)); }, MakeLog());
  }
  if (options.dynamic_config) {
    relay_.Handle(agent::kProxyConfigTypeUrl, [this](std::string_view resource) -> absl::Status {
      const absl::StatusOr<std::vector<std::string>> roots = pilot::DecodeTrustBundle(resource);
      if (!roots.ok()) return roots.status();
      std::string pem;
      for (const std::string& root : *roots) {
        if (!pem.empty() && pem.back() != '\n') pem += '\n';
        pem += root;
      }
      secrets_.UpdateConfigTrustBundle(std::move(pem));
      return absl::OkStatus();
    });
  }
  if (dns_ != nullptr) {
    relay_.Handle(agent::kNameTableTypeUrl,
                  [this, on_ready = std::move(options.on_ready)](std::string_view resource) -> absl::Status {
                    absl::StatusOr<pilot::NameTable> table = pilot::DecodeNameTable(resource);
                    if (!table.ok()) return table.status();
                    const bool first = !dns_->ready();
                    dns_->Update(*table);
                    if (first && on_ready) on_ready();
                    return absl::OkStatus();
                  });
  }
}

PodAgent::~PodAgent() { alive_.reset(); }

agent::Log PodAgent::MakeLog() {
  return [this](agent::Level level, std::string_view scope, std::string_view text) {
    if (level == agent::Level::kDebug) return;  // --log_output_level=default:info
    lines_.emplace_back(host_.Now(), agent::LogLine(host_.WallClock(), level, scope, text));
    if (lines_.size() <= kMaxLines) return;
    lines_.pop_front();
    ++forgotten_lines_;
  };
}

void PodAgent::Start() {
  secrets_.Start();
  if (health_ != nullptr) health_->Start();
}

std::unique_ptr<envoysim::AdsTransport> PodAgent::Through(std::unique_ptr<envoysim::AdsTransport> upstream) {
  return std::make_unique<RelayTransport>(relay_, std::move(upstream), open_relay_);
}

void PodAgent::Subscribe(std::string_view name, agent::SecretManager::OnSecret on_secret) {
  secrets_.Subscribe(name, std::move(on_secret));
  // Whatever comes from files is looked after; most pods have none.
  if (!watching_ && !secrets_.WatchedFiles().empty()) {
    watching_ = true;
    WatchFiles();
  }
}

void PodAgent::WatchFiles() {
  for (const std::string& path : secrets_.WatchedFiles()) {
    const std::string now = files_->Read(path).value_or("");
    const auto [seen, first] = watched_.try_emplace(path, now);
    if (first || seen->second == now) continue;
    seen->second = now;
    secrets_.OnFileChanged(path);
  }
  host_.RunAfter(kMountPeriod, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) WatchFiles();
  });
}

std::optional<absl::StatusOr<std::vector<IpAddress>>> PodAgent::Resolve(std::string_view name,
                                                                        const Upstream& upstream) {
  if (dns_ == nullptr) return std::nullopt;
  if (const absl::StatusOr<IpAddress> literal = IpAddress::Parse(name); literal.ok()) return std::vector{*literal};
  // resolv.conf: ndots 5.
  std::vector<std::string> candidates;
  if (!name.ends_with('.') && std::count(name.begin(), name.end(), '.') < 5) {
    for (const std::string& suffix : search_) candidates.push_back(fmt::format("{}.{}.", name, suffix));
  }
  candidates.push_back(name.ends_with('.') ? std::string(name) : fmt::format("{}.", name));
  absl::Status why = absl::NotFoundError(fmt::format("no such host: {}", name));
  for (const std::string& candidate : candidates) {
    std::vector<IpAddress> found;
    for (const agent::DnsType type : {agent::DnsType::kA, agent::DnsType::kAaaa}) {
      agent::DnsDecision decision = dns_->Lookup(candidate, static_cast<uint16_t>(type));
      if (decision.kind == agent::DnsDecision::Kind::kServFail) {
        return absl::UnavailableError(fmt::format("server misbehaving: {}", name));
      }
      if (decision.kind == agent::DnsDecision::Kind::kUpstream) {
        absl::StatusOr<std::vector<IpAddress>> answer = upstream(candidate);
        if (answer.ok()) return answer;
        if (!absl::IsNotFound(answer.status())) why = answer.status();
        break;  // it is asked for both types at once
      }
      agent::DnsTable::Shuffle(decision.records, random_);
      for (const agent::DnsRecord& record : decision.records) {
        if (record.type != agent::DnsType::kCname) found.push_back(record.address);
      }
    }
    if (!found.empty()) return found;
  }
  return why;
}

}  // namespace wavetank::sim
