#include "core/inject/proxy_bootstrap.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/bounds.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/parse_bool.h"
#include "core/config/mesh/mesh_config_validation.h"
#include "core/inject/agent_variables.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_config.h"
#include "core/inject/token_manager.h"
#include "core/kube/quantity.h"
#include "core/kube/yaml.h"
#include "core/model/labels.h"
#include "core/profile/changes.h"
#include "core/profile/releases.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using Env = ProxyEnvironment;

absl::Status Invalid(std::string text) { return absl::InvalidArgumentError(text); }

std::vector<std::string> Split(const std::string& text, char by) { return absl::StrSplit(text, by); }

std::string Lookup(const Env& env, std::string_view name, std::string_view fallback = {}) {
  const auto it = env.find(name);
  return it == env.end() ? std::string(fallback) : it->second;
}

// "$(NAME)" becomes the variable's value, "$$" a dollar; an unknown name stays as it is (Kubernetes: dependent
// environment variables).
std::string Expand(const std::string& text, const Env& env) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out.push_back(text[i]);
    } else if (text[i + 1] == '$') {
      out.push_back('$');
      ++i;
    } else if (const size_t close = text[i + 1] == '(' ? text.find(')', i) : std::string::npos;
               close != std::string::npos && env.contains(text.substr(i + 2, close - i - 2))) {
      out += Lookup(env, text.substr(i + 2, close - i - 2));
      i = close;
    } else {
      out.push_back('$');
    }
  }
  return out;
}

// Whole units of a Kubernetes quantity, rounded up: "2000m" and "2" are 2. nullopt for what is none.
std::optional<int64_t> CeilQuantity(const json& quantity) {
  const std::optional<absl::int128> nanos = kube::QuantityNanos(quantity);
  if (!nanos || *nanos < 0) return std::nullopt;
  return static_cast<int64_t>((*nanos + kube::kNanosPerUnit - 1) / kube::kNanosPerUnit);
}

// What the downward API puts in place of a field path; nullopt for a path that it does not know.
std::optional<std::string> FieldValue(const json& pod, const std::string& path, const std::string& ip) {
  const json& metadata = At(pod, "metadata");
  if (path == "status.podIP") return ip;
  if (path == "spec.serviceAccountName") {
    const std::string account = Text(At(pod, "spec"), "serviceAccountName");
    return account.empty() ? "default" : account;
  }
  for (const char* map : {"labels", "annotations"}) {
    const std::string prefix = fmt::format("metadata.{}['", map);
    if (path.starts_with(prefix) && path.ends_with("']")) {
      return Text(At(metadata, map), path.substr(prefix.size(), path.size() - prefix.size() - 2));
    }
  }
  for (const char* known : {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.hostIP"}) {
    if (path == known) return Print(AtPath(pod, path));
  }
  return std::nullopt;
}

absl::StatusOr<Env> ReadEnv(const json& pod, const json& container, const std::string& ip,
                            const BootstrapOptions& options) {
  Env env;
  const json& list = At(container, "env");
  if (!list.is_array()) return env;
  for (const json& variable : list) {
    const std::string name = Text(variable, "name");
    const json& from = At(variable, "valueFrom");
    if (!from.is_object()) {
      env[name] = Expand(Print(At(variable, "value")), env);
      continue;
    }
    if (const std::string path = Text(At(from, "fieldRef"), "fieldPath"); !path.empty()) {
      const std::optional<std::string> value = FieldValue(pod, path, ip);
      if (!value.has_value()) return Invalid(fmt::format("env {}: unknown field path {}", name, path));
      env[name] = *value;
    } else if (const std::string resource = Text(At(from, "resourceFieldRef"), "resource"); !resource.empty()) {
      const size_t dot = resource.find('.');
      const json& quantity = At(At(At(container, "resources"), resource.substr(0, dot)), resource.substr(dot + 1));
      std::optional<int64_t> value;
      if (!quantity.is_null()) {
        value = CeilQuantity(quantity);
        if (!value.has_value()) return Invalid(fmt::format("{} is no quantity: {}", resource, JsonText(quantity)));
      } else if (resource == "limits.cpu" && options.node_cpus > 0) {
        value = options.node_cpus;  // without a limit, what the node can give
      }
      if (value.has_value()) env[name] = std::to_string(*value);
    }
  }
  return env;
}

absl::StatusOr<std::set<uint16_t>> Ports(const std::string& text, const char* flag) {
  std::set<uint16_t> out;
  for (const std::string& item : Split(text, ',')) {
    const std::string port(absl::StripAsciiWhitespace(item));
    if (port.empty()) continue;
    uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size()) {
      return Invalid(fmt::format("istio-iptables {}: \"{}\" is no port", flag, port));
    }
    out.insert(number);
  }
  return out;
}

