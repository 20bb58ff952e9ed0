#include "core/istiod/webhooks/webhook_patcher.h"

#include <string>

#include "absl/strings/escaping.h"
#include "core/inject/webhook_configuration.h"
#include "core/x509/x509.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::pilot {
namespace {

class WebhookPatcherTest : public ::testing::Test {
 protected:
  void Run(Duration d = 1s) { kernel.RunUntil(kernel.Now() + d); }
  void Install(std::string revision = {}) {
    WebhookInstallation installation;
    installation.revision = std::move(revision);
    client.Put(MakeMutatingWebhookConfiguration(installation));
  }
  // The bundle of every webhook; "mixed" if they differ.
  std::string BundleOf(const std::string& name) {
    const kube::ObjectRef object = client.Find(kMutatingWebhookConfiguration, "", name);
    std::string out;
    for (const auto& webhook : object->body["webhooks"]) {
      std::string written;
      if (const auto& config = webhook["clientConfig"]; config.contains("caBundle")) {
        EXPECT_TRUE(absl::Base64Unescape(config["caBundle"].get<std::string>(), &written));
      }
      if (!out.empty() && out != written) return "mixed";
      out = written;
    }
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  std::string bundle = x509::MakeRootCa(1, "a", Time{}, 24h).root->ToPem();
  WebhookPatcher patcher{client, host, "default", [this] { return bundle; }};
};

TEST_F(WebhookPatcherTest, EveryInjectionWebhookOfItsRevisionGetsTheBundle) {
  Install();
  Install("canary");
  patcher.Start();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
  EXPECT_EQ(BundleOf("istio-sidecar-injector-canary"), "");
  EXPECT_EQ(patcher.patches(), 1);
}

TEST_F(WebhookPatcherTest, ANewBundleAndALaterInstallationAreFollowed) {
  patcher.Start();
  Run();
  Install();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
  bundle = x509::MakeRootCa(1, "b", Time{}, 24h).root->ToPem();
  patcher.OnBundleChanged();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
  Install();  // somebody applies the manifest anew, without a bundle
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
}

TEST_F(WebhookPatcherTest, BeforeThereIsABundleNothingIsWritten) {
  bundle.clear();
  Install();
  patcher.Start();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), "");
  bundle = x509::MakeRootCa(1, "a", Time{}, 24h).root->ToPem();
  patcher.OnBundleChanged();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
}

TEST_F(WebhookPatcherTest, OtherWebhooksOfTheConfigurationAreLeftAlone) {
  nlohmann::json body = MakeMutatingWebhookConfiguration({});
  body["webhooks"] = {{{"name", "a.example.test"}, {"clientConfig", {{"caBundle", "b3RoZXI="}}}}};
  client.Put(body);
  patcher.Start();
  Run();
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), "other");
  EXPECT_EQ(patcher.patches(), 0);
}

TEST_F(WebhookPatcherTest, AWriteThatFailsIsTriedFastFiveTimesAndThenEveryMinute) {
  Install();
  patcher.Start();
  Run(1ms);
  client.refusing = true;
  Run(2ms);
  client.refusing = false;
  Run(500ms);
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);

  bundle = x509::MakeRootCa(1, "b", Time{}, 24h).root->ToPem();
  client.refusing = true;
  const int before = client.applies;
  patcher.OnBundleChanged();
  Run(30s);
  EXPECT_EQ(client.applies, before + 6);
  client.refusing = false;
  Run(1min);
  EXPECT_EQ(BundleOf("istio-sidecar-injector"), bundle);
  EXPECT_TRUE(patcher.Idle());
}

}  // namespace
}  // namespace wavetank::pilot
