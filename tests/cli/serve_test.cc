// `wavetank serve` from outside: a process that is told to end, a second one that applies to it.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"
#include "tests/left_out.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kScenario[] = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";

class Serve : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("wavetank-cli-serve-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    errors_ = folder_ / "stderr";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Errors() const {
    std::ifstream in(errors_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Exit code and standard output.
  std::pair<int, std::string> Run(std::vector<std::string> arguments) {
    Process process(std::move(arguments), errors_);
    std::string output = process.Rest();
    return {process.Wait(), std::move(output)};
  }
  // What a shell says to `line`, and its status.
  static std::pair<int, std::string> Shell(const std::string& line) {
    FILE* pipe = popen(("(" + line + ") 2>&1").c_str(), "r");
    std::string out;
    for (int c; (c = fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    const int status = pclose(pipe);
    return {status, std::move(out)};
  }
  // Of tools/kube-clients.
  static constexpr char kKubectl[] = WAVETANK_SOURCE_DIR "/build/kube-clients/bin/kubectl";
  static bool HasKubectl() { return std::filesystem::exists(kKubectl); }
  std::pair<int, std::string> Kubectl(const std::string& kubeconfig, const std::string& arguments) const {
    return Shell("HOME='" + folder_.string() + "' KUBECONFIG='" + kubeconfig + "' '" + kKubectl +
                 "' --request-timeout=10s " + arguments);
  }

  std::filesystem::path folder_;
  std::string errors_;
};

TEST_F(Serve, ManifestsAreAppliedToItAndSigtermLeavesAWholeLogThatReplays) {
  const std::string log = folder_ / "live.wtlog", manifest = folder_ / "m.yaml";
  std::ofstream(manifest)
      << "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: sample}\ndata: {a: b}\n";
  const std::string log_of_server = folder_ / "server";
  Process server({"serve", kScenario, "--listen", "127.0.0.1:0", "--secure-listen", "", "--kube", "127.0.0.1:0",
                  "--json", "-o", log},
                 log_of_server);
  const json ready = json::parse(server.Line(), nullptr, false);
  ASSERT_FALSE(ready.is_discarded());
  ASSERT_EQ(ready["listeners"].size(), 2u);
  EXPECT_EQ(ready["pods"].size(), 8u);
  const std::string api = ready["kube"][0]["server"].get<std::string>().substr(7);

  auto [code, output] = Run({"apply", "--server", api, "--cluster", "cluster1=" + manifest});
  EXPECT_EQ(code, 0) << Errors();
  EXPECT_EQ(output, "cluster1: configmap/new applied\n");
  std::tie(code, output) = Run({"apply", "--server", api, "--cluster", "elsewhere=" + manifest});
  EXPECT_EQ(code, 2);
  EXPECT_EQ(
      Errors(),
      "wavetank: the server has no cluster 'elsewhere'; it has cluster1, cluster2 (--cluster NAME=FILE names one)\n");

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::tie(code, output) = Run({"replay", log});
  EXPECT_EQ(code, 0) << output << Errors();
  EXPECT_THAT(output, HasSubstr("identical"));
}

// README's lines, and what they come to.
TEST_F(Serve, WhatKubectlDoesToAMeshIsReplayedToTheSameDigest) {
  NEEDS_TOOL(HasKubectl(), "kubectl", "tools/kube-clients fetches it");
  const std::string log = folder_ / "live.wtlog", kubeconfig = folder_ / "kubeconfig";
  Process server({"serve", kScenario, "--listen", "127.0.0.1:0", "--secure-listen", "", "--kube", "127.0.0.1:0",
                  "--json", "-o", log},
                 folder_ / "server");
  const json ready = json::parse(server.Line(), nullptr, false);
  ASSERT_FALSE(ready.is_discarded());
  auto [code, output] = Run(
      {"kubeconfig", "--kube", ready["kube"][0]["server"].get<std::string>().substr(std::string("http://").size())});
  ASSERT_EQ(code, 0) << Errors();
  std::ofstream(kubeconfig) << output;

  // What every cluster has.
  std::tie(code, output) = Kubectl(kubeconfig, "--context cluster2 get services,endpoints -o name");
  EXPECT_EQ(code, 0) << output;
  EXPECT_EQ(output, "service/kubernetes\nendpoints/kubernetes\n");
  std::tie(code, output) = Kubectl(kubeconfig,
                                   "--context cluster2 get endpointslices -l kubernetes.io/service-name=kubernetes -o "
                                   "jsonpath='{.items[*].metadata.name} {.items[*].ports[0].port}'");
  EXPECT_EQ(output, "kubernetes 6443");

  for (const char* line : {"--context cluster2 -n sample scale deployment helloworld-v2 --replicas=3",
                           "--context cluster2 -n sample rollout status deployment/helloworld-v2 --timeout=60s",
                           "--context cluster1 -n sample annotate service helloworld note=hello"}) {
    std::tie(code, output) = Kubectl(kubeconfig, line);
    EXPECT_EQ(code, 0) << line << "\n" << output;
  }
  std::tie(code, output) = Kubectl(kubeconfig, "--context cluster2 -n sample get pods -l version=v2 -o name | wc -l");
  EXPECT_EQ(output, "3\n");
  // Refused, and in the log all the same.
  std::tie(code, output) = Kubectl(kubeconfig, "--context cluster1 delete namespace default");
  EXPECT_NE(code, 0);
  EXPECT_THAT(output, HasSubstr("namespaces \"default\" is forbidden: this namespace may not be deleted"));

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::tie(code, output) = Run({"replay", log});
  EXPECT_EQ(code, 0) << output << Errors();
  EXPECT_THAT(output, HasSubstr("identical"));
  std::tie(code, output) = Run({"replay", "--inputs", log});
  size_t requests = 0;
  for (size_t at = output.find("kubeRequest"); at != std::string::npos; at = output.find("kubeRequest", at + 1))
    ++requests;
  EXPECT_EQ(requests, 3u) << output;
}

// Kubernetes' own client and libcurl, which both look at certificates.
TEST_F(Serve, TheKubernetesApiSpeaksTlsToThoseWhoKnowItsCa) {
  const std::string config = folder_ / "config", token = folder_ / "token";
  std::ofstream(token) << "let-me-in\n";
  std::ofstream(config) << "an earlier one\n";
  Process server({"serve", kScenario, "--listen", "127.0.0.1:0", "--secure-listen", "", "--kube", "127.0.0.1:0",
                  "--kube-tls", "--kube-token-file", token, "--kubeconfig", config, "--json"},
                 folder_ / "server");
  const json ready = json::parse(server.Line(), nullptr, false);
  ASSERT_FALSE(ready.is_discarded());
  const std::string url = ready["kube"][0]["server"];
  EXPECT_THAT(url, testing::StartsWith("https://127.0.0.1:"));
  std::ifstream in(config);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::AllOf(HasSubstr("certificate-authority-data: "), HasSubstr("token: \"let-me-in\""),
                                   testing::Not(HasSubstr("earlier"))));
  EXPECT_EQ(std::filesystem::status(config).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);

  const std::string log = folder_ / "mesh.wtlog";
  const auto record = [&](const std::string& kubeconfig) {
    return Run({"record", "--kubeconfig", kubeconfig, "--for", "0s", "-o", log});
  };
  auto [code, output] = record(config);
  EXPECT_EQ(code, 0) << Errors();
  EXPECT_THAT(output, HasSubstr("cluster2"));
  // The same place, but nobody says whose certificate to trust; and a wrong token.
  const auto changed = [&](const std::string& what, const std::string& with) {
    std::string other = text;
    for (size_t at = 0; (at = other.find(what, at)) != std::string::npos;) {
      const size_t end = other.find_first_of(",}\n", at + what.size());
      other.replace(at, end - at, with);
      at += with.size();
    }
    std::ofstream(folder_ / "other") << other;
    return folder_ / "other";
  };
  EXPECT_EQ(record(changed(", certificate-authority-data: ", "")).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("certificate"));
  EXPECT_EQ(record(changed("token: ", "token: guessed")).first, 2);
  EXPECT_THAT(Errors(), testing::AllOf(HasSubstr("Unauthorized"), testing::Not(HasSubstr("guessed"))));

  // Not TLS.
  const std::string api = url.substr(8);
  EXPECT_EQ(Run({"kubeconfig", "--kube", api}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("`wavetank serve --kubeconfig FILE` has written"));
  std::ofstream(folder_ / "m.yaml") << "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n";
  EXPECT_EQ(Run({"apply", "--server", api, "--cluster", "cluster1=" + (folder_ / "m.yaml").string()}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("kubectl"));

  if (HasKubectl()) {
    auto [status, out] = Kubectl(config, "--context cluster2 -n sample get deployments -o name");
    EXPECT_EQ(status, 0);
    EXPECT_EQ(out, "deployment.apps/helloworld-v2\ndeployment.apps/sleep\n");
    std::tie(status, out) = Kubectl(config, "-n sample scale deployment helloworld-v1 --replicas=2");
    EXPECT_EQ(out, "deployment.apps/helloworld-v1 scaled\n");
    std::tie(status, out) = Kubectl(config, "-n sample rollout status deployment/helloworld-v1");
    EXPECT_THAT(out, HasSubstr("successfully rolled out"));
    std::tie(status, out) = Kubectl(changed(", certificate-authority-data: ", ""), "get pods");
    EXPECT_THAT(out, HasSubstr("x509: certificate signed by unknown authority"));
    std::tie(status, out) = Kubectl(changed("token: ", "token: guessed"), "get pods");
    EXPECT_EQ(out, "error: You must be logged in to the server (Unauthorized)\n");
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

// As the kubeconfig of a kind cluster: an administrator's certificate and no token. A user's certificate, of an
// authority that is given, may do what RBAC allows it.
TEST_F(Serve, TheKubernetesApiKnowsItsClientsByTheirCertificates) {
  const std::string config = folder_ / "config";
  NEEDS_TOOL(Shell("command -v openssl && command -v curl").first == 0, "openssl and curl",
             "tools/setup packages-test.txt installs them");
  const std::string at = "cd '" + folder_.string() + "' && ";
  const auto authority = [&](const std::string& name) {
    Shell(at + "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
          " -keyout " + name + ".key -out " + name + ".pem");
  };
  const auto user = [&](const std::string& name, const std::string& subject, const std::string& ca) {
    Shell(at + "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '" + subject + "' -keyout " +
          name + ".key -out " + name + ".csr && openssl x509 -req -days 2 -in " + name + ".csr -CA " + ca +
          ".pem -CAkey " + ca + ".key -CAcreateserial -out " + name + ".pem");
  };
  authority("mine");
  authority("foreign");
  user("jane", "/O=readers/CN=jane", "mine");
  user("root", "/O=system:masters/CN=root", "mine");
  user("mallory", "/O=system:masters/CN=mallory", "foreign");
  Process server(
      {"serve", kScenario, "--listen", "127.0.0.1:0", "--secure-listen", "", "--kube", "127.0.0.1:0", "--kube-tls",
       "--kube-client-certificates", "--kube-client-ca", folder_ / "mine.pem", "--kubeconfig", config, "--json"},
      folder_ / "server");
  const json ready = json::parse(server.Line(), nullptr, false);
  ASSERT_FALSE(ready.is_discarded());
  const std::string url = ready["kube"][0]["server"];
  std::ifstream in(config);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::AllOf(HasSubstr("client-certificate-data: "), HasSubstr("client-key-data: "),
                                   testing::Not(HasSubstr("token"))));
  // The file's own certificate.
  EXPECT_EQ(Run({"record", "--kubeconfig", config, "--for", "0s", "-o", folder_ / "mesh.wtlog"}).first, 0) << Errors();
  const auto ask = [&](const std::string& who, const std::string& path, const std::string& more = "") {
    const std::string certificate = who.empty() ? "" : " --cert " + who + ".pem --key " + who + ".key";
    return Shell(at + "curl -sk --max-time 60 " + certificate + " " + more + " '" + url + path + "'").second;
  };
  const std::string pods = "/api/v1/namespaces/sample/pods";
  EXPECT_THAT(ask("root", pods), HasSubstr("\"PodList\""));
  EXPECT_THAT(ask("", pods), HasSubstr("\"code\": 401"));
  EXPECT_THAT(ask("mallory", pods), HasSubstr("\"code\": 401"));
  EXPECT_THAT(ask("jane", pods), HasSubstr("User \\\"jane\\\" cannot list resource \\\"pods\\\""));
  const std::string post = "-X POST -H 'Content-Type: application/yaml' --data-binary ";
  ask("root", "/apis/rbac.authorization.k8s.io/v1/namespaces/sample/roles",
      post +
          "'{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [\"\"], "
          "resources: [pods], verbs: [list]}]}'");
  ask("root", "/apis/rbac.authorization.k8s.io/v1/namespaces/sample/rolebindings",
      post +
          "'{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: "
          "rbac.authorization.k8s.io, kind: Role, name: "
          "r}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]}'");
  EXPECT_THAT(ask("jane", pods), HasSubstr("\"PodList\""));
  EXPECT_THAT(ask("jane", "/api/v1/namespaces/sample/services"), HasSubstr("\"code\": 403"));
  if (HasKubectl()) {
    const std::string mine = "-n sample --insecure-skip-tls-verify -s " + url + " ";
    const auto as = [&](const std::string& who) {
      const std::string path = folder_ / who;
      return mine + "--client-certificate='" + path + ".pem' --client-key='" + path + ".key' ";
    };
    EXPECT_EQ(Kubectl(config, "--context cluster2 -n sample get deployments -o name").second,
              "deployment.apps/helloworld-v2\ndeployment.apps/sleep\n");
    EXPECT_THAT(Kubectl("/dev/null", as("jane") + "get pods -o name").second, HasSubstr("pod/helloworld-v1-"));
    EXPECT_THAT(Kubectl("/dev/null", as("jane") + "get services").second,
                HasSubstr("Error from server (Forbidden): services is forbidden: User \"jane\" cannot list resource"));
    EXPECT_EQ(Kubectl("/dev/null", as("mallory") + "get pods").second,
              "error: You must be logged in to the server (Unauthorized)\n");
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(Serve, TheBootstrapOfAPodIsPrinted) {
  auto [code, output] = Run({"serve", kScenario, "--bootstrap", "sleep"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(Errors(), HasSubstr("more than one pod with a proxy is named 'sleep'"));
  const std::string error = Errors();
  const size_t at = error.find("sleep-");
  ASSERT_NE(at, std::string::npos);
  const std::string pod = error.substr(at, error.find_first_of(", \n", at) - at);
  std::tie(code, output) = Run({"serve", kScenario, "--profile", "upstream-envoy", "--bootstrap", pod});
  EXPECT_EQ(code, 0) << Errors();
  const json bootstrap = json::parse(output, nullptr, false);
  ASSERT_FALSE(bootstrap.is_discarded());
  EXPECT_THAT(bootstrap["node"]["id"].get<std::string>(), HasSubstr(pod.substr(0, pod.find('@'))));
  EXPECT_EQ(bootstrap["dynamic_resources"]["ads_config"]["api_type"], "GRPC");

  std::tie(code, output) = Run({"serve", kScenario, "--grpc", "--advertise", "10.0.0.1", "--bootstrap", pod});
  EXPECT_EQ(code, 0) << Errors();
  const json grpc = json::parse(output, nullptr, false);
  ASSERT_FALSE(grpc.is_discarded());
  EXPECT_EQ(grpc["node"]["id"], bootstrap["node"]["id"]);
  EXPECT_EQ(grpc["node"]["metadata"]["GENERATOR"], "grpc");
  EXPECT_THAT(grpc["xds_servers"][0]["server_uri"].get<std::string>(), testing::StartsWith("10.0.0.1:15"));
  EXPECT_EQ(grpc["server_listener_resource_name_template"], "xds.istio.io/grpc/lds/inbound/%s");
}

TEST_F(Serve, WhatCannotBeServedIsNamed) {
  EXPECT_EQ(Run({"serve", "no-such-folder"}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("no-such-folder"));
  EXPECT_EQ(Run({"serve", kScenario, "--listen", "", "--secure-listen", ""}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("nothing to listen on"));
  EXPECT_EQ(Run({"serve", kScenario, "--listen", "203.0.113.1:15010", "--secure-listen", ""}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("cannot listen on 203.0.113.1:15010"));
  EXPECT_EQ(Run({"serve", kScenario, "--kube-tls"}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("give --kube"));
  EXPECT_EQ(Run({"serve", kScenario, "--kube", "127.0.0.1:0", "--kube-tls"}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("give --kubeconfig"));
  EXPECT_EQ(Run({"serve", kScenario, "--secret-ttl", "soon"}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("'soon' is no duration"));
}

}  // namespace
}  // namespace wavetank