absl::StatusOr<std::vector<IpPrefix>> Prefixes(const std::string& text, const char* flag) {
  std::vector<IpPrefix> out;
  for (const std::string& item : Split(text, ',')) {
    const std::string prefix(absl::StripAsciiWhitespace(item));
    if (prefix.empty()) continue;
    const absl::StatusOr<IpPrefix> parsed = IpPrefix::Parse(prefix);
    if (!parsed.ok()) return Invalid(fmt::format("istio-iptables {}: \"{}\" is no prefix", flag, prefix));
    out.push_back(*parsed);
  }
  return out;
}

// "1.18.2" of "docker.io/istio/proxyv2:1.18.2-distroless": what the image itself sets as ISTIO_META_ISTIO_VERSION.
std::string VersionOfImage(const std::string& image, const std::string& fallback) {
  const size_t colon = image.rfind(':');
  if (colon == std::string::npos) return fallback;
  std::string_view tag = std::string_view(image).substr(colon + 1);
  for (std::string_view type : {"-distroless", "-debug"}) {
    if (tag.ends_with(type)) tag.remove_suffix(type.size());
  }
  const bool number = !tag.empty() && tag[0] >= '0' && tag[0] <= '9' && tag.find('.') != std::string_view::npos;
  return number ? std::string(tag) : fallback;
}

// The rules, from the arguments of istio-iptables in the init container (or of its validation under the CNI plugin).
// `ip`: of the pod, its first one.
absl::StatusOr<std::optional<Interception>> ReadInterception(const json& spec, const std::string& ip,
                                                             const BootstrapOptions& options) {
  const json& containers = At(spec, "initContainers");
  const json* init = FindNamed(containers, "istio-init");
  if (init == nullptr) init = FindNamed(containers, "istio-validation");
  if (init == nullptr) return std::nullopt;
  std::map<std::string, std::string> flags;
  const json& args = At(*init, "args");
  for (size_t i = 0; args.is_array() && i + 1 < args.size(); ++i) {
    const std::string flag = Print(args[i]);
    if (flag.size() == 2 && flag[0] == '-') flags[flag] = Print(args[++i]);
  }
  Interception out;
  if (const auto it = flags.find("-m"); it != flags.end() && !it->second.empty()) out.mode = it->second;
  if (out.mode == "NONE") return std::nullopt;
  // istiod: tools/istio-iptables/pkg/cmd/root.go, getLocalIP. The first address decides, unless the variable is there.
  const absl::StatusOr<IpAddress> first = IpAddress::Parse(ip);
  out.v6 = first.ok() && !first->is_v4();
  const bool renamed =
      ProxyHas(options.profile, VersionOfImage(Text(*init, "image"), options.version), Change::kDualStackVariable);
  for (const json& variable : Items(At(*init, "env"))) {
    if (Text(variable, "name") == (renamed ? "ISTIO_DUAL_STACK" : "ISTIO_AGENT_DUAL_STACK")) {
      out.v6 |= ParseBool(Text(variable, "value")).value_or(false);
    }
  }
  for (const auto& [flag, port] : {std::pair("-p", &out.outbound_port), std::pair("-z", &out.inbound_port)}) {
    if (!flags.contains(flag)) continue;
    const auto ports = Ports(flags[flag], flag);
    if (!ports.ok()) return ports.status();
    if (ports->size() != 1) return Invalid(fmt::format("istio-iptables {}: one port is needed", flag));
    *port = *ports->begin();
  }
  out.all_outbound_ips = flags["-i"] == "*";
  out.all_inbound_ports = flags["-b"] == "*";
  for (const auto& [flag, prefixes] :
       {std::pair("-i", &out.outbound_ips), std::pair("-x", &out.excluded_outbound_ips)}) {
    if (flags[flag] == "*") continue;
    auto parsed = Prefixes(flags[flag], flag);
    if (!parsed.ok()) return parsed.status();
    *prefixes = *std::move(parsed);
  }
  for (const auto& [flag, ports] :
       {std::pair("-b", &out.inbound_ports), std::pair("-d", &out.excluded_inbound_ports),
        std::pair("-q", &out.outbound_ports), std::pair("-o", &out.excluded_outbound_ports)}) {
    if (flags[flag] == "*") continue;
    auto parsed = Ports(flags[flag], flag);
    if (!parsed.ok()) return parsed.status();
    *ports = *std::move(parsed);
  }
  return out;
}

