// Real clients against a served cluster: what a user types and reads, as transcripts; and the Python client.
//
// transcripts/*.txt hold commands after "$ " and what they print, standard error included, then "[exit N]" unless it is
// 0. The cluster moves while its clients look: a command after "% " is repeated until it prints what stands there, and
// what kubectl says while it waits is left out. WAVETANK_RECORD=1 writes what was printed into them. The clients come
// from tools/kube-clients; without them these tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "served_cluster.h"
#include "tests/await.h"
#include "tests/left_out.h"

namespace wavetank::fakekube::http {
namespace {

namespace fs = std::filesystem;

const fs::path& Clients() {
  static const auto* const kPath = new fs::path(fs::path(WAVETANK_SOURCE_DIR) / "build/kube-clients");
  return *kPath;
}
fs::path Here() { return fs::path(WAVETANK_SOURCE_DIR) / "tests/fakes/kube/http"; }

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Ages differ from run to run; the columns behind them do not move.
std::string WithoutAges(const std::string& text) {
  static const auto* const kAge = new std::regex("(^|[ (])([0-9]+(ms|s|m[0-9]*s?))( *)(?=$|[ )\n])");
  std::string out;
  auto from = text.begin();
  for (std::sregex_iterator it(text.begin(), text.end(), *kAge), end; it != end; ++it) {
    out.append(from, text.begin() + it->position());
    const std::string blanks = (*it)[4].str(), age = (*it)[2].str();
    out += (*it)[1].str() + "AGE";
    const size_t width = age.size() + blanks.size();
    if (!blanks.empty() && width > 3) out.append(width - 3, ' ');
    from = text.begin() + it->position() + it->length();
  }
  return out.append(from, text.end());
}

// kubectl tells of its waiting only where it has to wait, which depends on the machine.
std::string WithoutWaiting(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("Waiting for ", 0) != 0) out += line + "\n";
  }
  return out;
}

// Whether `text` stands in `recorded` from its begin to the end of a command's lines.
bool IsRecorded(const std::string& recorded, const std::string& text) {
  if (recorded.rfind(text, 0) != 0) return false;
  const std::string rest = recorded.substr(text.size());
  return rest.empty() || rest.rfind("$ ", 0) == 0 || rest.rfind("% ", 0) == 0 || rest.rfind("\n# ", 0) == 0;
}

class ClientTest : public ::testing::Test {
 protected:
  // A folder with a kubeconfig, and a cluster that it leads to.
  void Serve(ServedCluster::Options options = {}) {
    served_ = std::make_unique<ServedCluster>(std::move(options));
    ASSERT_TRUE(served_->port().ok()) << served_->port().status();
    std::string name = (fs::temp_directory_path() / "wavetank-kubectl-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "config") << "apiVersion: v1\nkind: Config\ncurrent-context: cluster1\nclusters:\n- name: "
                                         "cluster1\n  cluster: {server: \""
                                      << served_->url()
                                      << "\"}\ncontexts:\n- name: cluster1\n  context: {cluster: cluster1, user: "
                                         "me}\nusers:\n- name: me\n  user: {}\n";
  }
  ~ClientTest() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // What a shell prints for `command`, in the folder of manifests.
  std::string Run(const std::string& command) { return Print(Line(command)); }
  std::string Line(const std::string& command) const {
    return "cd '" + (Here() / "transcripts").string() + "' && export HOME='" + folder_.string() + "' KUBECONFIG='" +
           (folder_ / "config").string() + "' URL='" + served_->url() + "' PATH='" + (Clients() / "bin").string() +
           "':\"$PATH\" && { " + command + "\n} 2>&1";
  }
  static std::string Print(const std::string& line) {
    FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return "cannot run a shell";
    std::string out;
    char buffer[4096];
    for (size_t got; (got = ::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, got);
    const int status = ::pclose(pipe);
    if (!out.empty() && out.back() != '\n') out += '\n';
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (code != 0) out += "[exit " + std::to_string(code) + "]\n";
    return out;
  }

  std::unique_ptr<ServedCluster> served_;
  fs::path folder_;
};

class Transcript : public ClientTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Transcript, IsWhatKubectlPrints) {
  NEEDS_TOOL(fs::exists(Clients() / "stamp"), "kubectl", "tools/kube-clients fetches it");
  Serve();
  const fs::path file = Here() / "transcripts" / GetParam();
  const std::string recorded = ReadFile(file);
  const char* const record = ::getenv("WAVETANK_RECORD");
  const bool records = record != nullptr && std::string(record) == "1";
  std::istringstream lines(recorded);
  std::string now;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# ", 0) == 0) {
      now += (now.empty() ? "" : "\n") + line + "\n";
    } else if (const bool until = line.rfind("% ", 0) == 0; until || line.rfind("$ ", 0) == 0) {
      now += line + "\n";
      const auto printed = [&] { return WithoutWaiting(WithoutAges(Run(line.substr(2)))); };
      std::string last = printed();
      for (int turn = 0; until && turn < (records ? 5 : 100); ++turn) {
        if (!records && IsRecorded(recorded, now + last)) break;
        LetTimePass(std::chrono::milliseconds(200));
        last = printed();
      }
      now += last;
    }
  }
  if (records) std::ofstream(file) << now;
  EXPECT_EQ(now, recorded);
}

