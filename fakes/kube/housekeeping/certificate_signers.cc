#include "fakes/kube/housekeeping/certificate_signers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/base/bounds.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr std::string_view kClusterIssuers = "clusterissuers.cert-manager.io/";
// cert-manager: --cluster-resource-namespace.
constexpr const char* kIssuersNamespace = "cert-manager";
constexpr const char* kGroup = "cert-manager.io";
constexpr const char* kNoIssuer = "Referenced issuer not found";
constexpr Duration kDefaultLifetime = 24h * 90, kOutsideLifetime = 24h * 365 * 100;

// Kubernetes' signers, with the usages that each asks for and allows.
struct OwnSigner {
  std::string_view name;
  std::vector<std::string_view> usages;
};
const std::vector<OwnSigner>& OwnSigners() {
  static const auto* const signers = new std::vector<OwnSigner>{
      {"kubernetes.io/kube-apiserver-client", {"client auth", "digital signature", "key encipherment"}},
      {"kubernetes.io/kube-apiserver-client-kubelet", {"client auth", "digital signature", "key encipherment"}},
      {"kubernetes.io/kubelet-serving", {"digital signature", "key encipherment", "server auth"}}};
  return *signers;
}

bool HasCondition(const kube::Object& request, std::string_view type) {
  const json& conditions = Items(At(request.body, {"status", "conditions"}));
  return std::any_of(conditions.begin(), conditions.end(), [&](const json& c) { return Text(c, "type") == type; });
}

// Whether cert-manager has said anything of a CertificateRequest yet.
bool HasStatus(const kube::Object& request) { return !Items(At(request.body, {"status", "conditions"})).empty(); }

// What it asks for: expirationSeconds, or the annotation that cert-manager knows.
Duration LifetimeOf(const kube::Object& request) {
  if (const int64_t seconds = Number(At(request.body, "spec"), "expirationSeconds"); seconds > 0) {
    return bounds::Seconds(seconds);
  }
  const auto said = request.meta.annotations.find("experimental.cert-manager.io/request-duration");
  if (said == request.meta.annotations.end()) return kDefaultLifetime;
  const std::optional<Duration> parsed = ParseGoDuration(said->second);
  return parsed && *parsed > Duration::zero() ? std::min<Duration>(*parsed, bounds::kInputDuration) : kDefaultLifetime;
}

// Refused by Kubernetes' own signer for its usages; nothing: it is no signer of Kubernetes, or it would sign. This
// cluster's controller manager was given no certificate to sign with (--cluster-signing-cert-file), and such requests
// stay as they were approved.
std::optional<absl::Status> RefusedByKubernetes(const kube::Object& request, const std::string& signer) {
  const auto own = std::find_if(OwnSigners().begin(), OwnSigners().end(),
                                [&](const OwnSigner& each) { return each.name == signer; });
  if (own == OwnSigners().end()) return std::nullopt;
  std::vector<std::string> asked;
  for (const json& usage : Items(At(request.body, {"spec", "usages"}))) asked.push_back(TextOf(usage));
  std::sort(asked.begin(), asked.end());
  if (std::equal(asked.begin(), asked.end(), own->usages.begin(), own->usages.end())) return std::nullopt;
  // kubernetes: pkg/controller/certificates/signer, validAPIServerClientUsages(): all but the client's are optional.
  if (own == OwnSigners().begin()) {
    const auto client = std::find(asked.begin(), asked.end(), "client auth");
    const auto strange = std::find_if(asked.begin(), asked.end(), [&](const std::string& usage) {
      return std::find(own->usages.begin(), own->usages.end(), usage) == own->usages.end();
    });
    if (strange != asked.end()) return absl::InvalidArgumentError("invalid usage for client certificate: " + *strange);
    if (client != asked.end()) return std::nullopt;
    return absl::InvalidArgumentError("missing required usage for client certificate: client auth");
  }
  return absl::InvalidArgumentError(fmt::format("usages did not match, expected [{}]", fmt::join(own->usages, " ")));
}

