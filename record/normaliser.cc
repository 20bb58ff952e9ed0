#include "record/normaliser.h"

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/security/remote_secret.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "replay/secrets.h"

namespace wavetank::record {
namespace {

using nlohmann::json;

// Annotations that hold the object a second time, or change every few seconds for nobody.
constexpr std::string_view kDroppedAnnotations[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                                    "control-plane.alpha.kubernetes.io/leader"};
// Whatever stands below such a name is a credential.
const std::set<std::string, std::less<>>& CredentialNames() {
  static const auto* const names = new std::set<std::string, std::less<>>{
      "accesstoken", "apikey", "api_key",   "authorization", "clientsecret", "client_secret",
      "password",    "passwd", "secretkey", "token",         "x-api-key",    "cookie"};
  return *names;
}

std::string HideInText(const std::string& text);

json Pick(const json& in, std::initializer_list<const char*> fields) {
  json out = json::object();
  if (!in.is_object()) return out;
  for (const char* field : fields) {
    if (const auto it = in.find(field); it != in.end() && !it->is_null()) out[field] = *it;
  }
  return out;
}

// Those elements of a list that are objects.
std::vector<const json*> Objects(const json& list) {
  std::vector<const json*> out;
  if (!list.is_array()) return out;
  for (const json& item : list) {
    if (item.is_object()) out.push_back(&item);
  }
  return out;
}

json Metadata(const json& in) {
  json out = Pick(
      in, {"name", "namespace", "generateName", "labels", "annotations", "creationTimestamp", "deletionTimestamp"});
  if (const auto annotations = out.find("annotations"); annotations != out.end()) {
    for (const std::string_view name : kDroppedAnnotations) annotations->erase(std::string(name));
    if (annotations->empty()) out.erase("annotations");
  }
  json owners = json::array();
  for (const json* owner : Objects(At(in, "ownerReferences"))) {
    owners.push_back(Pick(*owner, {"apiVersion", "kind", "name", "controller"}));
  }
  if (!owners.empty()) out["ownerReferences"] = std::move(owners);
  return out;
}

json Ports(const json& in) {
  json out = json::array();
  for (const json* port : Objects(in)) {
    const json& number = At(*port, "containerPort");
    if (!number.is_number_integer() || number.get<int64_t>() <= 0 || number.get<int64_t>() > 65535) continue;
    json kept = {{"containerPort", number}};
    for (const char* field : {"name", "protocol"}) {
      if (At(*port, field).is_string()) kept[field] = At(*port, field);
    }
    out.push_back(std::move(kept));
  }
  return out;
}

// An application's container says where it listens, and nothing else that a mesh could know. A proxy's says everything
// that pilot-agent reads.
json Container(const json& in, bool proxy) {
  json out = proxy ? Pick(in, {"name", "image", "args", "env", "resources", "volumeMounts", "readinessProbe"})
                   : Pick(in, {"name", "image"});
  if (json ports = Ports(At(in, "ports")); !ports.empty()) out["ports"] = std::move(ports);
  return out;
}

// Variables of a proxy that somebody put a credential into.
void HideVariables(json& container) {
  const auto env = container.find("env");
  if (env == container.end() || !env->is_array()) return;
  for (json& variable : *env) {
    const std::string name = absl::AsciiStrToUpper(Text(variable, "name"));
    const auto value = variable.is_object() ? variable.find("value") : variable.end();
    if (value == variable.end() || !value->is_string() || value->get_ref<const std::string&>().empty()) continue;
    const bool credential = name.find("PASSWORD") != name.npos || name.find("CREDENTIAL") != name.npos ||
                            name.ends_with("TOKEN") || name.ends_with("_KEY") || name.ends_with("SECRET");
    if (credential) {
      *value = DigestOf(value->get_ref<const std::string&>());
    } else {
      *value = HideInText(value->get_ref<const std::string&>());
    }
  }
}

json Containers(const json& list, std::initializer_list<std::string_view> proxies) {
  json out = json::array();
  for (const json* container : Objects(list)) {
    const std::string name = Text(*container, "name");
    if (name.empty()) continue;
    out.push_back(Container(*container, std::find(proxies.begin(), proxies.end(), name) != proxies.end()));
  }
  return out;
}

json PodSpec(const json& in) {
  json out = Pick(
      in, {"serviceAccountName", "nodeName", "hostNetwork", "hostname", "subdomain", "terminationGracePeriodSeconds"});
  out["containers"] = Containers(At(in, "containers"), {"istio-proxy", "discovery"});
  if (json init = Containers(At(in, "initContainers"), {"istio-init", "istio-validation", "istio-proxy"});
      !init.empty()) {
    out["initContainers"] = std::move(init);
  }
  // Those that a proxy mounts.
  std::set<std::string> mounted;
  for (const json& container : out["containers"]) {
    for (const json* mount : Objects(At(container, "volumeMounts"))) mounted.insert(Text(*mount, "name"));
  }
  json volumes = json::array();
  for (const json* volume : Objects(At(in, "volumes"))) {
    if (mounted.contains(Text(*volume, "name"))) volumes.push_back(*volume);
  }
  if (!volumes.empty()) out["volumes"] = std::move(volumes);
  return out;
}

json PodStatus(const json& in) {
  json out = Pick(in, {"phase", "podIP", "podIPs", "hostIP"});
  json conditions = json::array();
  for (const json* condition : Objects(At(in, "conditions"))) {
    conditions.push_back(Pick(*condition, {"type", "status"}));
  }
  if (!conditions.empty()) out["conditions"] = std::move(conditions);
  return out;
}

json Hidden(const json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    return text.empty() || text.starts_with("sha256-") ? value : json(DigestOf(text));
  }
  json copy = value;
  if (value.is_structured()) {
    for (auto& child : copy) child = Hidden(child);
  }
  return copy;
}

// Strings that show themselves to be private keys or tokens.
void HideByLook(json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (replay::HoldsSecret(text)) value = DigestOf(text);
  } else if (value.is_structured()) {
    for (auto& child : value) HideByLook(child);
  }
}

