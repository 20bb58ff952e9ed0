#include "core/kube/credentials/kubeconfig.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "core/x509/x509.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string& Ca() {
  static const std::string pem = x509::MakeRootCa(1, "api-server", Time{}, 24h * 365).root->ToPem();
  return pem;
}

std::string Good() {
  return RenderKubeConfig({.name = "cluster2", .server = "https://172.18.0.3:6443", .ca_pem = Ca(), .token = "s3cret"});
}

std::string Edited(std::string_view from, std::string_view to) {
  const std::string text = Good();
  EXPECT_THAT(text, HasSubstr(std::string(from)));
  return absl::StrReplaceAll(text,
                             {{absl::string_view(from.data(), from.size()), absl::string_view(to.data(), to.size())}});
}

std::string Error(std::string_view text, const InsecureOptions& allowed = {}) {
  return std::string(Message(ParseKubeConfig(text, "Secret istio-system/s, key cluster2", allowed).status()));
}

TEST(KubeConfig, WhatCreateRemoteSecretWritesReadsBack) {
  const auto config = ParseKubeConfig(Good(), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://172.18.0.3:6443");
  EXPECT_EQ(config->cluster, "cluster2");
  EXPECT_EQ(config->ca_pem, Ca());
  EXPECT_EQ(config->token, "s3cret");
}

TEST(KubeConfig, JsonAndUnknownFieldsAreTaken) {
  const auto config = ParseKubeConfig(
      R"({"clusters":[{"name":"c","cluster":{"server":"https://a:1","later":1}}],"users":[{"name":"u","user":{}}],
          "contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x","extra":{}})",
      "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://a:1");
}

TEST(KubeConfig, EveryErrorNamesInputLineAndPath) {
  const std::string error = Error(Edited("      server: https://172.18.0.3:6443\n", ""));
  EXPECT_THAT(error, StartsWith("Secret istio-system/s, key cluster2: kubeconfig is not valid: line "));
  EXPECT_THAT(error, HasSubstr("clusters[0].cluster.server: no server found"));
}

TEST(KubeConfig, WhatIsNoKubeconfigCannotBeLoaded) {
  EXPECT_THAT(Error(""), HasSubstr("kubeconfig is empty"));
  EXPECT_THAT(Error("hello"), HasSubstr("kubeconfig cannot be loaded: it is not one YAML mapping"));
  EXPECT_THAT(Error("a: [1,\nb: }"), HasSubstr("kubeconfig cannot be loaded: line 2:"));
  EXPECT_THAT(Error("apiVersion: v1\nkind: Pod\n"), HasSubstr("line 2: kind: is \"Pod\"; expected \"Config\""));
  EXPECT_THAT(Error("clusters: 7"), HasSubstr("clusters: must be a list"));
  EXPECT_THAT(Error("clusters: [7]"), HasSubstr("clusters[0]: must be a mapping"));
  EXPECT_THAT(Error(Edited("token: \"s3cret\"", "token: 12345")), HasSubstr("users[0].user.token: must be a string"));
  EXPECT_THAT(Error(Edited("certificate-authority-data: ", "certificate-authority-data: '*'#")),
              HasSubstr("is not base64"));
  EXPECT_THAT(Error(std::string(2 << 20, ' ')), HasSubstr("longer than 1 MiB"));
  EXPECT_THAT(Error(std::string(100000, '[')), HasSubstr("cannot be loaded"));
  // Half of it zeros, which yaml-cpp took for UTF-16 and for its end, and made documents of without end (tools/fuzz).
  EXPECT_THAT(Error(std::string_view("\n\t\0,\0\0\0\0\0\0002", 11)),
              HasSubstr("cannot be loaded: line 2: control characters are not allowed"));
}

