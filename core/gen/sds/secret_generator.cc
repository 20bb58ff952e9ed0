#include "core/gen/sds/secret_generator.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "core/config/mesh/private_key_provider.h"
#include "core/envoyapi/any.h"
#include "core/gen/view/cache_dependencies.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/model/gateway.h"
#include "core/push/push_context.h"
#include "core/security/spiffe.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::security {
namespace {

namespace tls = envoy::extensions::transport_sockets::tls::v3;
using pilot::ConfigKey;
using pilot::ConfigKind;

constexpr std::string_view kKubernetes = "kubernetes://", kKubernetesGateway = "kubernetes-gateway://";

// An update without keys means everything. istiod: sdsNeedsPush.
bool NeedsPush(const pilot::PushRequest& request) {
  return request.configs_updated.empty() || request.HasConfigsOfKind(ConfigKind::kSecret);
}

using config::PrivateKeyProvider;

// The key goes to the provider instead. CryptoMB's and QAT's messages have the same two fields, and neither is among
// the descriptors that we have. istiod: toEnvoyTLSSecret.
void SetProvider(const PrivateKeyProvider& provider, const std::string& key, tls::TlsCertificate& certificate) {
  constexpr int kPrivateKey = 1, kPollDelay = 2;
  const bool qat = provider.kind == PrivateKeyProvider::Kind::kQat;
  envoy::config::core::v3::DataSource source;
  source.set_inline_bytes(key);
  auto& out = *certificate.mutable_private_key_provider();
  out.set_provider_name(qat ? "qat" : "cryptomb");
  out.mutable_typed_config()->set_type_url(
      qat ? "type.googleapis.com/envoy.extensions.private_key_providers.qat.v3alpha.QatPrivateKeyMethodConfig"
          : "type.googleapis.com/"
            "envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig");
  out.mutable_typed_config()->set_value(pilot::wire::Encode([&](pilot::wire::Writer& w) {
    w.Bytes(kPrivateKey, pilot::Serialize(source));
    // 1.18.2 takes the delay's fraction of a second for all of it.
    w.Duration(kPollDelay, (provider.poll_delay.value_or(Duration(0)) % std::chrono::seconds(1)).count());
  }));
}

// What of a router's own metadata the cache knows the provider by. The mesh's default is not in it, as in 1.18.2
// (istiod: parseResources).
std::string ProviderKey(const pilot::Proxy& proxy) {
  const nlohmann::json& metadata = *proxy.metadata.raw;
  if (!metadata.is_object() || !metadata.contains("PROXY_CONFIG")) return "";
  const auto provider = config::PrivateKeyProviderOf(metadata["PROXY_CONFIG"]);
  if (!provider) return "";
  return fmt::format("/{}:{}", static_cast<int>(provider->kind), provider->poll_delay.value_or(Duration(-1)).count());
}

pilot::Resource Encode(const std::string& name, const tls::Secret& secret) { return {name, pilot::Serialize(secret)}; }

}  // namespace

absl::StatusOr<SecretReference> SecretReference::Parse(std::string_view resource_name, std::string_view proxy_namespace,
                                                       std::string_view proxy_cluster,
                                                       std::string_view config_cluster) {
  SecretReference out;
  out.resource_name = resource_name;
  const bool gateway = resource_name.starts_with(kKubernetesGateway);
  if (!gateway && !resource_name.starts_with(kKubernetes)) {
    return absl::InvalidArgumentError(fmt::format("unknown resource type: {}", resource_name));
  }
  std::string_view rest = resource_name.substr(gateway ? kKubernetesGateway.size() : kKubernetes.size());
  const size_t slash = rest.find('/');
  std::string_view ns = proxy_namespace, name = rest;
  if (slash != std::string_view::npos) {
    ns = rest.substr(0, slash);
    name = rest.substr(slash + 1);
    name = name.substr(0, name.find('/'));  // more parts mean nothing
  }
  if (gateway && (slash == std::string_view::npos || ns.empty() || name.empty())) {
    return absl::InvalidArgumentError(
        fmt::format("invalid resource name \"{}\". Expected namespace and name", resource_name));
  }
  out.type = gateway ? Type::kKubernetesGateway : Type::kKubernetes;
  out.ns = ns;
  out.name = name;
  out.cluster = gateway ? config_cluster : proxy_cluster;
  return out;
}

std::vector<ConfigKey> RelatedSecrets(std::string_view ns, std::string_view name) {
  std::string twin(name);
  if (name.ends_with(kCaSuffix)) {
    twin.resize(twin.size() - kCaSuffix.size());
  } else {
    twin += kCaSuffix;
  }
  return {{ConfigKind::kSecret, std::string(name), std::string(ns)}, {ConfigKind::kSecret, twin, std::string(ns)}};
}

bool SecretGenerator::MayHave(const pilot::Proxy& proxy, std::string_view ns, std::string_view service_account,
                              const SecretReference& reference) {
  if (reference.type == SecretReference::Type::kKubernetesGateway) {
    return proxy.merged_gateway != nullptr &&
           proxy.merged_gateway->verified_certificate_references.contains(reference.resource_name);
  }
  return reference.ns == ns && credentials_.Authorize(proxy.cluster().str(), service_account, ns).ok();
}

