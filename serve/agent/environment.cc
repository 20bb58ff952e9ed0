#include "serve/agent/environment.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/time.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;

absl::Status BadSetup(std::string text) { return absl::InvalidArgumentError(text); }

std::string Variable(const Environment& environment, std::string_view name, std::string_view otherwise = {}) {
  const auto it = environment.find(name);
  return it == environment.end() || it->second.empty() ? std::string(otherwise) : it->second;
}
absl::StatusOr<int> PortOf(const pilot::AgentVariables& variables, std::string_view name, int otherwise) {
  const int64_t port = variables.Integer(name, otherwise);
  if (port < 0 || port > 65535) return BadSetup(fmt::format("{} must be a port: {}", name, port));
  return static_cast<int>(port);
}

bool IsThere(agent::Files& files, const std::string& path) { return files.Read(path).ok(); }

// A Go-quoted string. Nothing for what is none.
std::optional<std::string> Unquote(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  const json parsed = ParseJson(text);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get<std::string>();
}

// The pod as the agent's surroundings tell it, so that what is read of a pod has one rule (core/inject).
json PodOf(const Environment& environment, const AgentArguments& arguments, agent::Files& files) {
  json container = {{"name", "istio-proxy"}, {"args", {"proxy", arguments.type}}, {"env", json::array()}};
  if (!arguments.domain.empty()) {
    container["args"].push_back("--domain");
    container["args"].push_back(arguments.domain);
  }
  if (arguments.sts_port != 0) container["args"].push_back(fmt::format("--stsPort={}", arguments.sts_port));
  container["args"].push_back(fmt::format("--tokenManagerPlugin={}", arguments.token_manager));
  // `$(NAME)` is a matter of Kubernetes, long done: a dollar is one.
  for (const auto& [name, value] : environment) {
    std::string text;
    for (const char c : value) text += c == '$' ? std::string("$$") : std::string(1, c);
    container["env"].push_back({{"name", name}, {"value", std::move(text)}});
  }
  json metadata = {{"name", Variable(environment, "POD_NAME")}, {"namespace", Variable(environment, "POD_NAMESPACE")}};
  for (const auto& [field, path] :
       {std::pair("labels", "./etc/istio/pod/labels"), std::pair("annotations", "./etc/istio/pod/annotations")}) {
    const absl::StatusOr<std::string> text = files.Read(path);
    if (text.ok()) metadata[field] = ParseDownwardApi(*text);
  }
  return {{"metadata", std::move(metadata)},
          {"spec",
           {{"serviceAccountName", Variable(environment, "SERVICE_ACCOUNT")},
            {"containers", json::array({std::move(container)})}}}};
}

}  // namespace

Environment ProcessEnvironment() {
  Environment out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view text(*at);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) out[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return out;
}

std::map<std::string, std::string> ParseDownwardApi(std::string_view text) {
  std::map<std::string, std::string> out;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) continue;
    const absl::string_view value = line.substr(equals + 1);
    if (auto plain = Unquote(std::string_view(value.data(), value.size()))) {
      out[std::string(line.substr(0, equals))] = *std::move(plain);
    }
  }
  return out;
}

std::vector<std::string> MachineAddresses() {
  std::vector<std::string> out;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return out;
  // IPv4 first for each interface, as the system lists them.
  std::vector<std::string> interfaces;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (std::find(interfaces.begin(), interfaces.end(), each->ifa_name) == interfaces.end()) {
      interfaces.emplace_back(each->ifa_name);
    }
  }
  for (const std::string& name : interfaces) {
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
      if (name != each->ifa_name || each->ifa_addr == nullptr) continue;
      if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
      IpAddress ip;
      if (each->ifa_addr->sa_family == AF_INET) {
        ip = IpAddress::V4(ntohl(reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr.s_addr));
        if ((ip.low() >> 16 & 0xffff) == 0xa9fe) continue;  // 169.254/16
      } else if (each->ifa_addr->sa_family == AF_INET6) {
        const uint8_t* bytes = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr.s6_addr;
        uint64_t halves[2] = {0, 0};
        for (int i = 0; i < 16; ++i) halves[i / 8] = halves[i / 8] << 8 | bytes[i];
        ip = IpAddress::V6(halves[0], halves[1]);
        if (halves[0] >> 54 == 0xfe80 >> 6) continue;  // fe80::/10
      } else {
        continue;
      }
      if (!ip.empty() && !ip.is_loopback()) out.push_back(ip.ToString());
    }
  }
  freeifaddrs(all);
  return out;
}

