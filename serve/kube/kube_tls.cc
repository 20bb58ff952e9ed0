#include "serve/kube/kube_tls.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>

#include "core/x509/calendar.h"
#include "core/x509/x509.h"

namespace wavetank::serve {
namespace {

absl::StatusOr<x509::KeyPairRef> ChanceKey() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> out(BIO_new(BIO_s_secmem()), &BIO_free_all);
  if (key == nullptr || out == nullptr ||
      PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return absl::InternalError("OpenSSL cannot make a key");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return x509::KeyPair::FromPem({data, static_cast<size_t>(size)}, "the served API's key");
}

}  // namespace

absl::StatusOr<KubeTls> MakeKubeTls(std::vector<std::string> hosts, int64_t unix_now) {
  const absl::StatusOr<x509::KeyPairRef> ca_key = ChanceKey(), key = ChanceKey(), admin_key = ChanceKey();
  if (!ca_key.ok()) return ca_key.status();
  if (!key.ok()) return key.status();
  if (!admin_key.ok()) return admin_key.status();
  for (const char* always : {"127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default",
                             "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}) {
    hosts.push_back(always);
  }
  x509::CertificateSpec spec;
  spec.not_before = x509::FromUnixSeconds(unix_now - 3600);
  spec.not_after = x509::FromUnixSeconds(unix_now + int64_t{365} * 24 * 3600);
  spec.subject.common_name = "wavetank-kubernetes-ca";
  spec.is_ca = true;
  const absl::StatusOr<x509::CertificateRef> ca = x509::Certificate::SelfSign(spec, **ca_key);
  if (!ca.ok()) return ca.status();
  spec.subject.common_name = "kube-apiserver";
  spec.is_ca = false;
  spec.client_auth = false;
  for (const std::string& host : hosts) {
    if (std::find(spec.sans.begin(), spec.sans.end(), host) == spec.sans.end()) spec.sans.push_back(host);
  }
  const absl::StatusOr<x509::CertificateRef> own = x509::Certificate::Issue(spec, (*key)->public_key(), **ca, **ca_key);
  if (!own.ok()) return own.status();
  spec.sans.clear();
  spec.subject = {"kubernetes-admin", {"system:masters"}};
  spec.server_auth = false;
  spec.client_auth = true;
  const absl::StatusOr<x509::CertificateRef> admin =
      x509::Certificate::Issue(spec, (*admin_key)->public_key(), **ca, **ca_key);
  if (!admin.ok()) return admin.status();
  return KubeTls{(*ca)->ToPem(),
                 {(*own)->ToPem(), (*key)->ExportPrivateKeyPem(), (*ca)->ToPem()},
                 {(*admin)->ToPem(), (*admin_key)->ExportPrivateKeyPem(), ""}};
}

}  // namespace wavetank::serve
