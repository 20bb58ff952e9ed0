#include "fakes/envoy/http/arrival.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

namespace hcm_v3 = envoy::extensions::filters::network::http_connection_manager::v3;

bool IsPrivate(const IpAddress& ip) {
  static const std::array<IpPrefix, 4> kPrivate = {*IpPrefix::Parse("10.0.0.0/8"), *IpPrefix::Parse("172.16.0.0/12"),
                                                   *IpPrefix::Parse("192.168.0.0/16"), *IpPrefix::Parse("fd00::/8")};
  return ip == IpAddress::V4(127, 0, 0, 1) || ip == IpAddress::V6(0, 1) ||
         std::any_of(kPrivate.begin(), kPrivate.end(), [&](const IpPrefix& p) { return p.Contains(ip); });
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Of the addresses that proxies noted the one at that place, counted from the right.
std::optional<IpAddress> Trusted(const RequestSpec& request, uint32_t place) {
  std::string_view rest = FindHeader(request, "x-forwarded-for").value_or("");
  for (; place > 1; --place) {
    const size_t comma = rest.rfind(',');
    if (comma == rest.npos) return std::nullopt;
    rest = rest.substr(0, comma);
  }
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(Trimmed(rest.substr(rest.rfind(',') + 1)));
  return ip.ok() ? std::optional<IpAddress>(*ip) : std::nullopt;
}

// Whether the client is one of ours. Only a single address is believed.
bool Internal(const ArrivalRules& rules, const ArrivalPeer& peer, bool private_is_internal,
              const RequestSpec& request) {
  const std::optional<std::string_view> forwarded = FindHeader(request, "x-forwarded-for");
  IpAddress client = peer.ip;
  if (rules.use_remote_address) {
    if (forwarded.has_value()) return false;
  } else {
    if (!forwarded.has_value() || forwarded->find(',') != forwarded->npos || rules.xff_num_trusted_hops > 0)
      return false;
    const absl::StatusOr<IpAddress> said = IpAddress::Parse(Trimmed(*forwarded));
    if (!said.ok()) return false;
    client = *said;
  }
  if (!rules.says_internal) return private_is_internal && IsPrivate(client);
  return std::any_of(rules.internal.begin(), rules.internal.end(),
                     [&](const IpPrefix& p) { return p.Contains(client); });
}

// Of a client that is not ours nobody takes orders.
constexpr std::string_view kOrders[] = {"x-envoy-retriable-status-codes",
                                        "x-envoy-retriable-header-names",
                                        "x-envoy-retry-on",
                                        "x-envoy-retry-grpc-on",
                                        "x-envoy-max-retries",
                                        "x-envoy-upstream-alt-stat-name",
                                        "x-envoy-upstream-rq-timeout-ms",
                                        "x-envoy-upstream-rq-per-try-timeout-ms",
                                        "x-envoy-upstream-rq-timeout-alt-response",
                                        "x-envoy-expected-rq-timeout-ms",
                                        "x-envoy-force-trace",
                                        "x-envoy-ip-tags",
                                        "x-envoy-original-url",
                                        "x-envoy-hedge-on-per-try-timeout"};
constexpr std::string_view kOrdersAtTheEdge[] = {"x-envoy-decorator-operation", "x-envoy-downstream-service-cluster",
                                                 "x-envoy-downstream-service-node",
                                                 "x-envoy-original-path"};  // envoy#26649

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

// Envoy: mutateXfccRequestHeader
void ForwardClientCert(const ArrivalRules& rules, const ArrivalPeer& peer, RequestEdit* edit) {
  using ClientCert = ArrivalRules::ClientCert;
  constexpr std::string_view kName = "x-forwarded-client-cert";
  if (rules.client_cert == ClientCert::kAlwaysForwardOnly) return;
  if (rules.client_cert == ClientCert::kSanitize || peer.certificate.empty()) return edit->Remove(kName);
  if (rules.client_cert == ClientCert::kForwardOnly) return;
  std::string said;
  if (!peer.own_identity.empty()) said += fmt::format("By={};", peer.own_identity);
  said += "Hash=" + Sha256(peer.certificate);
  if (rules.cert_subject) said += fmt::format(";Subject=\"{}\"", peer.subject);
  if (rules.cert_uri) said += fmt::format(";URI={}", peer.identity);
  if (rules.cert_dns) {
    for (const std::string& name : peer.dns_names) said += ";DNS=" + name;
  }
  rules.client_cert == ClientCert::kAppendForward ? edit->Append(kName, said) : edit->Set(kName, said);
}

void StripPort(const ArrivalRules& rules, const ArrivalPeer& peer, RequestEdit* edit) {
  const std::string host = edit->now().authority;
  const size_t colon = host.rfind(':');
  if (colon == host.npos || host.find(']', colon) != host.npos) return;
  if (rules.host_port == ArrivalRules::HostPort::kStripMatching && host.substr(colon + 1) != std::to_string(peer.port))
    return;
  edit->Set(":authority", host.substr(0, colon));
}

}  // namespace

