#include "core/agent/secret_manager.h"

#include <string>

#include "core/base/status.h"
#include "core/security/istio_ca.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/security/year.h"

namespace wavetank::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// istiod at the end of a line of 1 ms.
class Istiod final : public security::CaClient {
 public:
  Istiod(Host& host, uint64_t seed) : host_(host) { NewRoot(seed); }
  void NewRoot(uint64_t seed) {
    security::KeyCertPem pem = security::MakeSelfSignedCa(seed, "c", "cluster.local", Time{}, 10 * security::kYear);
    roots_pem = pem.roots;
    ca = security::IstioCa::Create(security::KeyCertBundle::Create(std::move(pem), Time{}, "x").value(), {}, Time{})
             .value();
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

  std::unique_ptr<security::IstioCa> ca;
  std::string roots_pem;
  absl::Status failure;
  std::vector<std::string> answer;
  int calls = 0;

 private:
  Host& host_;
};

class SecretManagerTest : public ::testing::Test {
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
  SecretOptions options{.seed = 1, .name = "sleep-1.sample", .identity = {"cluster.local", "sample", "sleep"}};
  SecretManager agent{host, istiod, options};
  std::vector<std::string> log;
  std::map<std::string, SecretItem> last;
  int errors = 0;
  std::string error;
};

TEST_F(SecretManagerTest, OneCsrServesBothSecrets) {
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

TEST_F(SecretManagerTest, LateSubscriberIsServedFromTheCache) {
  agent.Start();
  Run(1s);
  Subscribe("default");
  EXPECT_THAT(log, ElementsAre("default"));
  EXPECT_EQ(istiod.calls, 1);
}

TEST_F(SecretManagerTest, RotatesAtHalfLifeWithANewKey) {
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

TEST_F(SecretManagerTest, NewRootIsServedWithTheNextCertificate) {
  agent.Start();
  Subscribe("default");
  Subscribe("ROOTCA");
  Run(1s);
  istiod.NewRoot(2);
  Run(13h);
  EXPECT_THAT(log, ElementsAre("default", "ROOTCA", "default", "ROOTCA"));
  EXPECT_EQ(last["ROOTCA"].roots->ToPem(), istiod.roots_pem);
}

TEST_F(SecretManagerTest, RefusedCsrIsRetriedByBackoffUntilIstiodIsThere) {
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

TEST_F(SecretManagerTest, UnauthenticatedIsNotRetriedByTheClientButByTheStream) {
  istiod.failure = absl::UnauthenticatedError("request authenticate failure");
  agent.Start();
  Run(200ms);
  EXPECT_EQ(istiod.calls, 1);
  Run(60s);
  EXPECT_GT(istiod.calls, 5);
  EXPECT_LT(istiod.calls, 30);
}

TEST_F(SecretManagerTest, FailedRotationKeepsTheOldCertificateAndTriesAgain) {
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

TEST_F(SecretManagerTest, AnswersThatAreNoneAreRefused) {
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

TEST_F(SecretManagerTest, ConfiguredRootsAreMergedSortedAndUnique) {
  agent.Start();
  Subscribe("ROOTCA");
  Run(1s);
  const std::string extra = x509::MakeRootCa(9, "extra", Time{}, security::kYear).root->ToPem();
  agent.UpdateConfigTrustBundle(extra + istiod.roots_pem);
  ASSERT_EQ(last["ROOTCA"].roots->roots().size(), 2u);
  const auto one = last["ROOTCA"].roots->roots()[0]->ToPem(), two = last["ROOTCA"].roots->roots()[1]->ToPem();
  EXPECT_LT(one, two);
  agent.UpdateConfigTrustBundle(extra + istiod.roots_pem);
  EXPECT_EQ(log.size(), 2u);
}

TEST_F(SecretManagerTest, StoppedAgentSaysNothing) {
  agent.Start();
  Subscribe("default");
  agent.Stop();
  Run(48h);
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(istiod.calls, 0);
}

// A folder in memory.
class Folder final : public Files {
 public:
  absl::StatusOr<std::string> Read(std::string_view path) override {
    const auto it = files.find(path);
    if (it == files.end()) return absl::NotFoundError("open: no such file or directory");
    return it->second;
  }
  std::vector<std::string> List(std::string_view folder) override {
    std::vector<std::string> out;
    for (const auto& [path, text] : files) {
      if (path.starts_with(folder)) out.push_back(path);
    }
    return out;
  }
  absl::Status Write(std::string_view path, std::string_view bytes) override {
    if (full) return absl::ResourceExhaustedError("no space left on device");
    files[std::string(path)] = bytes;
    return absl::OkStatus();
  }
  std::map<std::string, std::string, std::less<>> files;
  bool full = false;
};

class SecretsInFiles : public ::testing::Test {
 protected:
  SecretManager& Start(SecretOptions options) {
    options.seed = 1;
    options.name = "p";
    options.files = folder;
    options.log = [this](Level, std::string_view, std::string_view text) { said.emplace_back(text); };
    manager = std::make_unique<SecretManager>(host, istiod, std::move(options));
    manager->Start();
    return *manager;
  }
  void Subscribe(const std::string& name) {
    manager->Subscribe(name, [this, name](absl::StatusOr<SecretItem> item) {
      if (item.ok()) {
        last[name] = *item;
        ++given;
      } else {
        error = std::string(Message(item.status()));
      }
    });
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("pod", 0, nullptr);
  Istiod istiod{host, 1};
  const x509::CertificateAuthority a = x509::MakeRootCa(1, "a", Time{}, security::kYear);
  const x509::CertificateAuthority b = x509::MakeRootCa(1, "b", Time{}, security::kYear);
  std::shared_ptr<Folder> folder = std::make_shared<Folder>();
  std::unique_ptr<SecretManager> manager;
  std::map<std::string, SecretItem> last;
  std::vector<std::string> said;
  int given = 0;
  std::string error;
};

TEST_F(SecretsInFiles, NamesOfFilesAreServedAndFollowThem) {
  folder->files = {{"/c", a.root->ToPem()}, {"/k", a.key->ExportPrivateKeyPem()}};
  SecretManager& secrets = Start({});
  Subscribe("file-cert:/c~/k");
  Subscribe("file-root:/c");
  EXPECT_EQ(given, 2);
  secrets.OnFileChanged("/c");
  EXPECT_EQ(given, 4);
  EXPECT_THAT(secrets.WatchedFiles(), ElementsAre("/c"));
}

TEST_F(SecretsInFiles, AKeyThatComesAfterItsCertificateIsWaitedFor) {
  folder->files = {{"/c", a.root->ToPem()}, {"/k", b.key->ExportPrivateKeyPem()}};
  Start({});
  Subscribe("file-cert:/c~/k");
  Run(1s);
  EXPECT_EQ(given, 0);
  folder->files["/k"] = a.key->ExportPrivateKeyPem();
  Run(9s);
  EXPECT_EQ(given, 1);
}

TEST_F(SecretsInFiles, WhatStaysWrongForTenSecondsIsAnError) {
  folder->files = {{"/c", a.root->ToPem()}, {"/wrong", b.key->ExportPrivateKeyPem()}};
  Start({});
  Subscribe("file-cert:/c~/wrong");
  Run(9s);
  EXPECT_EQ(error, "");
  Run(2s);
  EXPECT_EQ(error, "failed to generate secret for file-cert:/c~/wrong: /wrong is not the key of /c");
}

TEST_F(SecretsInFiles, AFileThatIsNotThereIsAnErrorToo) {
  Start({});
  Subscribe("file-root:/gone");
  Run(11s);
  EXPECT_THAT(error, HasSubstr("no such file"));
}

TEST_F(SecretsInFiles, AtTheWellKnownPathsTheyReplaceTheCsr) {
  folder->files = {{"./etc/certs/cert-chain.pem", a.root->ToPem()},
                   {"./etc/certs/key.pem", a.key->ExportPrivateKeyPem()},
                   {"./etc/certs/root-cert.pem", b.root->ToPem()}};
  Start({});
  Subscribe("default");
  Subscribe("ROOTCA");
  Run(1min);
  EXPECT_EQ(istiod.calls, 0);
  EXPECT_EQ(last["default"].chain[0]->der(), a.root->der());
  EXPECT_EQ(last["ROOTCA"].roots->ToPem(), b.root->ToPem());
}

TEST_F(SecretsInFiles, RemovedFromTheWellKnownPathsTheyAreAskedOfIstiod) {
  folder->files = {{"./etc/certs/cert-chain.pem", a.root->ToPem()},
                   {"./etc/certs/key.pem", a.key->ExportPrivateKeyPem()}};
  SecretManager& secrets = Start({});
  Subscribe("default");
  folder->files.clear();
  secrets.OnFileChanged("./etc/certs/cert-chain.pem");
  Run(1s);
  EXPECT_EQ(istiod.calls, 1);
  EXPECT_NE(last["default"].chain[0]->der(), a.root->der());
}

TEST_F(SecretsInFiles, MountedOnlyMeansNoCsrEver) {
  Start({.file_mounted_certs = true});
  Subscribe("default");
  Run(1min);
  EXPECT_EQ(istiod.calls, 0);
  EXPECT_THAT(error, HasSubstr("attempted to fetch secret, but ca client is nil"));
}

TEST_F(SecretsInFiles, OutputCertsHoldWhatIsServedAndItsRenewal) {
  Start({.output_dir = "./etc/out"});
  Run(1s);
  const std::string first = folder->files["./etc/out/cert-chain.pem"];
  EXPECT_EQ(folder->files["./etc/out/root-cert.pem"], istiod.roots_pem);
  const auto key = x509::KeyPair::FromPem(folder->files["./etc/out/key.pem"], "key");
  ASSERT_TRUE(key.ok());
  EXPECT_TRUE(x509::ParseCertificates(first, "chain").value().front()->Matches(**key));
  Subscribe("default");
  Run(13h);
  EXPECT_NE(folder->files["./etc/out/cert-chain.pem"], first);
}

TEST_F(SecretsInFiles, OutputKeysHaveTheFormThatPkcs8KeySays) {
  Start({.pkcs8_keys = false, .output_dir = "./etc/out"});
  Run(1s);
  EXPECT_TRUE(folder->files["./etc/out/key.pem"].starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
  Start({.pkcs8_keys = true, .output_dir = "./etc/other"});
  Run(1s);
  EXPECT_TRUE(folder->files["./etc/other/key.pem"].starts_with("-----BEGIN PRIVATE KEY-----\n"));
}

TEST_F(SecretsInFiles, OutputAtTheWellKnownPathsIsNoSource) {
  Start({.output_dir = "etc/certs/"});
  Run(1s);
  Subscribe("default");
  Run(25h);
  EXPECT_GE(istiod.calls, 3);
}

TEST_F(SecretsInFiles, AFullDiskIsToldAndTheEnvoyIsServed) {
  folder->full = true;
  Start({.output_dir = "./out"});
  Subscribe("default");
  Run(1s);
  EXPECT_EQ(given, 1);
  EXPECT_THAT(said,
              ::testing::Contains("error when output the resource: failed to write data to file key.pem: no space "
                                  "left on device"));
}

TEST_F(SecretsInFiles, NoKeyIsInWhatTheAgentSays) {
  Start({.output_dir = "./out"});
  Subscribe("default");
  Run(13h);
  ASSERT_FALSE(said.empty());
  for (const std::string& line : said) EXPECT_EQ(line.find("BEGIN"), std::string::npos) << line;
}

TEST_F(SecretManagerTest, AStreamThatItsClientClosedIsServedNoMore) {
  int calls = 0;
  {
    const SecretManager::Stream stream = agent.Watch("default", [&](auto) { ++calls; });
    Run(1s);
    EXPECT_EQ(calls, 1);
  }
  Run(13h);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(istiod.calls, 1);
}

TEST_F(SecretManagerTest, AStreamThatAnothersErrorClosedIsToldOfNone) {
  istiod.failure = absl::UnauthenticatedError("request authenticate failure");
  SecretManager::Stream second;
  int told = 0;
  const SecretManager::Stream first = agent.Watch("default", [&](auto) { second.reset(); });
  second = agent.Watch("default", [&](auto) { ++told; });
  Run(1s);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace wavetank::agent
