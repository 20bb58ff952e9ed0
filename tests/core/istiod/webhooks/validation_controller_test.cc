#include "core/istiod/webhooks/validation_controller.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr kube::ResourceKind kValidators{"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
                                         "validatingwebhookconfigurations", false};

class ValidationControllerTest : public ::testing::Test {
 protected:
  void Run(Duration d = 5s) { kernel.RunUntil(kernel.Now() + d); }
  void Put(const std::string& name, const std::string& revision = "default") {
    client.Put({{"apiVersion", "admissionregistration.k8s.io/v1"},
                {"kind", "ValidatingWebhookConfiguration"},
                {"metadata", {{"name", name}, {"labels", {{"istio.io/rev", revision}}}}},
                {"webhooks",
                 {{{"name", "a"}, {"clientConfig", json::object()}, {"failurePolicy", "Ignore"}},
                  {{"name", "b"}, {"clientConfig", json::object()}}}}});
  }
  json Webhooks(const std::string& name) { return client.Find(kValidators, "", name)->body["webhooks"]; }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  std::string bundle = "roots";
  absl::Status answer = absl::InvalidArgumentError("admission webhook \"v\" denied the request: no servers");
  int dry_runs = 0;
  std::vector<std::string> log;
  ValidationController controller{client, host, [this] {
                                    ValidationController::Options out;
                                    out.ca_bundle = [this] { return bundle; };
                                    out.dry_run = [this](const json& object) {
                                      ++dry_runs;
                                      EXPECT_EQ(object["kind"], "Gateway");
                                      return answer;
                                    };
                                    out.log = [this](const LogLine& line) { log.push_back(line.text); };
                                    return out;
                                  }()};
};

TEST_F(ValidationControllerTest, EveryWebhookOfItsRevisionGetsBundleAndPolicy) {
  Put("mine");
  Put("other", "canary");
  controller.Start();
  Run();
  for (const json& webhook : Webhooks("mine")) {
    EXPECT_EQ(webhook["clientConfig"]["caBundle"], absl::Base64Escape("roots"));
    EXPECT_EQ(webhook["failurePolicy"], "Fail");
  }
  EXPECT_FALSE(Webhooks("other")[0]["clientConfig"].contains("caBundle"));
  EXPECT_TRUE(controller.Idle());
  EXPECT_THAT(log, Contains(HasSubstr("validatingwebhookconfiguration mine (failurePolicy=Fail, resourceVersion=")));
}

TEST_F(ValidationControllerTest, UntilTheInvalidOneIsRefusedItStaysOpenAndIsTriedEverSlower) {
  answer = absl::OkStatus();
  Put("mine");
  controller.Start();
  Run(2s);
  EXPECT_EQ(Webhooks("mine")[0]["failurePolicy"], "Ignore");
  EXPECT_EQ(Webhooks("mine")[0]["clientConfig"]["caBundle"], absl::Base64Escape("roots"));
  const int before = dry_runs;
  Run(10min);
  EXPECT_LT(dry_runs - before, 30);
  answer = absl::InvalidArgumentError("admission webhook \"v\" denied the request: no servers");
  Run(1min);
  EXPECT_EQ(Webhooks("mine")[0]["failurePolicy"], "Fail");
}

TEST_F(ValidationControllerTest, AnotherReasonThanADenialIsNone) {
  answer = absl::UnavailableError("Internal error occurred: failed calling webhook");
  Put("mine");
  controller.Start();
  Run();
  EXPECT_EQ(Webhooks("mine")[0]["failurePolicy"], "Ignore");
  EXPECT_THAT(log, Contains("Not ready to switch validation to fail-closed: dummy invalid rejected for the wrong "
                            "reason: Internal error occurred: failed calling webhook"));
}

TEST_F(ValidationControllerTest, ANewBundleIsWrittenAndTheRefusalIsRemembered) {
  Put("mine");
  controller.Start();
  Run();
  const int before = dry_runs;
  bundle = "new roots";
  controller.OnBundleChanged();
  Run();
  EXPECT_EQ(Webhooks("mine")[1]["clientConfig"]["caBundle"], absl::Base64Escape("new roots"));
  EXPECT_EQ(dry_runs, before);
}

TEST_F(ValidationControllerTest, WithoutABundleNothingIsWritten) {
  bundle.clear();
  Put("mine");
  controller.Start();
  Run();
  EXPECT_FALSE(Webhooks("mine")[0]["clientConfig"].contains("caBundle"));
  EXPECT_EQ(dry_runs, 0);
}

}  // namespace
}  // namespace wavetank::pilot