absl::StatusOr<pilot::Resource> SecretGenerator::Make(const SecretReference& reference,
                                                      const nlohmann::json* proxy_config, bool verifies) {
  const bool roots = reference.name.ends_with(kCaSuffix);
  const absl::StatusOr<CertInfoRef> found =
      roots ? credentials_.GetCaCert(reference.cluster, reference.ns, reference.name)
            : credentials_.GetCertInfo(reference.cluster, reference.ns, reference.name);
  if (!found.ok()) {
    return absl::Status(found.status().code(),
                        fmt::format("failed to fetch {} for {}: {}", roots ? "ca certificate" : "key and certificate",
                                    reference.resource_name, Message(found.status())));
  }
  const CertInfo& info = **found;
  if (verifies) {
    const auto invalid = [&](std::string_view why) {
      return absl::FailedPreconditionError(
          fmt::format("invalid certificates: \"{}\": {}", reference.resource_name, why));
    };
    if (!info.unreadable.ok()) {
      const bool pem = info.cert.find("-----BEGIN ") != std::string::npos;
      return invalid(pem ? "x509: malformed certificate" : "pem decode failed");
    }
    if (host_.Now() < info.not_before || host_.Now() >= info.not_after)
      return invalid("certificate is expired or not yet valid");
  }
  tls::Secret secret;
  secret.set_name(reference.resource_name);
  if (roots) {
    secret.mutable_validation_context()->mutable_trusted_ca()->set_inline_bytes(info.cert);
    if (!info.crl.empty()) secret.mutable_validation_context()->mutable_crl()->set_inline_bytes(info.crl);
  } else {
    tls::TlsCertificate& certificate = *secret.mutable_tls_certificate();
    certificate.mutable_certificate_chain()->set_inline_bytes(info.cert);
    const auto provider = proxy_config == nullptr ? std::nullopt : config::PrivateKeyProviderOf(*proxy_config);
    if (provider && provider->kind != PrivateKeyProvider::Kind::kNone) {
      SetProvider(*provider, info.key, certificate);
    } else {
      certificate.mutable_private_key()->set_inline_bytes(info.key);
      if (!info.staple.empty()) certificate.mutable_ocsp_staple()->set_inline_bytes(info.staple);
    }
  }
  return Encode(reference.resource_name, secret);
}

void SecretGenerator::Refuse(std::string why) {
  ++certificate_errors_;
  if (log_ != nullptr && *log_) (*log_)({"warn", "ads", std::move(why)});
}

pilot::GeneratedResources SecretGenerator::Generate(const pilot::Proxy& proxy, const pilot::WatchedResource& watched,
                                                    const pilot::PushRequest& request) {
  pilot::GeneratedResources out;
  out.send = false;
  const absl::StatusOr<SpiffeIdentity> identity = ParseSpiffeIdentity(proxy.verified_identity);
  if (!identity.ok() || !NeedsPush(request)) return out;
  const std::string& cluster = proxy.cluster().str();
  if (!credentials_.Knows(cluster) || !credentials_.Knows(credentials_.config_cluster())) {
    ++certificate_errors_;
    return out;
  }
  out.send = true;
  out.incremental = !request.full;
  const std::string provider_key = ProviderKey(proxy);
  const nlohmann::json* proxy_config =
      request.push == nullptr ? nullptr : pilot::ProxyConfigOf(proxy, request.push->mesh());
  const bool verifies = request.push == nullptr || request.push->env().features.verifies_sds_certificates;
  std::vector<std::string> denied;
  for (const std::string& name : watched.resource_names) {
    const absl::StatusOr<SecretReference> reference =
        SecretReference::Parse(name, identity->ns, cluster, credentials_.config_cluster());
    if (!reference.ok()) {
      Refuse(fmt::format("error parsing resource name: {}", Message(reference.status())));
      continue;
    }
    if (!MayHave(proxy, identity->ns, identity->service_account, *reference)) {
      denied.push_back(reference->name);
      continue;
    }
    const std::vector<ConfigKey> related = RelatedSecrets(reference->ns, reference->name);
    if (!request.full && std::none_of(related.begin(), related.end(),
                                      [&](const ConfigKey& key) { return request.configs_updated.contains(key); })) {
      continue;
    }
    // As in istiod the key does not hold how the name was written: "kubernetes://x" and "kubernetes://ns/x" share an
    // entry, and the second to ask gets it under the first's name.
    std::string key = fmt::format(
        "{}/{}/{}/{}{}", reference->type == SecretReference::Type::kKubernetes ? "kubernetes" : "kubernetes-gateway",
        reference->name, reference->ns, reference->cluster, provider_key);
    if (const pilot::Resource* cached = cache_.Get(pilot::XdsCache::Type::kSds, key); cached != nullptr) {
      out.resources.push_back(*cached);
      ++out.cached;
      continue;
    }
    absl::StatusOr<pilot::Resource> made = Make(*reference, proxy_config, verifies);
    if (!made.ok()) {
      Refuse(std::string(Message(made.status())));
      continue;
    }
    std::vector<uint64_t> dependencies;
    for (const ConfigKey& secret : related) pilot::AddDependency(secret, dependencies);
    cache_.Add(pilot::XdsCache::Type::kSds, std::move(key), request.start, dependencies, *made);
    out.resources.push_back(*std::move(made));
  }
  if (!denied.empty()) {
    // istiod: filterAuthorizedResources, atMostNJoin
    const absl::Status why = credentials_.Authorize(cluster, identity->service_account, identity->ns);
    std::string names = fmt::format("{}", fmt::join(denied, ", "));
    if (denied.size() > 2) names = fmt::format("{}, {}, and {} others", denied[0], denied[1], denied.size() - 2);
    Refuse(fmt::format("proxy {} attempted to access unauthorized certificates {}: {}", proxy.id, names,
                       why.ok() ? "cross namespace secret reference requires ReferencePolicy" : Message(why)));
  }
  return out;
}

}  // namespace wavetank::security