INSTANTIATE_TEST_SUITE_P(Kubectl, Transcript,
                         ::testing::Values("reading.txt", "writing.txt", "workloads.txt", "lifecycle.txt",
                                           "refusals.txt", "explaining.txt", "columns.txt"),
                         [](const auto& tested) {
                           const std::string name = tested.param;
                           return name.substr(0, name.find('.'));
                         });

using PythonClient = ClientTest;

TEST_F(PythonClient, ListsWritesAndWatches) {
  const fs::path python = Clients() / "python/bin/python";
  NEEDS_TOOL(fs::exists(Clients() / "stamp"), "the Python client of Kubernetes", "tools/kube-clients fetches it");
  Serve();
  EXPECT_EQ(Run("'" + python.string() + "' '" + (Here() / "python_client.py").string() + "' \"$URL\""), "all well\n");
}

TEST_F(PythonClient, FollowsAClusterAcrossARestartOfItsServer) {
  const fs::path python = Clients() / "python/bin/python";
  NEEDS_TOOL(fs::exists(Clients() / "stamp"), "the Python client of Kubernetes", "tools/kube-clients fetches it");
  Serve();
  const std::string line =
      Line("'" + python.string() + "' '" + (Here() / "python_follower.py").string() + "' \"$URL\"");
  const auto make = [&](const std::string& name) {
    return served_->Call([&](Cluster& cluster) {
      return cluster.api().Apply({{"kind", "ConfigMap"}, {"apiVersion", "v1"}, {"metadata", {{"name", name}}}}).ok();
    });
  };
  // So that this life's versions are beyond those of the next: a version that both have means nothing in the other, and
  // a watch from it loses what came before, here as with a real server.
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(make("seen-before-" + std::to_string(i)));
  std::future<std::string> follower = std::async(std::launch::async, [&] { return Print(line); });
  const auto seen = [&](const std::string& name) {
    return served_->Call([&](Cluster& cluster) {
      return cluster.api().Get("ConfigMap.", {"default", "seen-" + name}) != nullptr;
    });
  };
  ASSERT_TRUE(make("first"));
  while (!seen("first") && follower.wait_for(20ms) == std::future_status::timeout) {
  }
  ASSERT_TRUE(seen("first")) << follower.get();

  // Another life of the server, at the same port: it knows neither the objects nor the versions of the one before.
  ServedCluster::Options next;
  next.port = *served_->port();
  served_.reset();
  served_ = std::make_unique<ServedCluster>(std::move(next));
  ASSERT_TRUE(served_->port().ok()) << served_->port().status();
  ASSERT_TRUE(make("last"));
  EXPECT_EQ(follower.get(), "all well\n");
}

using GoClient = ClientTest;

// client-go and controller-runtime.
TEST_F(GoClient, AControllerWithLeaderElectionAndInformersIsAtHome) {
  const char* const program = ::getenv("WAVETANK_GO_CLIENT");
  NEEDS_BROUGHT(program != nullptr, "go-client",
                "WAVETANK_GO_CLIENT names what is built in tests/fakes/kube/http/go_client (tests/README.md)");
  Serve();
  EXPECT_THAT(Run("'" + std::string(program) + "' 2>/dev/null"), ::testing::EndsWith("\nall well\n"));
}

using Helm = ClientTest;

TEST_F(Helm, InstallsUpgradesRollsBackTestsAndUninstalls) {
  const char* const helm = ::getenv("WAVETANK_HELM");
  NEEDS_BROUGHT(helm != nullptr, "helm", "WAVETANK_HELM names a Helm 3 (tests/README.md)");
  NEEDS_TOOL(fs::exists(Clients() / "stamp"), "kubectl", "tools/kube-clients fetches it");
  Serve();
  EXPECT_EQ(Run("cd \"$HOME\" && '" + (Here() / "helm.sh").string() + "' '" + helm + "' kubectl"), "all well\n");
}

}  // namespace
}  // namespace wavetank::fakekube::http
