#include "core/inject/injection_templates.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_config.h"
#include "core/model/labels.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// Names as they stand in the template data.
class Renderer {
 public:
  explicit Renderer(const InjectionTemplateData& data)
      : data_(data),
        metadata_(At(data.pod, "metadata")),
        spec_(At(data.pod, "spec")),
        annotations_(TextMap(At(metadata_, "annotations"))),
        labels_(TextMap(At(metadata_, "labels"))) {
    if (const json& containers = At(spec_, "containers"); containers.is_array()) {
      for (const json& c : containers) {
        if (const std::string name = Text(c, "name"); name != "istio-proxy") app_containers_.push_back(name);
      }
    }
    interception_mode_ = Text(data.proxy_config, "interceptionMode");
    if (interception_mode_.empty()) interception_mode_ = "REDIRECT";
  }

  json Sidecar() const {
    json metadata = {{"labels", CanonicalLabels()}, {"annotations", {{"istio.io/rev", Revision()}}}};
    const std::string* tls_mode = Label(kTlsModeLabel);
    metadata["labels"][std::string(kTlsModeLabel)] = tls_mode != nullptr && !tls_mode->empty() ? *tls_mode : "istio";
    if (Text(At(data_.proxy_config, "proxyMetadata"), "ISTIO_META_ENABLE_HBONE") == "true") {
      const std::string* tunnel = Label("networking.istio.io/tunnel");
      metadata["labels"]["networking.istio.io/tunnel"] = tunnel != nullptr && !tunnel->empty() ? *tunnel : "http";
    }
    json& annotations = metadata["annotations"];
    AddDefaultContainer(annotations);
    if (Flag("istio_cni.enabled")) AddCniAnnotations(annotations);

    json spec = {{"volumes", Volumes()}};
    if (Annotation("sidecar.istio.io/interceptionMode", interception_mode_) != "NONE") {
      spec["initContainers"].push_back(InitContainer());
    }
    spec[data_.native_sidecar ? "initContainers" : "containers"].push_back(
        ProxyContainer("sidecar", data_.native_sidecar));
    if (Annotation("sidecar.istio.io/enableCoreDump", Value("proxy.enableCoreDump")) == "true") {
      spec["initContainers"].push_back(CoreDumpContainer());
    }
    AddPullSecrets(spec);
    return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  }

  json Gateway() const {
    json metadata = {{"labels", CanonicalLabels()}, {"annotations", {{"istio.io/rev", Revision()}}}};
    if (app_containers_.size() == 1) {
      metadata["annotations"]["kubectl.kubernetes.io/default-logs-container"] = app_containers_.front();
      metadata["annotations"]["kubectl.kubernetes.io/default-container"] = app_containers_.front();
    }
    json spec = {{"containers", json::array({ProxyContainer("router")})}, {"volumes", Volumes()}};
    AddPullSecrets(spec);
    return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  }

  json GrpcAgent() const {
    json metadata = {
        {"labels", CanonicalLabels()},
        {"annotations", {{"istio.io/rev", Revision()}, {"sidecar.istio.io/rewriteAppHTTPProbers", "false"}}}};
    AddDefaultContainer(metadata["annotations"]);
    json containers = json::array({GrpcAgentContainer()});
    for (const std::string& name : app_containers_) {
      containers.push_back(
          {{"name", name},
           {"env",
            {{{"name", "GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT"}, {"value", "true"}},
             {{"name", "GRPC_XDS_BOOTSTRAP"}, {"value", "/etc/istio/proxy/grpc-bootstrap.json"}}}},
           {"volumeMounts",
            {{{"mountPath", "/var/lib/istio/data"}, {"name", "istio-data"}},
             {{"mountPath", "/etc/istio/proxy"}, {"name", "istio-xds"}},
             {{"mountPath", "/var/run/secrets/workload-spiffe-credentials"}, {"name", "workload-certs"}}}}});
    }
    json volumes = json::array();
    for (const json& volume : Volumes()) {
      const std::string name = Text(volume, "name");
      if (name == "credential-socket" || name == "kube-ca-cert") continue;
      volumes.push_back(volume);
      if (name == "istio-envoy") volumes.back()["name"] = "istio-xds";
    }
    json spec = {{"containers", std::move(containers)}, {"volumes", std::move(volumes)}};
    AddPullSecrets(spec);
    return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  }

