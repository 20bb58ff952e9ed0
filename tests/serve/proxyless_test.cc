// Proxyless gRPC against a live server: gRPC's own clients, C++ and Node.js, take the endpoints of a ServiceEntry at
// loopback addresses, follow its changes on disk and survive the server.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "core/x509/x509.h"
#include "scenarios/survey/mesh_survey.h"
#include "serve/grpc/bootstrap.h"
#include "serve/manifest_watch.h"
#include "tests/await.h"
#include "tests/left_out.h"
#include "tests/serve/live.h"
#include "tests/serve/xds_backend.h"

namespace wavetank::serve {
namespace {

namespace fs = std::filesystem;

constexpr char kTarget[] = "xds:///echo.shop.svc.cluster.local:7070";

class ProxylessClients : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wavetank-proxyless-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* backend : {"one", "two", "three"}) {
      ASSERT_GT(backends_.emplace_back(std::make_unique<Backend>(backend))->port(), 0);
    }
    Write({0, 1});
    StartMesh();
    ASSERT_NE(server_, nullptr);
    bootstrap_ = Bootstrap("client", "");
  }
  void TearDown() override {
    StopMesh();
    fs::remove_all(folder_);
  }

  // Of no pod of the world: istiod serves a stranger what its node's namespace may see.
  std::string Bootstrap(const std::string& name, const std::string& certificates) {
    pilot::ProxyBootstrap proxy;
    proxy.node_id = "sidecar~127.0.0.1~" + name + ".shop~shop.svc.cluster.local";
    proxy.metadata = {{"NAMESPACE", "shop"}, {"CLUSTER_ID", "cluster1"}, {"SERVICE_ACCOUNT", name}};
    const auto bootstrap = MakeGrpcBootstrap(proxy, {address_, certificates});
    EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
    return bootstrap.ok() ? bootstrap->dump() : "";
  }

  // A service with these backends; edited in place, as a user does.
  void Write(const std::vector<size_t>& which) {
    std::vector<int> ports;
    for (const size_t i : which) ports.push_back(backends_[i]->port());
    WritePorts(ports, "");
  }
  // Endpoints of this account, and more manifests.
  void WritePorts(const std::vector<int>& ports, const std::string& more, const std::string& account = "echo") {
    std::string endpoints;
    for (const int port : ports) {
      endpoints +=
          "  - {address: 127.0.0.1, serviceAccount: " + account + ", ports: {grpc: " + std::to_string(port) + "}}\n";
    }
    const fs::path next = folder_ / "next";
    std::ofstream(next) << "apiVersion: networking.istio.io/v1beta1\nkind: ServiceEntry\n"
                           "metadata: {name: echo, namespace: shop}\nspec:\n  hosts: [echo.shop.svc.cluster.local]\n"
                           "  location: MESH_INTERNAL\n  resolution: STATIC\n"
                           "  ports: [{number: 7070, name: grpc, protocol: GRPC}]\n  endpoints:\n"
                        << endpoints << more;
    fs::create_directories(folder_ / "cluster1");
    fs::rename(next, folder_ / "cluster1" / "echo.yaml");
  }

  // On the address of before, if there was one.
  void StartMesh() {
    scenario::SurveyOptions survey;
    survey.clusters = {{"cluster1", {(folder_ / "cluster1").string()}, "", ""}};
    absl::StatusOr<scenario::MeshPlan> plan = scenario::PlanMesh(survey);
    ASSERT_TRUE(plan.ok()) << plan.status();
    SessionOptions session;
    session.scenario = std::move(plan->scenario);
    session.start = std::move(plan->start);
    session.timing = {{"istiod.debounce_after", "10ms"}};
    ServerOptions options = OnAnyPort();
    options.secure_listen.clear();
    if (!address_.empty()) options.listen = address_;
    server_ = StartServer(options, std::move(session));
    ASSERT_NE(server_, nullptr);
    address_ = server_->ListenersOf("cluster1")->plaintext;
    watch_ = std::make_unique<ManifestWatch>(server_->loop(), server_->session().scenario().clusters,
                                             ManifestWatch::Options{10ms, [](const std::string&) {}});
  }
  void StopMesh() {
    watch_ = nullptr;
    server_ = nullptr;
  }

  using Call = std::function<std::string()>;
  // Who answers the next calls, once that is `expected` for 20 calls in a row and each of them answers some.
  static std::set<std::string> AwaitAnswers(const Call& call, const std::set<std::string>& expected) {
    std::set<std::string> got;
    Await([&] {
      got.clear();
      for (int i = 0; i < 20; ++i) got.insert(call());
      return got == expected;
    });
    return got;
  }

  // What every xDS client must see.
  void Story(const Call& call) {
    using Names = std::set<std::string>;
    EXPECT_EQ(AwaitAnswers(call, {"one", "two"}), (Names{"one", "two"}));
    Write({1, 2});  // one goes, one comes
    EXPECT_EQ(AwaitAnswers(call, {"two", "three"}), (Names{"two", "three"}));
    StopMesh();
    // What it has it keeps, and no call fails meanwhile.
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(call(), testing::AnyOf("two", "three"));
    }
    StartMesh();
    Write({0});
    EXPECT_EQ(AwaitAnswers(call, {"one"}), (Names{"one"}));
  }

  // A folder with a certificate of the account's identity, as Istio's agent writes them.
  std::string Certificates(const std::string& account) {
    static const auto* const ca = new x509::CertificateAuthority(x509::MakeRootCa(5, "mesh", CalendarTime() - 1h, 24h));
    const auto key = x509::KeyPair::Derive(5, account);
    x509::CertificateSpec spec;
    spec.sans = {"spiffe://cluster.local/ns/shop/sa/" + account};
    spec.not_before = CalendarTime() - 1h;
    spec.not_after = CalendarTime() + 1h;
    const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca->certificate, *ca->key);
    EXPECT_TRUE(leaf.ok()) << leaf.status();
    const fs::path out = folder_ / ("certificates-" + account);
    fs::create_directories(out);
    std::ofstream(out / "key.pem") << key->ExportPrivateKeyPem();
    if (leaf.ok()) std::ofstream(out / "cert-chain.pem") << (*leaf)->ToPem();
    std::ofstream(out / "root-cert.pem") << ca->certificate->ToPem();
    return out.string();
  }

  fs::path folder_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::string address_, bootstrap_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<ManifestWatch> watch_;
};