// istiod: pkg/bootstrap/config.go, getServiceCluster.
std::string NodeCluster(const ProxyBootstrap& b) {
  const json& labels = At(b.metadata, "LABELS");
  const std::string workload = Text(b.metadata, "WORKLOAD_NAME");
  const auto or_default = [&](const std::string& name) {
    if (!name.empty() && name != "istio-proxy") return name;
    if (At(labels, "app").is_string()) return Text(labels, "app") + "." + b.ns;
    if (!workload.empty()) return workload + "." + b.ns;
    return "istio-proxy." + b.ns;
  };
  const std::string tracing = Text(b.proxy_config, "tracingServiceName");
  if (!tracing.starts_with("CANONICAL_NAME_")) {
    return or_default(tracing.empty() ? Text(b.proxy_config, "serviceCluster") : "istio-proxy");
  }
  std::string canonical;
  for (const char* label : {"service.istio.io/canonical-name", "app.kubernetes.io/name", "app"}) {
    if (canonical.empty()) canonical = Text(labels, label);
  }
  if (canonical.empty()) canonical = workload.empty() ? "istio-proxy" : workload;
  return tracing == "CANONICAL_NAME_ONLY" ? or_default(canonical) : canonical + "." + b.ns;
}

// As Go prints a list of model.PodPort: its three fields, in their order.
std::string PodPortsText(const json& ports) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const json& port : ports) {
    nlohmann::ordered_json one = nlohmann::ordered_json::object();
    if (const std::string name = Text(port, "name"); !name.empty()) one["name"] = name;
    const json& number = At(port, "containerPort");
    one["containerPort"] = number.is_number_integer() ? number.get<int64_t>() : 0;
    one["protocol"] = Text(port, "protocol");
    out.push_back(std::move(one));
  }
  return JsonText(out);
}

