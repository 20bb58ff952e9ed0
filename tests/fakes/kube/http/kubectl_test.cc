// Real clients against a served cluster: what a user types and reads, as transcripts; and the Python client.
//
// transcripts/*.txt hold commands after "$ " and what they print, standard error included, then "[exit N]" unless it is
// 0. WAVETANK_RECORD=1 writes what was printed into them. The clients come from tools/kube-clients; without them these
// tests are skipped.
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
#include <thread>
#include <vector>

#include "served_cluster.h"

namespace wavetank::fakekube::http {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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
  std::string Run(const std::string& command) {
    const std::string line = "cd '" + (Here() / "transcripts").string() + "' && export HOME='" + folder_.string() +
                             "' KUBECONFIG='" + (folder_ / "config").string() + "' URL='" + served_->url() +
                             "' PATH='" + (Clients() / "bin").string() + "':\"$PATH\" && { " + command + "\n} 2>&1";
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
  if (!fs::exists(Clients() / "stamp")) GTEST_SKIP() << "no kubectl here; tools/kube-clients fetches it";
  Serve();
  const fs::path file = Here() / "transcripts" / GetParam();
  std::istringstream lines(ReadFile(file));
  std::string now;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("$ ", 0) == 0) {
      now += line + "\n" + WithoutAges(Run(line.substr(2)));
    } else if (line.rfind("# ", 0) == 0) {
      now += (now.empty() ? "" : "\n") + line + "\n";
    }
  }
  if (const char* record = ::getenv("WAVETANK_RECORD"); record != nullptr && std::string(record) == "1") {
    std::ofstream(file) << now;
  }
  EXPECT_EQ(now, ReadFile(file));
}

INSTANTIATE_TEST_SUITE_P(Kubectl, Transcript,
                         ::testing::Values("reading.txt", "writing.txt", "workloads.txt", "refusals.txt",
                                           "explaining.txt"),
                         [](const auto& tested) {
                           const std::string name = tested.param;
                           return name.substr(0, name.find('.'));
                         });

using KubectlAcrossARestart = ClientTest;

json DaemonSet(const json& status) {
  return {{"apiVersion", "apps/v1"},
          {"kind", "DaemonSet"},
          {"metadata", {{"name", "agent"}, {"namespace", "default"}}},
          {"spec",
           {{"updateStrategy", {{"type", "RollingUpdate"}}},
            {"selector", {{"matchLabels", {{"app", "agent"}}}}},
            {"template",
             {{"metadata", {{"labels", {{"app", "agent"}}}}},
              {"spec", {{"containers", {{{"name", "c"}, {"image", "example/agent:1"}}}}}}}}}},
          {"status", status}};
}

// What kubectl's informer remembers is of a server that is no more: only a 410 makes it look again.
TEST_F(KubectlAcrossARestart, AnInformerFindsTheOtherLifeAndAWatchEnds) {
  if (!fs::exists(Clients() / "stamp")) GTEST_SKIP() << "no kubectl here; tools/kube-clients fetches it";
  ServedCluster::Options options;
  options.first_resource_version = 100'000;
  Serve(options);
  const auto put = [&](const json& status) {
    return served_->Call([&](Cluster& cluster) { return cluster.api().Apply(DaemonSet(status)).ok(); });
  };
  const json waiting = {
      {"observedGeneration", 1}, {"desiredNumberScheduled", 2}, {"updatedNumberScheduled", 2}, {"numberAvailable", 1}};
  ASSERT_TRUE(put(waiting));
  auto status = std::async(std::launch::async, [&] { return Run("kubectl rollout status ds/agent --timeout=60s"); });
  auto watch = std::async(std::launch::async, [&] { return Run("kubectl get ds agent -w -o name"); });
  const auto begin = std::chrono::steady_clock::now();
  while (served_->server().connections() < 2 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  options.port = *served_->port();
  options.first_resource_version = 0;
  served_ = nullptr;
  EXPECT_EQ(watch.get(), "daemonset.apps/agent\n");
  served_ = std::make_unique<ServedCluster>(options);
  ASSERT_TRUE(served_->port().ok()) << served_->port().status();
  ASSERT_TRUE(put(waiting));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  json done = waiting;
  done["numberAvailable"] = 2;
  ASSERT_TRUE(put(done));
  const std::string said = status.get();
  EXPECT_THAT(said, ::testing::HasSubstr("1 of 2 updated pods are available"));
  EXPECT_THAT(said, ::testing::EndsWith("daemon set \"agent\" successfully rolled out\n"));
}

using PythonClient = ClientTest;

TEST_F(PythonClient, ListsWritesAndWatches) {
  const fs::path python = Clients() / "python/bin/python";
  if (!fs::exists(Clients() / "stamp")) GTEST_SKIP() << "no Python client here; tools/kube-clients fetches it";
  Serve();
  EXPECT_EQ(Run("'" + python.string() + "' '" + (Here() / "python_client.py").string() + "' \"$URL\""), "all well\n");
}

}  // namespace
}  // namespace wavetank::fakekube::http
