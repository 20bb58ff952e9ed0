#include "core/security/signing/external_ca.h"

#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/secret.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::security {
namespace {

constexpr std::string_view kKubernetesApi = "ISTIOD_RA_KUBERNETES_API";
constexpr std::string_view kKubernetesProvider = "kubernetes", kSignerPrefix = "k8s.io/";
// What a Deployment mounts at ./etc/external-ca-cert, and what every pod has of its API server.
constexpr const char *kExternalRoots = "external-ca-cert", *kApiServerRoots = "kube-root-ca.crt";

using StatusDone = absl::AnyInvocable<void(absl::Status)>;

}  // namespace

ExternalCa::ExternalCa(Host& host, kube::Client& client, Options options, KubernetesRa::MeshRoots mesh_roots)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      mesh_roots_(std::move(mesh_roots)),
      // Another life of the same istiod draws other names: the requests of the one before may still be there.
      signing_(host, client, options_.seed,
               fmt::format("{}/{}", options_.name, host.Now().time_since_epoch().count())) {}

bool ExternalCa::replaces_istiod_ca() const {
  return options_.cert_provider == kKubernetesProvider || options_.cert_provider.starts_with(kSignerPrefix);
}

// Without a name of its own it is the legacy signer (chiron: GenKeyCertK8sCA).
std::string ExternalCa::ServingSigner() const {
  return options_.cert_provider.starts_with(kSignerPrefix) ? options_.cert_provider.substr(kSignerPrefix.size())
                                                           : std::string(kLegacySigner);
}

void ExternalCa::Start(StatusDone done) {
  if (options_.type != kKubernetesApi) {
    return done(absl::InvalidArgumentError(fmt::format(
        "failed to create RA: invalid CA Name {}; EXTERNAL_CA can be {} in 1.18.2", options_.type, kKubernetesApi)));
  }
  LoadRoots([this, done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return done(std::move(status));
    ra_ = std::make_unique<KubernetesRa>(
        host_, signing_,
        KubernetesRa::Options{options_.signer, options_.signer_domain, roots_pem_, options_.max_workload_ttl},
        mesh_roots_);
    if (!replaces_istiod_ca()) return done(absl::OkStatus());
    MakeServing([this, done = std::move(done)](absl::Status made) mutable {
      if (made.ok()) ScheduleRenewal();
      done(std::move(made));
    });
  });
}

// The mounted Secret's; without it the API server's, unless a domain of signers is named: then none.
void ExternalCa::LoadRoots(StatusDone done) {
  const auto use = [this](std::string pem) {
    roots_pem_ = std::move(pem);
    if (roots_pem_.empty() || x509::TrustBundle::FromPem(roots_pem_, "the external CA's roots").ok()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "failed to create RA: failed to create an K8s CA: error processing Certificate Bundle for Kubernetes RA");
  };
  const kube::ListOptions secret{options_.system_namespace, "", fmt::format("metadata.name={}", kExternalRoots)};
  client_.List(
      kube::kinds::kSecret, secret,
      [this, use, alive = std::weak_ptr(alive_),
       done = std::move(done)](absl::StatusOr<kube::ObjectList> found) mutable {
        if (alive.expired()) return;
        if (!found.ok()) return done(found.status());
        if (!found->items.empty()) {
          const auto data = kube::ReadSecretData(*found->items.front());
          return done(data.ok() ? use(kube::SecretEntry(*data, "root-cert.pem")) : data.status());
        }
        if (!options_.signer_domain.empty()) return done(use(""));
        const kube::ListOptions map{options_.system_namespace, "", fmt::format("metadata.name={}", kApiServerRoots)};
        client_.List(kube::kinds::kConfigMap, map,
                     [this, use, alive, done = std::move(done)](absl::StatusOr<kube::ObjectList> maps) mutable {
                       if (alive.expired()) return;
                       if (!maps.ok()) return done(maps.status());
                       done(use(maps->items.empty() ? options_.api_server_roots_pem
                                                    : Text(At(maps->items.front()->body, "data"), "ca.crt")));
                     });
      });
}

void ExternalCa::MakeServing(StatusDone done) {
  const x509::KeyPairRef key =
      x509::KeyPair::Derive(options_.seed, fmt::format("istiod/{}/{}", options_.cluster, ++serving_generation_));
  CertificateSigning::Request request;
  request.csr_pem = x509::CreateCsr(*key, {}, options_.dns_names);
  request.signer = ServingSigner();
  request.dns_name = fmt::format("{}", fmt::join(options_.dns_names, ","));
  request.lifetime = options_.serving_ttl;
  signing_.Sign(std::move(request), [this, key, done = std::move(done)](absl::StatusOr<std::string> pem) mutable {
    if (!pem.ok()) {
      return done(absl::Status(pem.status().code(),
                               fmt::format("failed generating key and cert by kubernetes: {}", Message(pem.status()))));
    }
    done(Serve(key, *std::move(pem)));
  });
}

absl::Status ExternalCa::Serve(x509::KeyPairRef key, std::string pem) {
  auto chain = x509::ParseCertificates(pem, "istiod's certificate of the signer");
  if (!chain.ok()) return chain.status();
  if (!chain->front()->Matches(*key)) return absl::InternalError("the signer's certificate is of another key");
  absl::StatusOr<std::string> root = ra_->RootOf(ServingSigner());
  if (!root.ok()) return root.status();
  serving_ = {std::move(key), *std::move(chain)};
  ca_bundle_pem_ = *std::move(root);
  for (Callback& handler : handlers_) handler();
  return absl::OkStatus();
}

// At half of its life, again and again; what fails is tried at once in reality, here after a second.
void ExternalCa::ScheduleRenewal() {
  const x509::Certificate& leaf = *serving_.chain.front();
  const Duration life = leaf.not_after() - leaf.not_before();
  const Duration wait = std::max<Duration>(1s, leaf.not_after() - life / 2 - host_.WallClock());
  host_.RunAfter(wait, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    MakeServing([this](const absl::Status&) { ScheduleRenewal(); });
  });
}

void ExternalCa::OnMeshChanged() {
  if (!replaces_istiod_ca() || ra_ == nullptr) return;
  const absl::StatusOr<std::string> root = ra_->RootOf(ServingSigner());
  if (root.ok() && *root != ca_bundle_pem_) MakeServing([](const absl::Status&) {});
}

}  // namespace wavetank::security
