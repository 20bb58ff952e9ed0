#include "core/security/credentials.h"

#include <utility>

#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

constexpr Duration kDeniedFor = 1min, kAllowedFor = 5min;

bool Counts(const kube::Object& secret) {
  const auto type = secret.body.find("type");
  return type == secret.body.end() || (*type != "helm.sh/release.v1" && *type != "kubernetes.io/service-account-token");
}

// The names of a Secret's keys, three at most.
std::string KeysOf(const kube::SecretData& data) {
  std::string out;
  size_t told = 0;
  for (const auto& [key, value] : data) {
    if (told == 3) return out + fmt::format(", and {} more...", data.size() - 3);
    out.append(told++ == 0 ? "" : ", ").append(key);
  }
  return out;
}

absl::StatusOr<CertInfoRef> WithDates(absl::StatusOr<CertInfo> info, const kube::Object& secret) {
  if (!info.ok()) return info.status();
  // Of a chain only the first certificate's dates are looked at.
  const absl::StatusOr<x509::CertificateRef> first =
      x509::Certificate::FromPem(info->cert, fmt::format("Secret {}/{}", secret.meta.ns, secret.meta.name));
  if (first.ok()) {
    info->not_before = (*first)->not_before();
    info->not_after = (*first)->not_after();
  } else {
    info->unreadable = first.status();
  }
  return std::make_shared<const CertInfo>(*std::move(info));
}

// What `extract` finds in the Secret, the same object every time.
template <typename Read>
absl::StatusOr<CertInfoRef> Once(Read& read, const kube::ObjectRef& secret,
                                 absl::StatusOr<CertInfo> (*extract)(const kube::Object&)) {
  auto known = read.find(secret);
  if (known == read.end()) {
    absl::StatusOr<CertInfoRef> found = WithDates(extract(*secret), *secret);
    known = read.try_emplace(secret).first;
    if (found.ok()) {
      known->second.info = *std::move(found);
    } else {
      known->second.error = found.status();
    }
  }
  if (known->second.info == nullptr) return known->second.error;
  return known->second.info;
}

absl::Status NotFound(std::string_view ns, std::string_view name) {
  return absl::NotFoundError(fmt::format("secret {}/{} not found", ns, name));
}

}  // namespace

absl::StatusOr<CertInfo> ExtractCertInfo(const kube::Object& secret) {
  const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(secret);
  if (!data.ok()) return data.status();
  if (CertInfo out{kube::SecretEntry(*data, "cert"), kube::SecretEntry(*data, "key"), "",
                   kube::SecretEntry(*data, "crl")};
      !out.cert.empty() && !out.key.empty()) {
    return out;
  }
  if (CertInfo out{kube::SecretEntry(*data, "tls.crt"), kube::SecretEntry(*data, "tls.key"),
                   kube::SecretEntry(*data, "tls.ocsp-staple"), kube::SecretEntry(*data, "ca.crl")};
      !out.cert.empty() && !out.key.empty()) {
    return out;
  }
  for (const auto& [cert, key] : {std::pair("cert", "key"), std::pair("tls.crt", "tls.key")}) {
    if (data->contains(cert) && data->contains(key)) {
      return absl::NotFoundError(fmt::format("found keys \"{}\" and \"{}\", but they were empty", cert, key));
    }
  }
  return absl::NotFoundError(fmt::format(
      "found secret, but didn't have expected keys (cert and key) or (tls.crt and tls.key); found: {}", KeysOf(*data)));
}

absl::StatusOr<CertInfo> ExtractRoot(const kube::Object& secret) {
  const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(secret);
  if (!data.ok()) return data.status();
  for (const auto& [root, crl] : {std::pair("cacert", "crl"), std::pair("ca.crt", "ca.crl")}) {
    if (std::string text = kube::SecretEntry(*data, root); !text.empty())
      return CertInfo{std::move(text), "", "", kube::SecretEntry(*data, crl)};
  }
  for (const char* root : {"cacert", "ca.crt"}) {
    if (data->contains(root)) return absl::NotFoundError(fmt::format("found key \"{}\", but it was empty", root));
  }
  return absl::NotFoundError(
      fmt::format("found secret, but didn't have expected keys cacert or ca.crt; found: {}", KeysOf(*data)));
}

CredentialsController::CredentialsController(Host& host, kube::Client& client, const kube::AccessReviewer* reviewer,
                                             std::string_view cluster, uint64_t seed)
    : host_(host),
      reviewer_(reviewer),
      secrets_(host, client, kube::kinds::kSecret, {}, RandomStream(seed, fmt::format("credentials/{}", cluster))) {
  const auto event = [this](const kube::ObjectRef& secret) {
    if (on_secret_ && Counts(*secret)) on_secret_({secret->meta.ns, secret->meta.name});
  };
  const auto forget = [this](const kube::ObjectRef& secret) {
    servers_.erase(secret);
    roots_.erase(secret);
  };
  secrets_.AddHandler({event,
                       [event, forget](const auto& old, const auto& secret) {
                         forget(old);
                         event(secret);
                       },
                       [event, forget](const auto& secret) {
                         forget(secret);
                         event(secret);
                       }});
}

