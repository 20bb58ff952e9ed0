#include "sim/signing/istio_csr.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "core/kube/safe_text.h"
#include "fakes/envoy/tls/tls.h"
#include "fakes/kube/objects/conditions.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr kube::ResourceKind kRequests{"cert-manager.io", "v1", "CertificateRequest", "certificaterequests"};
constexpr kube::ResourceKind kConfigMaps{"", "v1", "ConfigMap", "configmaps"};
constexpr Duration kFirstRetry = 1s, kLastRetry = 30s;
constexpr const char* kIdentities = "istio.cert-manager.io/identities";

std::string Decoded(const json& status, std::string_view field) {
  std::string out;
  return absl::Base64Unescape(Text(status, field), &out) ? out : std::string();
}

json ReferenceTo(const IssuerName& issuer) {
  return {{"name", issuer.name}, {"kind", issuer.kind}, {"group", issuer.group}};
}

// istio-csr: pkg/server/auth.go. OK, or what it logs.
absl::Status MayHave(const std::vector<std::string>& identities, const std::string& csr_pem) {
  const absl::StatusOr<x509::CertificateRequest> csr = x509::ParseCsr(csr_pem, "CSR");
  if (!csr.ok()) return absl::InvalidArgumentError(fmt::format("failed to decode CSR: {}", Message(csr.status())));
  if (!csr->sans.dns_names.empty() || !csr->sans.ip_addresses.empty() || !csr->subject.common_name.empty())
    return absl::InvalidArgumentError("forbidden extensions");
  std::vector<std::string> asked = csr->sans.uris, theirs = identities;
  std::sort(asked.begin(), asked.end());
  std::sort(theirs.begin(), theirs.end());
  if (asked == theirs) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("failed to match URIs with identities: [{}] != [{}]", fmt::join(theirs, " "), fmt::join(asked, " ")));
}

}  // namespace

IstioCsr::IstioCsr(Parts parts, IstioCsrSettings settings)
    : parts_(std::move(parts)),
      settings_(std::move(settings)),
      names_(parts_.seed, "istio-csr/" + parts_.name),
      requests_(*parts_.client, parts_.host, kRequests, {settings_.certificate_namespace, "", ""}),
      issuer_map_(*parts_.client, parts_.host, kConfigMaps,
                  {settings_.issuer_map_namespace, "", fmt::format("metadata.name={}", settings_.issuer_map)}),
      namespaces_(parts_.host, *parts_.client, settings_.cluster_id, parts_.seed, [this] { return roots_; }),
      server_(
          parts_.channels, parts_.host, parts_.workload, [this] { return Tls(); }, *this) {
  if (settings_.client_certificates) authentication_.Add(std::make_unique<security::ClientCertAuthenticator>());
  // It knows no other cluster's tokens (istio-csr: pkg/server/server.go, New).
  authentication_.Add(std::make_unique<security::KubeJwtAuthenticator>(
      settings_.cluster_id, settings_.trust_domain,
      [this](std::string_view cluster) { return cluster == settings_.cluster_id ? parts_.reviewer.get() : nullptr; }));
}

IstioCsr::~IstioCsr() = default;

void IstioCsr::Start(std::function<void()> changed) {
  changed_ = std::move(changed);
  const auto look = [this](const kube::ObjectRef& object) { Look(*object); };
  requests_.AddHandler({look, [look](const kube::ObjectRef&, const kube::ObjectRef& now) { look(now); }, {}});
  requests_.Start();
  const auto begin = [this] {
    if (!Issuer()) return;
    if (settings_.makes_istiod_certificate && MayLead()) MakeIstiodCertificate();
    if (!ready() && fetching_.empty()) FetchServingCertificate();
  };
  if (settings_.issuer_map.empty()) return begin();
  const auto named = [begin](const kube::ObjectRef&) { begin(); };
  issuer_map_.AddHandler({named, [begin](const kube::ObjectRef&, const kube::ObjectRef&) { begin(); }, named});
  issuer_map_.OnSynced(begin);
  issuer_map_.Start();
}