ArrivalRules ArrivalRules::Of(const hcm_v3::HttpConnectionManager& proto) {
  ArrivalRules out;
  out.use_remote_address = proto.use_remote_address().value();
  out.skip_xff_append = proto.skip_xff_append();
  out.xff_num_trusted_hops = proto.xff_num_trusted_hops();
  if (proto.strip_matching_host_port()) out.host_port = HostPort::kStripMatching;
  if (proto.strip_any_host_port()) out.host_port = HostPort::kStripAny;
  if (hcm_v3::HttpConnectionManager::ForwardClientCertDetails_IsValid(proto.forward_client_cert_details())) {
    out.client_cert = static_cast<ClientCert>(proto.forward_client_cert_details());
  }
  const auto& details = proto.set_current_client_cert_details();
  out.cert_subject = details.subject().value();
  out.cert_dns = details.dns();
  out.cert_uri = details.uri();
  out.via = proto.via();
  out.http1_trailers = proto.http_protocol_options().enable_trailers();
  out.says_internal = proto.has_internal_address_config();
  for (const auto& range : proto.internal_address_config().cidr_ranges()) {
    const absl::StatusOr<IpPrefix> prefix = IpPrefix::Make(range.address_prefix(), range.prefix_len().value());
    if (prefix.ok()) out.internal.push_back(*prefix);
  }
  for (const auto& upgrade : proto.upgrade_configs()) {
    if (!upgrade.has_enabled() || upgrade.enabled().value()) {
      out.upgrades.push_back(absl::AsciiStrToLower(upgrade.upgrade_type()));
    }
  }
  out.allows_connect = proto.http2_protocol_options().allow_connect();
  return out;
}

std::string UpgradeOf(const RequestSpec& request) {
  const std::optional<std::string_view> connection = FindHeader(request, "connection");
  const std::optional<std::string_view> upgrade = FindHeader(request, "upgrade");
  if (!connection || !upgrade || absl::AsciiStrToLower(std::string(*connection)).find("upgrade") == std::string::npos)
    return {};
  const std::string type = absl::AsciiStrToLower(std::string(*upgrade));
  return type == "h2c" ? "" : type;  // Envoy: http1/codec_impl.cc: nobody upgrades to HTTP/2 here
}

std::shared_ptr<const RequestSpec> Arrive(const ArrivalRules& rules, const ArrivalPeer& peer, bool private_is_internal,
                                          const RequestSpec& request) {
  RequestEdit edit(request);
  if (rules.host_port != ArrivalRules::HostPort::kKeep) StripPort(rules, peer, &edit);
  if (UpgradeOf(request).empty()) {
    edit.Remove("connection");
    edit.Remove("upgrade");
  }
  for (const std::string_view name : {"x-envoy-internal", "keep-alive", "proxy-connection", "transfer-encoding"}) {
    edit.Remove(name);
  }
  // Envoy: source/common/http/http1/codec_impl.cc, onMessageCompleteBase: HTTP/1 reads trailers only where it is told
  // to.
  if (!request.trailers.empty() && request.protocol != HttpProtocol::kHttp2 && !rules.http1_trailers) {
    edit.SetTrailers({});
  }
  const bool internal = Internal(rules, peer, private_is_internal, request);
  const std::string_view scheme = peer.tls ? "https" : "http";
  IpAddress client = peer.ip;
  if (rules.use_remote_address) {
    if (rules.xff_num_trusted_hops > 0) client = Trusted(request, rules.xff_num_trusted_hops).value_or(peer.ip);
    const IpAddress& nearest = peer.ip == IpAddress::V4(127, 0, 0, 1) ? peer.own : peer.ip;
    if (!rules.skip_xff_append) edit.Append("x-forwarded-for", nearest.ToString());
    if (rules.xff_num_trusted_hops == 0) edit.Set("x-forwarded-proto", scheme);
  }
  if (!FindHeader(edit.now(), "x-forwarded-proto").has_value()) edit.Set("x-forwarded-proto", scheme);
  if (internal) {
    edit.Set("x-envoy-internal", "true");
  } else {
    for (const std::string_view name : kOrders) edit.Remove(name);
    if (rules.use_remote_address) {
      for (const std::string_view name : kOrdersAtTheEdge) edit.Remove(name);
      edit.Set("x-envoy-external-address", client.ToString());
    }
  }
  if (!rules.via.empty()) {
    const std::optional<std::string_view> before = FindHeader(edit.now(), "via");
    edit.Set("via", before ? fmt::format("{}, {}", *before, rules.via) : rules.via);
  }
  ForwardClientCert(rules, peer, &edit);
  return edit.Take();
}

}  // namespace wavetank::envoysim
