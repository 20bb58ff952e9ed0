// Certificates on both sides, against a server that is not of this house (https_server.py).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "core/x509/calendar.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "record/http_transport.h"
#include "record/kubeconfig_file.h"
#include "record/recording.h"
#include "sim/kernel/kernel.h"
#include "tests/left_out.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::record {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kPython[] = "/usr/bin/python3";

class HttpsTest : public testing::Test {
 protected:
  HttpsTest() {
    spec_.not_before = x509::FromUnixSeconds(1'600'000'000);
    spec_.not_after = x509::FromUnixSeconds(4'000'000'000);
    spec_.is_ca = true;
    for (const std::string name : {"ca", "other-ca"}) {
      spec_.subject.common_name = name;
      cas_[name] = *x509::Certificate::SelfSign(spec_, *x509::KeyPair::Derive(1, name));
      WriteAll(folder_ / (name + ".pem"), cas_[name]->ToPem());
    }
    spec_.is_ca = false;
  }
  ~HttpsTest() override {
    if (server_ > 0) {
      kill(server_, SIGKILL);
      waitpid(server_, nullptr, 0);
    }
  }
  // NAME.pem and NAME.key, from `ca`.
  void Issue(const std::string& name, const std::string& ca, const std::vector<std::string>& sans) {
    spec_.subject.common_name = name;
    spec_.sans = sans;
    const x509::KeyPairRef key = x509::KeyPair::Derive(1, name);
    const auto made = x509::Certificate::Issue(spec_, key->public_key(), *cas_[ca], *x509::KeyPair::Derive(1, ca));
    ASSERT_TRUE(made.ok()) << made.status();
    WriteAll(folder_ / (name + ".pem"), (*made)->ToPem());
    WriteAll(folder_ / (name + ".key"), key->ExportPrivateKeyPem());
  }
  // A server with this certificate. `client_ca`: whose clients it lets in; empty: anybody.
  void Serve(const std::string& name, const std::string& client_ca) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const std::string script = WAVETANK_SOURCE_DIR "/tests/record/https_server.py", cert = folder_ / (name + ".pem"),
                      key = folder_ / (name + ".key"), ca = folder_ / (client_ca + ".pem");
    server_ = fork();
    if (server_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], 1);
      execl(kPython, kPython, script.c_str(), cert.c_str(), key.c_str(), client_ca.empty() ? nullptr : ca.c_str(),
            nullptr);
      _exit(127);
    }
    close(ends[1]);
    std::string line;
    for (char c; read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    close(ends[0]);
    port_ = line;
    ASSERT_FALSE(port_.empty()) << "the server does not start";
  }
  // What becomes of a recording: its status, once it records or has failed.
  absl::Status Record(const std::string& cluster, const std::string& user, Duration patience = 60s) {
    WriteAll(folder_ / "config", fmt::format("apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: "
                                             "\"https://127.0.0.1:{}\"{}}}}}]\nusers: [{{name: u, user: {{{}}}}}]\n"
                                             "contexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n",
                                             port_, cluster, user));
    const auto configs = LoadKubeConfigFile(folder_ / "config", {});
    if (!configs.ok()) return configs.status();
    sim::Kernel kernel(1);
    HttpLoop loop;
    auto transport = loop.Connect(configs->front());
    if (!transport.ok()) return transport.status();
    RecordingOptions options;
    options.clusters = {{"here", transport->get()}};
    options.log = folder_ / "log";
    options.patience = patience;
    auto recording = Recording::Start(kernel.NewHost("test", 0, nullptr), std::move(options));
    if (!recording.ok()) return recording.status();
    const auto begin = std::chrono::steady_clock::now();
    while (!(*recording)->recording() && (*recording)->status().ok()) {
      const auto passed = std::chrono::steady_clock::now() - begin;
      if (passed > std::chrono::seconds(120)) return absl::DeadlineExceededError("neither recording nor failed");
      loop.Wait(20ms);
      kernel.RunUntil(Time{} + std::chrono::duration_cast<Duration>(passed));
      loop.Deliver();
    }
    const absl::Status status = (*recording)->status();
    return status.ok() ? (*recording)->Finish() : status;
  }
  std::string Log() const { return ReadAll(folder_ / "log"); }

  TempFolder folder_;
  x509::CertificateSpec spec_;
  std::map<std::string, x509::CertificateRef> cas_;
  pid_t server_ = -1;
  std::string port_;
};

bool HasPython() { return access(kPython, X_OK) == 0; }

TEST_F(HttpsTest, TheServersCertificateIsHeldAgainstTheKubeconfigsCa) {
  NEEDS_TOOL(HasPython(), kPython, "tools/setup installs it");
  Issue("server", "ca", {"127.0.0.1"});
  Serve("server", "");
  EXPECT_EQ(Record(", certificate-authority: ca.pem", ""), absl::OkStatus());
  EXPECT_THAT(Log(), HasSubstr("for-anybody"));
  const absl::Status other = Record(", certificate-authority: other-ca.pem", "");
  EXPECT_TRUE(absl::IsUnauthenticated(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("certificate"));
  const absl::Status nobody = Record("", "");
  EXPECT_TRUE(absl::IsUnauthenticated(nobody)) << "the system's roots do not know it: " << nobody;
  EXPECT_EQ(Record(", insecure-skip-tls-verify: true", ""), absl::OkStatus());
}

TEST_F(HttpsTest, ACertificateForAnotherNameIsGoodWhereTheKubeconfigNamesIt) {
  NEEDS_TOOL(HasPython(), kPython, "tools/setup installs it");
  Issue("server", "ca", {"api.example"});
  Serve("server", "");
  EXPECT_TRUE(absl::IsUnauthenticated(Record(", certificate-authority: ca.pem", "")));
  EXPECT_EQ(Record(", certificate-authority: ca.pem, tls-server-name: api.example", ""), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnauthenticated(Record(", certificate-authority: ca.pem, tls-server-name: b.example", "")));
}

TEST_F(HttpsTest, AClientsCertificateLetsItInWhereTheServerWantsOne) {
  NEEDS_TOOL(HasPython(), kPython, "tools/setup installs it");
  Issue("server", "ca", {"127.0.0.1"});
  Issue("jane", "ca", {});
  Issue("mallory", "other-ca", {});
  Serve("server", "ca");
  const std::string ca = ", certificate-authority: ca.pem";
  EXPECT_EQ(Record(ca, "client-certificate: jane.pem, client-key: jane.key"), absl::OkStatus());
  EXPECT_THAT(Log(), HasSubstr("for-jane"));
  EXPECT_THAT(Log(), Not(HasSubstr("PRIVATE KEY")));
  EXPECT_FALSE(Record(ca, "", 3s).ok());
  EXPECT_FALSE(Record(ca, "client-certificate: mallory.pem, client-key: mallory.key", 3s).ok());
  const absl::Status crossed = Record(ca, "client-certificate: jane.pem, client-key: mallory.key");
  EXPECT_TRUE(absl::IsInvalidArgument(crossed)) << crossed;
  EXPECT_THAT(std::string(crossed.message()),
              AllOf(HasSubstr("client-key-data is not the key of client-certificate-data"), Not(HasSubstr("BEGIN"))));
}

}  // namespace
}  // namespace wavetank::record