// istio-csr: pkg/certmanager/certmanager.go.
std::optional<IssuerName> IstioCsr::Issuer() const {
  const kube::ObjectRef map =
      settings_.issuer_map.empty() ? nullptr : issuer_map_.Get(settings_.issuer_map_namespace, settings_.issuer_map);
  if (map == nullptr) return settings_.issuer;
  const json& data = At(map->body, "data");
  IssuerName out{Text(data, "issuer-name"), Text(data, "issuer-kind", "Issuer"),
                 Text(data, "issuer-group", "cert-manager.io")};
  return out.name.empty() ? settings_.issuer : std::optional(std::move(out));
}

void IstioCsr::Ask(const std::string& csr_pem, const std::string& identities, Duration lifetime, OnSigned done) {
  const std::string name = "istio-csr-" + kube::SafeText(names_, 5);
  const std::optional<IssuerName> issuer = Issuer();
  if (!issuer) {
    parts_.host.Post([done = std::move(done)]() mutable {
      done(absl::FailedPreconditionError("no active issuerRef is configured for istio-csr"));
    });
    return;
  }
  json body = {
      {"apiVersion", "cert-manager.io/v1"},
      {"kind", "CertificateRequest"},
      {"metadata",
       {{"name", name}, {"namespace", settings_.certificate_namespace}, {"annotations", {{kIdentities, identities}}}}},
      {"spec",
       {{"duration", GoDurationText(lifetime / 1ns)},
        {"isCA", false},
        {"request", absl::Base64Escape(csr_pem)},
        {"usages", json::array({"client auth", "server auth"})},
        {"issuerRef", ReferenceTo(*issuer)}}}};
  waiting_[name].done = std::move(done);
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  const auto failed = [this, name](const absl::Status& why) {
    const auto it = waiting_.find(name);
    if (it == waiting_.end()) return;
    OnSigned call = std::move(it->second.done);
    waiting_.erase(it);
    call(why);
  };
  if (!object.ok()) return failed(object.status());
  if (identities.empty()) fetching_ = name;
  parts_.client->Apply(*std::move(object), WhileAlive([this, name, failed](absl::StatusOr<kube::ObjectRef> stored) {
    if (!stored.ok())
      return failed(absl::Status(stored.status().code(),
                                 fmt::format("failed to create CertificateRequest: {}", Message(stored.status()))));
    if (const absl::Status may = MayFollow(name); !may.ok()) failed(may);
  }));
}

// istio-csr: pkg/certmanager/certmanager.go, waitForCertificateRequest(), which watches the one request and gets it;
// here an informer stands for both.
absl::Status IstioCsr::MayFollow(const std::string& name) const {
  constexpr const char* kWatcher = "failed to build watcher for CertificateRequest";
  for (const auto& [verb, words] :
       {std::pair("watch", kWatcher), std::pair("get", "failed to get CertificateRequest")}) {
    const absl::Status may =
        parts_.rights->Ask({"", verb, "cert-manager.io", "certificaterequests", settings_.certificate_namespace, name});
    if (may.ok()) continue;
    return absl::PermissionDeniedError(fmt::format("failed to wait for CertificateRequest {}/{} to be signed: {}: {}",
                                                   settings_.certificate_namespace, name, words, Message(may)));
  }
  return absl::OkStatus();
}

