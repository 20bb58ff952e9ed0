#include "core/gen/cds/cluster_tls.h"

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/gen/view/common_tls.h"
#include "core/gen/wire/wire.h"
#include "core/model/endpoint.h"
#include "core/profile/changes.h"
#include "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.pb.h"

namespace wavetank::pilot {
namespace {

using ClientTlsMode = config::ClientTlsSettings::Mode;
using envoy_tls::TlsParameters;
using envoy_tls::UpstreamTlsContext;
using Cluster = envoy_cluster::Cluster;
using TransportSocket = ::envoy::config::core::v3::TransportSocket;

// The settings in force. `sans` may be null.
struct UpstreamSettings {
  ClientTlsMode mode = ClientTlsMode::kDisable;
  std::string_view certificate, key, root, credential, sni, crl;
  const std::vector<std::string>* sans = nullptr;
  bool any_server = false;     // insecureSkipVerify: whatever certificate it shows
  bool auto_detected = false;  // nobody asked for it: endpoints without a sidecar still get plain text
};

UpstreamSettings FromRule(const config::ClientTlsSettings& tls, const Profile& profile) {
  return {tls.mode,
          tls.client_certificate,
          tls.private_key,
          tls.ca_certificates,
          tls.credential_name,
          tls.sni,
          profile.Has(Change::kRevocationFiles) ? std::string_view(tls.ca_crl) : std::string_view(),
          &tls.subject_alt_names,
          profile.Has(Change::kInsecureSkipVerify) && tls.insecure_skip_verify.value_or(false),
          false};
}

UpstreamSettings FromProxyFiles(const NodeMetadata& m, const std::vector<std::string>* sans, std::string_view sni) {
  return {ClientTlsMode::kMutual,
          m.tls_client_cert_chain,
          m.tls_client_key,
          m.tls_client_root_cert,
          {},
          sni,
          {},
          sans,
          false,
          false};
}

// istiod: buildAutoMtlsSettings.
std::optional<UpstreamSettings> Resolve(const Proxy& proxy, const config::MeshConfig& mesh, const Profile& profile,
                                        const config::ClientTlsSettings* tls, const TlsInputs& in) {
  const NodeMetadata& metadata = proxy.metadata;
  const bool proxy_files = !metadata.tls_client_cert_chain.empty();
  if (tls != nullptr) {
    if (tls->mode == ClientTlsMode::kDisable || tls->mode == ClientTlsMode::kSimple) return FromRule(*tls, profile);
    if (proxy_files && in.mesh_external && profile.Has(Change::kRulesTlsForExternals)) return FromRule(*tls, profile);
    if (proxy_files) {
      UpstreamSettings out = FromProxyFiles(metadata, &tls->subject_alt_names, tls->sni);
      out.any_server = FromRule(*tls, profile).any_server;
      return out;
    }
    if (tls->mode != ClientTlsMode::kIstioMutual) return FromRule(*tls, profile);
    UpstreamSettings out;
    out.mode = ClientTlsMode::kIstioMutual;
    out.sni = tls->sni.empty() ? std::string_view(in.default_sni) : std::string_view(tls->sni);
    out.sans = tls->subject_alt_names.empty() ? in.service_accounts : &tls->subject_alt_names;
    out.any_server = FromRule(*tls, profile).any_server;
    return out;
  }
  if (in.mesh_external || !mesh.enable_auto_mtls || in.service_mode == MutualTlsMode::kUnknown ||
      in.service_mode == MutualTlsMode::kDisable) {
    return std::nullopt;
  }
  UpstreamSettings out;
  if (proxy_files) {
    out = FromProxyFiles(metadata, in.service_accounts, in.default_sni);
  } else {
    out.mode = ClientTlsMode::kIstioMutual;
    out.sni = in.default_sni;
    out.sans = in.service_accounts;
  }
  out.auto_detected = true;
  return out;
}

void AddSans(const std::vector<std::string>* sans, envoy_tls::CommonTlsContext& common) {
  auto* context = common.mutable_combined_validation_context()->mutable_default_validation_context();
  if (sans != nullptr && !sans->empty()) AddExactMatchers(*sans, SubjectAltNameMatchers(*context));
}

void SetTlsVersions(envoy_tls::CommonTlsContext& common) {
  common.mutable_tls_params()->set_tls_minimum_protocol_version(TlsParameters::TLSv1_2);
  common.mutable_tls_params()->set_tls_maximum_protocol_version(TlsParameters::TLSv1_3);
}

// What all contexts of ISTIO_MUTUAL share. "istio-peer-exchange" says that both sides may exchange their metadata.
std::string EncodeIstioMutualCommon(bool http2) {
  envoy_tls::CommonTlsContext common;
  SetTlsVersions(common);
  SetAgentSecret(kSdsDefaultResource, *common.add_tls_certificate_sds_secret_configs());
  if (http2) {
    SetAlpn(common, kAlpnInMeshH2WithMxc);
  } else {
    SetAlpn(common, kAlpnInMeshWithMxc);
  }
  return Serialize(common);
}

std::string EncodeIstioRoot() {
  envoy_tls::CommonTlsContext::CombinedCertificateValidationContext combined;
  SetAgentSecret(kSdsRootResource, *combined.mutable_validation_context_sds_secret_config());
  return Serialize(combined);
}

// An UpstreamTlsContext.
void WriteIstioMutual(const UpstreamSettings& tls, bool http2, std::string_view cluster_name, wire::Writer& out) {
  static const std::string* const kHttp1 = new std::string(EncodeIstioMutualCommon(false));
  static const std::string* const kHttp2 = new std::string(EncodeIstioMutualCommon(true));
  static const std::string* const kRoot = new std::string(EncodeIstioRoot());
  using Common = envoy_tls::CommonTlsContext;
  constexpr int kMatchSubjectAltNames = 9;  // deprecated, hence without a name that compiles quietly
  out.Message(UpstreamTlsContext::kCommonTlsContextFieldNumber, [&] {
    out.Append(http2 ? *kHttp2 : *kHttp1);
    out.Message(Common::kCombinedValidationContextFieldNumber, [&] {
      out.Append(*kRoot);
      out.Message(Common::CombinedCertificateValidationContext::kDefaultValidationContextFieldNumber, [&] {
        if (tls.sans == nullptr) return;
        for (const std::string& san : *tls.sans) {
          out.Message(kMatchSubjectAltNames, [&] { out.Bytes(envoy_matcher::StringMatcher::kExactFieldNumber, san); });
        }
      });
    });
  });
  out.NonEmpty(UpstreamTlsContext::kSniFieldNumber, tls.sni.empty() ? cluster_name : tls.sni);
}

// The server's name, and whose certificate it must show, come from the request where the rule does not say them.
// istiod: setAutoSniAndAutoSanValidation.
void SetAutoSni(const UpstreamSettings& tls, bool verifies, ClusterDraft& draft) {
  draft.auto_sni = tls.sni.empty();
  if (!draft.dns_cache.empty()) {
    draft.auto_san_validation = !tls.any_server;
    draft.allows_insecure = !draft.auto_sni || !draft.auto_san_validation;
    return;
  }
  draft.auto_san_validation =
      verifies && draft.auto_sni && (tls.sans == nullptr || tls.sans->empty()) && !tls.any_server;
}

// SIMPLE and MUTUAL. False: the rule names no certificate to present. `system_root`: instead of none.
bool SetFromRule(const UpstreamSettings& tls, const TlsInputs& in, const Proxy& proxy, const config::MeshConfig& mesh,
                 bool http2, const Profile& profile, UpstreamTlsContext& out) {
  const bool system_root = profile.Has(Change::kSystemRootByDefault);
  auto* common = out.mutable_common_tls_context();
  const bool own_sans = tls.sans != nullptr && !tls.sans->empty();
  const std::vector<std::string>* sans = in.external_registry && !own_sans ? in.service_accounts : tls.sans;
  if (!tls.credential.empty()) {
    const bool socket = HasCredentialSocket(proxy);
    if (tls.mode == ClientTlsMode::kMutual) {
      SetCredentialSecret(tls.credential, socket, *common->add_tls_certificate_sds_secret_configs());
    }
    // istiod: ApplyCustomSDSToClientCommonTLSContext.
    if (!tls.any_server) {
      AddSans(sans, *common);
      SetCredentialSecret(
          absl::StrCat(std::string(tls.credential), std::string(kSdsCaSuffix)), socket,
          *common->mutable_combined_validation_context()->mutable_validation_context_sds_secret_config());
    }
  } else {
    if (tls.mode == ClientTlsMode::kMutual) {
      if (tls.certificate.empty() || tls.key.empty()) return false;
      // Files in the proxy's own pod; its agent serves them, since Envoy alone would not see them change.
      SetAgentSecret(absl::StrCat("file-cert:", std::string(tls.certificate), "~", std::string(tls.key)),
                     *common->add_tls_certificate_sds_secret_configs());
    }
    const std::string_view root = tls.root.empty() && system_root ? std::string_view("system") : tls.root;
    if (root.empty() || tls.any_server) {
      common->mutable_validation_context();  // whoever answers
    } else {
      AddSans(sans, *common);
      if (!tls.crl.empty()) {
        common->mutable_combined_validation_context()
            ->mutable_default_validation_context()
            ->mutable_crl()
            ->set_filename(std::string(tls.crl));
      }
      SetAgentSecret(absl::StrCat("file-root:", std::string(root)),
                     *common->mutable_combined_validation_context()->mutable_validation_context_sds_secret_config());
    }
  }
  for (const std::string& curve : mesh.tls_defaults.ecdh_curves) common->mutable_tls_params()->add_ecdh_curves(curve);
  if (profile.Has(Change::kTlsDefaultCiphers)) {
    for (const std::string& suite : mesh.tls_defaults.cipher_suites)
      common->mutable_tls_params()->add_cipher_suites(suite);
  }
  if (http2) SetAlpn(*common, kAlpnH2Only);
  return true;
}

// The fields of a TransportSocket of TLS.
void WriteTls(std::string_view context, wire::Writer& out) {
  static const std::string* const kType = new std::string(TypeUrlOf(UpstreamTlsContext()));
  out.Bytes(TransportSocket::kNameFieldNumber, kTlsTransportSocket);
  out.Any(TransportSocket::kTypedConfigFieldNumber, *kType, context);
}

std::string EncodeRawSocket(std::string_view name) {
  TransportSocket out;
  out.set_name(std::string(name));
  *out.mutable_typed_config() = PackAny(::envoy::extensions::transport_sockets::raw_buffer::v3::RawBuffer());
  return Serialize(out);
}

// A TransportSocket: `socket`, or one that sends the PROXY protocol's header before it. Encoded by hand: nothing else
// here knows the message (Envoy: extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol.proto). istiod:
// applyUpstreamProxyProtocol.
void WriteSocket(int field, std::string_view socket, const config::ProxyProtocolVersion* proxy_protocol,
                 wire::Writer& out) {
  if (proxy_protocol == nullptr) return out.Bytes(field, socket);
  constexpr int kConfig = 1, kSocket = 2, kVersion = 1;
  out.Message(field, [&] {
    out.Bytes(TransportSocket::kNameFieldNumber, "envoy.transport_sockets.upstream_proxy_protocol");
    out.Any(TransportSocket::kTypedConfigFieldNumber,
            "type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport",
            wire::Encode([&](wire::Writer& transport) {
              transport.Message(kConfig, [&] {
                if (*proxy_protocol == config::ProxyProtocolVersion::kV2) transport.Varint(kVersion, 1);
              });
              transport.Bytes(kSocket, socket);
            }));
  });
}

void WriteTlsSocket(int field, std::string_view context, const config::ProxyProtocolVersion* proxy_protocol,
                    wire::Writer& out) {
  if (proxy_protocol == nullptr) {
    out.Message(field, [&] { WriteTls(context, out); });
  } else {
    WriteSocket(field, wire::Encode([&](wire::Writer& socket) { WriteTls(context, socket); }), proxy_protocol, out);
  }
}

// Name and match of the socket for endpoints that take TLS.
std::string EncodeMtlsMatch() {
  Cluster::TransportSocketMatch match;
  match.set_name(absl::StrCat("tlsMode-", std::string(kMutualTlsMode)));
  (*match.mutable_match()->mutable_fields())["tlsMode"].set_string_value(std::string(kMutualTlsMode));
  return Serialize(match);
}

std::string EncodePlainMatch(const config::ProxyProtocolVersion* proxy_protocol) {
  Cluster::TransportSocketMatch match;
  match.set_name("tlsMode-disabled");
  match.mutable_match();
  std::string out = Serialize(match);
  wire::Writer w(&out);
  WriteSocket(Cluster::TransportSocketMatch::kTransportSocketFieldNumber, EncodeRawSocket(kRawBufferTransportSocket),
              proxy_protocol, w);
  return out;
}

// TLS for endpoints that say they take it, plain text for the others.
void WriteSocketMatches(std::string_view context, const config::ProxyProtocolVersion* proxy_protocol,
                        wire::Writer& out) {
  static const std::string* const kMtls = new std::string(EncodeMtlsMatch());
  static const std::string* const kPlain = new std::string(EncodePlainMatch(nullptr));
  out.Message(Cluster::kTransportSocketMatchesFieldNumber, [&] {
    out.Append(*kMtls);
    WriteTlsSocket(Cluster::TransportSocketMatch::kTransportSocketFieldNumber, context, proxy_protocol, out);
  });
  out.Bytes(Cluster::kTransportSocketMatchesFieldNumber,
            proxy_protocol == nullptr ? *kPlain : EncodePlainMatch(proxy_protocol));
}

}  // namespace

void ApplyUpstreamTls(const Proxy& proxy, const config::MeshConfig& mesh, const Profile& profile,
                      const config::ClientTlsSettings* rule_tls, const TlsInputs& in, ClusterDraft& draft) {
  const std::optional<UpstreamSettings> tls = Resolve(proxy, mesh, profile, rule_tls, in);
  wire::Writer out(&draft.encoded);
  const auto plain = [&] {
    // By another name than elsewhere. istiod: pilot/pkg/networking/util/util.go, RawBufferTransport.
    if (in.proxy_protocol != nullptr)
      WriteSocket(Cluster::kTransportSocketFieldNumber, EncodeRawSocket("raw_buffer"), in.proxy_protocol, out);
  };
  if (!tls || tls->mode == ClientTlsMode::kDisable) return plain();
  // A sidecar may be unable to read the Secret that a rule for everybody names, and would then never become ready.
  // A ConfigMap's certificate is for all to know.
  const bool secret = !tls->credential.empty() && !tls->credential.starts_with(kConfigMapCredential);
  if (secret && !proxy.IsRouter() && !in.rule_has_workload_selector) return plain();

  std::string context;
  if (tls->mode == ClientTlsMode::kIstioMutual) {
    constexpr size_t kUsual = 400;
    context.reserve(kUsual);
    wire::Writer mutual(&context);
    const bool dynamic = !draft.dns_cache.empty();
    WriteIstioMutual(*tls, draft.IsHttp2(), dynamic ? std::string_view() : std::string_view(draft.cluster.name()),
                     mutual);
    if (dynamic) SetAutoSni(*tls, true, draft);
  } else {
    UpstreamTlsContext message;
    SetTlsVersions(*message.mutable_common_tls_context());
    message.set_sni(std::string(tls->sni));
    if (profile.Has(Change::kAutoSni)) SetAutoSni(*tls, profile.Has(Change::kSystemRootByDefault), draft);
    if (!SetFromRule(*tls, in, proxy, mesh, draft.IsHttp2(), profile, message)) return plain();
    context = Serialize(message);
  }
  // An original destination has no metadata to choose by.
  if (tls->auto_detected && tls->mode == ClientTlsMode::kIstioMutual && !draft.IsOriginalDst()) {
    WriteSocketMatches(context, in.proxy_protocol, out);
  } else {
    WriteTlsSocket(Cluster::kTransportSocketFieldNumber, context, in.proxy_protocol, out);
  }
}

}  // namespace wavetank::pilot