// istiod: pkg/bootstrap/config.go, GetNodeMetaData and ConvertNodeToXDSNode.
absl::Status FillMetadata(const json& pod, const json& container, const Env& env, const BootstrapOptions& options,
                          ProxyBootstrap& out) {
  json& meta = out.metadata;
  meta = json::object();
  meta["ISTIO_VERSION"] = VersionOfImage(Text(container, "image"), options.version);
  constexpr std::string_view kMeta = "ISTIO_META_", kJson = "ISTIO_METAJSON_";
  if (const json& proxy_metadata = At(out.proxy_config, "proxyMetadata"); proxy_metadata.is_object()) {
    for (const auto& [name, value] : proxy_metadata.items()) {
      if (name.starts_with(kMeta)) meta[name.substr(kMeta.size())] = Print(value);
    }
  }
  for (const auto& [name, value] : env) {
    if (name.starts_with(kMeta)) meta[name.substr(kMeta.size())] = value;
  }
  json labels = json::object();
  for (const auto& [name, value] : env) {
    if (!name.starts_with(kJson)) continue;
    const json parsed = ParseJson(value);
    if (!parsed.is_object()) continue;  // the agent warns and goes on
    if (name == "ISTIO_METAJSON_LABELS") {
      labels = parsed;
      meta["STATIC_LABELS"] = parsed;
    }
    meta.update(parsed);
  }
  if (const std::string text = Text(meta, "POD_PORTS"); !text.empty()) {
    const json ports = ParseJson(text);
    if (!ports.is_array()) return Invalid("ISTIO_META_POD_PORTS is no JSON list");
    // An empty list is none to the typed metadata, so that the text stays as it was written.
    if (!ports.empty()) meta["POD_PORTS"] = PodPortsText(ports);
  }
  const json& pod_metadata = At(pod, "metadata");
  for (const auto& [name, value] : TextMap(At(pod_metadata, "labels"))) {
    if (name != "pod-template-hash") labels[name] = value;
  }
  std::string locality = Text(labels, kLocalityLabel);
  if (!locality.empty()) {
    if (locality.find('/') == std::string::npos) {
      for (char& c : locality) {
        if (c == '.') c = '/';
      }
    }
    labels[std::string(kLocalityLabel)] = locality;
    const std::vector<std::string> parts = Split(locality, '/');
    out.region = parts[0];
    if (parts.size() > 1) out.zone = parts[1];
    if (parts.size() > 2) out.sub_zone = parts[2];
  }
  if (!labels.empty()) meta["LABELS"] = std::move(labels);
  if (const kube::Labels annotations = TextMap(At(pod_metadata, "annotations")); !annotations.empty()) {
    meta["ANNOTATIONS"] = annotations;
  }
  // istiod: pilot/cmd/pilot-agent/app/cmd.go, initProxy: INSTANCE_IP, then what the interfaces have.
  std::string ips = out.ip;
  for (const std::string& other : out.more_ips) ips += "," + other;
  meta["INSTANCE_IPS"] = std::move(ips);
  meta["NAME"] = out.pod;
  meta["NAMESPACE"] = out.ns;
  // The variable's word, which istiod compares with who the token says it is (xds: checkConnectionIdentity).
  if (env.contains("SERVICE_ACCOUNT")) meta["SERVICE_ACCOUNT"] = Lookup(env, "SERVICE_ACCOUNT");
  meta["ENVOY_STATUS_PORT"] = 15021;
  meta["ENVOY_PROMETHEUS_PORT"] = 15090;
  meta["PILOT_SAN"] = json::array({DiscoveryHost(out.discovery_address)});
  meta["PROXY_CONFIG"] = out.proxy_config;
  for (auto it = meta.begin(); it != meta.end();) {  // empty texts are absent to Go's omitempty
    it = it->is_string() && it->get_ref<const std::string&>().empty() ? meta.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

void ReadVolumes(const json& spec, const json& container, ProxyBootstrap& out) {
  const json& volumes = At(spec, "volumes");
  const json& mounts = At(container, "volumeMounts");
  const auto mounted = [&](std::string_view path) -> const json& {
    static const json* const kNull = new json();
    if (!mounts.is_array()) return *kNull;
    for (const json& mount : mounts) {
      if (Text(mount, "mountPath") != path) continue;
      const json* volume = FindNamed(volumes, Text(mount, "name"));
      if (volume != nullptr) return *volume;
    }
    return *kNull;
  };
  out.root_cert_config_map = Text(At(mounted("/var/run/secrets/istio"), "configMap"), "name");
  if (const json& sources = At(At(mounted("/var/run/secrets/tokens"), "projected"), "sources"); sources.is_array()) {
    for (const json& source : sources) {
      const json& token = At(source, "serviceAccountToken");
      if (Text(token, "path") != "istio-token") continue;
      out.token_audience = Text(token, "audience");
      const json& seconds = At(token, "expirationSeconds");
      out.token_expiration_seconds = bounds::Seconds(NumberOf(seconds, 3600)) / 1s;
    }
  }
}

// A level that Envoy does not know, among "warning,misc:error" and levels of components; empty: it knows all
// (envoy: source/server/options_impl_base.cc, parseAndValidateLogLevel).
std::string BadLogLevel(const std::string& levels, const std::string& of_components) {
  constexpr std::string_view kLevels[] = {"trace", "debug", "info", "warning", "warn", "error", "critical", "off"};
  for (const std::string& said : {levels, of_components}) {
    for (const std::string& item : Split(said, ',')) {
      if (item.empty()) continue;
      const std::string level = item.substr(item.find(':') + 1);  // all of it without a component
      if (std::find(std::begin(kLevels), std::end(kLevels), level) == std::end(kLevels)) return level;
    }
  }
  return {};
}

void ReadReadiness(const json& container, ProxyBootstrap& out) {
  const json& probe = At(container, "readinessProbe");
  const json& port = AtPath(probe, "httpGet.port");
  if (!port.is_number_integer()) return;
  out.readiness_port = static_cast<uint16_t>(port.get<int64_t>());
  const auto number = [&](const char* field, int64_t fallback) {
    const json& value = At(probe, field);
    return value.is_number_integer() ? value.get<int64_t>() : fallback;
  };
  out.readiness_initial_delay = bounds::Seconds(number("initialDelaySeconds", 0));
  // 0 says nothing (kubernetes: pkg/apis/core/v1/defaults.go).
  const int64_t period = number("periodSeconds", 10);
  out.readiness_period = bounds::Seconds(period <= 0 ? 10 : period);
  out.readiness_failure_threshold = static_cast<int>(number("failureThreshold", 3));
}

}  // namespace

bool HasProxy(const json& pod) {
  const json* container = FindProxyContainer(At(pod, "spec"));
  if (container == nullptr) return false;
  for (const json& variable : Items(At(*container, "env"))) {
    // An agent for gRPC alone runs no Envoy (template grpc-agent; istiod: pilot/cmd/pilot-agent/options/options.go).
    if (Text(variable, "name") == "DISABLE_ENVOY" && Text(variable, "value") == "true") return false;
  }
  const json& args = At(*container, "args");
  // Of ambient mode, whose program is another (istio: manifests/charts/ztunnel).
  return args.is_array() && args.size() >= 2 && args[0] == "proxy" && args[1] != "ztunnel";
}

int NodeCpus(const json& node) {
  for (const char* field : {"allocatable", "capacity"}) {
    const json& cpu = At(At(At(node, "status"), field), "cpu");
    if (cpu.is_null()) continue;
    const std::optional<int64_t> cores = CeilQuantity(cpu);
    if (cores.has_value() && *cores > 0 && *cores <= 10'000) return static_cast<int>(*cores);
  }
  return 0;
}

absl::StatusOr<ProxyEnvironment> ReadProxyEnvironment(const json& pod, const BootstrapOptions& options) {
  const json* container = FindProxyContainer(At(pod, "spec"));
  if (container == nullptr) return absl::NotFoundError("the pod has no istio-proxy container");
  const std::string ip = options.pod_ip.empty() ? Text(At(pod, "status"), "podIP") : options.pod_ip;
  return ReadEnv(pod, *container, ip, options);
}

absl::StatusOr<ProxyBootstrap> ReadProxyBootstrap(const json& pod, const BootstrapOptions& options) {
  const json& spec = At(pod, "spec");
  const json* container = FindProxyContainer(spec);
  if (container == nullptr || !HasProxy(pod)) return absl::NotFoundError("the pod has no istio-proxy container");
  ProxyBootstrap out;
  out.ip = options.pod_ip.empty() ? Text(At(pod, "status"), "podIP") : options.pod_ip;
  if (out.ip.empty()) return absl::FailedPreconditionError("the pod has no address yet");
  for (const json& each : Items(At(At(pod, "status"), "podIPs"))) {
    if (std::string other = Text(each, "ip"); other != out.ip) out.more_ips.push_back(std::move(other));
  }

  const absl::StatusOr<Env> read = ReadEnv(pod, *container, out.ip, options);
  if (!read.ok()) return read.status();
  const Env& env = *read;
  out.pod = Lookup(env, "POD_NAME");
  out.ns = Lookup(env, "POD_NAMESPACE");
  out.service_account = *FieldValue(pod, "spec.serviceAccountName", out.ip);
  out.trust_domain = Lookup(env, "TRUST_DOMAIN", "cluster.local");

  std::vector<std::string> args;
  for (const json& arg : (*container)["args"]) args.push_back(Expand(Print(arg), env));
  if (args[1] != "sidecar" && args[1] != "router") return Invalid(fmt::format("Invalid proxy Type: {}", args[1]));
  out.role = args[1] == "router" ? ProxyBootstrap::Role::kRouter : ProxyBootstrap::Role::kSidecar;
  const auto argument = [&](std::string_view name, std::string otherwise) {
    for (size_t i = 2; i < args.size(); ++i) {
      if (args[i] == name && i + 1 < args.size()) otherwise = args[i + 1];
      if (args[i].starts_with(name) && args[i].size() > name.size() && args[i][name.size()] == '=') {
        otherwise = args[i].substr(name.size() + 1);
      }
    }
    return otherwise;
  };
  out.domain = argument("--domain", "");
  int sts_port = 0;
  if (const std::string port = argument("--stsPort", "0"); !absl::SimpleAtoi(port, &sts_port)) {
    return Invalid(
        fmt::format("invalid argument \"{}\" for \"--stsPort\" flag: strconv.ParseInt: parsing \"{}\": "
                    "invalid syntax",
                    port, port));
  }
  // istiod: pilot/cmd/pilot-agent/options/security.go, NewSecurityOptions()
  if (sts_port > 0 || !Lookup(env, "XDS_AUTH_PROVIDER").empty()) {
    const std::string plugin = argument("--tokenManagerPlugin", std::string(kGoogleTokenExchange));
    if (absl::Status s = CheckTokenManager(plugin, Lookup(env, "GCP_METADATA")); !s.ok()) return s;
  }
  if (std::string level = BadLogLevel(argument("--proxyLogLevel", ""), argument("--proxyComponentLogLevel", ""));
      !level.empty()) {
    return Invalid(
        fmt::format("Envoy exited with error: exit status 1 (error: invalid log level specified '{}')", level));
  }
  if (out.domain.empty()) out.domain = out.ns + ".svc.cluster.local";
  out.node_id = fmt::format("{}~{}~{}.{}~{}", args[1], out.ip, out.pod, out.ns, out.domain);

  // Defaults, the mesh config that is mounted (into gateways that charts render, which nobody injects), PROXY_CONFIG,
  // the pod's annotations: the later wins. istiod: pilot/cmd/pilot-agent/config/config.go, getMeshConfig
  const kube::Labels annotations = TextMap(At(At(pod, "metadata"), "annotations"));
  out.proxy_config = DefaultProxyConfig();
  if (const std::string mounted =
          options.read_file ? options.read_file(argument("--meshConfig", "./etc/istio/config/mesh")) : std::string();
      !mounted.empty()) {
    const absl::StatusOr<json> mesh = kube::ParseYaml(mounted, "mesh config");
    if (!mesh.ok()) return Invalid(fmt::format("failed to get proxy config: {}", Message(mesh.status())));
    OverlayProxyConfig(out.proxy_config, At(*mesh, "defaultConfig"));
  }
  if (absl::Status s = OverlayProxyConfigYaml(out.proxy_config, Lookup(env, "PROXY_CONFIG"), "PROXY_CONFIG"); !s.ok()) {
    return s;
  }
  if (const auto it = annotations.find(kProxyConfigAnnotation); it != annotations.end()) {
    if (absl::Status s = OverlayProxyConfigYaml(out.proxy_config, it->second, kProxyConfigAnnotation); !s.ok())
      return s;
  }
  if (absl::Status s = config::CheckProxyConfig(out.proxy_config, "ProxyConfig"); !s.ok()) {
    return Invalid(fmt::format("failed to get proxy config: {}", Message(s)));
  }
  // What has an annotation of its own is laid over what was judged: a status port of 0 is a proxy without probes
  // (istiod: pilot/cmd/pilot-agent/config/config.go, applyAnnotations()).
  if (const auto it = annotations.find("sidecar.istio.io/discoveryAddress"); it != annotations.end()) {
    out.proxy_config["discoveryAddress"] = it->second;
  }
  if (const auto it = annotations.find("status.sidecar.istio.io/port"); it != annotations.end()) {
    out.proxy_config["statusPort"] = std::atoi(it->second.c_str());
  }
  if (!out.proxy_config.contains("concurrency")) {
    if (const int limit = std::atoi(Lookup(env, "ISTIO_CPU_LIMIT").c_str()); limit != 0) {
      out.proxy_config["concurrency"] = limit;
    }
  }
  const json& concurrency = At(out.proxy_config, "concurrency");
  if (concurrency.is_number_integer()) out.concurrency = concurrency.get<int>();
  const json& status_port = At(out.proxy_config, "statusPort");
  if (status_port.is_number_integer()) out.status_port = static_cast<uint16_t>(status_port.get<int64_t>());
  out.drain = ParseGoDuration(Text(out.proxy_config, "drainDuration")).value_or(out.drain);
  out.termination_drain =
      ParseGoDuration(Text(out.proxy_config, "terminationDrainDuration")).value_or(out.termination_drain);
  out.hold_application_until_ready = At(out.proxy_config, "holdApplicationUntilProxyStarts") == true;

  out.discovery_address = Text(out.proxy_config, "discoveryAddress");
  out.discovery_san = Lookup(env, "ISTIOD_SAN", DiscoveryHost(out.discovery_address));
  out.ca_address = Lookup(env, "CA_ADDR");
  if (out.ca_address.empty()) {
    out.ca_address = out.discovery_address;
    out.ca_san = out.discovery_san;
  } else {
    out.ca_san = DiscoveryHost(out.ca_address);
  }
  const AgentVariables variables(env, &out.log);
  out.secret_ttl = variables.Length("SECRET_TTL", out.secret_ttl);
  // Above 1 the certificate is renewed at once, again and again, as there (secretcache.go, rotateTime).
  const double ratio = variables.Number("SECRET_GRACE_PERIOD_RATIO", 0.5);
  out.secret_rotation_grace_ppm = static_cast<int64_t>(std::clamp(ratio, 0.0, 1.0) * 1e6 + 0.5);
  double jitter = 0;
  if (absl::SimpleAtod(Lookup(env, "SECRET_GRACE_PERIOD_RATIO_JITTER"), &jitter) && !std::isnan(jitter)) {
    out.secret_rotation_jitter_ppm = static_cast<int64_t>(std::min(std::abs(jitter), 1.0) * 1e6 + 0.5);
  }
  out.file_mounted_certs = variables.Flag("FILE_MOUNTED_CERTS", false);
  out.xds_plaintext = Text(out.proxy_config, "controlPlaneAuthPolicy") == "NONE";
  out.output_certs = Lookup(env, "OUTPUT_CERTS");
  out.dns_capture = variables.Flag("ISTIO_META_DNS_CAPTURE", false);
  out.dynamic_config = variables.Flag("PROXY_CONFIG_XDS_AGENT", false);
  out.dual_stack = variables.Flag("ISTIO_DUAL_STACK", false);
  if (!Lookup(env, "ISTIO_DELTA_XDS").empty()) out.delta_xds = variables.Flag("ISTIO_DELTA_XDS", false);
  ReadVolumes(spec, *container, out);
  ReadReadiness(*container, out);
  absl::StatusOr<std::optional<Interception>> interception = ReadInterception(spec, out.ip, options);
  if (!interception.ok()) return interception.status();
  out.interception = *std::move(interception);
  if (absl::Status s = FillMetadata(pod, *container, env, options, out); !s.ok()) return s;
  out.both_wildcards =
      out.dual_stack && ProxyHas(options.profile, Text(out.metadata, "ISTIO_VERSION"), Change::kDualStackBootstrap);
  out.node_cluster = NodeCluster(out);
  return out;
}

}  // namespace wavetank::pilot
