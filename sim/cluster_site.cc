#include "sim/cluster_site.h"

#include "fakes/envoy/tls/tls.h"

namespace wavetank::sim {

absl::StatusOr<std::shared_ptr<const envoysim::TlsClient>> ClusterSite::TlsTo(const std::string& roots_pem,
                                                                              const std::string& server_name) {
  std::shared_ptr<const envoysim::TlsClient>& known = tls_[{roots_pem, server_name}];
  if (known == nullptr) {
    absl::StatusOr<x509::TrustBundleRef> roots = commons->certificates->ParseBundle(roots_pem, "root certificates");
    if (!roots.ok()) return roots.status();
    auto context = std::make_shared<envoysim::TlsContext>();
    context->sni = server_name;
    context->alpn = {"h2"};
    context->validates = true;
    context->sans.push_back(
        {envoysim::SanType::kDns, envoysim::StringMatch::Make(envoysim::StringMatch::Kind::kExact, server_name)});
    auto client = std::make_shared<envoysim::TlsClient>();
    client->context = std::move(context);
    client->trusted_ca = *std::move(roots);
    known = std::move(client);
  }
  return known;
}

}  // namespace wavetank::sim