  json GrpcSimple() const {
    constexpr const char *kFolder = "/var/lib/grpc/data/", *kVolume = "grpc-io-proxyless-bootstrap";
    const json mounts = json::array({{{"mountPath", kFolder}, {"name", kVolume}}});
    const auto field = [](const char* name, const char* path) {
      return json{{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
    };
    // The file that gRPC's xDS client begins with: istiod by plaintext, and who asks (gRFC A27).
    const std::string script = fmt::format(
        "NODE_ID=\"sidecar~${{INSTANCE_IP}}~${{POD_NAME}}.${{POD_NAMESPACE}}~cluster.local\"\n"
        "SERVER_URI=\"dns:///istiod.${{ISTIO_NAMESPACE}}.svc:15010\"\n"
        "echo '\n{}' > {}bootstrap.json",
        R"({
  "xds_servers": [
    {
      "server_uri": "'${SERVER_URI}'",
      "channel_creds": [{"type": "insecure"}],
      "server_features" : ["xds_v3"]
    }
  ],
  "node": {
    "id": "'${NODE_ID}'",
    "metadata": {
      "GENERATOR": "grpc"
    }
  }
})",
        kFolder);
    json init = {{"name", "grpc-bootstrap-init"},
                 {"image", "busybox:1.28"},
                 {"volumeMounts", mounts},
                 {"env", json::array({field("INSTANCE_IP", "status.podIP"), field("POD_NAME", "metadata.name"),
                                      field("POD_NAMESPACE", "metadata.namespace")})},
                 {"command", json::array({"sh", "-c", script})}};
    init["env"].push_back({{"name", "ISTIO_NAMESPACE"}, {"value", Value("istioNamespace") + "\n"}});
    json containers = json::array();
    for (const json& container : Items(At(spec_, "containers"))) {
      containers.push_back({{"name", Text(container, "name")},
                            {"env",
                             {{{"name", "GRPC_XDS_BOOTSTRAP"}, {"value", std::string(kFolder) + "bootstrap.json"}},
                              {{"name", "GRPC_GO_LOG_VERBOSITY_LEVEL"}, {"value", "99"}},
                              {{"name", "GRPC_GO_LOG_SEVERITY_LEVEL"}, {"value", "info"}}}},
                            {"volumeMounts", mounts}});
    }
    return {{"metadata", {{"annotations", {{"sidecar.istio.io/rewriteAppHTTPProbers", "false"}}}}},
            {"spec",
             {{"initContainers", json::array({std::move(init)})},
              {"containers", std::move(containers)},
              {"volumes", json::array({{{"name", kVolume}, {"emptyDir", json::object()}}})}}}};
  }

  // "docker.io/istio/proxyv2:1.18.2", with the image type ("debug", "distroless") that annotation or ProxyConfig ask
  // for.
  std::string ProxyImage() const {
    std::string type = Text(At(data_.proxy_config, "image"), "imageType");
    if (const auto it = annotations_.find("sidecar.istio.io/proxyImageType"); it != annotations_.end())
      type = it->second;
    std::string tag = Value("tag"), name = Value("proxy.image");
    if (name.empty()) name = "proxyv2";
    if (!type.empty()) {
      for (std::string_view known : {"-distroless", "-debug"}) {
        if (tag.ends_with(known)) {
          tag.resize(tag.size() - known.size());
          break;
        }
      }
      if (type != "default") tag += "-" + type;
    }
    return fmt::format("{}/{}:{}", Value("hub"), name, tag);
  }

