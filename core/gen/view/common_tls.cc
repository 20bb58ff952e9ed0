#include "core/gen/view/common_tls.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace wavetank::pilot {
namespace {

using envoy::config::core::v3::ApiConfigSource;
using envoy::config::core::v3::ApiVersion;
using envoy::config::core::v3::ConfigSource;

void SetGrpcSource(std::string_view cluster, ConfigSource& source) {
  ApiConfigSource* api = source.mutable_api_config_source();
  api->set_api_type(ApiConfigSource::GRPC);
  api->set_set_node_on_first_message_only(true);
  api->set_transport_api_version(ApiVersion::V3);
  api->add_grpc_services()->mutable_envoy_grpc()->set_cluster_name(std::string(cluster));
  source.set_resource_api_version(ApiVersion::V3);
}

bool HasPrefix(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

}  // namespace

void SetAlpn(envoy_tls::CommonTlsContext& context, std::span<const std::string_view> protocols) {
  context.clear_alpn_protocols();
  for (std::string_view protocol : protocols) context.add_alpn_protocols(std::string(protocol));
}

void SetAgentSecret(std::string_view name, envoy_tls::SdsSecretConfig& secret) {
  secret.set_name(std::string(name));
  SetGrpcSource("sds-grpc", *secret.mutable_sds_config());
  if (name == kSdsDefaultResource || name == kSdsRootResource)
    secret.mutable_sds_config()->mutable_initial_fetch_timeout();
}

std::string CredentialResourceName(std::string_view credential_name) {
  if (HasPrefix(credential_name, "builtin://")) return "default";
  if (HasPrefix(credential_name, kInvalidCredential)) return std::string(kInvalidCredential);
  if (HasPrefix(credential_name, "kubernetes://") || HasPrefix(credential_name, "kubernetes-gateway://") ||
      HasPrefix(credential_name, kConfigMapCredential)) {
    return std::string(credential_name);
  }
  return absl::StrCat("kubernetes://", std::string(credential_name));
}

void SetCredentialSecret(std::string_view credential_name, bool credential_socket, envoy_tls::SdsSecretConfig& secret) {
  if (credential_name == "builtin://") return SetAgentSecret(kSdsDefaultResource, secret);
  if (credential_name == "builtin://-cacert") return SetAgentSecret(kSdsRootResource, secret);
  if (credential_socket && HasPrefix(credential_name, "sds://")) {
    secret.set_name(std::string(credential_name));
    return SetGrpcSource("sds-external", *secret.mutable_sds_config());
  }
  secret.set_name(CredentialResourceName(credential_name));
  secret.mutable_sds_config()->mutable_ads();
  secret.mutable_sds_config()->set_resource_api_version(ApiVersion::V3);
}

bool HasCredentialSocket(const Proxy& proxy) {
  const nlohmann::json& raw = *proxy.metadata.raw;
  if (!raw.is_object()) return false;
  const auto it = raw.find("credential");
  return it != raw.end() && it->is_string() && it->get_ref<const std::string&>() == "true";
}

void ApplyWorkloadCertificate(envoy_tls::CommonTlsContext& context, const CertificateFiles& files,
                              const std::vector<std::string>& sans, const std::vector<std::string>& trust_domains,
                              bool validate_peer) {
  if (validate_peer) {
    auto* combined = context.mutable_combined_validation_context();
    auto* matchers = SubjectAltNameMatchers(*combined->mutable_default_validation_context());
    AddExactMatchers(sans, matchers);
    for (const std::string& domain : trust_domains) matchers->Add()->set_prefix(absl::StrCat("spiffe://", domain, "/"));
    SetAgentSecret(
        files.root.empty() ? std::string(kSdsRootResource) : absl::StrCat("file-root:", std::string(files.root)),
        *combined->mutable_validation_context_sds_secret_config());
  }
  const bool from_files = !files.certificate.empty() && !files.key.empty();
  SetAgentSecret(from_files ? absl::StrCat("file-cert:", std::string(files.certificate), "~", std::string(files.key))
                            : std::string(kSdsDefaultResource),
                 *context.add_tls_certificate_sds_secret_configs());
}

google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* SubjectAltNameMatchers(
    envoy_tls::CertificateValidationContext& context) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return context.mutable_match_subject_alt_names();
#pragma GCC diagnostic pop
}

void AddExactMatchers(const std::vector<std::string>& values,
                      google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* out) {
  for (const std::string& value : values) out->Add()->set_exact(value);
}

void AddPrefixMatchers(const std::vector<std::string>& values,
                       google::protobuf::RepeatedPtrField<envoy_matcher::StringMatcher>* out) {
  for (const std::string& value : values) out->Add()->set_prefix(value);
}

}  // namespace wavetank::pilot
