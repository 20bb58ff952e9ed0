#include "core/kube/credentials/kubeconfig.h"

#include <map>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/status.h"
#include "core/kube/text/yaml_nodes.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "yaml-cpp/yaml.h"

namespace wavetank::kube {
namespace {

// A Secret holds no more than this (Kubernetes: MaxSecretSize).
constexpr size_t kMaxSize = 1 << 20;

enum class Stage { kLoad, kValidate, kSanitise };

// Carries an error out of the depth of the document; never leaves this file.
struct Failure {
  Stage stage;
  std::string text;
};

std::string PlaceOf(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? std::string() : fmt::format("line {}: ", mark.line + 1);
}

[[noreturn]] void Fail(Stage stage, const YAML::Node& node, std::string_view path, std::string_view text) {
  throw Failure{stage, fmt::format("{}{}{}{}", PlaceOf(node), path, path.empty() ? "" : ": ", text)};
}

// A map within the document, with its path for messages.
class Section {
 public:
  Section(YAML::Node node, std::string path) : node_(std::move(node)), path_(std::move(path)) {
    if (node_.IsDefined() && !node_.IsNull() && !node_.IsMap()) {
      Fail(Stage::kLoad, node_, path_, "must be a mapping of names to values");
    }
  }

  const std::string& path() const { return path_; }
  std::string Path(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  bool empty() const { return !node_.IsDefined() || node_.IsNull() || node_.size() == 0; }

  YAML::Node Find(std::string_view key) const {
    if (empty()) return YAML::Node(YAML::NodeType::Undefined);
    for (const auto& entry : node_) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
    }
    return YAML::Node(YAML::NodeType::Undefined);
  }
  bool Has(std::string_view key) const {
    const YAML::Node node = Find(key);
    return node.IsDefined() && !node.IsNull();
  }
  Section Sub(std::string_view key) const { return Section(Find(key), Path(key)); }

  // client-go decodes into Go strings and refuses numbers and booleans there.
  std::string String(std::string_view key) const {
    const YAML::Node node = Find(key);
    if (!node.IsDefined() || node.IsNull()) return {};
    if (!node.IsScalar()) Fail(Stage::kLoad, node, Path(key), "must be a string");
    static const std::regex kNotAString(R"(true|false|True|False|TRUE|FALSE|[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)");
    const std::string text = node.Scalar();
    if (node.Tag() == "?" && text.size() < 64 && std::regex_match(text, kNotAString)) {
      Fail(Stage::kLoad, node, Path(key), "must be a string; put the value in quotes");
    }
    return text;
  }
  bool Bool(std::string_view key) const {
    const YAML::Node node = Find(key);
    if (!node.IsDefined() || node.IsNull()) return false;
    bool value = false;
    if (!node.IsScalar() || node.Tag() == "!" || !YAML::convert<bool>::decode(node, value)) {
      Fail(Stage::kLoad, node, Path(key), "must be true or false");
    }
    return value;
  }
  std::string Base64(std::string_view key) const {
    const std::string text = String(key);
    std::string out;
    if (!text.empty() && !absl::Base64Unescape(absl::string_view(text.data(), text.size()), &out)) {
      Fail(Stage::kLoad, Find(key), Path(key), "is not base64; encode the PEM text with `base64 -w0`");
    }
    return out;
  }
  const YAML::Node& node() const { return node_; }

