#include "serve/grpc/workload_secrets.h"

#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/security/spiffe.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

// Unlike every other key of a world: real ones must not follow from a seed that stands in a log.
x509::KeyPairRef NewKey() {
  unsigned char bytes[40];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return nullptr;
  uint64_t seed = 0;
  for (int i = 0; i < 8; ++i) seed = seed << 8 | bytes[i];
  const absl::string_view name(reinterpret_cast<const char*>(bytes) + 8, sizeof bytes - 8);
  return x509::KeyPair::Derive(seed, absl::BytesToHexString(name));
}

std::string ServiceAccountOf(const nlohmann::json& pod) {
  const nlohmann::json spec = pod.value("spec", nlohmann::json::object());
  const std::string account = spec.value("serviceAccountName", "");
  return account.empty() ? "default" : account;
}

struct Workload {
  std::string cluster, ns, service_account, pod, pod_uid, trust_domain = std::string(security::kDefaultTrustDomain);
  std::string audience = std::string(security::kIstioCaAudience);
  Duration ttl = 24h;
};

absl::StatusOr<Workload> FindWorkload(const sim::World& world, const std::string& name) {
  const sim::PodProcess* process = world.FindPod(name);
  if (process == nullptr) return absl::NotFoundError(fmt::format("no pod '{}' runs in this world", name));
  const kube::Object& pod = *process->pod();
  Workload out;
  out.cluster = process->site().name;
  out.ns = pod.meta.ns;
  out.pod = pod.meta.name;
  out.pod_uid = pod.meta.uid;
  out.service_account = ServiceAccountOf(pod.body);
  if (pilot::HasProxy(pod.body)) {
    const absl::StatusOr<pilot::ProxyBootstrap> bootstrap = pilot::ReadProxyBootstrap(pod.body);
    if (!bootstrap.ok()) return bootstrap.status();
    out.service_account = bootstrap->service_account;
    out.trust_domain = bootstrap->trust_domain;
    out.audience = bootstrap->token_audience;
    out.ttl = bootstrap->secret_ttl;
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> WorkloadSecrets::PodOf(const sim::World& world, const pilot::Node& node) {
  const std::vector<std::string> parts = absl::StrSplit(node.id, '~');
  if (parts.size() != 4) {
    return absl::InvalidArgumentError("the node's id is not 'sidecar~IP~POD.NAMESPACE~DOMAIN'");
  }
  std::string cluster;
  if (node.metadata.is_object()) {
    const auto it = node.metadata.find("CLUSTER_ID");
    if (it != node.metadata.end() && it->is_string()) cluster = it->get<std::string>();
  }
  // Without the cluster, a pod of that name and address decides, if there is just one.
  const sim::PodProcess* found = nullptr;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (!cluster.empty() && pod->site().name != cluster) continue;
    if (fmt::format("{}.{}", pod->pod()->meta.name, pod->pod()->meta.ns) != parts[2]) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("pods '{}' run in several clusters; the node's metadata needs CLUSTER_ID", parts[2]));
    }
    found = pod;
  }
  if (found == nullptr) {
    return absl::NotFoundError(
        fmt::format("no pod '{}' runs in {}", parts[2], cluster.empty() ? "this world" : "cluster " + cluster));
  }
  return found->name();
}

absl::StatusOr<std::string> WorkloadSecrets::IdentityOf(const sim::World& world, const std::string& pod) {
  absl::StatusOr<Workload> workload = FindWorkload(world, pod);
  if (!workload.ok()) return workload.status();
  return security::SpiffeIdentity{workload->trust_domain, workload->ns, workload->service_account}.ToString();
}

WorkloadSecrets::Subscription WorkloadSecrets::Subscribe(sim::World& world, const std::string& pod,
                                                         OnSecret on_secret) {
  Entry& entry = entries_[pod];
  const uint64_t number = next_++;
  if (entry.secret != nullptr) on_secret(entry.secret);
  entry.listeners.emplace(number, std::move(on_secret));
  if (entry.secret == nullptr) Ask(world, pod);
  // The handle may go on any thread, and after this object.
  return std::shared_ptr<void>(
      nullptr, [this, number, pod, &loop = frontend_.loop(), alive = std::weak_ptr<int>(alive_)](void*) {
        loop.Post([this, number, pod, alive](sim::World&) {
          if (alive.expired()) return;
          const auto it = entries_.find(pod);
          if (it == entries_.end()) return;
          it->second.listeners.erase(number);
          // Nobody wants it: the key goes, and a new one is made when somebody comes again.
          if (it->second.listeners.empty() && !it->second.asking) entries_.erase(it);
        });
      });
}

