#include "core/security/agent.h"

#include <string>

#include "core/base/status.h"
#include "core/security/istio_ca.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/security/year.h"

namespace wavetank::security {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// istiod at the end of a line of 1 ms.
class Istiod final : public CaClient {
 public:
  Istiod(Host& host, uint64_t seed) : host_(host) { NewRoot(seed); }
  void NewRoot(uint64_t seed) {
    KeyCertPem pem = MakeSelfSignedCa(seed, "c", "cluster.local", Time{}, 10 * kYear);
    roots_pem = pem.roots;
    ca = IstioCa::Create(KeyCertBundle::Create(std::move(pem), Time{}, "x").value(), {}, Time{}).value();
  }
  void CreateCertificate(std::string csr, Duration ttl,
                         absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) override {
    ++calls;
    host_.RunAfter(1ms, [this, csr, ttl, done = std::move(done)]() mutable {
      if (!failure.ok()) return done(failure);
      if (!answer.empty()) return done(answer);
      done(ca->Sign(csr, {"spiffe://cluster.local/ns/sample/sa/sleep"}, ttl, host_.Now()).value().cert_chain);
    });
  }

  std::unique_ptr<IstioCa> ca;
  std::string roots_pem;
  absl::Status failure;
  std::vector<std::string> answer;
  int calls = 0;

