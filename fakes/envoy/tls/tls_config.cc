#include "fakes/envoy/tls/tls_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/hash128.h"
#include "fakes/envoy/match/proto_time.h"
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

// `secret`: a trusted CA may come with one.
absl::Status AddValidation(const tls::CertificateValidationContext& context, bool secret, TlsContext* out) {
  if (context.has_trusted_ca()) {
    const std::string& pem = context.trusted_ca().inline_string().empty() ? context.trusted_ca().inline_bytes()
                                                                          : context.trusted_ca().inline_string();
    absl::StatusOr<x509::TrustBundleRef> bundle = x509::TrustBundle::FromPem(pem, "<inline>");
    if (!bundle.ok()) return absl::InvalidArgumentError("Failed to load trusted CA certificates from <inline>");
    out->trusted_ca = *std::move(bundle);
    out->validates = true;
  }
  if (absl::Status s = ReadPeerRules(context, &out->peer); !s.ok()) return s;
  if (absl::Status s = AddSans(context, &out->sans); !s.ok()) return s;
  if (out->validates || secret) return absl::OkStatus();
  // Envoy: source/common/ssl/certificate_validation_context_config_impl.cc, initialize
  if (out->peer.chain.revoked != nullptr) {
    return absl::InvalidArgumentError("Failed to load CRL from <inline> without trusted CA");
  }
  if (!out->sans.empty()) {
    return absl::InvalidArgumentError(
        "SAN-based verification of peer certificates without trusted CA is insecure and not allowed");
  }
  if (out->peer.chain.ignores_dates) {
    return absl::InvalidArgumentError("Certificate validity period is always ignored without trusted CA");
  }
  return absl::OkStatus();
}

// What BoringSSL knows. Envoy: source/common/tls/client_context_config_impl.cc (DEFAULT_CURVES), measured with 1.40
constexpr std::string_view kDefaultCurves[] = {"X25519MLKEM768", "X25519", "P-256"};
constexpr std::string_view kOtherCurves[] = {"P-384", "P-521"};

// A name that configuration gave, as a text that outlives it.
template <size_t kUsual, size_t kRest>
std::string_view Known(std::string_view name, const std::string_view (&usual)[kUsual],
                       const std::string_view (&rest)[kRest]) {
  const auto found = std::find(std::begin(usual), std::end(usual), name);
  if (found != std::end(usual)) return *found;
  const auto other = std::find(std::begin(rest), std::end(rest), name);
  return other != std::end(rest) ? *other : std::string_view();
}

absl::Status SetCurves(const tls::TlsParameters& parameters, EnvoyRelease release, TlsContext* out) {
  out->curves.assign(parameters.ecdh_curves().begin(), parameters.ecdh_curves().end());
  for (const std::string& curve : out->curves) {
    const auto is = [&](std::string_view known) { return known == curve; };
    if (std::any_of(std::begin(kDefaultCurves), std::end(kDefaultCurves), is) ||
        std::any_of(std::begin(kOtherCurves), std::end(kOtherCurves), is)) {
      continue;
    }
    return absl::InvalidArgumentError(
        fmt::format("Failed to initialize ECDH curves {}", absl::StrJoin(parameters.ecdh_curves(), ":")));
  }
  if (out->curves.empty()) {
    const size_t hybrid = release.Has(EnvoyChange::kHybridKeyExchange) ? 0 : 1;
    out->curves.assign(std::begin(kDefaultCurves) + hybrid, std::end(kDefaultCurves));
  }
  return absl::OkStatus();
}

// What BoringSSL knows. Envoy: source/common/tls/context_config_impl.cc (DEFAULT_CIPHER_SUITES)
constexpr std::string_view kDefaultCiphers[] = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
                                                "ECDHE-RSA-AES128-GCM-SHA256",   "ECDHE-RSA-CHACHA20-POLY1305",
                                                "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"};
constexpr std::string_view kOtherCiphers[] = {"AES128-GCM-SHA256",
                                              "AES256-GCM-SHA384",
                                              "AES128-SHA",
                                              "AES256-SHA",
                                              "ECDHE-ECDSA-AES128-SHA",
                                              "ECDHE-ECDSA-AES256-SHA",
                                              "ECDHE-RSA-AES128-SHA",
                                              "ECDHE-RSA-AES256-SHA",
                                              "ECDHE-RSA-AES128-SHA256",
                                              "ECDHE-ECDSA-AES128-SHA256",
                                              "DES-CBC3-SHA",
                                              "PSK-AES128-CBC-SHA",
                                              "PSK-AES256-CBC-SHA",
                                              "ECDHE-PSK-AES128-CBC-SHA",
                                              "ECDHE-PSK-AES256-CBC-SHA",
                                              "ECDHE-PSK-CHACHA20-POLY1305"};

