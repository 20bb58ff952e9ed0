#include "fakes/envoy/tls/tls_config.h"

#include <algorithm>
#include <utility>

#include "envoy/config/core/v3/base.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fmt/format.h"
#include "google/protobuf/any.pb.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace tls = envoy::extensions::transport_sockets::tls::v3;

absl::Status AddSans(const tls::CertificateValidationContext& context, std::vector<SanMatch>* out) {
  using Typed = tls::SubjectAltNameMatcher;
  for (const auto& typed : context.match_typed_subject_alt_names()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(typed.matcher());
    if (!match.ok()) return match.status();
    const SanType type = typed.san_type() == Typed::DNS   ? SanType::kDns
                         : typed.san_type() == Typed::URI ? SanType::kUri
                                                          : SanType::kAny;
    out->push_back({type, *std::move(match)});
  }
  // Deprecated, without a type; what Istio 1.18 writes.
  for (const auto& untyped : context.match_subject_alt_names()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(untyped);
    if (!match.ok()) return match.status();
    out->push_back({SanType::kAny, *std::move(match)});
  }
  return absl::OkStatus();
}

absl::Status AddValidation(const tls::CertificateValidationContext& context, TlsContext* out) {
  if (context.has_trusted_ca()) {
    const std::string& pem = context.trusted_ca().inline_string().empty() ? context.trusted_ca().inline_bytes()
                                                                          : context.trusted_ca().inline_string();
    absl::StatusOr<x509::TrustBundleRef> bundle = x509::TrustBundle::FromPem(pem, "<inline>");
    if (!bundle.ok()) return absl::InvalidArgumentError("Failed to load trusted CA certificates from <inline>");
    out->trusted_ca = *std::move(bundle);
    out->validates = true;
  }
  return AddSans(context, &out->sans);
}