 private:
  const json& Global(std::string_view path) const { return AtPath(At(data_.values, "global"), path); }
  std::string Value(std::string_view path) const { return Print(Global(path)); }
  bool Flag(std::string_view path) const { return AtPath(data_.values, path) == true; }
  std::string Annotation(std::string_view name, const std::string& fallback) const {
    const auto it = annotations_.find(name);
    return it == annotations_.end() ? fallback : it->second;
  }
  const std::string* Label(std::string_view name) const {
    const auto it = labels_.find(name);
    return it == labels_.end() ? nullptr : &it->second;
  }
  std::string Revision() const { return data_.revision.empty() ? "default" : data_.revision; }

  json CanonicalLabels() const {
    const auto first = [&](std::initializer_list<const char*> names, const std::string& fallback) {
      for (const char* name : names) {
        if (const std::string* label = Label(name); label != nullptr && !label->empty()) return *label;
      }
      return fallback;
    };
    return {{"service.istio.io/canonical-name",
             first({"service.istio.io/canonical-name", "app.kubernetes.io/name", "app"}, data_.workload.name)},
            {"service.istio.io/canonical-revision",
             first({"service.istio.io/canonical-revision", "app.kubernetes.io/version", "version"}, "latest")}};
  }

  std::string Image(bool may_be_annotated, std::string_view value_path) const {
    const std::string value = Value(value_path);
    const std::string wanted = Annotation("sidecar.istio.io/proxyImage", value);
    if ((may_be_annotated ? wanted : value).find('/') != std::string::npos) return wanted;
    return ProxyImage();
  }

  // The readiness port is not for the sidecar to intercept.
  std::string ExcludedInboundPorts() const {
    const std::string excluded =
        Annotation("traffic.sidecar.istio.io/excludeInboundPorts", Value("proxy.excludeInboundPorts"));
    const std::string port =
        std::string(absl::StripAsciiWhitespace(Annotation("status.sidecar.istio.io/port", Value("proxy.statusPort"))));
    if (port.empty() || port == "0") return excluded;
    std::vector<std::string> ports;
    for (const std::string& item : std::vector<std::string>(absl::StrSplit(excluded, ','))) {
      if (item == port) return excluded;
      const std::string trimmed(absl::StripAsciiWhitespace(item));
      if (!trimmed.empty()) ports.push_back(trimmed);
    }
    ports.push_back(port);
    return absl::StrJoin(ports, ",");
  }

  void AddDefaultContainer(json& annotations) const {
    for (const char* name :
         {"kubectl.kubernetes.io/default-logs-container", "kubectl.kubernetes.io/default-container"}) {
      if (!app_containers_.empty() && !annotations_.contains(name)) annotations[name] = app_containers_.front();
    }
  }

  void AddCniAnnotations(json& annotations) const {
    if (!Flag("istio_cni.chained")) {
      const std::string networks = Annotation("k8s.v1.cni.cncf.io/networks", "");
      annotations["k8s.v1.cni.cncf.io/networks"] = networks.empty() ? "istio-cni" : networks + ", istio-cni";
    }
    annotations["sidecar.istio.io/interceptionMode"] =
        Annotation("sidecar.istio.io/interceptionMode", interception_mode_);
    const std::string prefix = "traffic.sidecar.istio.io/";
    for (const auto& [name, value] : {std::pair("includeOutboundIPRanges", "proxy.includeIPRanges"),
                                      std::pair("excludeOutboundIPRanges", "proxy.excludeIPRanges"),
                                      std::pair("includeInboundPorts", "proxy.includeInboundPorts"),
                                      std::pair("includeOutboundPorts", "proxy.includeOutboundPorts"),
                                      std::pair("excludeOutboundPorts", "proxy.excludeOutboundPorts")}) {
      const std::string text = Annotation(prefix + name, Value(value));
      if (!text.empty()) annotations[prefix + name] = text;
    }
    annotations[prefix + "excludeInboundPorts"] = ExcludedInboundPorts();
  }