void IstioCsr::Look(const kube::Object& request) {
  const auto it = waiting_.find(request.meta.name);
  if (it == waiting_.end()) return;
  const json& status = At(request.body, "status");
  Signed answer{Decoded(status, "certificate"), Decoded(status, "ca")};
  const json& ready = fakekube::ConditionOf(At(status, "conditions"), "Ready");
  const std::string reason = Text(ready, "reason");
  const bool refused = reason == "Failed" || reason == "Denied";
  it->second.words = Text(ready, "message");
  if (answer.chain.empty() && !refused) return;
  // Not from within the watch that brought it.
  parts_.host.Post(WhileAlive([this, name = request.meta.name, refused, answer = std::move(answer)]() mutable {
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) return;
    Waiting waited = std::move(found->second);
    waiting_.erase(found);
    if (!settings_.preserve_requests)
      parts_.client->Delete(kRequests, {settings_.certificate_namespace, name}, [](const absl::Status&) {});
    if (!refused) return waited.done(std::move(answer));
    waited.done(absl::FailedPreconditionError(fmt::format(
        "failed to wait for CertificateRequest {}/{} to be signed: created CertificateRequest has failed: {}",
        settings_.certificate_namespace, name, waited.words)));
  }));
}

absl::StatusOr<std::string> IstioCsr::Roots(const std::string& ca) const {
  if (!settings_.roots_file.empty()) return parts_.roots_file();
  if (!ca.empty()) return ca;
  return absl::NotFoundError("the issuer tells no CA: --root-ca-file has to say what the roots are");
}

void IstioCsr::FetchServingCertificate() {
  if (!settings_.no_request.empty()) return Retry(absl::InvalidArgumentError(settings_.no_request));
  const x509::KeyPairRef key =
      x509::KeyPair::Derive(parts_.seed, fmt::format("istio-csr/{}/{}", parts_.name, ++fetched_));
  Ask(x509::CreateCsr(*key, {}, settings_.serving_names), {}, settings_.serving_lifetime,
      [this, key](const absl::StatusOr<Signed>& answer) {
        fetching_.clear();
        const absl::Status taken =
            answer.ok() ? TakeServingCertificate(*answer, key)
                        : absl::Status(answer.status().code(),
                                       fmt::format("failed to sign serving certificate: {}", Message(answer.status())));
        taken.ok() ? changed_() : Retry(taken);
      });
}

absl::Status IstioCsr::TakeServingCertificate(const Signed& answer, x509::KeyPairRef key) {
  absl::StatusOr<std::vector<x509::CertificateRef>> chain = x509::ParseCertificates(answer.chain, "status.certificate");
  if (!chain.ok()) return chain.status();
  absl::StatusOr<std::string> roots = Roots(answer.ca);
  if (!roots.ok()) return roots.status();
  failed_ = absl::OkStatus();
  retry_ = kFirstRetry;
  const bool other = roots_ != *roots;
  roots_ = *std::move(roots);
  trusted_ = x509::TrustBundle::FromPem(roots_, "the roots of istio-csr");
  const Duration left = chain->front()->not_after() - parts_.host.WallClock();
  serving_ = {std::move(key), *std::move(chain)};
  tls_ = nullptr;
  // Renewed when two thirds of its life are over (istio-csr: pkg/tls/tls.go).
  if (left > Duration::zero()) parts_.host.RunAfter(left / 3 * 2, WhileAlive([this] { FetchServingCertificate(); }));
  if (leads_ && other) namespaces_.OnBundleChanged();
  if (!std::exchange(stands_, true) && settings_.ends_when_serving.empty()) Lead();
  return absl::OkStatus();
}

// Alone it leads as soon as it may write the lease, and leaders alone write roots (istio-csr: cmd/app/app.go,
// LeaderElection; client-go: tools/leaderelection, which tries again for ever).
void IstioCsr::Lead() {
  leads_ = MayLead();
  if (leads_) return namespaces_.Start();
  parts_.host.RunAfter(kLastRetry, WhileAlive([this] { Lead(); }));
}

bool IstioCsr::MayLead() const {
  bool may = true;
  for (const auto& [verb, name] :
       {std::pair("get", "istio-csr"), std::pair("create", ""), std::pair("update", "istio-csr")}) {
    const absl::Status asked =
        parts_.rights->Ask({"", verb, "coordination.k8s.io", "leases", settings_.leader_namespace, name});
    may = may && asked.ok();
  }
  return may;
}

