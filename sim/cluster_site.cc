#include "sim/cluster_site.h"

#include "core/base/ip.h"
#include "fakes/envoy/tls/tls.h"
#include "fmt/format.h"

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

absl::Status ClusterSite::MayAskDns(WorkloadId from, std::string_view asked) const {
  if (IpAddress::Parse(asked).ok()) return absl::OkStatus();
  const kube::ObjectRef policy = commons->network->KeepsFromDns(from);
  if (policy == nullptr) return absl::OkStatus();
  return absl::DeadlineExceededError(
      fmt::format("DNS does not answer: NetworkPolicy {}/{} of {} lets no query through to "
                  "port 53 (UDP)",
                  policy->meta.ns, policy->meta.name, name));
}

FindSecret ClusterSite::Secrets() const {
  return [this](std::string_view ns, std::string_view secret) {
    return cluster->api().Get("Secret", {std::string(ns), std::string(secret)});
  };
}

}  // namespace wavetank::sim