absl::Status WorkloadSecrets::Rotate(sim::World& world, const std::string& pod) {
  const auto it = entries_.find(pod);
  if (it == entries_.end()) return absl::NotFoundError(fmt::format("pod '{}' has no certificate from here", pod));
  Ask(world, pod);
  return absl::OkStatus();
}

void WorkloadSecrets::Ask(sim::World& world, const std::string& pod) {
  Entry& entry = entries_[pod];
  if (entry.asking) return;
  const absl::StatusOr<Workload> workload = FindWorkload(world, pod);
  const x509::KeyPairRef key = NewKey();
  if (!workload.ok() || key == nullptr) return AskLater(pod, options_.retry);  // perhaps it starts again
  entry.asking = true;
  const std::string identity =
      security::SpiffeIdentity{workload->trust_domain, workload->ns, workload->service_account}.ToString();
  sim::OutsidePeer peer;
  peer.tls = true;
  peer.token = sim::OutsidePeer::Token::kIssued;
  peer.issuer = peer.cluster_id = workload->cluster;
  peer.claims.ns = workload->ns;
  peer.claims.service_account = workload->service_account;
  peer.claims.pod_name = workload->pod;
  peer.claims.pod_uid = workload->pod_uid;
  if (!workload->audience.empty()) peer.claims.audiences = {workload->audience};
  peer.claims.issued = world.Now();
  peer.claims.expires = world.Now() + 1h;
  security::CertificateRequestMessage request;
  request.csr = x509::CreateCsr(*key, {}, {identity});
  const Duration ttl = options_.ttl > 0s ? options_.ttl : workload->ttl;
  request.validity_seconds = std::max<int64_t>(ttl / std::chrono::seconds(1), 1);
  frontend_.CreateCertificate(
      world, workload->cluster, peer, request,
      [this, pod, identity, key, alive = std::weak_ptr<int>(alive_)](absl::StatusOr<std::vector<std::string>> chain) {
        if (!alive.expired()) OnSigned(pod, identity, key, std::move(chain));
      });
}

void WorkloadSecrets::OnSigned(const std::string& pod, const std::string& identity, const x509::KeyPairRef& key,
                               absl::StatusOr<std::vector<std::string>> chain) {
  const auto it = entries_.find(pod);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.asking = false;
  if (entry.listeners.empty()) {
    entries_.erase(it);
    return;
  }
  if (!chain.ok() || chain->size() < 2) return AskLater(pod, options_.retry);
  absl::StatusOr<x509::CertificateRef> leaf = x509::Certificate::FromPem(chain->front(), "the signed certificate");
  if (!leaf.ok()) return AskLater(pod, options_.retry);
  auto secret = std::make_shared<WorkloadSecret>();
  secret->version = fmt::format("{}-{}", ++entry.generation, (*leaf)->serial().substr(0, 16));
  secret->identity = identity;
  secret->key = key;
  // All that istiod sent, roots too, as Istio's agent gives it to its Envoy; the last entry holds the roots.
  for (const std::string& pem : *chain) {
    if (!secret->chain_pem.empty() && secret->chain_pem.back() != '\n') secret->chain_pem += '\n';
    secret->chain_pem += pem;
  }
  secret->roots_pem = chain->back();
  entry.secret = std::move(secret);
  // When half of its life is over, as Istio's agent does (SECRET_GRACE_PERIOD_RATIO).
  AskLater(pod, ((*leaf)->not_after() - (*leaf)->not_before() - x509::kClockSkewGracePeriod) / 2);
  const WorkloadSecretRef now = entry.secret;
  // A listener may leave meanwhile.
  std::vector<OnSecret> listeners;
  for (const auto& [number, listener] : entry.listeners) listeners.push_back(listener);
  for (const OnSecret& listener : listeners) listener(now);
}

void WorkloadSecrets::AskLater(const std::string& pod, Duration delay) {
  const auto it = entries_.find(pod);
  const uint64_t generation = it == entries_.end() ? 0 : it->second.generation;
  frontend_.loop().PostAfter(delay, [this, pod, generation, alive = std::weak_ptr<int>(alive_)](sim::World& world) {
    if (alive.expired()) return;
    const auto entry = entries_.find(pod);
    // Made anew meanwhile: whoever did that has set a timer of its own.
    if (entry != entries_.end() && entry->second.generation == generation) Ask(world, pod);
  });
}

}  // namespace wavetank::serve