absl::Status SetCiphers(const tls::TlsParameters& parameters, TlsContext* out) {
  if (parameters.cipher_suites().empty()) {
    out->ciphers.assign(std::begin(kDefaultCiphers), std::end(kDefaultCiphers));
    return absl::OkStatus();
  }
  std::vector<std::string> unknown;
  for (const std::string& entry : parameters.cipher_suites()) {
    // "[A|B]": of equal preference.
    const std::vector<std::string> names = absl::StrSplit(entry, absl::ByAnyChar("[]|:"), absl::SkipEmpty());
    for (const std::string& name : names) {
      const auto is = [&](std::string_view known) { return known == name; };
      if (std::any_of(std::begin(kDefaultCiphers), std::end(kDefaultCiphers), is) ||
          std::any_of(std::begin(kOtherCiphers), std::end(kOtherCiphers), is)) {
        out->ciphers.push_back(name);
      } else {
        unknown.push_back(name);
      }
    }
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "Failed to initialize cipher suites {}. The following ciphers were rejected when tried individually: {}",
      absl::StrJoin(parameters.cipher_suites(), ":"), absl::StrJoin(unknown, ", ")));
}

absl::Status AddCommon(const tls::CommonTlsContext& common, bool downstream, EnvoyRelease release, TlsContext* out) {
  // Envoy: tls.proto; a client's highest version is 1.2 unless it says otherwise, a server's 1.3; the lowest is 1.2.
  const auto highest = common.tls_params().tls_maximum_protocol_version();
  const auto lowest = common.tls_params().tls_minimum_protocol_version();
  out->highest_version = highest == tls::TlsParameters::TLS_AUTO ? (downstream ? 3 : 2) : highest - 1;
  out->lowest_version = lowest == tls::TlsParameters::TLS_AUTO ? 2 : lowest - 1;
  // With secrets to come the context is made later, and nothing is refused.
  const bool later = !common.tls_certificate_sds_secret_configs().empty() ||
                     common.has_validation_context_sds_secret_config() || common.has_combined_validation_context();
  if (absl::Status s = SetCiphers(common.tls_params(), out); !s.ok() && !later) return s;
  if (absl::Status s = SetCurves(common.tls_params(), release, out); !s.ok() && !later) return s;
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
      return AddValidation(common.validation_context(), /*secret=*/false, out);
    case tls::CommonTlsContext::kValidationContextSdsSecretConfig:
      out->validation_secret = common.validation_context_sds_secret_config().name();
      out->validates = true;
      return absl::OkStatus();
    case tls::CommonTlsContext::kCombinedValidationContext: {
      const auto& combined = common.combined_validation_context();
      out->validation_secret = combined.validation_context_sds_secret_config().name();
      out->validates = true;
      return AddValidation(combined.default_validation_context(), /*secret=*/true, out);
    }
    default:
      return absl::OkStatus();
  }
}

// Envoy: source/common/tls/server_context_config_impl.cc
void SetSessions(const tls::DownstreamTlsContext& context, const Extensions& extensions, TlsContext* out) {
  out->gives_tickets = !context.disable_stateless_session_resumption();
  out->remembers_sessions = !context.disable_stateful_session_resumption();
  if (context.has_session_timeout()) out->session_timeout = ToDuration(context.session_timeout());
  if (context.has_session_ticket_keys_sds_secret_config()) {
    extensions.NoteWithoutEffect(
        "TLS", fmt::format("{}.session_ticket_keys_sds_secret_config", context.GetDescriptor()->full_name()));
  }
  // Any of them opens a ticket; the first one makes it.
  for (const auto& key : context.session_ticket_keys().keys()) {
    out->ticket_keys = HashBytes(key.inline_string().empty() ? key.inline_bytes() : key.inline_string()).low;
    break;
  }
}

constexpr std::string_view kProxyProtocol =
    "envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport";