  json InitContainer() const {
    const bool cni = Flag("istio_cni.enabled");
    const std::string prefix = "traffic.sidecar.istio.io/";
    const std::string excluded_inbound = ExcludedInboundPorts();
    json args = {"istio-iptables",
                 "-p",
                 std::to_string(data_.mesh.proxy_listen_port),
                 "-z",
                 std::to_string(data_.mesh.proxy_inbound_listen_port),
                 "-u",
                 "1337",
                 "-m",
                 Annotation("sidecar.istio.io/interceptionMode", interception_mode_),
                 "-i",
                 Annotation(prefix + "includeOutboundIPRanges", Value("proxy.includeIPRanges")),
                 "-x",
                 Annotation(prefix + "excludeOutboundIPRanges", Value("proxy.excludeIPRanges")),
                 "-b",
                 Annotation(prefix + "includeInboundPorts", Value("proxy.includeInboundPorts")),
                 "-d",
                 excluded_inbound.empty() ? "15090,15021" : "15090,15021," + excluded_inbound};
    const auto optional = [&](const char* flag, const std::string& annotation, const char* value) {
      const auto it = annotations_.find(annotation);
      const std::string fallback = value == nullptr ? std::string() : Value(value);
      if (it == annotations_.end() && fallback.empty()) return;
      args.push_back(flag);
      args.push_back(it == annotations_.end() ? fallback : it->second);
    };
    optional("-q", prefix + "includeOutboundPorts", "proxy.includeOutboundPorts");
    optional("-o", prefix + "excludeOutboundPorts", "proxy.excludeOutboundPorts");
    optional("-k", prefix + "kubevirtInterfaces", nullptr);
    optional("-c", prefix + "excludeInterfaces", nullptr);
    args.push_back("--log_output_level=" + Annotation("sidecar.istio.io/agentLogLevel", Value("logging.level")));
    if (Global("logAsJson") == true) args.push_back("--log_as_json");
    if (cni) {
      args.push_back("--run-validation");
      args.push_back("--skip-rule-apply");
    }
    const bool privileged = Global("proxy.privileged") == true;
    json security = {{"allowPrivilegeEscalation", privileged},
                     {"privileged", privileged},
                     {"capabilities", {{"drop", {"ALL"}}}},
                     {"readOnlyRootFilesystem", cni},
                     {"runAsGroup", cni ? 1337 : 0},
                     {"runAsNonRoot", cni},
                     {"runAsUser", cni ? 1337 : 0}};
    if (!cni) security["capabilities"]["add"] = {"NET_ADMIN", "NET_RAW"};
    json out = {{"name", cni ? "istio-validation" : "istio-init"},
                {"image", Image(true, "proxy_init.image")},
                {"args", std::move(args)},
                {"resources", Resources()},
                {"securityContext", std::move(security)}};
    if (const json& metadata = At(data_.proxy_config, "proxyMetadata"); metadata.is_object() && !metadata.empty()) {
      out["env"] = json::array();
      for (const auto& [name, value] : metadata.items())
        out["env"].push_back({{"name", name}, {"value", Print(value)}});
    }
    AddPullPolicy(out);
    return out;
  }

  json CoreDumpContainer() const {
    json out = {{"name", "enable-core-dump"},
                {"args", {"-c", "sysctl -w kernel.core_pattern=/var/lib/istio/data/core.proxy && ulimit -c unlimited"}},
                {"command", {"/bin/sh"}},
                {"image", Image(true, "proxy_init.image")},
                {"resources", Resources()},
                {"securityContext",
                 {{"allowPrivilegeEscalation", true},
                  {"capabilities", {{"add", {"SYS_ADMIN"}}, {"drop", {"ALL"}}}},
                  {"privileged", true},
                  {"readOnlyRootFilesystem", false},
                  {"runAsGroup", 0},
                  {"runAsNonRoot", false},
                  {"runAsUser", 0}}}};
    AddPullPolicy(out);
    return out;
  }

  json Resources() const {
    json out = json::object();
    bool annotated = false;
    for (const auto& [annotation, part, name] :
         {std::tuple("proxyCPU", "requests", "cpu"), std::tuple("proxyMemory", "requests", "memory"),
          std::tuple("proxyCPULimit", "limits", "cpu"), std::tuple("proxyMemoryLimit", "limits", "memory")}) {
      const auto it = annotations_.find(std::string("sidecar.istio.io/") + annotation);
      if (it == annotations_.end()) continue;
      annotated = true;
      out[part][name] = it->second;
    }
    if (!annotated && Global("proxy.resources").is_object()) out = Global("proxy.resources");
    return out;
  }

