// `wavetank serve` from outside: a process that is told to end, a second one that applies to it.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kScenario[] = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";

// A running program whose standard output is read line by line.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments, const std::string& errors) {
    arguments.insert(arguments.begin(), WAVETANK_BINARY_DIR "/wavetank");
    std::vector<char*> argv;
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], 1);
      const int fd = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(fd, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fclose(output_);
  }
  std::string Line() {
    std::string out;
    for (int c = fgetc(output_); c != EOF && c != '\n'; c = fgetc(output_)) out += static_cast<char>(c);
    return out;
  }
  std::string Rest() {
    std::string out;
    for (int c = fgetc(output_); c != EOF; c = fgetc(output_)) out += static_cast<char>(c);
    return out;
  }
  void Signal(int number) const { kill(pid_, number); }
  // The exit code; 1000 and more for a signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

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
  EXPECT_EQ(Run({"serve", kScenario, "--secret-ttl", "soon"}).first, 2);
  EXPECT_THAT(Errors(), HasSubstr("'soon' is no duration"));
}

}  // namespace
}  // namespace wavetank