// Values under names of credentials, wherever they stand.
void HideByName(json& value) {
  if (!value.is_structured()) return;
  if (value.is_object()) {
    for (auto& [key, child] : value.items()) {
      const std::string name = absl::AsciiStrToLower(key);
      // `token: {aud: istio-ca}` describes one; `authorization: {exact: ...}` holds one.
      if (CredentialNames().contains(name) && !(name == "token" && child.is_object())) {
        child = Hidden(child);
      } else {
        HideByName(child);
      }
    }
  } else {
    for (json& child : value) HideByName(child);
  }
}

// The same in a text that is YAML or JSON itself: `accessToken: abc` and `"password": "abc"`, one a line or several.
std::string HideInText(const std::string& text) {
  static const std::regex* const kAssignment = new std::regex(
      R"rx((["']?\b(access_?token|api_?key|client_?secret|password|passwd|secret_?key|token)["']?[ \t]*:[ \t]*)(\|[-+]?[ \t]*$|"[^"\n]*"|'[^'\n]*'|[^\s"',}\]{\[|>&*][^\n,}\]]*))rx",
      std::regex::icase | std::regex::ECMAScript | std::regex::optimize);
  std::string out;
  // By lines: std::regex recurses along what it matches.
  for (const auto piece : absl::StrSplit(absl::string_view(text), '\n')) {
    std::string line(piece);
    if (!out.empty() || piece.data() != text.data()) out += '\n';
    if (line.size() > 4096 && line.find(':') != std::string::npos) {
      // No person wrote this line; JSON in one line is read as such, and anything else is only looked at for keys.
      json parsed = ParseJson(line);
      if (!parsed.is_discarded()) {
        HideByName(parsed);
        line = JsonText(parsed);
      }
    } else if (std::smatch match; std::regex_search(line, match, *kAssignment)) {
      std::string rest = line;
      line.clear();
      while (std::regex_search(rest, match, *kAssignment)) {
        const std::string secret = match[3].str();
        line += match.prefix().str() + match[1].str();
        line += secret == "true" || secret == "false" ? secret : fmt::format("\"{}\"", DigestOf(secret));
        rest = match.suffix().str();
      }
      line += rest;
    }
    out += line;
  }
  return out;
}