absl::StatusOr<x509::KeyPairRef> MakeRealKey(const agent::KeyRequest& options) {
  if (absl::Status status = agent::CheckKeyRequest(options); !status.ok()) return status;
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  Key key(nullptr, EVP_PKEY_free);
  if (!options.ecc_algorithm.empty()) {
    key.reset(EVP_EC_gen(options.curve == "P384" ? "P-384" : "P-256"));
  } else {
    // More bits take minutes.
    if (options.rsa_bits > 8192) return BadSetup(fmt::format("no key of {} bits is made here", options.rsa_bits));
    key.reset(EVP_RSA_gen(static_cast<unsigned int>(options.rsa_bits)));
  }
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_secmem()), BIO_free);
  if (key == nullptr || out == nullptr ||
      PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return absl::InternalError("the key could not be made");
  }
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  return x509::KeyPair::FromPem(std::string_view(bytes, static_cast<size_t>(size)), "the new key");
}

absl::StatusOr<AgentSetup> ReadSetup(const Environment& environment, const AgentArguments& arguments,
                                     agent::Files& files, const std::vector<std::string>& machine_ips) {
  AgentSetup out;
  // The pod's address first; no address at all is loopback's.
  std::vector<std::string> ips;
  if (const std::string ip = Variable(environment, "INSTANCE_IP"); IpAddress::Parse(ip).ok()) ips.push_back(ip);
  for (const std::string& ip : machine_ips) {
    if (std::find(ips.begin(), ips.end(), ip) == ips.end()) ips.push_back(ip);
  }
  if (ips.empty()) ips = {"127.0.0.1", "::1"};

  pilot::BootstrapOptions reading;
  reading.pod_ip = ips[0];
  absl::StatusOr<pilot::ProxyBootstrap> proxy =
      pilot::ReadProxyBootstrap(PodOf(environment, arguments, files), reading);
  if (!proxy.ok()) return proxy.status();
  out.proxy = *std::move(proxy);
  json& metadata = out.proxy.metadata;
  metadata["INSTANCE_IPS"] = fmt::format("{}", fmt::join(ips, ","));
  // Nothing tells a real agent Istio's version but ISTIO_META_ISTIO_VERSION, which its image sets.
  if (!environment.contains("ISTIO_META_ISTIO_VERSION")) metadata.erase("ISTIO_VERSION");
  const json& config = out.proxy.proxy_config;

  out.config_path = Text(config, "configPath", "./etc/istio/proxy");
  out.binary = Text(config, "binaryPath", "/usr/local/bin/envoy");
  out.xds_socket = fmt::format("{}/XDS", out.config_path);
  out.sds_socket = "./var/run/secrets/workload-spiffe-uds/socket";
  out.admin_port = static_cast<uint16_t>(wavetank::Number(config, "proxyAdminPort", 15000));
  out.status_port = out.proxy.status_port;
  out.cluster_id = Variable(environment, "ISTIO_META_CLUSTER_ID");
  const pilot::AgentVariables variables(environment, &out.notes);
  out.token_path = agent::TokenPath(variables);

  const bool mounted = out.proxy.file_mounted_certs;
  out.xds_plaintext = Text(config, "controlPlaneAuthPolicy") == "NONE";
  if (!out.xds_plaintext) {
    absl::StatusOr<std::string> roots = agent::FindRoots(variables, files, agent::RootsOf::kXds, mounted);
    if (!roots.ok()) return roots.status();
    out.xds_roots = *std::move(roots);
  }
  out.ca_plaintext = out.proxy.ca_address.ends_with(":15010");
  if (!mounted && !out.ca_plaintext) {
    absl::StatusOr<std::string> roots = agent::FindRoots(variables, files, agent::RootsOf::kCa, mounted);
    if (!roots.ok()) return roots.status();
    out.ca_roots = *std::move(roots);
  }
  out.ca_provisioned = Variable(environment, "PROV_CERT");
  if (absl::Status sources = agent::CheckIdentitySources(variables, mounted); !sources.ok()) return sources;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("XDS_HEADER_")) out.xds_headers[name.substr(11)] = value;
  }
  // gRPC takes header names in small letters only; Go makes them so.
  std::map<std::string, std::string> headers;
  for (auto& [name, value] : out.xds_headers) {
    std::string small = name;
    std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
    headers[small] = value;
  }
  out.xds_headers = std::move(headers);

  // Bootstrap and process.
  const auto status = PortOf(variables, "ENVOY_STATUS_PORT", 15021);
  const auto prometheus = PortOf(variables, "ENVOY_PROMETHEUS_PORT", 15090);
  for (const auto* each : {&status, &prometheus}) {
    if (!each->ok()) return each->status();
  }
  out.bootstrap.status_port = static_cast<uint16_t>(*status);
  out.bootstrap_of_istiod = variables.Flag("BOOTSTRAP_XDS_AGENT", false);
  const auto tap = PortOf(variables, "PROXY_XDS_DEBUG_VIA_AGENT_PORT", 15004);
  if (!tap.ok()) return tap.status();
  out.tap_port = variables.Flag("PROXY_XDS_DEBUG_VIA_AGENT", true) ? static_cast<uint16_t>(*tap) : uint16_t{0};
  out.bootstrap.prometheus_port = static_cast<uint16_t>(*prometheus);
  metadata["ENVOY_STATUS_PORT"] = *status;
  metadata["ENVOY_PROMETHEUS_PORT"] = *prometheus;
  out.bootstrap.upstream_envoy = arguments.upstream_envoy;
  out.bootstrap.delta = variables.Flag("ISTIO_DELTA_XDS", false);
  out.bootstrap.outlier_log_path = arguments.outlier_log_path;
  if (!arguments.outlier_log_path.empty()) metadata["OUTLIER_LOG_PATH"] = arguments.outlier_log_path;
  out.bootstrap.host_ip = Variable(environment, "HOST_IP");
  out.bootstrap.exit_on_zero_active_connections = variables.Flag("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", false);
  if (out.bootstrap.exit_on_zero_active_connections) metadata["EXIT_ON_ZERO_ACTIVE_CONNECTIONS"] = "true";
  if (Text(config, "controlPlaneAuthPolicy", "MUTUAL_TLS") == "NONE") metadata.erase("PILOT_SAN");

  out.envoy.config = fmt::format("{}/envoy-rev.json", out.config_path);
  if (out.envoy.config.starts_with("./")) out.envoy.config.erase(0, 2);  // Go's path.Join
  out.envoy.drain_seconds = out.proxy.drain / std::chrono::seconds(1);
  out.envoy.ipv6 =
      std::all_of(ips.begin(), ips.end(), [](const std::string& ip) { return ip.find(':') != std::string::npos; });
  out.envoy.json_log = arguments.log_as_json;
  out.envoy.log_level = arguments.log_level;
  out.envoy.component_log_level = arguments.component_log_level;
  out.envoy.concurrency = arguments.concurrency != 0 ? arguments.concurrency : out.proxy.concurrency;
  if (const std::string path = Variable(environment, "ISTIO_BOOTSTRAP_OVERRIDE"); !path.empty()) {
    absl::StatusOr<std::string> text = files.Read(path);
    if (text.ok()) out.envoy.config_yaml = *std::move(text);
    if (!text.ok()) {
      out.notes.push_back(fmt::format("Failed to read bootstrap override {}, {}", path, Message(text.status())));
    }
  }
  out.life.termination_drain = out.proxy.termination_drain;
  out.life.minimum_drain = std::max<Duration>(Duration::zero(), variables.Length("MINIMUM_DRAIN_DURATION", 5s));
  out.life.exit_on_zero_active_connections = out.bootstrap.exit_on_zero_active_connections;
  out.life.status_port = out.bootstrap.status_port;
  out.life.prometheus_port = out.bootstrap.prometheus_port;

  // Secrets.
  out.secrets.name = out.proxy.node_id;
  out.secrets.identity = {out.proxy.trust_domain, out.proxy.ns, out.proxy.service_account};
  out.secrets.secret_ttl = out.proxy.secret_ttl;
  out.secrets.rotation_grace_ppm = out.proxy.secret_rotation_grace_ppm;
  out.secrets.file_debounce = std::max<Duration>(Duration::zero(), variables.Length("FILE_DEBOUNCE_DURATION", 100ms));
  out.secrets.file_mounted_certs = mounted;
  out.secrets.output_dir = out.proxy.output_certs;
  for (const char* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (out.secrets.system_roots_path.empty() && IsThere(files, path)) out.secrets.system_roots_path = path;
  }
  constexpr char kIdentity[] = "./var/run/secrets/workload-spiffe-credentials";
  if (IsThere(files, fmt::format("{}/cert-chain.pem", kIdentity)) &&
      IsThere(files, fmt::format("{}/key.pem", kIdentity)) &&
      IsThere(files, fmt::format("{}/root-cert.pem", kIdentity))) {
    out.secrets.file_mounted_certs = true;
    out.secrets.cert_chain_path = fmt::format("{}/cert-chain.pem", kIdentity);
    out.secrets.key_path = fmt::format("{}/key.pem", kIdentity);
    out.secrets.root_path = fmt::format("{}/root-cert.pem", kIdentity);
  }
  out.secrets.pkcs8_keys = variables.Flag("PKCS8_KEY", false);
  out.key = agent::ReadKeyRequest(variables);

  if (const std::string text = Variable(environment, "ISTIO_KUBE_APP_PROBERS"); !text.empty()) {
    absl::StatusOr<agent::AppProbers> probers = agent::ParseAppProbers(text);
    if (!probers.ok()) return probers.status();
    out.probers = *std::move(probers);
  }

  // Names.
  out.dns = out.proxy.dns_capture && arguments.type == "sidecar";
  out.dns_address = Variable(environment, "DNS_PROXY_ADDR", "localhost:15053");
  out.dns_options.proxy_namespace = out.proxy.ns;
  out.dns_options.proxy_domain = out.proxy.domain;
  if (out.dns_address.ends_with(":53") && getuid() == 0) out.dns_options.respond_before_sync = true;
  if (const absl::StatusOr<std::string> text = files.Read("/etc/resolv.conf"); text.ok()) {
    for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
      const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (words.size() < 2) continue;
      if (words[0] == "nameserver") out.name_servers.push_back(words[1]);
      if (words[0] == "search") out.dns_options.search.assign(words.begin() + 1, words.end());
    }
  }

  // Tokens for others (istiod: pilot/cmd/pilot-agent/app/cmd.go, initStsServer()).
  out.sts_port = std::max(0, arguments.sts_port);
  const absl::StatusOr<IpAddress> instance = IpAddress::Parse(Variable(environment, "INSTANCE_IP"));
  if (out.envoy.ipv6 || (instance.ok() && !instance->is_v4())) {
    out.sts_address = "::1";
  }
  out.sts.google = arguments.token_manager == pilot::kGoogleTokenExchange;
  out.sts.project = pilot::ParseGoogleMetadata(Variable(environment, "GCP_METADATA"));
  out.sts.provider = Variable(environment, "GKE_CLUSTER_URL");
  out.sts.trust_domain = out.proxy.trust_domain;

  // What has no effect here is told by name.
  const std::pair<const char*, const char*> kWithout[] = {
      {"GRPC_XDS_BOOTSTRAP", "no bootstrap for gRPC is written; `wavetank serve --grpc --bootstrap POD` prints one"},
      {"ISTIO_BOOTSTRAP", "templates are not read; the bootstrap is that of Istio's own"},
      {"USE_EXTERNAL_WORKLOAD_SDS", "secrets are served here alone"},
      {"CREDENTIAL_FETCHER_TYPE", "tokens are read from files alone"},
      {"XDS_AUTH_PROVIDER", "istiod is shown the token alone"},
      {"PROXY_CONFIG_XDS_AGENT", "the proxy's configuration is not asked of istiod"},
      {"ISTIO_PROMETHEUS_ANNOTATIONS", "the application's metrics are not merged"},
  };
  for (const auto& [name, why] : kWithout) {
    if (!Variable(environment, name).empty()) out.notes.push_back(fmt::format("{} has no effect: {}", name, why));
  }
  // Any other word is Citadel for 1.18.2, too (agent.go, newSecretManager).
  if (const std::string provider = Variable(environment, "CA_PROVIDER", "Citadel"); provider.starts_with("Google")) {
    return BadSetup(fmt::format("CA_PROVIDER {} is not there; only Citadel is", provider));
  }
  return out;
}

}  // namespace wavetank::serve
