#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/security/remote_secret.h"
#include "fmt/format.h"
#include "sim/world_site.h"

namespace wavetank::cli {
namespace {

// istioctl: pkg/config/constants, DefaultConfigServiceAccountName.
constexpr const char* kConfigAccount = "istiod";

struct RemoteSecretArguments {
  std::string cluster, name, type = "remote", ns = "istio-system", account, auth = "bearer-token", plugin, server;
  std::vector<std::string> plugin_config;
  uint64_t seed = 1;
};

bool IsDnsLabel(std::string_view text) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), good) && text.front() != '-' &&
         text.back() != '-';
}

// A scalar of YAML, quoted where it would be read as something else.
std::string Scalar(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '/' || c == '_' || c == ':' || c == '=' || c == '+';
  };
  const bool safe = !text.empty() && std::all_of(text.begin(), text.end(), plain) && text.back() != ':' &&
                    ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z')) && text != "true" &&
                    text != "false" && text != "null" && text != "yes" && text != "no" && text != "on" && text != "off";
  if (safe) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The kubeconfig as client-go's codec writes it: names in alphabetic order.
std::string Kubeconfig(const RemoteSecretArguments& a, const std::string& ca_pem, const std::string& server,
                       const std::string& token) {
  const std::string name = Scalar(a.name), ca = absl::Base64Escape(ca_pem);
  std::string user;
  if (a.auth == "plugin") {
    user = "    auth-provider:\n";
    if (a.plugin_config.empty()) {
      user += "      config: {}\n";
    } else {
      user += "      config:\n";
      std::vector<std::string> sorted = a.plugin_config;
      std::sort(sorted.begin(), sorted.end());
      for (const std::string& pair : sorted) {
        const size_t equals = pair.find('=');
        user += fmt::format("        {}: {}\n", Scalar(pair.substr(0, equals)), Scalar(pair.substr(equals + 1)));
      }
    }
    user += fmt::format("      name: {}\n", Scalar(a.plugin));
  } else {
    user = fmt::format("    token: {}\n", Scalar(token));
  }
  return fmt::format(
      "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: {}\n  name: {}\n"
      "contexts:\n- context:\n    cluster: {}\n    user: {}\n  name: {}\ncurrent-context: {}\nkind: Config\n"
      "preferences: {{}}\nusers:\n- name: {}\n  user:\n{}",
      ca, Scalar(server), name, name, name, name, name, name, user);
}

absl::Status CheckArguments(const RemoteSecretArguments& a) {
  const auto wrong = [](std::string text) { return absl::InvalidArgumentError(std::move(text)); };
  // In istioctl's words where it has some (istioctl: pkg/multicluster/remote_secret.go).
  if (!IsDnsLabel(a.name)) return wrong(fmt::format("{} is not a valid DNS 1123 label", a.name));
  if (a.type != "remote" && a.type != "config") return wrong(fmt::format("unsupported type: {}", a.type));
  if (a.auth != "bearer-token" && a.auth != "plugin")
    return wrong(fmt::format("unsupported authentication type: {}", a.auth));
  if (a.auth == "plugin" && a.plugin.empty()) return wrong("--auth-type plugin needs --auth-plugin-name");
  if (a.auth != "plugin" && (!a.plugin.empty() || !a.plugin_config.empty()))
    return wrong("--auth-plugin-name and --auth-plugin-config are of --auth-type plugin");
  for (const std::string& pair : a.plugin_config) {
    if (pair.find('=') == std::string::npos || pair[0] == '=')
      return wrong(fmt::format("--auth-plugin-config '{}' is not NAME=VALUE", pair));
  }
  return absl::OkStatus();
}

int CreateRemoteSecret(RemoteSecretArguments a) {
  if (a.name.empty()) a.name = a.cluster;
  if (absl::Status status = CheckArguments(a); !status.ok()) return Complain(status);
  const bool config = a.type == "config";
  if (a.account.empty()) a.account = config ? kConfigAccount : std::string(security::kReaderServiceAccount);
  const std::string server = a.server.empty() ? sim::ApiServerUrl(a.cluster) : a.server;
  if (server.find("127.0.0.1") != std::string::npos || server.find("localhost") != std::string::npos) {
    std::cerr << fmt::format(
        "warn: server in Kubeconfig is {}. This is likely not reachable from inside the cluster, if you're using "
        "Kubernetes in Docker, pass --server with the container IP for the API Server\n",
        server);
  }
  kube::TokenClaims claims;
  claims.ns = a.ns;
  claims.service_account = a.account;
  const std::string token = kube::TokenAuthority(a.seed, a.cluster).Issue(claims);
  const std::string kubeconfig = Kubeconfig(a, sim::ApiServerCa(a.seed, a.cluster).certificate->ToPem(), server, token);

  std::cout << fmt::format(
      "# This file is autogenerated, do not edit.\napiVersion: v1\nkind: Secret\nmetadata:\n  annotations:\n    {}: "
      "{}\n"
      "  creationTimestamp: null\n  labels:\n    {}: \"true\"\n  name: {}\n  namespace: {}\nstringData:\n  {}: |\n",
      security::kClusterAnnotation, Scalar(a.name), security::kMultiClusterLabel,
      config ? "istio-kubeconfig" : "istio-remote-secret-" + a.name, Scalar(a.ns), config ? "config" : Scalar(a.name));
  for (const absl::string_view line : absl::StrSplit(kubeconfig, '\n', absl::SkipEmpty()))
    std::cout << "    " << line << "\n";
  std::cout << "---\n";
  return kOk;
}

}  // namespace

void AddCreateRemoteSecret(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "create-remote-secret",
      "Prints the Secret that lets an istiod read a cluster of a simulated mesh, as istioctl 1.18.2 prints it");
  auto a = std::make_shared<RemoteSecretArguments>();
  verb->add_option("--cluster,--context", a->cluster, "The cluster of the mesh that it gives access to")->required();
  verb->add_option("--name", a->name,
                   "What the mesh calls that cluster; its own name if left out (istioctl: the UID of kube-system)");
  verb->add_option("--type", a->type, "remote, or config")->capture_default_str();
  verb->add_option("-n,--namespace,--istioNamespace", a->ns, "Of the ServiceAccount and the Secret")
      ->capture_default_str();
  verb->add_option("--service-account", a->account,
                   "Whose token it holds: istio-reader-service-account, of --type config istiod, if left out");
  verb->add_option("--auth-type", a->auth, "bearer-token, or plugin")->capture_default_str();
  verb->add_option("--auth-plugin-name", a->plugin, "Of --auth-type plugin");
  verb->add_option("--auth-plugin-config", a->plugin_config, "NAME=VALUE of --auth-type plugin")->delimiter(',');
  verb->add_option("--server", a->server, "URL of the API server; the simulated cluster's own if left out");
  verb->add_option("--seed", a->seed, "Of the mesh: its tokens and authorities follow from it")->capture_default_str();
  verb->footer(
      "Example: wavetank create-remote-secret --cluster cluster2 > cluster1/remote.yaml && wavetank apply cluster1 "
      "cluster2\nThe ServiceAccount and its role are not made: a mesh's manifests bring them, or `--mend rbac`.");
  verb->callback([a, &outcome] { outcome.code = CreateRemoteSecret(*a); });
}

}  // namespace wavetank::cli