 private:
  Host& host_;
};

class AgentTest : public ::testing::Test {
 protected:
  void Subscribe(const std::string& name) {
    agent.Subscribe(name, [this, name](absl::StatusOr<SecretItem> item) {
      if (item.ok()) {
        log.push_back(name);
        last[name] = *item;
      } else {
        ++errors;
        error = std::string(Message(item.status()));
      }
    });
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("pod", 0, nullptr);
  Istiod istiod{host, 1};
  AgentOptions options{.seed = 1, .name = "sleep-1.sample", .identity = {"cluster.local", "sample", "sleep"}};
  Agent agent{host, istiod, options};
  std::vector<std::string> log;
  std::map<std::string, SecretItem> last;
  int errors = 0;
  std::string error;
};

TEST_F(AgentTest, OneCsrServesBothSecrets) {
  agent.Start();
  Subscribe("ROOTCA");
  Subscribe("default");
  Run(1s);
  EXPECT_THAT(log, ElementsAre("ROOTCA", "default"));
  EXPECT_EQ(istiod.calls, 1);
  EXPECT_TRUE(last["default"].chain[0]->Matches(*last["default"].key));
  EXPECT_TRUE(x509::Verify(last["default"].chain, *last["ROOTCA"].roots, kernel.Now()).ok());
  EXPECT_THAT(last["default"].chain[0]->sans().uris, ElementsAre("spiffe://cluster.local/ns/sample/sa/sleep"));
}

TEST_F(AgentTest, LateSubscriberIsServedFromTheCache) {
  agent.Start();
  Run(1s);
  Subscribe("default");
  EXPECT_THAT(log, ElementsAre("default"));
  EXPECT_EQ(istiod.calls, 1);
}

TEST_F(AgentTest, RotatesAtHalfLifeWithANewKey) {
  agent.Start();
  Subscribe("default");
  Subscribe("ROOTCA");
  Run(1s);
  const auto first = last["default"];
  Run(12h - 3s);
  EXPECT_EQ(istiod.calls, 1);
  Run(4s);
  EXPECT_EQ(istiod.calls, 2);
  EXPECT_THAT(log, ElementsAre("default", "ROOTCA", "default"));
  EXPECT_NE(last["default"].key->public_key(), first.key->public_key());
  EXPECT_TRUE(x509::Verify(last["default"].chain, *last["ROOTCA"].roots, kernel.Now()).ok());
  Run(24h * 7);
  EXPECT_EQ(istiod.calls, 2 + 14);
}

TEST_F(AgentTest, NewRootIsServedWithTheNextCertificate) {
  agent.Start();
  Subscribe("default");
  Subscribe("ROOTCA");
  Run(1s);
  istiod.NewRoot(2);
  Run(13h);
  EXPECT_THAT(log, ElementsAre("default", "ROOTCA", "default", "ROOTCA"));
  EXPECT_EQ(last["ROOTCA"].roots->ToPem(), istiod.roots_pem);
}

TEST_F(AgentTest, RefusedCsrIsRetriedByBackoffUntilIstiodIsThere) {
  istiod.failure = absl::UnavailableError("connection refused");
  agent.Start();
  Subscribe("default");
  while (errors == 0) ASSERT_TRUE(kernel.Step());
  EXPECT_GT(kernel.Now(), Time{} + 1350ms);
  EXPECT_LT(kernel.Now(), Time{} + 1660ms);
  // 5 tries in a row with waits of about 0.1, 0.2, 0.4 and 0.8 s; then one failure is told.
  EXPECT_EQ(istiod.calls, 5);
  EXPECT_THAT(error, HasSubstr("failed to generate secret for default: failed to generate workload certificate: create "
                               "certificate: connection refused"));
  Run(60s);
  istiod.failure = absl::OkStatus();
  Run(60s);
  EXPECT_THAT(log, ElementsAre("default"));
}

TEST_F(AgentTest, UnauthenticatedIsNotRetriedByTheClientButByTheStream) {
  istiod.failure = absl::UnauthenticatedError("request authenticate failure");
  agent.Start();
  Run(200ms);
  EXPECT_EQ(istiod.calls, 1);
  Run(60s);
  EXPECT_GT(istiod.calls, 5);
  EXPECT_LT(istiod.calls, 30);
}

TEST_F(AgentTest, FailedRotationKeepsTheOldCertificateAndTriesAgain) {
  agent.Start();
  Subscribe("default");
  Run(1s);
  const auto first = last["default"];
  istiod.failure = absl::UnavailableError("connection refused");
  Run(13h);
  EXPECT_GT(errors, 100);  // at most 30 s apart
  EXPECT_EQ(last["default"].chain[0]->der(), first.chain[0]->der());
  istiod.failure = absl::OkStatus();
  Run(1min);
  EXPECT_NE(last["default"].chain[0]->der(), first.chain[0]->der());
}

TEST_F(AgentTest, AnswersThatAreNoneAreRefused) {
  agent.Start();
  Subscribe("default");
  istiod.answer = {"only one"};
  Run(2s);
  EXPECT_THAT(error, HasSubstr("invalid empty CertChain"));
  istiod.answer = {"nonsense", istiod.roots_pem};
  Run(60s);
  EXPECT_THAT(error, HasSubstr("entry 0 of istiod's answer is not a certificate"));
  istiod.answer = {istiod.roots_pem, istiod.roots_pem};
  Run(120s);
  EXPECT_THAT(error, HasSubstr("for another key"));
  EXPECT_TRUE(log.empty());
}

TEST_F(AgentTest, ConfiguredRootsAreMergedSortedAndUnique) {
  agent.Start();
  Subscribe("ROOTCA");
  Run(1s);
  const std::string extra = x509::MakeRootCa(9, "extra", Time{}, kYear).root->ToPem();
  agent.UpdateConfigTrustBundle(extra + istiod.roots_pem);
  ASSERT_EQ(last["ROOTCA"].roots->roots().size(), 2u);
  const auto one = last["ROOTCA"].roots->roots()[0]->ToPem(), two = last["ROOTCA"].roots->roots()[1]->ToPem();
  EXPECT_LT(one, two);
  agent.UpdateConfigTrustBundle(extra + istiod.roots_pem);
  EXPECT_EQ(log.size(), 2u);
}

TEST_F(AgentTest, StoppedAgentSaysNothing) {
  agent.Start();
  Subscribe("default");
  agent.Stop();
  Run(48h);
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(istiod.calls, 0);
}

TEST(AgentFiles, MountedCertificatesAreReadAndChecked) {
  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("pod", 0, nullptr);
  Istiod istiod(host, 1);
  const auto a = x509::MakeRootCa(1, "a", Time{}, kYear), b = x509::MakeRootCa(1, "b", Time{}, kYear);
  std::map<std::string, std::string, std::less<>> files = {
      {"/c", a.root->ToPem()}, {"/k", a.key->ExportPrivateKeyPem()}, {"/wrong", b.key->ExportPrivateKeyPem()}};
  Agent agent(host, istiod,
              {.seed = 1, .name = "p", .read_file = [&](std::string_view path) -> absl::StatusOr<std::string> {
                 const auto it = files.find(path);
                 if (it == files.end()) return absl::NotFoundError("no such file");
                 return it->second;
               }});
  std::string error;
  int good = 0;
  const auto subscribe = [&](const char* name) {
    agent.Subscribe(name,
                    [&](auto item) { item.ok() ? void(++good) : void(error = std::string(Message(item.status()))); });
  };
  subscribe("file-cert:/c~/k");
  subscribe("file-root:/c");
  EXPECT_EQ(good, 2);
  agent.OnFileChanged("/c");
  EXPECT_EQ(good, 4);
  subscribe("file-cert:/c~/wrong");
  EXPECT_THAT(error, HasSubstr("/wrong is not the key of /c"));
  subscribe("file-root:/k");
  EXPECT_THAT(error, HasSubstr("/k is not a certificate"));
  subscribe("file-root:/gone");
  EXPECT_THAT(error, HasSubstr("no such file"));
}

}  // namespace
}  // namespace wavetank::security