bool IsElection(const kube::Object& object) {
  return object.meta.annotations.contains("control-plane.alpha.kubernetes.io/leader");
}

// Istio's own, by what its charts and istioctl name and label them; others' have no part in a mesh.
bool IsIstioWebhook(const kube::Object& object) {
  return object.meta.labels.contains("istio.io/rev") || object.meta.name.starts_with("istio");
}

// Without the bundle: it is the real CA's, and a simulated istiod puts its own there.
json Webhooks(const json& list) {
  json out = json::array();
  for (const json* webhook : Objects(list)) {
    json kept = Pick(*webhook, {"name", "rules", "failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector",
                                "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy"});
    const json& client = At(*webhook, "clientConfig");
    kept["clientConfig"] = Pick(client, {"url"});
    if (At(client, "service").is_object()) {
      kept["clientConfig"]["service"] = Pick(At(client, "service"), {"name", "namespace", "path", "port"});
    }
    out.push_back(std::move(kept));
  }
  return out;
}

Normalised Apply(json body) { return {"apply", {{"object", std::move(body)}}}; }

Normalised RemoteSecret(const kube::Object& object, json body, const NormaliserOptions& options) {
  if (options.keep_secrets) {
    body["type"] = object.body.value("type", "Opaque");
    body["data"] = At(object.body, "data");
    return Apply(std::move(body));
  }
  kube::SecretData kept;
  if (const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(object); data.ok()) {
    for (const auto& [cluster, kubeconfig] : *data) kept[cluster] = ServerOnly(cluster, kubeconfig);
    body["data"] = json::object();
    for (const auto& [cluster, text] : kept) {
      body["data"][cluster] = absl::Base64Escape(absl::string_view(text.data(), text.size()));
    }
  }
  body["type"] = "Opaque";
  return Apply(std::move(body));
}

Normalised CaCerts(const kube::Object& object, json body, const NormaliserOptions& options) {
  if (options.keep_secrets) {
    body["type"] = "Opaque";
    body["data"] = At(object.body, "data");
    return Apply(std::move(body));
  }
  std::string root;
  if (const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(object); data.ok()) {
    // Blanks at the ends of a PEM file are no other root.
    const auto it = data->find("root-cert.pem");
    if (it != data->end()) root = std::string(absl::StripAsciiWhitespace(it->second));
  }
  return {"cacerts", {{"root", DigestOf(root)}}};
}

}  // namespace

std::string DigestOf(std::string_view secret) {
  const x509::Sha256Digest digest = x509::Sha256(secret);
  return "sha256-" +
         absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string ServerOnly(const std::string& cluster, const std::string& kubeconfig) {
  const std::string digest = DigestOf(kubeconfig);
  const absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, "kubeconfig");
  if (absl::IsPermissionDenied(parsed.status())) {
    return fmt::format(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: https://redacted.example}}}}]\n"
        "users: [{{name: u, user: {{exec: {{command: \"{}\", apiVersion: client.authentication.k8s.io/v1}}}}}}]\n"
        "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n",
        digest);
  }
  if (!parsed.ok()) return fmt::format("# {}\nthis kubeconfig cannot be read\n", digest);
  // The URL's form has been checked: it holds no user and password. Its path may hold anything.
  const size_t scheme = parsed->server.find("://");
  const size_t path = parsed->server.find_first_of("/?#", scheme == std::string::npos ? 0 : scheme + 3);
  return kube::RenderKubeConfig({cluster, parsed->server.substr(0, path), "", digest});
}