void IstioCsr::Retry(const absl::Status& why) {
  failed_ = why;
  const Duration wait = std::exchange(retry_, std::min(retry_ * 2, kLastRetry));
  parts_.host.RunAfter(wait, WhileAlive([this] {
                         if (fetching_.empty()) FetchServingCertificate();
                       }));
}

std::string IstioCsr::Trouble() const {
  if (ready()) return "";
  if (serving_.key != nullptr) return EndsWith(settings_.container, settings_.ends_when_serving);
  if (!Issuer()) {
    return fmt::format("istio-csr waits for an issuer: ConfigMap {}/{} is not there, and --issuer-enabled is false",
                       settings_.issuer_map_namespace, settings_.issuer_map);
  }
  const auto asked = waiting_.find(fetching_);
  if (asked != waiting_.end() && !asked->second.words.empty()) {
    return fmt::format("initial serving certificate didn't complete in 10s; will retry: CertificateRequest {}/{}: {}",
                       settings_.certificate_namespace, fetching_, asked->second.words);
  }
  if (failed_.ok()) return "istio-csr waits for its serving certificate";
  return fmt::format("failed to fetch initial serving certificate in 10s: {}; will retry", Message(failed_));
}

absl::Status IstioCsr::complaint() const {
  if (!ready()) return absl::UnavailableError(Trouble());
  if (const std::string forbidden = Forbidden(); !forbidden.empty()) return absl::PermissionDeniedError(forbidden);
  if (refused_.empty()) return absl::OkStatus();
  return absl::UnauthenticatedError(
      fmt::format("istio-csr sends {} away: {}", refused_.begin()->first, refused_.begin()->second));
}

// What keeps it from its work although it is ready: that its own requests were refused it tells of those.
std::string IstioCsr::Forbidden() const {
  const std::string words = parts_.rights->refusal();
  const bool of_requests = words.starts_with("certificaterequests") || words.starts_with("tokenreviews");
  if (words.empty() || (of_requests && !refused_.empty())) return "";
  return fmt::format("istio-csr is refused by its API server: {}", words);
}

// istio-csr: pkg/istiodcert/worker.go.
void IstioCsr::MakeIstiodCertificate() {
  const IssuerName issuer = *Issuer();
  json names = json::array();
  for (const std::string& revision : settings_.istiod_revisions) {
    names.push_back(revision == "default" ? fmt::format("istiod.{}.svc", settings_.istiod_namespace)
                                          : fmt::format("istiod-{}.{}.svc", revision, settings_.istiod_namespace));
  }
  const std::string first = names.empty() ? std::string() : names.front().get<std::string>();
  for (const std::string& name : settings_.istiod_more_names) names.push_back(name);
  const std::string identity =
      fmt::format("spiffe://{}/ns/{}/sa/istiod-service-account", settings_.trust_domain, settings_.istiod_namespace);
  const json body = {{"apiVersion", "cert-manager.io/v1"},
                     {"kind", "Certificate"},
                     {"metadata", {{"name", settings_.istiod_certificate}, {"namespace", settings_.istiod_namespace}}},
                     {"spec",
                      {{"commonName", first},
                       {"dnsNames", std::move(names)},
                       {"uris", json::array({identity})},
                       {"secretName", IstioCsrSettings::kIstiodSecret},
                       {"duration", GoDurationText(settings_.istiod_lifetime / 1ns)},
                       {"renewBefore", GoDurationText(settings_.istiod_renew_before / 1ns)},
                       {"issuerRef", ReferenceTo(issuer)}}}};
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(body);
  if (object.ok()) parts_.client->Apply(*std::move(object), [](const absl::StatusOr<kube::ObjectRef>&) {});
}