 private:
  YAML::Node node_;
  std::string path_;
};

// A list of {name: ..., <inner>: {...}}, as a map by name.
std::map<std::string, Section> NamedList(const Section& root, std::string_view key, std::string_view inner) {
  std::map<std::string, Section> out;
  const YAML::Node list = root.Find(key);
  if (!list.IsDefined() || list.IsNull()) return out;
  if (!list.IsSequence()) Fail(Stage::kLoad, list, key, "must be a list");
  size_t index = 0;
  for (const YAML::Node& item : list) {
    const Section entry(item, fmt::format("{}[{}]", key, index++));
    const std::string name = entry.String("name");
    if (!out.emplace(name, entry.Sub(inner)).second) {
      Fail(Stage::kLoad, item, entry.Path("name"), fmt::format("the name \"{}\" is there twice", name));
    }
  }
  return out;
}

void ValidateCluster(const Section& cluster) {
  if (cluster.empty()) Fail(Stage::kValidate, cluster.node(), cluster.path(), "the cluster has no server");
  const std::string server = cluster.String("server");
  if (server.empty()) {
    Fail(Stage::kValidate, cluster.node(), cluster.Path("server"),
         "no server found for the cluster; give the URL of its API server");
  }
  if (cluster.Has("certificate-authority")) {
    Fail(Stage::kValidate, cluster.Find("certificate-authority"), cluster.Path("certificate-authority"),
         "names a file, which istiod cannot read; embed the certificate as certificate-authority-data");
  }
}

void ValidateUser(const Section& user) {
  if (user.empty()) return;
  std::vector<std::string> methods;
  if (!user.String("token").empty()) methods.emplace_back("token");
  if (!user.String("username").empty() || !user.String("password").empty()) methods.emplace_back("basicAuth");
  const bool certificate = user.Has("client-certificate") || user.Has("client-certificate-data");
  const bool key = user.Has("client-key") || user.Has("client-key-data");
  if (certificate && !key) {
    Fail(Stage::kValidate, user.node(), user.path(), "a client certificate needs client-key-data beside it");
  }
  if (user.Has("exec")) {
    const Section exec = user.Sub("exec");
    if (user.Has("auth-provider")) {
      Fail(Stage::kValidate, user.node(), user.path(), "auth-provider and exec exclude each other; keep one");
    }
    if (exec.String("command").empty()) Fail(Stage::kValidate, exec.node(), exec.Path("command"), "must be given");
    if (exec.String("apiVersion").empty()) {
      Fail(Stage::kValidate, exec.node(), exec.Path("apiVersion"), "must be given");
    }
  }
  if (methods.size() > 1) {
    Fail(Stage::kValidate, user.node(), user.path(),
         fmt::format("more than one authentication method found ({} and {}); only one is allowed", methods[0],
                     methods[1]));
  }
}

void ValidateContext(const std::string& name, const Section& context, const std::map<std::string, Section>& clusters,
                     const std::map<std::string, Section>& users) {
  if (name.empty()) Fail(Stage::kValidate, context.node(), context.path(), "the context has no name");
  const std::pair<const char*, const std::map<std::string, Section>*> references[] = {{"user", &users},
                                                                                      {"cluster", &clusters}};
  for (const auto& [field, known] : references) {
    const std::string reference = context.String(field);
    if (reference.empty()) {
      Fail(Stage::kValidate, context.node(), context.Path(field),
           fmt::format("{} was not specified for context \"{}\"", field, name));
    }
    if (!known->contains(reference)) {
      Fail(Stage::kValidate, context.Find(field), context.Path(field),
           fmt::format("{} \"{}\" was not found for context \"{}\"", field, reference, name));
    }
  }
}

void Sanitise(const Section& user, const InsecureOptions& allowed) {
  if (user.empty()) return;
  constexpr std::string_view kRemedy = "; use a token, as istioctl create-remote-secret does";
  const auto deny = [&](std::string_view field, std::string_view text) {
    Fail(Stage::kSanitise, user.Find(field), user.Path(field), fmt::format("{}{}", text, kRemedy));
  };
  if (user.Has("auth-provider")) {
    const std::string name = user.Sub("auth-provider").String("name");
    if (name != "oidc" && !allowed.contains(name)) {
      deny("auth-provider", fmt::format("auth provider {} is not allowed", name));
    }
  }
  // In istiod's order, since the first one is what its log names.
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"client-key", "clientKey"}, {"client-certificate", "clientCertificate"}, {"tokenFile", "tokenFile"}};
  for (const auto& [field, option] : kFields) {
    if (!user.String(field).empty() && !allowed.contains(option)) {
      deny(field, fmt::format("{} is not allowed", option));
    }
  }
  if (user.Has("exec") && !allowed.contains("exec")) deny("exec", "exec is not allowed");
}