// What signs for a Certificate.
struct Authority {
  x509::KeyPairRef key;                     // null: the Certificate itself
  std::vector<x509::CertificateRef> chain;  // its own certificate, then its issuers
  bool tells_ca = true;                     // in what it signs; an ACME server does not
};

// NotFound: it may come yet.
absl::StatusOr<Authority> AuthorityOf(const ApiServer& api, const json& ref, const std::string& ns, uint64_t seed) {
  const std::string group = Text(ref, "group", kGroup), name = Text(ref, "name");
  const bool anywhere = Text(ref, "kind") == "ClusterIssuer";
  Authority out;
  bool acme = false;
  if (group == kGroup) {
    const ObjectRef issuer =
        anywhere ? api.Get("ClusterIssuer.cert-manager.io", {"", name}) : api.Get("Issuer.cert-manager.io", {ns, name});
    if (issuer == nullptr) return absl::NotFoundError(kNoIssuer);
    const json& spec = At(issuer->body, "spec");
    if (At(spec, "selfSigned").is_object()) return out;
    acme = At(spec, "acme").is_object();
    if (At(spec, "ca").is_object()) {
      const ObjectRef secret =
          api.Get("Secret", {anywhere ? kIssuersNamespace : ns, Text(At(spec, "ca"), "secretName")});
      if (secret == nullptr) return absl::NotFoundError("Referenced secret not found");
      const auto data = kube::ReadSecretData(*secret);
      if (!data.ok()) return data.status();
      auto chain = x509::ParseCertificates(kube::SecretEntry(*data, "tls.crt"), "tls.crt of the issuer");
      if (!chain.ok()) return chain.status();
      auto key = x509::KeyPair::FromPem(kube::SecretEntry(*data, "tls.key"), "tls.key of the issuer");
      if (!key.ok()) return key.status();
      out.chain = *std::move(chain);
      out.key = *std::move(key);
      return out;
    }
  }
  const x509::CertificateAuthority outside = x509::MakeRootCa(seed, "outside authority", Time{}, kOutsideLifetime);
  out.key = outside.key;
  out.chain = {outside.certificate};
  out.tells_ca = !acme;
  return out;
}

Duration SaidLifetime(const json& spec) {
  const std::optional<Duration> said = ParseGoDuration(Text(spec, "duration"));
  return said && *said > Duration::zero() ? std::min<Duration>(*said, bounds::kInputDuration) : kDefaultLifetime;
}

x509::CertificateSpec SpecOf(const json& spec, Time now) {
  x509::CertificateSpec out;
  out.subject.common_name = Text(spec, "commonName");
  for (const json& organization : Items(At(spec, {"subject", "organizations"})))
    out.subject.organizations.push_back(TextOf(organization));
  for (const char* names : {"dnsNames", "ipAddresses", "uris"}) {
    for (const json& name : Items(At(spec, names))) out.sans.push_back(TextOf(name));
  }
  out.not_before = now;
  out.not_after = now + SaidLifetime(spec);
  out.is_ca = At(spec, "isCA") == true;
  return out;
}