absl::Status AddCommon(const tls::CommonTlsContext& common, bool downstream, TlsContext* out) {
  // Envoy: tls.proto; a client's highest version is 1.2 unless it says otherwise, a server's 1.3.
  const auto highest = common.tls_params().tls_maximum_protocol_version();
  out->tls13 = highest == tls::TlsParameters::TLSv1_3 || (highest == tls::TlsParameters::TLS_AUTO && downstream);
  out->alpn.assign(common.alpn_protocols().begin(), common.alpn_protocols().end());
  if (!common.tls_certificate_sds_secret_configs().empty()) {
    out->certificate_secret = common.tls_certificate_sds_secret_configs(0).name();
  } else if (!common.tls_certificates().empty()) {
    const auto& source = common.tls_certificates(0).certificate_chain();
    const std::string& pem = source.inline_string().empty() ? source.inline_bytes() : source.inline_string();
    absl::StatusOr<std::vector<x509::CertificateRef>> chain = x509::ParseCertificates(pem, "<inline>");
    if (!chain.ok()) return absl::InvalidArgumentError("Failed to load certificate chain from <inline>");
    out->certificate = CertificateChain::Of(*std::move(chain));
  }
  switch (common.validation_context_type_case()) {
    case tls::CommonTlsContext::kValidationContext:
      return AddValidation(common.validation_context(), out);
    case tls::CommonTlsContext::kValidationContextSdsSecretConfig:
      out->validation_secret = common.validation_context_sds_secret_config().name();
      out->validates = true;
      return absl::OkStatus();
    case tls::CommonTlsContext::kCombinedValidationContext: {
      const auto& combined = common.combined_validation_context();
      out->validation_secret = combined.validation_context_sds_secret_config().name();
      out->validates = true;
      return AddValidation(combined.default_validation_context(), out);
    }
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<TransportSocket> CompileTransportSocket(const envoy::config::core::v3::TransportSocket& socket,
                                                       bool downstream, const Extensions& extensions) {
  TransportSocket out;
  const google::protobuf::Any& config = socket.typed_config();
  if (const absl::Status known = extensions.Check(socket.name(), config); !known.ok()) return known;
  if (config.Is<tls::UpstreamTlsContext>() && !downstream) {
    tls::UpstreamTlsContext context;
    if (!config.UnpackTo(&context)) return absl::InvalidArgumentError("Unable to parse UpstreamTlsContext");
    auto compiled = std::make_shared<TlsContext>();
    compiled->sni = context.sni();
    if (absl::Status s = AddCommon(context.common_tls_context(), downstream, compiled.get()); !s.ok()) return s;
    out.tls = std::move(compiled);
  } else if (config.Is<tls::DownstreamTlsContext>() && downstream) {
    tls::DownstreamTlsContext context;
    if (!config.UnpackTo(&context)) return absl::InvalidArgumentError("Unable to parse DownstreamTlsContext");
    auto compiled = std::make_shared<TlsContext>();
    compiled->require_client_certificate = context.require_client_certificate().value();
    if (absl::Status s = AddCommon(context.common_tls_context(), downstream, compiled.get()); !s.ok()) return s;
    if (compiled->certificate == nullptr && compiled->certificate_secret.empty()) {
      return absl::InvalidArgumentError("No TLS certificates found for server context");
    }
    out.tls = std::move(compiled);
  } else if (!TypeName(config).ends_with("raw_buffer.v3.RawBuffer")) {
    return absl::InvalidArgumentError(fmt::format("Unable to unpack as {}: {}",
                                                  downstream
                                                      ? "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
                                                      : "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                                                  config.type_url()));
  }
  return out;
}

bool SansMatch(const std::vector<SanMatch>& matches, const x509::SubjectAltNames& names) {
  if (matches.empty()) return true;
  const auto any = [](const SanMatch& m, const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(), [&](const std::string& n) { return m.match.Matches(n); });
  };
  return std::any_of(matches.begin(), matches.end(), [&](const SanMatch& m) {
    return (m.type != SanType::kDns && any(m, names.uris)) || (m.type != SanType::kUri && any(m, names.dns_names));
  });
}

absl::StatusOr<NamedSecret> ReadSecret(std::string_view type_url, std::string_view resource) {
  tls::Secret secret;
  if (type_url.substr(type_url.rfind('/') + 1) != secret.GetTypeName() ||
      !secret.ParseFromArray(resource.data(), static_cast<int>(resource.size()))) {
    return absl::InvalidArgumentError(fmt::format("Unable to unpack as {}: [{}]", secret.GetTypeName(), type_url));
  }
  const auto text = [](const auto& source) {
    return source.inline_string().empty() ? source.inline_bytes() : source.inline_string();
  };
  NamedSecret out;
  out.name = secret.name();
  switch (secret.type_case()) {
    case tls::Secret::kTlsCertificate: {
      const tls::TlsCertificate& certificate = secret.tls_certificate();
      absl::StatusOr<std::vector<x509::CertificateRef>> chain =
          x509::ParseCertificates(text(certificate.certificate_chain()), "<inline>");
      if (!chain.ok()) return absl::InvalidArgumentError("Failed to load certificate chain from <inline>");
      const absl::StatusOr<x509::KeyPairRef> key = x509::KeyPair::FromPem(text(certificate.private_key()), "<inline>");
      if (!key.ok()) return absl::InvalidArgumentError("Failed to load private key from <inline>");
      if (!chain->front()->Matches(**key)) {
        return absl::InvalidArgumentError("Failed to load private key from <inline>, Cause: KEY_VALUES_MISMATCH");
      }
      out.secret.certificate = CertificateChain::Of(*std::move(chain));
      return out;
    }
    case tls::Secret::kValidationContext: {
      absl::StatusOr<x509::TrustBundleRef> roots =
          x509::TrustBundle::FromPem(text(secret.validation_context().trusted_ca()), "<inline>");
      if (!roots.ok()) return absl::InvalidArgumentError("Failed to load trusted CA certificates from <inline>");
      out.secret.trusted_ca = *std::move(roots);
      return out;
    }
    default:
      return absl::InvalidArgumentError(
          fmt::format("Secret {} is neither certificate nor validation context", out.name));
  }
}

}  // namespace wavetank::envoysim