// Envoy: source/extensions/transport_sockets/proxy_protocol/proxy_protocol.cc
absl::StatusOr<TransportSocket> CompileProxyProtocol(const envoy::config::core::v3::TransportSocket& socket,
                                                     const Extensions& extensions) {
  if (const absl::Status known = extensions.Check(socket.name(), socket.typed_config()); !known.ok()) return known;
  const absl::StatusOr<nlohmann::json> said = ConfigJson(socket.typed_config());
  if (!said.ok()) return said.status();
  if (!said->contains("transport_socket")) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ProxyProtocolUpstreamTransportValidationError.TransportSocket: value is "
        "required)");
  }
  envoy::config::core::v3::TransportSocket inner;
  if (absl::Status s = ReadPart((*said)["transport_socket"], &inner); !s.ok()) return s;
  absl::StatusOr<TransportSocket> out = CompileTransportSocket(inner, /*downstream=*/false, extensions);
  if (out.ok()) out->proxy_protocol = TextAt(*said, "config.version") == "V2" ? 2 : 1;
  return out;
}

// What is known of a context and not acted upon: of several certificates the first is shown, whatever keys the client
// takes, and files of a proxy's pod are not read.
void NoteUnheeded(const tls::CommonTlsContext& common, const Extensions& extensions) {
  constexpr std::string_view kCommon = "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext";
  if (common.tls_certificate_sds_secret_configs_size() > 1) {
    extensions.NoteWithoutEffect("TLS", fmt::format("{}.tls_certificate_sds_secret_configs after the first", kCommon));
  }
  const bool listed = common.combined_validation_context().default_validation_context().crl().has_filename() ||
                      common.validation_context().crl().has_filename();
  if (listed) extensions.NoteWithoutEffect("TLS", fmt::format("{}: crl of a file", kCommon));
}

}  // namespace