// A CertificateRequest as one of these answers it. NotFound: the signer may come yet.
struct Granted {
  std::string chain, ca;  // PEM
};
absl::StatusOr<Granted> GrantFor(const ApiServer& api, const kube::Object& request, uint64_t seed, Time now) {
  const json& spec = At(request.body, "spec");
  const json& ref = At(spec, "issuerRef");
  const absl::StatusOr<Authority> by = AuthorityOf(api, ref, request.meta.ns, seed);
  if (!by.ok()) return by.status();
  // cert-manager: pkg/controller/certificaterequests/selfsigned.
  if (by->key == nullptr) {
    return absl::InvalidArgumentError(
        "Annotation \"cert-manager.io/private-key-secret-name\" missing or reference empty: secret name missing");
  }
  std::string csr_pem;
  if (!absl::Base64Unescape(Text(spec, "request"), &csr_pem))
    return absl::InvalidArgumentError("spec.request is no base64");
  const auto csr = x509::ParseCsr(csr_pem, "spec.request");
  if (!csr.ok()) return csr.status();
  if (!by->tells_ca && (!csr->sans.uris.empty() || csr->sans.dns_names.empty()))
    return absl::InvalidArgumentError("an ACME server signs DNS names and IP addresses, and no URI");
  x509::CertificateSpec wanted;
  wanted.subject = csr->subject;
  for (const auto* names : {&csr->sans.uris, &csr->sans.dns_names, &csr->sans.ip_addresses})
    wanted.sans.insert(wanted.sans.end(), names->begin(), names->end());
  // As it is said, even where that is over before it begins (cert-manager: pkg/util/pki,
  // GenerateTemplateFromCertificateRequest): then here it began a second before.
  const Duration said = ParseGoDuration(Text(spec, "duration")).value_or(kDefaultLifetime);
  wanted.not_after = now + std::clamp<Duration>(said, -bounds::kInputDuration, bounds::kInputDuration);
  wanted.not_before = said > Duration::zero() ? now : wanted.not_after - 1s;
  wanted.is_ca = At(spec, "isCA") == true;
  const auto leaf = x509::Certificate::Issue(wanted, csr->public_key, *by->chain.front(), *by->key);
  if (!leaf.ok()) return leaf.status();
  Granted out{(*leaf)->ToPem(), by->tells_ca ? by->chain.back()->ToPem() : std::string()};
  for (const x509::CertificateRef& link : by->chain) {
    if (!link->self_signed()) out.chain += link->ToPem();
  }
  return out;
}

}  // namespace

