#include "core/istiod/security_server.h"

#include <utility>

#include "core/base/status.h"
#include "core/istiod/files/local_files.h"
#include "core/istiod/istiod.h"
#include "core/security/callers/jwt_authenticator.h"
#include "core/security/callers/xfcc_authenticator.h"
#include "fmt/format.h"

namespace wavetank::pilot {

std::string DiscoveryHost(const config::MeshConfig& mesh) {
  return mesh.discovery_address.substr(0, mesh.discovery_address.rfind(':'));
}

SecurityServer::SecurityServer(const Parts& parts)
    : parts_(parts), peers_(std::make_unique<PeerCertVerifier>(parts.host, parts.surroundings.fetch, parts.lines)) {}

void SecurityServer::Stop() {
  stopped_ = true;
  if (ca_ != nullptr) ca_->Stop();
  external_ = nullptr;
  nodes_ = nullptr;
  peers_ = nullptr;
}

void SecurityServer::FindServingFiles() {
  const IstiodOptions& options = parts_.options;
  std::optional<ServingPaths> found =
      ServingFiles::Find(parts_.files, {options.tls_cert_file, options.tls_key_file, options.ca_cert_file});
  if (!found) return;
  serving_files_.emplace(*std::move(found));
  const absl::Status status = serving_files_->Start(parts_.files, [this](const absl::Status& again) {
    parts_.lines.Say(again.ok() ? "Istiod certificates are reloaded"
                                : "reload istiod cert failed: " + std::string(Message(again)));
    on_bundle_changed();
  });
  if (!status.ok()) parts_.lines.Say("error initializing certificate watches: " + std::string(Message(status)));
}

void SecurityServer::Start(config::MeshWatcher& mesh, absl::AnyInvocable<void(absl::Status)> ready) {
  mesh_ = &mesh;
  ready_ = std::move(ready);
  if (!parts_.options.enable_ca) return FetchPeerRoots();
  parts_.lines.MakingCa();
  parts_.options.external_ca.empty() ? StartOwnCa() : StartExternalCa();
}

security::IstiodCaOptions SecurityServer::CaOptions() const {
  const IstiodOptions& options = parts_.options;
  security::IstiodCaOptions out = options.ca;
  out.seed = options.seed;
  out.cluster = options.cluster_id.str();
  out.system_namespace = options.system_namespace;
  out.trust_domain = TrustDomain();
  out.dns_names = security::IstiodDnsNames(DiscoveryHost(*mesh_->mesh()), options.system_namespace, options.revision,
                                           options.custom_hosts);
  out.mount_delay = options.cacerts_mount_delay;
  return out;
}

void SecurityServer::StartExternalCa() {
  const IstiodOptions& options = parts_.options;
  const security::IstiodCaOptions own = CaOptions();
  security::ExternalCa::Options external;
  external.type = options.external_ca;
  external.signer = options.k8s_signer;
  external.signer_domain = options.cert_signer_domain;
  external.cert_provider = options.cert_provider;
  external.seed = options.seed;
  external.name = options.name;
  external.cluster = own.cluster;
  external.system_namespace = options.system_namespace;
  external.dns_names = own.dns_names;
  external.max_workload_ttl = own.ca.max_workload_ttl;
  external.api_server_roots_pem = parts_.surroundings.api_server_roots;
  external.serving_ttl = own.ca.self_signed_ttl;
  external_ = std::make_unique<security::ExternalCa>(
      parts_.host, parts_.client, std::move(external),
      [this]() -> const std::vector<config::SignerRoots>& { return mesh_->ca_certificates().signer_roots; });
  external_->Start(UntilStopped([this](absl::Status status) {
    if (!status.ok()) return ready_(status);
    external_->replaces_istiod_ca() ? FetchPeerRoots() : StartOwnCa();
  }));
}

void SecurityServer::StartOwnCa() {
  ca_ = std::make_unique<security::IstiodCa>(parts_.host, parts_.client, CaOptions());
  ca_->Start(UntilStopped([this](absl::Status status) { status.ok() ? FetchPeerRoots() : ready_(status); }));
}

void SecurityServer::FetchPeerRoots() {
  peers_->Fetch(parts_.options.spiffe_bundle_endpoints,
                UntilStopped([this](const absl::Status& status) { ready_(status); }));
}

bool SecurityServer::SignsForItself() const { return ca_ != nullptr && parts_.options.cert_provider == "istiod"; }

StartLines::Signer SecurityServer::signer() const {
  if (ca_ != nullptr) return ca_->plugged_in() ? StartLines::Signer::kPlugged : StartLines::Signer::kSelfSigned;
  return external_ != nullptr ? StartLines::Signer::kOthers : StartLines::Signer::kNone;
}

const security::ServingCertificate* SecurityServer::serving() const {
  if (serving_files_) return serving_files_->certificate().key == nullptr ? nullptr : &serving_files_->certificate();
  if (SignsForItself()) return ca_->ca() == nullptr ? nullptr : &ca_->serving_certificate();
  if (external_ == nullptr || external_->serving_certificate().key == nullptr) return nullptr;
  return &external_->serving_certificate();
}

const std::string& SecurityServer::bundle_pem() const {
  if (serving_files_) return serving_files_->roots_pem();
  if (SignsForItself()) return ca_->ca_bundle_pem();
  return external_ != nullptr ? external_->ca_bundle_pem() : no_bundle_;
}

absl::Status SecurityServer::AddRoots(security::TrustBundleSources& to) const {
  using Source = security::TrustBundleSources::Source;
  if (ca_ != nullptr) {
    absl::Status status = to.Update(Source::kIstioCa, {ca_->ca()->bundle()->roots_pem()});
    if (!status.ok()) return status;
  }
  if (external_ == nullptr || external_->roots_pem().empty()) return absl::OkStatus();
  return to.Update(Source::kIstioRa, {external_->roots_pem()});
}

absl::Status SecurityServer::CheckCertProvider() const {
  const std::string& provider = parts_.options.cert_provider;
  const bool others = external_ != nullptr && external_->replaces_istiod_ca();
  if (serving_files_ || others) return absl::OkStatus();
  if (provider == "kubernetes") {
    return absl::NotFoundError(
        "failed generating key and cert by kubernetes: unable to submit CSR request (). Error: the server could not "
        "find the requested resource");
  }
  constexpr std::string_view kRoots = "./etc/certs/root-cert.pem";
  if (provider.starts_with("k8s.io/") && !parts_.files.Read(kRoots)) {
    return absl::NotFoundError(fmt::format("failed reading {0}: open {0}: no such file or directory", kRoots));
  }
  return absl::OkStatus();
}

absl::Status SecurityServer::AddAuthenticators(std::function<bool(const ClusterId&)> reads) {
  const IstiodOptions& options = parts_.options;
  authentication_.Add(std::make_unique<security::ClientCertAuthenticator>());
  if (!options.jwt_rule.empty()) {
    const auto wrong = [](const absl::Status& why) {
      return absl::Status(why.code(), fmt::format("error initializing OIDC: {}", Message(why)));
    };
    absl::StatusOr<security::JwtRule> rule = security::ParseJwtRule(options.jwt_rule);
    if (!rule.ok()) return wrong(rule.status());
    const auto nowhere = [](const std::string&) { return std::optional<std::string>(); };
    auto oidc = security::JwtAuthenticator::Create(*std::move(rule), TrustDomain(),
                                                   parts_.surroundings.fetch ? parts_.surroundings.fetch : nowhere,
                                                   [&host = parts_.host] { return host.WallClock(); });
    if (!oidc.ok()) return wrong(oidc.status());
    authentication_.Add(*std::move(oidc));
  }
  authentication_.Add(std::make_unique<security::KubeJwtAuthenticator>(
      options.cluster_id.str(), TrustDomain(),
      [this, reads = std::move(reads)](std::string_view cluster) -> kube::TokenReviewer* {
        if (stopped_ || !parts_.surroundings.token_reviewer) return nullptr;
        const ClusterId id{std::string(cluster)};
        if (id != parts_.options.cluster_id && !reads(id)) return nullptr;
        return parts_.surroundings.token_reviewer(cluster);
      },
      options.tokens));
  if (!options.trusted_gateways.empty()) {
    authentication_.Add(std::make_unique<security::XfccAuthenticator>(options.trusted_gateways));
  }
  return absl::OkStatus();
}

void SecurityServer::ServeCertificates() {
  if (!HasCertificates()) return;
  Host& host = parts_.host;
  const IstiodOptions& options = parts_.options;
  if (external_ != nullptr) {
    ca_server_ = std::make_unique<security::CaServer>(
        host, options.name,
        UntilStopped([ra = external_->ra()](security::SigningRequest request, security::KubernetesRa::Done done) {
          ra->Sign(std::move(request), std::move(done));
        }),
        authentication_);
    mesh_->AddMeshHandler([this] { external_->OnMeshChanged(); });
  } else {
    ca_server_ = std::make_unique<security::CaServer>(host, options.name, *ca_->ca(), authentication_);
  }
  if (!options.trusted_node_accounts.empty()) {
    nodes_ = std::make_unique<security::NodeAuthorizer>(host, parts_.client, options.trusted_node_accounts);
    nodes_->Start();
    ca_server_->set_may_impersonate([this](const auto& caller, const auto& identity) {
      return stopped_ ? absl::UnavailableError("istiod is gone") : nodes_->MayImpersonate(caller, identity);
    });
  }
  const auto changed = [this] { on_bundle_changed(); };
  ca_ != nullptr ? ca_->AddBundleHandler(changed) : external_->AddBundleHandler(changed);
}

absl::Status SecurityServer::VerifyClient(const std::vector<x509::CertificateRef>& chain) const {
  std::string own_roots;
  if (ca_ != nullptr && ca_->ca() != nullptr) own_roots = ca_->ca()->bundle()->roots_pem();
  if (external_ != nullptr) own_roots += external_->roots_pem();
  return peers_->Verify(chain, TrustDomain(), own_roots);
}

void SecurityServer::Authenticate(security::PeerCredentials peer, security::AuthenticateCallback done) {
  authentication_.Authenticate(std::move(peer),
                               [self = shared_from_this(), done = std::move(done)](
                                   absl::StatusOr<security::Caller> caller) mutable { done(std::move(caller)); });
}

void SecurityServer::CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                                       security::CaServer::Done done) {
  if (ca_server_ == nullptr) {
    // Without a CA nobody has registered the service (grpc-go: server.go, handleStream).
    absl::Status why = parts_.options.enable_ca
                           ? absl::UnavailableError("istiod is not ready")
                           : absl::UnimplementedError("unknown service istio.v1.auth.IstioCertificateService");
    parts_.host.Post([done = std::move(done), why = std::move(why)]() mutable { done(why); });
    return;
  }
  // The answer of an istiod that died meanwhile never arrives.
  ca_server_->CreateCertificate(std::move(peer), std::move(request),
                                [self = shared_from_this(), done = std::move(done)](auto chain) mutable {
                                  if (!self->stopped_) done(std::move(chain));
                                });
}

}  // namespace wavetank::pilot