  // `native`: an init container that goes on.
  json ProxyContainer(const std::string& role, bool native = false) const {
    const bool sidecar = role == "sidecar";
    json args = {"proxy",
                 role,
                 "--domain",
                 "$(POD_NAMESPACE).svc." + Value("proxy.clusterDomain"),
                 "--proxyLogLevel=" + Annotation("sidecar.istio.io/logLevel", Value("proxy.logLevel")),
                 "--proxyComponentLogLevel=" +
                     Annotation("sidecar.istio.io/componentLogLevel", Value("proxy.componentLogLevel")),
                 "--log_output_level=" + Annotation("sidecar.istio.io/agentLogLevel", Value("logging.level"))};
    if (const std::string port = Value("sts.servicePort"); !port.empty() && port != "0") {
      args.push_back("--stsPort=" + port);
    }
    if (Global("logAsJson") == true) args.push_back("--log_as_json");

    json out = {{"name", "istio-proxy"},
                {"image", Image(sidecar, "proxy.image")},
                {"ports", {{{"containerPort", 15090}, {"protocol", "TCP"}, {"name", "http-envoy-prom"}}}},
                {"args", std::move(args)},
                {"env", Env(sidecar)},
                {"volumeMounts", VolumeMounts(sidecar)}};
    if (Global("proxy.lifecycle").is_object()) {
      out["lifecycle"] = Global("proxy.lifecycle");
    } else if (native) {
      const json command = {"pilot-agent", "request",
                            "--debug-port=" + Annotation("status.sidecar.istio.io/port", Value("proxy.statusPort")),
                            "POST", "drain"};
      out["lifecycle"] = {{"preStop", {{"exec", {{"command", command}}}}}};
    } else if (sidecar && HoldApplication()) {
      out["lifecycle"] = {{"postStart", {{"exec", {{"command", {"pilot-agent", "wait"}}}}}}};
    }
    AddPullPolicy(out);
    const auto number = [&](const char* annotation, const char* value) {
      const std::string name = std::string("readiness.status.sidecar.istio.io/") + annotation;
      const auto it = annotations_.find(name);
      if (!sidecar || it == annotations_.end()) return Global(value);
      return json(std::stol(it->second));  // validated before
    };
    if (!sidecar || Annotation("status.sidecar.istio.io/port", Value("proxy.statusPort")) != "0") {
      out["readinessProbe"] = {
          {"httpGet", {{"path", "/healthz/ready"}, {"port", 15021}}},
          {"initialDelaySeconds", number("initialDelaySeconds", "proxy.readinessInitialDelaySeconds")},
          {"periodSeconds", number("periodSeconds", "proxy.readinessPeriodSeconds")},
          {"timeoutSeconds", 3},
          {"failureThreshold", number("failureThreshold", "proxy.readinessFailureThreshold")}};
    }
    if (native) {
      out["restartPolicy"] = "Always";
      // Containers behind it start when it is ready. The chart's default: proxy.startupProbe, 600 failures.
      out["startupProbe"] = {{"httpGet", {{"path", "/healthz/ready"}, {"port", 15021}}},
                             {"initialDelaySeconds", 0},
                             {"periodSeconds", 1},
                             {"timeoutSeconds", 3},
                             {"failureThreshold", 600}};
    }
    if (sidecar) {
      out["securityContext"] = SecurityContext();
      out["resources"] = Resources();
    }
    return out;
  }