TEST(KubeConfig, WhatDoesNotHangTogetherIsNotValid) {
  EXPECT_THAT(Error("apiVersion: v1\nkind: Config\n"), HasSubstr("is not valid: no configuration has been provided"));
  EXPECT_THAT(Error(Edited("current-context: cluster2", "current-context: other")),
              HasSubstr("context \"other\" was not found"));
  EXPECT_THAT(Error(Edited("current-context: cluster2\n", "")), HasSubstr("no context is chosen"));
  EXPECT_THAT(Error(Edited("user: cluster2", "user: nobody")), HasSubstr("user \"nobody\" was not found for context"));
  EXPECT_THAT(Error(Edited("cluster: cluster2", "cluster: none")), HasSubstr("cluster \"none\" was not found"));
  EXPECT_THAT(Error(Edited("token: \"s3cret\"", "token: t\n      username: u\n      password: p")),
              HasSubstr("more than one authentication method"));
  EXPECT_THAT(Error(Edited("https://172.18.0.3:6443", "\"ht tp://\"")), HasSubstr("is no URL"));
  const std::string nonsense = absl::Base64Escape("this is no certificate");
  EXPECT_THAT(Error(Edited(absl::Base64Escape(Ca()), nonsense)), HasSubstr("holds no certificate"));
  EXPECT_THAT(Error(Edited("certificate-authority-data: ",
                           "insecure-skip-tls-verify: true\n      certificate-authority-data: ")),
              HasSubstr("excludes insecure-skip-tls-verify"));
  EXPECT_THAT(Error(Edited("certificate-authority-data: ", "certificate-authority: ")), HasSubstr("names a file"));
}

TEST(KubeConfig, InsecureCredentialsAreNotAllowedUnlessTheOperatorSaysSo) {
  const std::pair<const char*, const char*> cases[] = {
      {"exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1}", "exec"},
      {"auth-provider: {name: gcp}", "gcp"},
      {"client-key: /k\n      client-certificate: /c", "clientKey"},
      {"tokenFile: /var/run/token", "tokenFile"}};
  for (const auto& [yaml, option] : cases) {
    const std::string text = Edited("token: \"s3cret\"", yaml);
    const auto denied = ParseKubeConfig(text, "x");
    EXPECT_EQ(denied.status().code(), absl::StatusCode::kPermissionDenied) << yaml << denied.status();
    EXPECT_THAT(std::string(Message(denied.status())), HasSubstr("kubeconfig is not allowed"));
    const auto granted = ParseKubeConfig(text, "x", {option, "clientCertificate"});
    EXPECT_TRUE(granted.ok()) << granted.status();
  }
  EXPECT_TRUE(ParseKubeConfig(Edited("token: \"s3cret\"", "auth-provider: {name: oidc}"), "x").ok());
}

// Also of a user that no context names.
TEST(KubeConfig, EveryUserIsSanitised) {
  const std::string text = Good() + "  - name: other\n    user:\n      exec: {command: x, apiVersion: y}\n";
  EXPECT_THAT(Error(text), HasSubstr("users[1].user.exec: exec is not allowed"));
}

TEST(KubeConfig, ClientCertificateNeedsItsOwnKey) {
  const auto a = x509::MakeRootCa(1, "a", Time{}, 1h), b = x509::MakeRootCa(1, "b", Time{}, 1h);
  const auto text = [&](const std::string& key) {
    return Edited("token: \"s3cret\"", "client-certificate-data: " + absl::Base64Escape(a.root->ToPem()) +
                                           "\n      client-key-data: " + absl::Base64Escape(key));
  };
  EXPECT_TRUE(ParseKubeConfig(text(a.key->ExportPrivateKeyPem()), "x").ok());
  EXPECT_THAT(Error(text(b.key->ExportPrivateKeyPem())), HasSubstr("is not the key of client-certificate-data"));
  EXPECT_THAT(Error(text("nonsense")), HasSubstr("users[0].user.client-key-data is no private key"));
}

TEST(KubeConfig, MessagesKeepCredentialsToThemselves) {
  EXPECT_THAT(Error(Edited("current-context: cluster2", "current-context: other")), Not(HasSubstr("s3cret")));
  EXPECT_THAT(Error(Edited("\"s3cret\"", "{s3cret: 1}")), Not(HasSubstr("s3cret")));
  EXPECT_THAT(Error(Edited("\"s3cret\"", "\"s3cret")), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace wavetank::kube