std::shared_ptr<const envoysim::TlsServer> IstioCsr::Tls() {
  if (serving_.key == nullptr) return nullptr;
  if (tls_ == nullptr) {
    auto context = std::make_shared<envoysim::TlsContext>();
    context->alpn = {"h2"};
    auto tls = std::make_shared<envoysim::TlsServer>();
    tls->context = std::move(context);
    tls->certificate = envoysim::CertificateChain::Of(serving_.chain);
    tls_ = std::move(tls);
  }
  return tls_;
}

bool IstioCsr::Believes(const std::vector<x509::CertificateRef>& chain) const {
  if (chain.empty()) return true;
  return trusted_.ok() && x509::Verify(chain, **trusted_, parts_.host.WallClock()).ok();
}

void IstioCsr::CreateCertificate(security::PeerCredentials peer, security::CertificateRequestMessage request,
                                 security::CaServer::Done done) {
  const std::string cluster = peer.cluster_id;
  // Opaque, as istiod's is.
  constexpr const char* kRefused = "request authenticate failure";
  authentication_.Authenticate(
      std::move(peer), WhileAlive([this, cluster, request = std::move(request),
                                   done = std::move(done)](absl::StatusOr<security::Caller> caller) mutable {
        const std::string as = "callers of cluster " + cluster;
        if (!caller.ok()) {
          refused_[as] = fmt::format("failed to authenticate request: {}", Message(caller.status()));
          return done(absl::UnauthenticatedError(kRefused));
        }
        refused_.erase(as);
        const std::string identity = fmt::format("{}", fmt::join(caller->identities, ","));
        const absl::Status may = request.impersonated_identity.empty()
                                     ? MayHave(caller->identities, request.csr)
                                     : absl::PermissionDeniedError(
                                           "impersonation not allowed, as node authorizer (CA_TRUSTED_NODE_ACCOUNTS) "
                                           "is not configured");
        if (!may.ok()) {
          refused_[identity] = std::string(Message(may));
          return done(absl::UnauthenticatedError(kRefused));
        }
        Sign(identity, request, std::move(done));
      }));
}

void IstioCsr::Sign(const std::string& identity, const security::CertificateRequestMessage& request,
                    security::CaServer::Done done) {
  const Duration asked = std::chrono::seconds(std::clamp<int64_t>(request.validity_seconds, 0, Duration::max() / 1s));
  Ask(request.csr, identity, std::min(asked, settings_.max_client_lifetime),
      [this, identity, done = std::move(done)](const absl::StatusOr<Signed>& answer) mutable {
        if (!answer.ok()) {
          refused_[identity] =
              fmt::format("failed to sign incoming client certificate signing request: {}", Message(answer.status()));
          return done(absl::InternalError("failed to sign certificate request"));
        }
        absl::StatusOr<std::vector<std::string>> chain = ChainOf(*answer);
        if (!chain.ok()) {
          refused_[identity] = std::string(Message(chain.status()));
          return done(absl::InternalError("failed to parse and verify signed certificate from issuer"));
        }
        refused_.erase(identity);
        done(std::move(chain));
      });
}

// istio-csr: pkg/server/server.go, parseCertificateBundle.
absl::StatusOr<std::vector<std::string>> IstioCsr::ChainOf(const Signed& answer) const {
  const absl::StatusOr<std::vector<x509::CertificateRef>> chain =
      x509::ParseCertificates(answer.chain, "status.certificate");
  if (!chain.ok()) return chain.status();
  if (!trusted_.ok()) return trusted_.status();
  if (const x509::VerifyResult verified = x509::Verify(*chain, **trusted_, parts_.host.WallClock()); !verified.ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "failed to verify the issued certificate chain against the current mesh roots: {}", verified.reason));
  }
  std::vector<std::string> out;
  for (const x509::CertificateRef& certificate : *chain) out.push_back(certificate->ToPem());
  out.push_back(roots_);
  return out;
}

}  // namespace wavetank::sim