  // A sidecar's agent that hands certificates and xDS to the application, and runs no Envoy.
  json GrpcAgentContainer() const {
    json out = ProxyContainer("sidecar");
    out.erase("securityContext");
    out["ports"] = json::array({{{"containerPort", 15020}, {"protocol", "TCP"}, {"name", "mesh-metrics"}}});
    out["lifecycle"] = {
        {"postStart",
         {{"exec", {{"command", {"pilot-agent", "wait", "--url=http://localhost:15020/healthz/ready"}}}}}}};
    if (out.contains("readinessProbe")) out["readinessProbe"]["httpGet"]["port"] = 15020;
    json env = json::array({{{"name", "ISTIO_META_GENERATOR"}, {"value", "grpc"}},
                            {{"name", "OUTPUT_CERTS"}, {"value", "/var/lib/istio/data"}}});
    for (const json& variable : out["env"]) {
      const std::string name = Text(variable, "name");
      if (name != "ISTIO_CPU_LIMIT" && name != "ISTIO_META_INTERCEPTION_MODE" && name != "ISTIO_BOOTSTRAP_OVERRIDE") {
        env.push_back(variable);
      }
    }
    env.push_back({{"name", "ISTIO_META_DNS_CAPTURE"}, {"value", "false"}});
    env.push_back({{"name", "DISABLE_ENVOY"}, {"value", "true"}});
    out["env"] = std::move(env);
    json mounts = json::array();
    for (const json& mount : out["volumeMounts"]) {
      const std::string name = Text(mount, "name");
      if (name == "credential-socket" || name == "kube-ca-cert" || name == "custom-bootstrap-volume") continue;
      mounts.push_back(mount);
      if (name == "istio-envoy") mounts.back()["name"] = "istio-xds";
    }
    out["volumeMounts"] = std::move(mounts);
    return out;
  }

  bool HoldApplication() const {
    return At(data_.proxy_config, "holdApplicationUntilProxyStarts") == true ||
           Global("proxy.holdApplicationUntilProxyStarts") == true;
  }

  json SecurityContext() const {
    const bool privileged = Global("proxy.privileged") == true;
    const bool tproxy = Annotation("sidecar.istio.io/interceptionMode", interception_mode_) == "TPROXY";
    const bool bind = Annotation("sidecar.istio.io/capNetBindService", Value("proxy.capNetBindService")) == "true";
    json add = json::array();
    if (tproxy) add.push_back("NET_ADMIN");
    if (bind) add.push_back("NET_BIND_SERVICE");
    json out = {{"allowPrivilegeEscalation", privileged},
                {"capabilities", {{"drop", {"ALL"}}}},
                {"privileged", privileged},
                {"readOnlyRootFilesystem",
                 Annotation("sidecar.istio.io/enableCoreDump", Value("proxy.enableCoreDump")) != "true"},
                {"runAsGroup", 1337},
                {"runAsNonRoot", !(tproxy || bind)},
                {"runAsUser", tproxy || bind ? 0 : 1337}};
    if (!add.empty()) out["capabilities"]["add"] = std::move(add);
    return out;
  }

  // All containers' ports as Go marshals them, in the layout of the template's literal block.
  std::string PodPorts() const {
    std::string out = "[";
    bool first = true;
    if (const json& containers = At(spec_, "containers"); containers.is_array()) {
      for (const json& c : containers) {
        const json& ports = At(c, "ports");
        if (!ports.is_array()) continue;
        for (const json& p : ports) {
          nlohmann::ordered_json port = nlohmann::ordered_json::object();
          for (const char* field : {"name", "hostPort", "containerPort", "protocol", "hostIP"}) {
            if (const json& value = At(p, field); !value.is_null()) port[field] = value;
          }
          out += fmt::format("\n    {}{}", first ? "" : ",", JsonText(port));
          first = false;
        }
      }
    }
    return out + "\n]";
  }