kube::ObjectRef CredentialsController::Find(std::string_view ns, std::string_view name) const {
  kube::ObjectRef secret = secrets_.Get(ns, name);
  return secret != nullptr && Counts(*secret) ? secret : nullptr;
}

absl::StatusOr<CertInfoRef> CredentialsController::GetCertInfo(std::string_view ns, std::string_view name) const {
  const kube::ObjectRef secret = Find(ns, name);
  if (secret == nullptr) return NotFound(ns, name);
  return Once(servers_, secret, ExtractCertInfo);
}

absl::StatusOr<CertInfoRef> CredentialsController::GetCaCert(std::string_view ns, std::string_view name) const {
  kube::ObjectRef secret = Find(ns, name);
  if (secret == nullptr && name.ends_with(kCaSuffix)) {
    name.remove_suffix(kCaSuffix.size());
    secret = Find(ns, name);
  }
  if (secret == nullptr) return NotFound(ns, name);
  return Once(roots_, secret, ExtractRoot);
}

absl::StatusOr<std::string> CredentialsController::GetDockerCredential(std::string_view ns,
                                                                       std::string_view name) const {
  const kube::ObjectRef secret = Find(ns, name);
  if (secret == nullptr) return NotFound(ns, name);
  const auto type = secret->body.find("type");
  if (type == secret->body.end() || *type != "kubernetes.io/dockerconfigjson") {
    return absl::NotFoundError(fmt::format("type of secret {}/{} is not kubernetes.io/dockerconfigjson", ns, name));
  }
  const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*secret);
  if (!data.ok()) return data.status();
  const auto config = data->find(".dockerconfigjson");
  if (config != data->end()) return config->second;
  return absl::NotFoundError(fmt::format("cannot find docker config at secret {}/{}", ns, name));
}

absl::Status CredentialsController::Authorize(std::string_view service_account, std::string_view ns) {
  const std::string user = kube::ServiceAccountUser(ns, service_account);
  const Time now = host_.Now();
  std::erase_if(verdicts_, [&](const auto& entry) { return entry.second.expires < now; });
  auto it = verdicts_.find(user);
  if (it == verdicts_.end()) {
    const bool allowed = reviewer_ != nullptr && reviewer_->Allowed({user, "list", "", "secrets", std::string(ns)});
    it = verdicts_.emplace(user, Verdict{now + (allowed ? kAllowedFor : kDeniedFor), allowed}).first;
  }
  if (it->second.allowed) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format("{}/{} is not authorized to read secrets", service_account, ns));
}

CredentialsController& Credentials::AddCluster(const std::string& cluster,
                                               std::unique_ptr<CredentialsController> controller) {
  if (on_secret_) controller->OnSecret(on_secret_);
  std::unique_ptr<CredentialsController>& slot = controllers_[cluster];
  slot = std::move(controller);
  return *slot;
}

bool Credentials::Synced(const std::string& cluster) const {
  const auto it = controllers_.find(cluster);
  return it != controllers_.end() && it->second->synced();
}

std::vector<const CredentialsController*> Credentials::LookupOrder(const std::string& cluster) const {
  std::vector<const CredentialsController*> out;
  for (const std::string* name : {&cluster, &config_cluster_}) {
    const auto it = controllers_.find(*name);
    if (it != controllers_.end() && (out.empty() || out[0] != it->second.get())) out.push_back(it->second.get());
  }
  return out;
}

absl::StatusOr<CertInfoRef> Credentials::GetCertInfo(const std::string& cluster, std::string_view ns,
                                                     std::string_view name) const {
  absl::Status first = absl::NotFoundError(fmt::format("cluster {} is not configured", cluster));
  bool any = false;
  for (const CredentialsController* controller : LookupOrder(cluster)) {
    absl::StatusOr<CertInfoRef> found = controller->GetCertInfo(ns, name);
    if (found.ok()) return found;
    if (!std::exchange(any, true)) first = found.status();
  }
  return first;
}

absl::StatusOr<CertInfoRef> Credentials::GetCaCert(const std::string& cluster, std::string_view ns,
                                                   std::string_view name) const {
  absl::Status first = absl::NotFoundError(fmt::format("cluster {} is not configured", cluster));
  bool any = false;
  for (const CredentialsController* controller : LookupOrder(cluster)) {
    absl::StatusOr<CertInfoRef> found = controller->GetCaCert(ns, name);
    if (found.ok()) return found;
    if (!std::exchange(any, true)) first = found.status();
  }
  return first;
}

std::optional<std::string> Credentials::DockerCredential(const std::string& cluster, std::string_view ns,
                                                         std::string_view name) const {
  for (const CredentialsController* controller : LookupOrder(cluster)) {
    if (absl::StatusOr<std::string> found = controller->GetDockerCredential(ns, name); found.ok()) return *found;
  }
  return std::nullopt;
}

absl::Status Credentials::Authorize(const std::string& cluster, std::string_view service_account, std::string_view ns) {
  const auto it = controllers_.find(cluster);
  if (it == controllers_.end()) return absl::NotFoundError(fmt::format("cluster {} is not configured", cluster));
  return it->second->Authorize(service_account, ns);
}

}  // namespace wavetank::security