Normalised Normalise(const kube::Object& object, const NormaliserOptions& options) {
  const json& in = object.body;
  const std::string group = object.api_version.substr(0, object.api_version.find('/'));
  const bool core = object.api_version == "v1";
  json out = {{"apiVersion", object.api_version}, {"kind", object.kind}, {"metadata", Metadata(At(in, "metadata"))}};
  if (core && object.kind == "Secret") {
    const auto label = object.meta.labels.find(security::kMultiClusterLabel);
    if (object.meta.ns != options.system_namespace) return {};
    Normalised secret;
    if (object.meta.name == "cacerts") {
      secret = CaCerts(object, std::move(out), options);
    } else if (label != object.meta.labels.end() && label->second == "true") {
      secret = RemoteSecret(object, std::move(out), options);
    }
    return secret;
  }
  if (core && object.kind == "Namespace") {
    out["status"] = Pick(At(in, "status"), {"phase"});
  } else if (core && object.kind == "Node") {
    out["metadata"].erase("annotations");
    out["spec"] = Pick(At(in, "spec"), {"providerID"});
    out["status"] = Pick(At(in, "status"), {"addresses"});
  } else if (core && object.kind == "Service") {
    out["spec"] = At(in, "spec").is_object() ? At(in, "spec") : json::object();
    if (At(At(in, "status"), "loadBalancer").is_object()) out["status"] = Pick(At(in, "status"), {"loadBalancer"});
  } else if (core && object.kind == "Pod") {
    out["spec"] = PodSpec(At(in, "spec"));
    out["status"] = PodStatus(At(in, "status"));
  } else if (core && object.kind == "ConfigMap") {
    // Each cluster's simulated istiod has a root of its own to tell.
    if (object.meta.ns != options.system_namespace || !object.meta.name.starts_with("istio") ||
        object.meta.name == "istio-ca-root-cert" || IsElection(object)) {
      return {};
    }
    out["data"] = json::object();
    if (const json& data = At(in, "data"); data.is_object()) {
      for (const auto& [key, value] : data.items()) {
        if (!value.is_string()) continue;
        out["data"][key] = options.keep_secrets ? value : json(HideInText(value.get_ref<const std::string&>()));
      }
    }
  } else if (group == "discovery.k8s.io" && object.kind == "EndpointSlice") {
    out.update(Pick(in, {"addressType", "endpoints", "ports"}));
  } else if (group == "networking.k8s.io" && object.kind == "NetworkPolicy") {
    out["spec"] = Pick(At(in, "spec"), {"podSelector", "policyTypes", "ingress", "egress"});
  } else if (group == "policy" && object.kind == "PodDisruptionBudget") {
    out["spec"] = Pick(At(in, "spec"), {"selector", "minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"});
    // No controller counts in a record.
    out["status"] = Pick(At(in, "status"), {"expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"});
  } else if (group == "admissionregistration.k8s.io" &&
             (object.kind == "MutatingWebhookConfiguration" || object.kind == "ValidatingWebhookConfiguration")) {
    if (!IsIstioWebhook(object)) return {};
    out["webhooks"] = Webhooks(At(in, "webhooks"));
  } else if (group.ends_with(".istio.io")) {
    out["spec"] = At(in, "spec").is_object() ? At(in, "spec") : json::object();
  } else {
    return {};
  }
  if (options.keep_secrets) return Apply(std::move(out));
  if (core && object.kind == "Pod") {
    for (const char* list : {"containers", "initContainers"}) {
      if (!out["spec"].contains(list)) continue;
      for (json& container : out["spec"][list]) HideVariables(container);
    }
  }
  HideByName(out);
  HideByLook(out);
  return Apply(std::move(out));
}

}  // namespace wavetank::record