  json Env(bool sidecar) const {
    json env = json::array();
    const auto value = [&](std::string_view name, const std::string& text) {
      env.push_back({{"name", name}, {"value", text}});
    };
    const auto field = [&](const char* name, const char* path) {
      env.push_back({{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
    };
    value("JWT_POLICY", Value("jwtPolicy"));
    value("PILOT_CERT_PROVIDER", Value("pilotCertProvider"));
    const std::string ca = Value("caAddress"), helm_revision = Print(At(data_.values, "revision"));
    value("CA_ADDR", !ca.empty()
                         ? ca
                         : fmt::format("istiod{}.{}.svc:15012", helm_revision.empty() ? "" : "-" + helm_revision,
                                       Value("istioNamespace")));
    field("POD_NAME", "metadata.name");
    field("POD_NAMESPACE", "metadata.namespace");
    field("INSTANCE_IP", "status.podIP");
    field("SERVICE_ACCOUNT", "spec.serviceAccountName");
    field("HOST_IP", "status.hostIP");
    env.push_back({{"name", "ISTIO_CPU_LIMIT"}, {"valueFrom", {{"resourceFieldRef", {{"resource", "limits.cpu"}}}}}});
    value("PROXY_CONFIG", JsonText(WithoutDefaults(data_.proxy_config)) + "\n");
    value("ISTIO_META_POD_PORTS", PodPorts());
    value("ISTIO_META_APP_CONTAINERS", absl::StrJoin(app_containers_, ","));
    const std::string cluster = Value("multiCluster.clusterName");
    value("ISTIO_META_CLUSTER_ID", cluster.empty() ? "Kubernetes" : cluster);
    field("ISTIO_META_NODE_NAME", "spec.nodeName");
    const std::string mode = sidecar ? Annotation("sidecar.istio.io/interceptionMode", "") : std::string();
    value("ISTIO_META_INTERCEPTION_MODE", mode.empty() ? interception_mode_ : mode);
    if (const std::string network = Value("network"); !network.empty()) value("ISTIO_META_NETWORK", network);
    if (!data_.workload.name.empty()) {
      value("ISTIO_META_WORKLOAD_NAME", data_.workload.name);
      const std::string ns = Text(metadata_, "namespace");
      value("ISTIO_META_OWNER",
            fmt::format("kubernetes://apis/{}/namespaces/{}/{}s/{}", data_.workload.api_version,
                        ns.empty() ? "default" : ns, absl::AsciiStrToLower(data_.workload.kind), data_.workload.name));
    }
    if (sidecar && annotations_.contains("sidecar.istio.io/bootstrapOverride")) {
      value("ISTIO_BOOTSTRAP_OVERRIDE", "/etc/istio/custom-bootstrap/custom_bootstrap.json");
    }
    const std::string trust_domain = data_.mesh.trust_domain.empty() ? Value("trustDomain") : data_.mesh.trust_domain;
    const std::string mesh_id = Value("meshID");
    if (!mesh_id.empty() || !trust_domain.empty())
      value("ISTIO_META_MESH_ID", mesh_id.empty() ? trust_domain : mesh_id);
    if (!trust_domain.empty()) value("TRUST_DOMAIN", trust_domain);
    if (const json& metadata = At(data_.proxy_config, "proxyMetadata"); metadata.is_object()) {
      for (const auto& [name, text] : metadata.items()) value(name, Print(text));
    }
    return env;
  }

  json VolumeMounts(bool sidecar) const {
    json out = json::array();
    const auto mount = [&](const char* name, const char* path) {
      out.push_back({{"name", name}, {"mountPath", path}});
    };
    mount("workload-socket", "/var/run/secrets/workload-spiffe-uds");
    mount("credential-socket", "/var/run/secrets/credential-uds");
    mount("workload-certs", "/var/run/secrets/workload-spiffe-credentials");
    const std::string provider = Value("pilotCertProvider");
    if (provider == "istiod") mount("istiod-ca-cert", "/var/run/secrets/istio");
    if (provider == "kubernetes" && sidecar) mount("kube-ca-cert", "/var/run/secrets/istio/kubernetes");
    mount("istio-data", "/var/lib/istio/data");
    if (sidecar && annotations_.contains("sidecar.istio.io/bootstrapOverride")) {
      mount("custom-bootstrap-volume", "/etc/istio/custom-bootstrap");
    }
    mount("istio-envoy", "/etc/istio/proxy");
    if (Value("jwtPolicy") == "third-party-jwt") mount("istio-token", "/var/run/secrets/tokens");
    if (Global("mountMtlsCerts") == true) {
      out.push_back({{"name", "istio-certs"}, {"mountPath", "/etc/certs/"}, {"readOnly", true}});
    }
    mount("istio-podinfo", "/etc/istio/pod");
    if (sidecar) AddUserMap("sidecar.istio.io/userVolumeMount", out);
    return out;
  }

  json Volumes() const {
    json out = json::array();
    for (const char* name : {"workload-socket", "credential-socket", "workload-certs"}) {
      out.push_back({{"name", name}, {"emptyDir", json::object()}});
    }
    if (const auto it = annotations_.find("sidecar.istio.io/bootstrapOverride"); it != annotations_.end()) {
      out.push_back({{"name", "custom-bootstrap-volume"}, {"configMap", {{"name", it->second}}}});
    }
    out.push_back({{"name", "istio-envoy"}, {"emptyDir", {{"medium", "Memory"}}}});
    out.push_back({{"name", "istio-data"}, {"emptyDir", json::object()}});
    json items = json::array();
    for (const char* path : {"labels", "annotations"}) {
      items.push_back({{"path", path}, {"fieldRef", {{"fieldPath", std::string("metadata.") + path}}}});
    }
    out.push_back({{"name", "istio-podinfo"}, {"downwardAPI", {{"items", std::move(items)}}}});
    if (Value("jwtPolicy") == "third-party-jwt") {
      const json token = {{"path", "istio-token"}, {"expirationSeconds", 43200}, {"audience", Value("sds.token.aud")}};
      out.push_back(
          {{"name", "istio-token"}, {"projected", {{"sources", json::array({{{"serviceAccountToken", token}}})}}}});
    }
    const std::string provider = Value("pilotCertProvider");
    if (provider == "istiod")
      out.push_back({{"name", "istiod-ca-cert"}, {"configMap", {{"name", "istio-ca-root-cert"}}}});
    if (provider == "kubernetes") {
      out.push_back({{"name", "kube-ca-cert"}, {"configMap", {{"name", "kube-root-ca.crt"}}}});
    }
    if (Global("mountMtlsCerts") == true) {
      std::string account = Text(spec_, "serviceAccountName");
      if (account.empty()) account = "default";
      out.push_back({{"name", "istio-certs"}, {"secret", {{"optional", true}, {"secretName", "istio." + account}}}});
    }
    AddUserMap("sidecar.istio.io/userVolume", out);
    return out;
  }

  // An annotation that maps names to the rest of a volume or mount.
  void AddUserMap(const char* annotation, json& list) const {
    const auto it = annotations_.find(annotation);
    if (it == annotations_.end()) return;
    const json map = ParseJson(it->second);
    if (!map.is_object()) return;
    for (const auto& [name, rest] : map.items()) {
      json item = rest.is_object() ? rest : json::object();
      item["name"] = name;
      list.push_back(std::move(item));
    }
  }

  void AddPullPolicy(json& container) const {
    if (const std::string policy = Value("imagePullPolicy"); !policy.empty()) container["imagePullPolicy"] = policy;
  }
  void AddPullSecrets(json& spec) const {
    const json& secrets = Global("imagePullSecrets");
    if (!secrets.is_array() || secrets.empty()) return;
    for (const json& name : secrets) spec["imagePullSecrets"].push_back({{"name", name}});
  }

  const InjectionTemplateData& data_;
  const json& metadata_;
  const json& spec_;
  const kube::Labels annotations_, labels_;
  std::vector<std::string> app_containers_;
  std::string interception_mode_;
};

}  // namespace

std::string ProxyImageOf(const InjectionTemplateData& data) { return Renderer(data).ProxyImage(); }
json SidecarTemplate(const InjectionTemplateData& data) { return Renderer(data).Sidecar(); }
json GatewayTemplate(const InjectionTemplateData& data) { return Renderer(data).Gateway(); }
json GrpcAgentTemplate(const InjectionTemplateData& data) { return Renderer(data).GrpcAgent(); }
json GrpcSimpleTemplate(const InjectionTemplateData& data) { return Renderer(data).GrpcSimple(); }

}  // namespace wavetank::pilot