// Go's CertPool takes what it can read of a bundle and fails only if that is nothing.
bool HasACertificate(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----";
  for (size_t at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + 1)) {
    const size_t end = pem.find(kEnd, at);
    if (end == std::string_view::npos) return false;
    if (x509::Certificate::FromPem(pem.substr(at, end + kEnd.size() - at), "").ok()) return true;
  }
  return false;
}

void CheckUrl(const Section& cluster, const std::string& server) {
  static const std::regex kUrl(R"((https?://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[^\s]*)?)");
  if (server.size() > 2048 || !std::regex_match(server, kUrl)) {
    Fail(Stage::kValidate, cluster.Find("server"), cluster.Path("server"),
         "is no URL; expected e.g. https://203.0.113.7:6443");
  }
}

// What client-go does when it makes a client: transport.TLSConfigFor.
KubeConfig Usable(const Section& root, const std::map<std::string, Section>& clusters,
                  const std::map<std::string, Section>& users, const std::map<std::string, Section>& contexts) {
  KubeConfig out;
  out.context = root.String("current-context");
  const auto context = contexts.find(out.context);
  if (context == contexts.end()) {
    Fail(Stage::kValidate, root.node(), "current-context", "no context is chosen; name one of `contexts`");
  }
  out.cluster = context->second.String("cluster");
  out.user = context->second.String("user");
  out.ns = context->second.String("namespace");
  const Section& cluster = clusters.at(out.cluster);
  out.server = cluster.String("server");
  CheckUrl(cluster, out.server);
  out.tls_server_name = cluster.String("tls-server-name");
  out.insecure_skip_tls_verify = cluster.Bool("insecure-skip-tls-verify");
  out.ca_pem = cluster.Base64("certificate-authority-data");
  if (!out.ca_pem.empty()) {
    const std::string path = cluster.Path("certificate-authority-data");
    const YAML::Node node = cluster.Find("certificate-authority-data");
    if (out.insecure_skip_tls_verify) {
      Fail(Stage::kValidate, node, path, "excludes insecure-skip-tls-verify: true; remove one of them");
    }
    if (!HasACertificate(out.ca_pem)) {
      Fail(Stage::kValidate, node, path, "holds no certificate; put the API server's CA there, PEM in base64");
    }
  }
  const Section& user = users.at(out.user);
  if (user.empty()) return out;
  out.token = user.String("token");
  out.username = user.String("username");
  out.password = user.String("password");
  out.client_certificate_pem = user.Base64("client-certificate-data");
  out.client_key_pem = user.Base64("client-key-data");
  if (!out.client_certificate_pem.empty() && !out.client_key_pem.empty()) {
    const auto certificate =
        x509::Certificate::FromPem(out.client_certificate_pem, user.Path("client-certificate-data"));
    const auto key = x509::KeyPair::FromPem(out.client_key_pem, user.Path("client-key-data"));
    if (!certificate.ok()) Fail(Stage::kValidate, user.node(), "", Message(certificate.status()));
    if (!key.ok()) Fail(Stage::kValidate, user.node(), "", Message(key.status()));
    if (!(*certificate)->Matches(**key)) {
      Fail(Stage::kValidate, user.node(), user.path(), "client-key-data is not the key of client-certificate-data");
    }
  }
  return out;
}