TEST_F(ProxylessClients, GrpcOfCppFollowsEndpointsAndSurvivesTheServer) {
  ASSERT_EQ(::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap_.c_str(), 1), 0);
  BackendClient client(grpc::CreateChannel(kTarget, grpc::InsecureChannelCredentials()));
  Story([&] { return client.Call(); });
}

// Both ends from istiod: the server's listener by its address, the client's transport socket by a DestinationRule.
TEST_F(ProxylessClients, ServersAndClientsOfCppSpeakMutualTlsAsPoliciesSay) {
  const int port = FreePort();
  ASSERT_GT(port, 0);
  const std::string strict =
      "---\napiVersion: security.istio.io/v1beta1\nkind: PeerAuthentication\n"
      "metadata: {name: default, namespace: shop}\nspec: {mtls: {mode: STRICT}}\n";
  const std::string mutual =
      "---\napiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\n"
      "metadata: {name: echo, namespace: shop}\n"
      "spec: {host: echo.shop.svc.cluster.local, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}\n";
  WritePorts({port}, strict + mutual);
  const auto client = [&](const std::string& account) {
    grpc::ChannelArguments arguments;
    arguments.SetString(kXdsBootstrapArgument, Bootstrap(account, Certificates(account)));
    return std::make_unique<BackendClient>(
        grpc::CreateCustomChannel(kTarget, grpc::XdsCredentials(grpc::InsecureChannelCredentials()), arguments));
  };
  const std::string address = "127.0.0.1:" + std::to_string(port);
  {
    const Backend echo("echo", address, Bootstrap("echo", Certificates("echo")));
    ASSERT_TRUE(echo.ok());
    const auto peer = client("client");
    EXPECT_EQ(AwaitAnswers([&] { return peer->Call(); }, {"echo"}), std::set<std::string>{"echo"});
    // Without the rule a client speaks plain text, which a STRICT server does not take.
    WritePorts({port}, strict);
    EXPECT_TRUE(Await([&] { return client("plain")->Call(false).rfind("error: 14", 0) == 0; }));
    WritePorts({port}, strict + mutual);
    EXPECT_EQ(AwaitAnswers([&] { return peer->Call(); }, {"echo"}), std::set<std::string>{"echo"});
  }
  // A server of another identity than the service's account is refused, until the service says that it is his.
  const Backend impostor("impostor", address, Bootstrap("impostor", Certificates("impostor")));
  ASSERT_TRUE(impostor.ok());
  const auto peer = client("client");
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(peer->Call(false), testing::StartsWith("error: 14"));
    LetTimePass(20ms);
  }
  WritePorts({port}, strict + mutual, "impostor");
  EXPECT_EQ(AwaitAnswers([&] { return peer->Call(); }, {"impostor"}), std::set<std::string>{"impostor"});
}

// A program that answers each line with one; killed at its end, or with this process.
class LineProgram {
 public:
  LineProgram(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) return;
    // Made before the fork: between it and exec a child of a program with threads must not allocate.
    std::vector<char*> argv, env;
    for (const std::string& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
    for (const std::string& text : environment) env.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    env.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::execvpe(argv[0], argv.data(), env.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = ::fdopen(from[0], "r");
  }
  ~LineProgram() {
    ::close(to_);
    if (from_ != nullptr) ::fclose(from_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  std::string Ask() {
    if (::write(to_, "\n", 1) != 1) return "error: it is gone";
    char line[1024];
    if (::fgets(line, sizeof line, from_) == nullptr) return "error: it is gone";
    std::string out = line;
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  FILE* from_ = nullptr;
};

TEST_F(ProxylessClients, GrpcOfNodeJsFollowsEndpointsAndSurvivesTheServer) {
  const fs::path modules = fs::path(WAVETANK_SOURCE_DIR) / "build/grpc-js";
  NEEDS_TOOL(fs::exists(modules / "stamp"), "@grpc/grpc-js-xds", "tools/grpc-js/install fetches it");
  ::signal(SIGPIPE, SIG_IGN);
  const char* path = ::getenv("PATH");
  LineProgram node({"node", std::string(WAVETANK_SOURCE_DIR) + "/tests/serve/grpc_js_client.js", kTarget, kWhoAreYou},
                   {"PATH=" + std::string(path == nullptr ? "/usr/bin:/bin" : path), "HOME=" + folder_.string(),
                    "NODE_PATH=" + (modules / "node_modules").string(), "GRPC_XDS_BOOTSTRAP_CONFIG=" + bootstrap_});
  Story([&] { return node.Ask(); });
}

}  // namespace
}  // namespace wavetank::serve