CertificateSigners::CertificateSigners(ApiServer& api, uint64_t seed, std::string cluster)
    : api_(api),
      seed_(seed),
      cluster_(std::move(cluster)),
      pending_(api.host()),
      requests_(pending_, [this](const NamespacedName& name) { Sync(name); }),
      certificates_(pending_, [this](const NamespacedName& name) { Issue(name); }),
      granted_(pending_, [this](const NamespacedName& name) { Grant(name); }) {
  subscriptions_.Add(api_.Observe("CertificateSigningRequest", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    if (HasCondition(*change.object, "Approved")) requests_.Add({"", change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Certificate.cert-manager.io", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    certificates_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("CertificateRequest.cert-manager.io", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted || HasStatus(*change.object)) return;
    granted_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  for (const char* kind : {"Issuer.cert-manager.io", "ClusterIssuer.cert-manager.io", "Secret"}) {
    subscriptions_.Add(api_.Observe(kind, [this](const Change& change) {
      if (change.type != kube::WatchEventType::kDeleted) RetryWaiting();
    }));
  }
}

CertificateSigners::~CertificateSigners() {
  for (const auto& [certificate, of] : renewals_) api_.host().Cancel(of.next);
}

void CertificateSigners::Sync(const NamespacedName& name) {
  const ObjectRef request = api_.Get("CertificateSigningRequest", name);
  if (request == nullptr || HasCondition(*request, "Failed") || HasCondition(*request, "Denied") ||
      !Text(At(request->body, "status"), "certificate").empty()) {
    return;
  }
  const std::string signer = Text(At(request->body, "spec"), "signerName");
  if (const std::optional<absl::Status> refused = RefusedByKubernetes(*request, signer)) {
    return Store(*request, *refused);
  }
  if (!signer.starts_with(kClusterIssuers)) return;  // nobody here signs for it
  const std::string issuer = signer.substr(kClusterIssuers.size());
  // An issuer that is not there, or has no key, may come: cert-manager waits.
  absl::StatusOr<std::string> made = SignByIssuer(*request, issuer);
  if (absl::IsNotFound(made.status())) return;
  Store(*request, made);
}

absl::StatusOr<std::string> CertificateSigners::SignByIssuer(const kube::Object& request,
                                                             const std::string& issuer) const {
  const ObjectRef found = api_.Get("ClusterIssuer.cert-manager.io", {"", issuer});
  if (found == nullptr) return absl::NotFoundError("Referenced ClusterIssuer not found");
  const std::string secret_name = Text(At(found->body, {"spec", "ca"}), "secretName");
  const ObjectRef secret = secret_name.empty() ? nullptr : api_.Get("Secret", {kIssuersNamespace, secret_name});
  if (secret == nullptr) return absl::NotFoundError("Referenced secret not found");
  const auto data = kube::ReadSecretData(*secret);
  if (!data.ok()) return data.status();
  const auto chain = x509::ParseCertificates(kube::SecretEntry(*data, "tls.crt"), "tls.crt of the issuer");
  if (!chain.ok()) return chain.status();
  const auto key = x509::KeyPair::FromPem(kube::SecretEntry(*data, "tls.key"), "tls.key of the issuer");
  if (!key.ok()) return key.status();
  std::string csr_pem;
  if (!absl::Base64Unescape(Text(At(request.body, "spec"), "request"), &csr_pem)) {
    return absl::InvalidArgumentError("spec.request is no base64");
  }
  const auto csr = x509::ParseCsr(csr_pem, "spec.request");
  if (!csr.ok()) return csr.status();
  x509::CertificateSpec spec;
  spec.subject = csr->subject;
  for (const auto* names : {&csr->sans.uris, &csr->sans.dns_names, &csr->sans.ip_addresses}) {
    spec.sans.insert(spec.sans.end(), names->begin(), names->end());
  }
  spec.not_before = api_.host().Now();
  spec.not_after = spec.not_before + LifetimeOf(request);
  const auto leaf = x509::Certificate::Issue(spec, csr->public_key, *chain->front(), **key);
  if (!leaf.ok()) return leaf.status();
  // The chain goes up to but without the root (cert-manager: pkg/util/pki, ParseSingleCertificateChain).
  std::string pem = (*leaf)->ToPem();
  for (const x509::CertificateRef& link : *chain) {
    if (!link->self_signed()) pem += link->ToPem();
  }
  return pem;
}

void CertificateSigners::Store(const kube::Object& request, const absl::StatusOr<std::string>& made) {
  json body = request.body;
  if (made.ok()) {
    body["status"]["certificate"] = absl::Base64Escape(*made);
  } else {
    body["status"]["conditions"].push_back({{"type", "Failed"},
                                            {"status", "True"},
                                            {"reason", "SignerValidationFailure"},
                                            {"message", std::string(Message(made.status()))}});
  }
  api_.Apply(std::move(body)).IgnoreError();
}

void CertificateSigners::RetryWaiting() {
  for (const NamespacedName& name : std::exchange(waiting_, {})) certificates_.Add(name);
  for (const NamespacedName& name : std::exchange(waiting_to_grant_, {})) granted_.Add(name);
}

void CertificateSigners::Issue(const NamespacedName& name) {
  const ObjectRef certificate = api_.Get("Certificate.cert-manager.io", name);
  if (certificate == nullptr) return;
  const json& spec = At(certificate->body, "spec");
  const std::string secret = Text(spec, "secretName");
  if (!secret.empty() && api_.Get("Secret", {name.ns, secret}) == nullptr) IssueInto(secret, *certificate);
}

void CertificateSigners::RenewLater(const NamespacedName& certificate, const std::string& secret, Duration after) {
  Renewals& of = renewals_[certificate];
  api_.host().Cancel(of.next);
  of.next = api_.host().RunAfter(after, [this, certificate, secret] {
    Renewals& due = renewals_[certificate];
    due.next = kNoTimer;
    const ObjectRef now = api_.Get("Certificate.cert-manager.io", certificate);
    if (now == nullptr || Text(At(now->body, "spec"), "secretName") != secret) return;
    ++due.made;
    IssueInto(secret, *now);
  });
}

void CertificateSigners::IssueInto(const std::string& secret, const kube::Object& certificate) {
  const NamespacedName name{certificate.meta.ns, certificate.meta.name};
  const json& spec = At(certificate.body, "spec");
  const absl::StatusOr<Authority> by = AuthorityOf(api_, At(spec, "issuerRef"), name.ns, seed_);
  if (!by.ok()) {
    if (absl::IsNotFound(by.status())) waiting_.insert(name);
    return;
  }
  // Keys are kept, unless the Certificate says otherwise.
  const int renewals = renewals_[name].made;
  const bool rotates = renewals > 0 && Text(At(spec, "privateKey"), "rotationPolicy") == "Always";
  const auto key = x509::KeyPair::Derive(seed_, fmt::format("cert-manager/{}/{}/{}{}", cluster_, name.ns, name.name,
                                                            rotates ? fmt::format("/{}", renewals) : ""));
  const x509::CertificateSpec wanted = SpecOf(spec, api_.host().Now());
  const auto made = by->key == nullptr
                        ? x509::Certificate::SelfSign(wanted, *key)
                        : x509::Certificate::Issue(wanted, key->public_key(), *by->chain.front(), *by->key);
  if (!made.ok()) return;
  kube::SecretData data = {{"tls.crt", (*made)->ToPem()}, {"tls.key", key->ExportPrivateKeyPem()}};
  // The chain goes up to but without the root, which is its own entry (cert-manager: pkg/util/pki,
  // ParseSingleCertificateChain). Of an ACME server's no root is told.
  for (const x509::CertificateRef& link : by->chain) {
    if (!link->self_signed()) data["tls.crt"] += link->ToPem();
  }
  if (by->tells_ca) data["ca.crt"] = (by->chain.empty() ? *made : by->chain.back())->ToPem();
  api_.Apply(kube::MakeSecret(name.ns, secret, data, {}, {}, "kubernetes.io/tls")->body).IgnoreError();
  const Duration lifetime = SaidLifetime(spec);
  const Duration before = ParseGoDuration(Text(spec, "renewBefore")).value_or(Duration::zero());
  const bool said = before > Duration::zero() && before < lifetime;
  RenewLater(name, secret, said ? lifetime - before : lifetime / 3 * 2);
  // Requests that waited for it.
  for (const ObjectRef& waiting : api_.List("CertificateSigningRequest")) {
    if (HasCondition(*waiting, "Approved")) requests_.Add({"", waiting->meta.name});
  }
}

void CertificateSigners::Grant(const NamespacedName& name) {
  const ObjectRef request = api_.Get("CertificateRequest.cert-manager.io", name);
  if (request == nullptr || !Text(At(request->body, "status"), "certificate").empty()) return;
  const auto made = GrantFor(api_, *request, seed_, api_.host().Now());
  json body = request->body;
  json ready = {{"type", "Ready"}, {"status", "False"}};
  if (made.ok()) {
    body["status"]["certificate"] = absl::Base64Escape(made->chain);
    if (!made->ca.empty()) body["status"]["ca"] = absl::Base64Escape(made->ca);
    ready = {{"type", "Ready"},
             {"status", "True"},
             {"reason", "Issued"},
             {"message", "Certificate fetched from issuer successfully"}};
  } else if (absl::IsNotFound(made.status())) {
    waiting_to_grant_.insert(name);
    ready["reason"] = "Pending";
    const json& ref = At(request->body, {"spec", "issuerRef"});
    const std::string kind = Text(ref, "kind", "Issuer");
    // cert-manager: pkg/controller/certificaterequests/sync.go. An issuer without its Secret is not ready.
    ready["message"] = Message(made.status()) == kNoIssuer
                           ? fmt::format("Referenced \"{0}\" not found: {1}.cert-manager.io \"{2}\" not found", kind,
                                         absl::AsciiStrToLower(kind), Text(ref, "name"))
                           : std::string("Referenced issuer does not have a Ready status condition");
  } else {
    ready["reason"] = "Failed";
    ready["message"] = std::string(Message(made.status()));
  }
  body["status"]["conditions"] = json::array({std::move(ready)});
  api_.Apply(std::move(body)).IgnoreError();
}

}  // namespace wavetank::fakekube