KubeConfig Parse(std::string_view text, const InsecureOptions& allowed) {
  std::vector<YAML::Node> documents;
  try {
    documents = LoadYamlDocuments(std::string(text));
  } catch (const YAML::Exception& e) {
    throw Failure{Stage::kLoad, fmt::format("line {}: {}", e.mark.line + 1, e.msg)};
  }
  if (documents.size() != 1 || !documents[0].IsMap()) {
    throw Failure{Stage::kLoad,
                  "it is not one YAML mapping; expected `apiVersion: v1`, `kind: Config`, `clusters`, "
                  "`users`, `contexts` and `current-context`"};
  }
  const Section root(documents[0], "");
  const std::string kind = root.String("kind"), version = root.String("apiVersion");
  if (!kind.empty() && kind != "Config") {
    Fail(Stage::kLoad, root.Find("kind"), "kind", fmt::format("is \"{}\"; expected \"Config\"", kind));
  }
  if (!version.empty() && version != "v1") {
    Fail(Stage::kLoad, root.Find("apiVersion"), "apiVersion", fmt::format("is \"{}\"; expected \"v1\"", version));
  }
  const auto clusters = NamedList(root, "clusters", "cluster");
  const auto users = NamedList(root, "users", "user");
  const auto contexts = NamedList(root, "contexts", "context");
  const std::string current = root.String("current-context");
  if (clusters.empty() && users.empty() && contexts.empty() && current.empty()) {
    throw Failure{Stage::kValidate, "no configuration has been provided; it names no cluster, user or context"};
  }
  if (!current.empty() && !contexts.contains(current)) {
    Fail(Stage::kValidate, root.Find("current-context"), "current-context",
         fmt::format("context \"{}\" was not found among `contexts`", current));
  }
  for (const auto& [name, context] : contexts) ValidateContext(name, context, clusters, users);
  for (const auto& [name, user] : users) ValidateUser(user);
  for (const auto& [name, cluster] : clusters) ValidateCluster(cluster);
  for (const auto& [name, user] : users) Sanitise(user, allowed);
  return Usable(root, clusters, users, contexts);
}

}  // namespace

absl::StatusOr<KubeConfig> ParseKubeConfig(std::string_view text, std::string_view what,
                                           const InsecureOptions& allowed) {
  if (text.empty()) return absl::InvalidArgumentError(fmt::format("{}: kubeconfig is empty", what));
  if (text.size() > kMaxSize) {
    return absl::InvalidArgumentError(fmt::format("{}: kubeconfig cannot be loaded: it is longer than 1 MiB", what));
  }
  try {
    return Parse(text, allowed);
  } catch (const Failure& failure) {
    switch (failure.stage) {
      case Stage::kLoad:
        return absl::InvalidArgumentError(fmt::format("{}: kubeconfig cannot be loaded: {}", what, failure.text));
      case Stage::kValidate:
        return absl::InvalidArgumentError(fmt::format("{}: kubeconfig is not valid: {}", what, failure.text));
      case Stage::kSanitise:
        return absl::PermissionDeniedError(fmt::format("{}: kubeconfig is not allowed: {}", what, failure.text));
    }
  } catch (const std::exception& e) {  // yaml-cpp, on access
    return absl::InvalidArgumentError(fmt::format("{}: kubeconfig cannot be loaded: {}", what, e.what()));
  }
  return absl::InternalError("unreachable");
}

std::string RenderKubeConfig(const KubeConfigFields& fields) {
  YAML::Emitter out;
  const std::string ca(absl::Base64Escape(absl::string_view(fields.ca_pem.data(), fields.ca_pem.size())));
  out << YAML::BeginMap << YAML::Key << "apiVersion" << YAML::Value << "v1";
  out << YAML::Key << "clusters" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  out << YAML::Key << "cluster" << YAML::Value << YAML::BeginMap;
  if (!ca.empty()) out << YAML::Key << "certificate-authority-data" << YAML::Value << ca;
  out << YAML::Key << "server" << YAML::Value << fields.server << YAML::EndMap;
  out << YAML::Key << "name" << YAML::Value << fields.name << YAML::EndMap << YAML::EndSeq;
  out << YAML::Key << "contexts" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  out << YAML::Key << "context" << YAML::Value << YAML::BeginMap << YAML::Key << "cluster" << YAML::Value << fields.name
      << YAML::Key << "user" << YAML::Value << fields.name << YAML::EndMap;
  out << YAML::Key << "name" << YAML::Value << fields.name << YAML::EndMap << YAML::EndSeq;
  out << YAML::Key << "current-context" << YAML::Value << fields.name;
  out << YAML::Key << "kind" << YAML::Value << "Config";
  out << YAML::Key << "preferences" << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  out << YAML::Key << "users" << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  out << YAML::Key << "name" << YAML::Value << fields.name << YAML::Key << "user" << YAML::Value << YAML::BeginMap;
  if (!fields.token.empty()) out << YAML::Key << "token" << YAML::Value << YAML::DoubleQuoted << fields.token;
  out << YAML::EndMap << YAML::EndMap << YAML::EndSeq << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace wavetank::kube