absl::StatusOr<TransportSocket> CompileTransportSocket(const envoy::config::core::v3::TransportSocket& socket,
                                                       bool downstream, const Extensions& extensions) {
  TransportSocket out;
  const google::protobuf::Any& config = socket.typed_config();
  if (!downstream && ConfigType(config) == kProxyProtocol) return CompileProxyProtocol(socket, extensions);
  if (const absl::Status known = extensions.Check(socket.name(), config); !known.ok()) return known;
  if (config.Is<tls::UpstreamTlsContext>() && !downstream) {
    tls::UpstreamTlsContext context;
    if (!config.UnpackTo(&context)) return absl::InvalidArgumentError("Unable to parse UpstreamTlsContext");
    auto compiled = std::make_shared<TlsContext>();
    compiled->sni = context.sni();
    if (context.has_max_session_keys()) compiled->session_keys = context.max_session_keys().value();
    if (absl::Status s = AddCommon(context.common_tls_context(), downstream, extensions.release(), compiled.get());
        !s.ok())
      return s;
    NoteUnheeded(context.common_tls_context(), extensions);
    out.tls = std::move(compiled);
  } else if (config.Is<tls::DownstreamTlsContext>() && downstream) {
    tls::DownstreamTlsContext context;
    if (!config.UnpackTo(&context)) return absl::InvalidArgumentError("Unable to parse DownstreamTlsContext");
    auto compiled = std::make_shared<TlsContext>();
    compiled->require_client_certificate = context.require_client_certificate().value();
    if (absl::Status s = AddCommon(context.common_tls_context(), downstream, extensions.release(), compiled.get());
        !s.ok())
      return s;
    NoteUnheeded(context.common_tls_context(), extensions);
    SetSessions(context, extensions, compiled.get());
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
  // Envoy: source/common/tls/cert_validator/san_matcher.cc, DnsExactStringSanMatcher
  const auto dns = [&](const SanMatch& m) {
    if (m.match.kind() != StringMatch::Kind::kExact) return any(m, names.dns_names);
    return std::any_of(names.dns_names.begin(), names.dns_names.end(),
                       [&](const std::string& pattern) { return DnsNameMatches(m.match.text(), pattern); });
  };
  return std::any_of(matches.begin(), matches.end(), [&](const SanMatch& m) {
    return (m.type != SanType::kDns && any(m, names.uris)) || (m.type != SanType::kUri && dns(m));
  });
}

// Envoy: source/common/tls/utility.cc, dnsNameMatch
bool DnsNameMatches(std::string_view name, std::string_view pattern) {
  const std::string lower = absl::AsciiStrToLower(std::string(name)),
                    wild = absl::AsciiStrToLower(std::string(pattern));
  if (lower == wild) return true;
  const size_t dot = lower.find('.'), wild_dot = wild.find('.');
  if (dot == lower.npos || wild_dot == wild.npos || lower.substr(dot) != wild.substr(wild_dot)) return false;
  const std::string label = lower.substr(0, dot), form = wild.substr(0, wild_dot);
  const size_t star = form.find('*');
  if (star == form.npos || form.find('*', star + 1) != form.npos || form.starts_with("xn--")) return false;
  if (wild.find('*', wild_dot) != wild.npos) return false;
  return form == "*" || (form.size() <= label.size() + 1 && label.starts_with(form.substr(0, star)) &&
                         label.ends_with(form.substr(star + 1)));
}

std::optional<int> CommonVersion(const TlsContext* client, const TlsContext& server) {
  if (client == nullptr) return server.highest_version;
  const int highest = std::min(client->highest_version, server.highest_version);
  if (highest < client->lowest_version || highest < server.lowest_version) return std::nullopt;
  return highest;
}

std::optional<std::string_view> CommonCipher(const TlsContext* client, const TlsContext& server, int version,
                                             bool rsa_key) {
  // BoringSSL: ssl_choose_tls13_cipher, of whoever has AES in hardware.
  if (version >= 3) return "TLS_AES_128_GCM_SHA256";
  const auto fits = [&](std::string_view cipher) {
    const bool ecdsa = cipher.find("-ECDSA-") != cipher.npos;
    return ecdsa != rsa_key && cipher.find("PSK") == cipher.npos;
  };
  // Before TLS 1.2 there are neither AEADs nor other hashes.
  const auto goes = [&](std::string_view cipher) { return fits(cipher) && (version == 2 || cipher.ends_with("-SHA")); };
  // Whoever is no Envoy (an API server, istiod) says nothing of ciphers, and has them all.
  const auto has = [](const TlsContext* party, std::string_view cipher) {
    return party == nullptr || party->ciphers.empty() ||
           std::find(party->ciphers.begin(), party->ciphers.end(), cipher) != party->ciphers.end();
  };
  for (const std::string& cipher : server.ciphers) {
    if (goes(cipher) && has(client, cipher)) return Known(cipher, kDefaultCiphers, kOtherCiphers);
  }
  if (!server.ciphers.empty()) return std::nullopt;
  const std::string_view first = rsa_key ? "ECDHE-RSA-AES128-GCM-SHA256" : "ECDHE-ECDSA-AES128-GCM-SHA256";
  if (client == nullptr || client->ciphers.empty()) return first;
  const auto of_client = std::find_if(client->ciphers.begin(), client->ciphers.end(), goes);
  return of_client == client->ciphers.end() ? first : Known(*of_client, kDefaultCiphers, kOtherCiphers);
}

std::optional<std::string_view> CommonCurve(const TlsContext* client, const TlsContext& server, int version,
                                            bool rsa_key) {
  const auto has = [](const TlsContext* party, std::string_view curve) {
    return party == nullptr || party->curves.empty() ||
           std::find(party->curves.begin(), party->curves.end(), curve) != party->curves.end();
  };
  // The keys that are loaded are RSA's or on P-256. Envoy: context_impl.cc; BoringSSL: ssl_check_leaf_certificate
  if (version < 3 && !rsa_key && !has(client, "P-256")) return std::nullopt;
  const auto goes = [&](std::string_view curve) {
    return version >= 3 || curve != "X25519MLKEM768";  // key encapsulation is TLS 1.3's
  };
  // The server's order decides. BoringSSL: tls1_get_shared_group
  for (const std::string& curve : server.curves) {
    if (goes(curve) && has(client, curve)) return Known(curve, kDefaultCurves, kOtherCurves);
  }
  if (!server.curves.empty()) return std::nullopt;
  if (client == nullptr || client->curves.empty()) return "X25519";
  const auto of_client = std::find_if(client->curves.begin(), client->curves.end(), goes);
  return of_client == client->curves.end() ? "X25519" : Known(*of_client, kDefaultCurves, kOtherCurves);
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
      PeerRules peer;
      if (absl::Status s = ReadPeerRules(secret.validation_context(), &peer); !s.ok()) return s;
      if (!peer.plain()) out.secret.peer = std::make_shared<const PeerRules>(std::move(peer));
      return out;
    }
    default:
      return absl::InvalidArgumentError(
          fmt::format("Secret {} is neither certificate nor validation context", out.name));
  }
}

}  // namespace wavetank::envoysim
