#include "core/agent/agent_setup.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

class FilesOfText final : public Files {
 public:
  explicit FilesOfText(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {}
  absl::StatusOr<std::string> Read(std::string_view path) override {
    const auto it = texts_.find(std::string(path));
    if (it == texts_.end()) return absl::NotFoundError(fmt::format("open {}: no such file or directory", path));
    return it->second;
  }
  std::vector<std::string> List(std::string_view) override { return {}; }
  absl::Status Write(std::string_view, std::string_view) override { return absl::OkStatus(); }

 private:
  const std::map<std::string, std::string> texts_;
};

constexpr const char* kMesh = "var/run/secrets/istio/root-cert.pem";
constexpr const char* kOfApiServer = "./var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

// The path, or the complaint.
std::string Roots(const pilot::AgentVariables::Map& said, RootsOf of, bool mounted = false) {
  FilesOfText files({{kMesh, "a"}, {kOfApiServer, "b"}, {"/own.pem", "c"}});
  const absl::StatusOr<std::string> found = FindRoots(pilot::AgentVariables(said, nullptr), files, of, mounted);
  return found.ok() ? *found : std::string(Message(found.status()));
}

TEST(AgentSetup, RootsAreTheMeshsUnlessAVariableNamesOthers) {
  for (const RootsOf of : {RootsOf::kXds, RootsOf::kCa}) {
    EXPECT_EQ(Roots({}, of), kMesh);
    EXPECT_EQ(Roots({{"PILOT_CERT_PROVIDER", "kubernetes"}}, of), kOfApiServer);
    EXPECT_EQ(Roots({{"PROV_CERT", "/prov"}}, of), "/prov/root-cert.pem");
  }
  EXPECT_EQ(Roots({{"XDS_ROOT_CA", "/own.pem"}}, RootsOf::kXds), "/own.pem");
  EXPECT_EQ(Roots({{"XDS_ROOT_CA", "/own.pem"}}, RootsOf::kCa), kMesh);
  EXPECT_EQ(Roots({{"CA_ROOT_CA", "SYSTEM"}}, RootsOf::kCa), "");
  EXPECT_EQ(Roots({{"ISTIO_META_TLS_CLIENT_ROOT_CERT", "/own.pem"}}, RootsOf::kXds, true), "/own.pem");
}

TEST(AgentSetup, RootsThatAreNotThereAreNamed) {
  EXPECT_EQ(Roots({{"XDS_ROOT_CA", "/no.pem"}}, RootsOf::kXds), "root CA file for XDS does not exist /no.pem");
  EXPECT_EQ(Roots({{"PILOT_CERT_PROVIDER", "custom"}}, RootsOf::kCa),
            "root CA file for CA does not exist ./etc/certs/root-cert.pem");
  EXPECT_EQ(Roots({{"PILOT_CERT_PROVIDER", "none"}}, RootsOf::kXds),
            "root CA file for XDS required but configured provider as none");
  EXPECT_EQ(Roots({}, RootsOf::kXds, true), "root CA file for XDS does not exist ");
}

TEST(AgentSetup, TheTokenIsThatOfThePolicy) {
  const auto path = [](const char* policy) {
    const pilot::AgentVariables::Map said = {{"JWT_POLICY", policy}};
    return std::string(TokenPath(pilot::AgentVariables(said, nullptr)));
  };
  EXPECT_EQ(path("third-party-jwt"), kThirdPartyToken);
  EXPECT_EQ(path("first-party-jwt"), kFirstPartyToken);
  EXPECT_EQ(path("first-party"), "");
}

TEST(AgentSetup, KeysThatPilotAgentDoesNotMakeAreRefused) {
  EXPECT_TRUE(CheckKeyRequest({}).ok());
  EXPECT_TRUE(CheckKeyRequest({.ecc_algorithm = "ECDSA", .curve = "P999", .rsa_bits = 1}).ok());
  EXPECT_FALSE(CheckKeyRequest({.ecc_algorithm = "ED25519"}).ok());
  EXPECT_FALSE(CheckKeyRequest({.rsa_bits = 1024}).ok());
}

TEST(AgentVariables, WhatCannotBeReadIsTheDefaultAndALineOfTheLog) {
  const pilot::AgentVariables::Map said = {{"TTL", "1d"}, {"FLAG", "yes"}, {"COUNT", "2"}};
  std::vector<std::string> log;
  const pilot::AgentVariables variables(said, &log);
  EXPECT_EQ(variables.Length("TTL", std::chrono::hours(24)), Duration(std::chrono::hours(24)));
  EXPECT_TRUE(variables.Flag("FLAG", true));
  EXPECT_EQ(variables.Integer("COUNT", 1), 2);
  EXPECT_EQ(variables.Number("NONE", 0.5), 0.5);
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0], "Invalid environment variable value `1d`, expecting a duration, defaulting to 24h0m0s");
  EXPECT_EQ(log[1], "Invalid environment variable value `yes`, expecting true/false, defaulting to true");
}

}  // namespace
}  // namespace wavetank::agent
