// What a recording keeps of one cluster, whatever its API server does.
#include "record/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "fakes/kube/cluster.h"
#include "fmt/format.h"
#include "replay/event_log.h"
#include "sim/kernel/kernel.h"
#include "tests/record/fake_transport.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::record {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RecordingTest : public testing::Test {
 protected:
  RecordingTest() {
    fakekube::ClusterOptions options;
    options.name = "cluster1";
    options.create_namespaces = true;
    options.nodes = {{"node1", "r1", "z1", ""}};
    cluster_ = std::make_unique<fakekube::Cluster>(host_, options, nullptr, nullptr);
    transport_ = std::make_unique<FakeTransport>(host_, cluster_->api());
    options_.clusters = {{"context1", transport_.get()}};
    options_.log = folder_ / "log";
    options_.started = "2026-01-01T00:00:00Z";
    DefineIstio(cluster_->api());
    Apply(Service("first"));
  }
  static json Service(const std::string& name) {
    return {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", {{"name", name}, {"namespace", "sample"}}},
            {"spec", {{"ports", json::array({{{"port", 80}, {"name", "http"}}})}}}};
  }
  static json Secret(const std::string& name, const kube::SecretData& data, bool remote) {
    kube::Labels labels;
    if (remote) labels["istio/multiCluster"] = "true";
    return kube::MakeSecret("istio-system", name, data, labels)->body;
  }
  void Apply(json object) {
    const auto status = cluster_->api().Apply(std::move(object)).status();
    ASSERT_TRUE(status.ok()) << status;
  }
  void Start() {
    auto started = Recording::Start(host_, options_);
    ASSERT_TRUE(started.ok()) << started.status();
    recording_ = *std::move(started);
  }
  void Record() {
    Start();
    Run(1s);
    ASSERT_TRUE(recording_->status().ok()) << recording_->status();
    ASSERT_TRUE(recording_->recording());
  }
  void Run(Duration duration) { kernel_.RunUntil(kernel_.Now() + duration); }
  std::vector<replay::LogInput> Inputs() {
    EXPECT_TRUE(recording_->Finish().ok());
    std::vector<replay::LogInput> out;
    auto log = replay::LogReader::Open(options_.log);
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return out;
    EXPECT_TRUE((*log)->header().IsRecording());
    while (true) {
      auto item = (*log)->Next();
      EXPECT_TRUE(item.ok()) << item.status();
      if (!item.ok() || *item == replay::LogReader::Item::kEnd) return out;
      if (*item == replay::LogReader::Item::kInput) out.push_back((*log)->input());
    }
  }
  // "apply Service/first", "delete Service/first", in order; of one kind if `kind` says so.
  static std::vector<std::string> Told(const std::vector<replay::LogInput>& inputs, const std::string& kind = "") {
    std::vector<std::string> out;
    for (const replay::LogInput& input : inputs) {
      if (input.kind == "apply") {
        const json& object = input.body["object"];
        if (kind.empty() || object["kind"] == kind) {
          out.push_back(fmt::format("apply {}/{}", object["kind"].get<std::string>(),
                                    object["metadata"]["name"].get<std::string>()));
        }
      } else if (input.kind == "delete") {
        const std::string qualified = input.body["kind"];
        const std::string plain = qualified.substr(0, qualified.find('.'));
        if (kind.empty() || plain == kind)
          out.push_back(fmt::format("delete {}/{}", plain, input.body["name"].get<std::string>()));
      } else {
        out.push_back(input.kind);
      }
    }
    return out;
  }

  TempFolder folder_;
  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("test", 0, nullptr);
  std::unique_ptr<fakekube::Cluster> cluster_;
  std::unique_ptr<FakeTransport> transport_;
  RecordingOptions options_;
  std::unique_ptr<Recording> recording_;
};

TEST_F(RecordingTest, TheFirstPictureIsThereAtTimeZeroAndChangesComeAtTheirTime) {
  Record();
  const Time begin = kernel_.Now();
  Run(5s);
  Apply(Service("second"));
  Run(2s);
  ASSERT_TRUE(cluster_->api().Delete("Service", {"sample", "first"}).ok());
  Run(1s);
  const std::vector<replay::LogInput> inputs = Inputs();
  EXPECT_THAT(Told(inputs, "Service"),
              testing::ElementsAre("apply Service/first", "apply Service/second", "delete Service/first"));
  EXPECT_THAT(Told(inputs), AllOf(Contains("apply Namespace/sample"), Contains("apply Node/node1")));
  std::vector<Time> times;
  for (const replay::LogInput& input : inputs) {
    EXPECT_EQ(input.body["cluster"], "context1");
    if (input.at != Time{}) times.push_back(input.at);
  }
  // The Service, its EndpointSlice, and both again when it goes.
  ASSERT_GE(times.size(), 2u);
  EXPECT_GE(times.front(), Time(5s));
  EXPECT_LE(times.front(), Time{} + (kernel_.Now() - begin) + 1s);
  EXPECT_GE(times.back() - times.front(), 1900ms);
}

TEST_F(RecordingTest, WhatServersWriteForThemselvesIsNoChange) {
  Record();
  const uint64_t before = recording_->inputs();
  ASSERT_TRUE(cluster_->api()
                  .Patch("Node", {"", "node1"},
                         {{"status",
                           {{"conditions", json::array({{{"type", "Ready"},
                                                         {"status", "True"},
                                                         {"lastHeartbeatTime", "2026-01-01T00:00:10Z"}}})},
                            {"images", json::array({{{"names", {"a"}}}})}}},
                          {"metadata", {{"annotations", {{"renewed", "1"}}}}}})
                  .ok());
  Run(1s);
  EXPECT_EQ(recording_->inputs(), before);
}

TEST_F(RecordingTest, WhatHappenedWhileNobodyAnsweredComesWithTheNextListAsDifferences) {
  Apply(Service("stays"));
  Apply(Service("again"));
  Record();
  transport_->down = true;
  transport_->BreakWatches();
  ASSERT_TRUE(cluster_->api().Delete("Service", {"sample", "first"}).ok());
  ASSERT_TRUE(cluster_->api().Delete("Service", {"sample", "again"}).ok());
  Run(20s);
  Apply(Service("again"));  // another object of the same name
  Apply(Service("new"));
  cluster_->api().ForgetHistory();
  transport_->down = false;
  Run(60s);
  std::vector<std::string> told = Told(Inputs(), "Service");
  ASSERT_GE(told.size(), 3u);
  told.erase(told.begin(), told.begin() + 3);  // the first picture
  EXPECT_THAT(told, testing::UnorderedElementsAre("delete Service/first", "delete Service/again", "apply Service/again",
                                                  "apply Service/new"));
  EXPECT_LT(std::find(told.begin(), told.end(), "delete Service/again"),
            std::find(told.begin(), told.end(), "apply Service/again"));
}

TEST_F(RecordingTest, AnEventOf410ListsAnewAndLosesNothing) {
  Record();
  cluster_->api().DropWatches(absl::OutOfRangeError("too old resource version"));
  Apply(Service("second"));
  cluster_->api().ForgetHistory();
  Run(10s);
  EXPECT_THAT(Told(Inputs(), "Service"), testing::ElementsAre("apply Service/first", "apply Service/second"));
}

TEST_F(RecordingTest, AWatchThatIsSilentForeverIsBegunAgain) {
  options_.limits.watch_timeout = 10s;
  options_.limits.watch_grace = 5s;
  transport_->instead = [](const std::string& target) -> std::optional<FakeTransport::Canned> {
    if (target.find("/services?") == std::string::npos || target.find("watch=true") == std::string::npos) return {};
    return FakeTransport::Canned{200, "", false};
  };
  Record();
  transport_->instead = nullptr;
  Apply(Service("second"));
  Run(60s);
  EXPECT_THAT(Told(Inputs(), "Service"), Contains("apply Service/second"));
}

TEST_F(RecordingTest, LongListsComeInPagesAndAnExpiredOneIsAskedForAsAWhole) {
  for (int i = 0; i < 7; ++i) Apply(Service(fmt::format("s{}", i)));
  options_.limits.page = 3;
  bool expired = false;
  transport_->instead = [&](const std::string& target) -> std::optional<FakeTransport::Canned> {
    if (expired || target.find("/services?") == std::string::npos || target.find("continue=") == std::string::npos) {
      return {};
    }
    expired = true;
    return FakeTransport::Canned{410, R"({"kind":"Status","message":"the provided continue parameter is too old"})"};
  };
  Record();
  EXPECT_TRUE(expired);
  EXPECT_THAT(transport_->asked, AllOf(Contains("/api/v1/services?limit=3"), Contains("/api/v1/services"),
                                       Contains(HasSubstr("/api/v1/pods?limit=3"))));
  EXPECT_EQ(Told(Inputs(), "Service").size(), 8u);
}

TEST_F(RecordingTest, HostileAnswersAreLeftOutAndTheRestIsRecorded) {
  Record();
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const std::string& line :
       {std::string("garbage\n"), std::string("{\"type\":\"ADDED\"}\n"), std::string("[]\n"), std::string("\n\n"),
        R"({"type":"ADDED","object":{"metadata":{"name":7,"resourceVersion":"1"}}})" + std::string("\n"),
        R"({"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"-9"}}})" + std::string("\n"),
        R"({"type":"ADDED","object":{"metadata":{"name":"x","labels":{"a":1}}}})" + std::string("\n"),
        R"({"type":"WHATEVER","object":{}})" + std::string("\n"),
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99999999999999999999"}}})" + std::string("\n"),
        R"({"type":"ERROR","object":{"code":"x"}})" + std::string("\n"),
        "{\"type\":\"ADDED\",\"object\":" + deep + "}\n",
        std::string("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\xfe\"}}}\n")}) {
    transport_->Inject("/services", line);
    Run(130s);  // back-off starts over
  }
  transport_->Inject("/pods", std::string((17 << 20), 'x'));
  Run(130s);
  Apply(Service("second"));
  Run(130s);
  ASSERT_TRUE(recording_->status().ok()) << recording_->status();
  EXPECT_THAT(recording_->notes(), AllOf(Contains(HasSubstr("services: ")), Contains(HasSubstr("pods: an event"))));
  for (const std::string& note : recording_->notes()) EXPECT_LT(note.size(), 600u);
  EXPECT_THAT(Told(Inputs(), "Service"), testing::ElementsAre("apply Service/first", "apply Service/second"));
}

TEST_F(RecordingTest, HostileListsAreNoPicture) {
  options_.patience = 30s;
  options_.limits.max_page_bytes = 1 << 20;
  for (const std::string& body :
       {std::string("no JSON"), std::string("{}"), std::string("[1]"),
        std::string(R"({"metadata":{"resourceVersion":"1"},"items":"all"})"), std::string(2 << 20, ' '),
        std::string(R"({"metadata":{"resourceVersion":"1","continue":"x"},"items":[]})")}) {
    transport_->instead = [&](const std::string& target) -> std::optional<FakeTransport::Canned> {
      if (target.find("/pods") == std::string::npos) return {};
      return FakeTransport::Canned{200, body};
    };
    Start();
    Run(40s);
    EXPECT_FALSE(recording_->recording());
    EXPECT_TRUE(absl::IsUnavailable(recording_->status())) << recording_->status();
    EXPECT_THAT(std::string(recording_->status().message()), HasSubstr("context context1: pods cannot be listed"));
    EXPECT_FALSE(recording_->Finish().ok());
    recording_.reset();
    EXPECT_FALSE(std::filesystem::exists(options_.log));
  }
}

TEST_F(RecordingTest, WhatIsForbiddenIsSaidAndWhatIsNotInstalledIsNot) {
  transport_->instead = [](const std::string& target) -> std::optional<FakeTransport::Canned> {
    if (target.find("/secrets") != std::string::npos)
      return FakeTransport::Canned{403, R"({"message":"secrets is forbidden"})"};
    if (target.find("istio.io") != std::string::npos) return FakeTransport::Canned{404, ""};
    return {};
  };
  Record();
  EXPECT_THAT(recording_->notes(), Contains(HasSubstr("secrets: HTTP 403: secrets is forbidden")));
  EXPECT_THAT(recording_->notes(), Not(Contains(HasSubstr("gateways"))));
  // It is installed, and asked for again and again.
  transport_->instead = nullptr;
  Apply({{"apiVersion", "networking.istio.io/v1alpha3"},
         {"kind", "Gateway"},
         {"metadata", {{"name", "late"}, {"namespace", "sample"}}},
         {"spec", {{"selector", {{"app", "x"}}}}}});
  transport_->instead = [](const std::string& target) -> std::optional<FakeTransport::Canned> {
    if (target.find("istio.io/v1alpha3/gateways") == std::string::npos) return {};
    if (target.find("watch=true") != std::string::npos) return FakeTransport::Canned{200, "", false};
    return FakeTransport::Canned{
        200,
        R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"late","namespace":"sample"},"spec":{}}]})"};
  };
  Run(120s);
  EXPECT_THAT(Told(Inputs(), "Gateway"), testing::ElementsAre("apply Gateway/late"));
}

// What `check` judges and no proxy is told of.
json NetworkPolicy() {
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", {{"name", "deny"}, {"namespace", "sample"}}},
          {"spec", {{"podSelector", json::object()}, {"policyTypes", {"Ingress"}}}}};
}

json DisruptionBudget() {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", "all"}, {"namespace", "sample"}}},
          {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "helloworld"}}}}}}}};
}

json Webhooks(const char* kind, const std::string& name, const json& labels, const std::string& bundle) {
  return {{"apiVersion", "admissionregistration.k8s.io/v1"},
          {"kind", kind},
          {"metadata", {{"name", name}, {"labels", labels}}},
          {"webhooks",
           {{{"name", "a.istio.io"},
             {"admissionReviewVersions", {"v1"}},
             {"sideEffects", "None"},
             {"failurePolicy", "Fail"},
             {"namespaceSelector", {{"matchLabels", {{"istio.io/rev", "canary"}}}}},
             {"clientConfig",
              {{"service", {{"name", "istiod-canary"}, {"namespace", "istio-system"}, {"path", "/inject"}}},
               {"caBundle", bundle}}}}}}};
}

TEST_F(RecordingTest, PoliciesAndBudgetsAreRecordedAsTheyAre) {
  Apply(NetworkPolicy());
  Apply(DisruptionBudget());
  Record();
  std::map<std::string, json> specs;
  for (const replay::LogInput& input : Inputs()) {
    if (input.kind == "apply") specs[input.body["object"]["kind"]] = input.body["object"].value("spec", json());
  }
  EXPECT_EQ(specs["NetworkPolicy"], NetworkPolicy()["spec"]);
  EXPECT_EQ(specs["PodDisruptionBudget"], DisruptionBudget()["spec"]);
}

TEST(Normalise, OfABudgetsStatusKeepsWhatItCounts) {
  json budget = DisruptionBudget();
  const json counts = {{"expectedPods", 2}, {"desiredHealthy", 1}, {"currentHealthy", 2}, {"disruptionsAllowed", 1}};
  budget["status"] = counts;
  budget["status"]["conditions"] = json::array({{{"type", "DisruptionAllowed"}}});
  const auto object = kube::Object::FromJson(budget);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(Normalise(**object, {}).body["object"]["status"], counts);
}

TEST_F(RecordingTest, IstiosWebhooksAreRecordedWithoutTheirBundleAndOthersNotAtAll) {
  const std::string bundle = absl::Base64Escape("the real CA's certificate");
  Apply(Webhooks("MutatingWebhookConfiguration", "injector", {{"istio.io/rev", "canary"}}, bundle));
  Apply(Webhooks("ValidatingWebhookConfiguration", "istiod-default-validator", json::object(), bundle));
  Apply(Webhooks("MutatingWebhookConfiguration", "somebody-else", json::object(), bundle));
  Record();
  const uint64_t before = recording_->inputs();
  Apply(Webhooks("MutatingWebhookConfiguration", "injector", {{"istio.io/rev", "canary"}},
                 absl::Base64Escape("its successor")));
  Run(1s);
  EXPECT_EQ(recording_->inputs(), before) << "a bundle that istiod patched is no change";
  const std::vector<replay::LogInput> inputs = Inputs();
  EXPECT_THAT(Told(inputs, "MutatingWebhookConfiguration"),
              testing::ElementsAre("apply MutatingWebhookConfiguration/injector"));
  EXPECT_THAT(Told(inputs, "ValidatingWebhookConfiguration"),
              testing::ElementsAre("apply ValidatingWebhookConfiguration/istiod-default-validator"));
  for (const replay::LogInput& input : inputs) {
    if (input.kind != "apply" || !input.body["object"].contains("webhooks")) continue;
    const json& webhook = input.body["object"]["webhooks"][0];
    const json sent = Webhooks("", "", json::object(), "")["webhooks"][0];
    EXPECT_EQ(webhook["namespaceSelector"], sent["namespaceSelector"]);
    EXPECT_EQ(webhook["clientConfig"]["service"]["name"], "istiod-canary");
    EXPECT_FALSE(webhook["clientConfig"].contains("caBundle"));
  }
}

TEST_F(RecordingTest, PoliciesBudgetsAndWebhooksThatMayNotBeReadAreNamedAndTheRestIsRecorded) {
  transport_->instead = [](const std::string& target) -> std::optional<FakeTransport::Canned> {
    for (const char* resource : {"networkpolicies", "poddisruptionbudgets", "webhookconfigurations"}) {
      if (target.find(resource) != std::string::npos) return FakeTransport::Canned{403, R"({"message":"forbidden"})"};
    }
    return {};
  };
  Record();
  EXPECT_THAT(recording_->notes(), AllOf(Contains(HasSubstr("context1: networkpolicies: HTTP 403")),
                                         Contains(HasSubstr("context1: poddisruptionbudgets: HTTP 403")),
                                         Contains(HasSubstr("context1: mutatingwebhookconfigurations: HTTP 403")),
                                         Contains(HasSubstr("context1: validatingwebhookconfigurations: HTTP 403"))));
  EXPECT_THAT(Told(Inputs()), Contains("apply Service/first"));
}

TEST_F(RecordingTest, WithoutTheRightToSeePodsThereIsNoRecording) {
  transport_->instead = [](const std::string& target) -> std::optional<FakeTransport::Canned> {
    if (target.find("/pods") == std::string::npos) return {};
    return FakeTransport::Canned{403, R"({"message":"pods is forbidden: User \"x\" cannot list"})"};
  };
  Start();
  Run(1s);
  EXPECT_TRUE(absl::IsPermissionDenied(recording_->status())) << recording_->status();
  EXPECT_THAT(std::string(recording_->status().message()),
              HasSubstr("pods cannot be listed: HTTP 403: pods is forbidden"));
}

TEST_F(RecordingTest, NamespacesNarrowWhatIsAskedFor) {
  Apply(
      {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "istio"}, {"namespace", "istio-system"}}}});
  json other = Service("elsewhere");
  other["metadata"]["namespace"] = "other";
  Apply(other);
  options_.namespaces = {"sample"};
  Record();
  const std::vector<std::string> told = Told(Inputs());
  EXPECT_THAT(told, AllOf(Contains("apply Service/first"), Contains("apply ConfigMap/istio"),
                          Contains("apply Namespace/istio-system")));
  EXPECT_THAT(told, AllOf(Not(Contains("apply Service/elsewhere")), Not(Contains("apply Namespace/other"))));
  for (const std::string& target : transport_->asked) {
    const bool of_cluster =
        target.find("/nodes") != std::string::npos || target.find("webhookconfigurations") != std::string::npos;
    EXPECT_TRUE(target.find("/namespaces") != std::string::npos || of_cluster) << target;
  }
}

// --- What is never stored

class Secrets : public RecordingTest {
 protected:
  // Spelled so that no file of the repository holds a key.
  const std::string key_ =
      std::string("-----BEGIN PRIVATE ") + "KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE " + "KEY-----\n";
  const std::string token_ = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyZWFkZXIifQ.c2lnbmF0dXJlLW9mLXRva2Vu";
  const std::string password_ = "correct-horse-battery";

  json RemoteSecret(const std::string& token) {
    const std::string kubeconfig = kube::RenderKubeConfig({"cluster2", "https://203.0.113.7:6443", "", token});
    return Secret("istio-remote-secret-cluster2", {{"cluster2", kubeconfig}}, true);
  }
  void ApplyAll() {
    Apply(RemoteSecret(token_));
    Apply(Secret("cacerts",
                 {{"ca-key.pem", key_},
                  {"ca-cert.pem", "CERTIFICATE-OF-THE-CA-OF-CLUSTER1"},
                  {"root-cert.pem", "ROOT\n"},
                  {"cert-chain.pem", "C"}},
                 false));
    Apply(Secret("some-tls", {{"tls.key", key_}}, false));
    Apply({{"apiVersion", "v1"},
           {"kind", "ConfigMap"},
           {"metadata",
            {{"name", "istio"},
             {"namespace", "istio-system"},
             {"annotations", {{"kubectl.kubernetes.io/last-applied-configuration", password_}}}}},
           {"data",
            {{"mesh", fmt::format("extensionProviders:\n- name: l\n  lightstep: {{service: x, accessToken: {}}}\n"
                                  "- name: m\n  lightstep:\n    accessToken: \"{}\"\naccessLogFile: /dev/stdout\n",
                                  password_, password_)}}}});
    Apply(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata",
          {{"name", "p"}, {"namespace", "sample"}, {"annotations", {{"example/key", key_}, {"example/jwt", token_}}}}},
         {"spec",
          {{"containers",
            {{{"name", "app"},
              {"args", {"--password=" + password_}},
              {"env", {{{"name", "DB"}, {"value", password_}}}},
              {"ports", {{{"containerPort", 8080}}}}},
             {{"name", "istio-proxy"},
              {"args", {"proxy", "sidecar"}},
              {"env",
               {{{"name", "LIGHTSTEP_TOKEN"}, {"value", password_}},
                {{"name", "ISTIO_META_CLUSTER_ID"}, {"value", "east"}}}}}}}}}});
    Apply({{"apiVersion", "networking.istio.io/v1alpha3"},
           {"kind", "VirtualService"},
           {"metadata", {{"name", "v"}, {"namespace", "sample"}}},
           {"spec", {{"http", {{{"headers", {{"request", {{"set", {{"Authorization", "Basic " + password_}}}}}}}}}}}}});
  }
  // In the file as it is, and under base64 at any of its three phases.
  testing::AssertionResult Stored(const std::string& secret) {
    const std::string bytes = ReadAll(options_.log);
    if (bytes.find(secret) != std::string::npos) return testing::AssertionSuccess() << "as it is";
    for (const std::string& before : {std::string(), std::string("x"), std::string("xx")}) {
      std::string inner = absl::Base64Escape(before + secret);
      // What does not depend on the neighbours.
      inner = inner.substr(before.empty() ? 0 : 4, inner.size() - 12);
      if (bytes.find(inner) != std::string::npos) return testing::AssertionSuccess() << "in base64";
    }
    return testing::AssertionFailure() << "it is not there";
  }
};

TEST_F(Secrets, AreNowhereInTheBytesOfTheLog) {
  ApplyAll();
  Record();
  Apply(RemoteSecret(token_ + "x"));
  Run(1s);
  const std::vector<replay::LogInput> inputs = Inputs();
  EXPECT_FALSE(Stored(token_));
  EXPECT_FALSE(Stored(token_.substr(30)));
  EXPECT_FALSE(Stored(password_));
  EXPECT_FALSE(Stored("MIGHAgEAMBMGByqGSM49"));
  EXPECT_FALSE(Stored("CERTIFICATE-OF-THE-CA-OF-CLUSTER1"));
  // What a mesh needs is there.
  EXPECT_THAT(Told(inputs),
              AllOf(Contains("cacerts"), Contains("apply Secret/istio-remote-secret-cluster2"), Contains("apply Pod/p"),
                    Contains("apply VirtualService/v"), Not(Contains("apply Secret/some-tls"))));
  std::vector<std::string> kubeconfigs;
  for (const replay::LogInput& input : inputs) {
    EXPECT_EQ(input.body["cluster"], "east") << "named after its proxies' cluster ID";
    if (input.kind == "cacerts") {
      EXPECT_EQ(input.body["root"], DigestOf("ROOT"));
    }
    if (input.kind != "apply") continue;
    const json& object = input.body["object"];
    if (object["kind"] == "Secret") {
      const auto data = kube::ReadSecretData(**kube::Object::FromJson(object));
      ASSERT_TRUE(data.ok());
      kubeconfigs.push_back(data->at("cluster2"));
    }
    if (object["kind"] == "ConfigMap") {
      EXPECT_THAT(object["data"]["mesh"].get<std::string>(),
                  AllOf(HasSubstr("accessLogFile: /dev/stdout"), HasSubstr("service: x, accessToken: \"sha256-")));
    }
    if (object["kind"] == "Pod") {
      EXPECT_EQ(object["spec"]["containers"][0],
                json({{"name", "app"}, {"ports", {{{"containerPort", 8080}, {"protocol", "TCP"}}}}}));
    }
  }
  // The rotation of a token is a change, to a kubeconfig that works and tells the server only.
  ASSERT_EQ(kubeconfigs.size(), 2u);
  EXPECT_NE(kubeconfigs[0], kubeconfigs[1]);
  for (const std::string& text : kubeconfigs) {
    const auto parsed = kube::ParseKubeConfig(text, "it");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->server, "https://203.0.113.7:6443");
    EXPECT_THAT(parsed->token, testing::StartsWith("sha256-"));
  }
}

TEST_F(Secrets, AreKeptForWhoAsksForIt) {
  ApplyAll();
  options_.keep_secrets = true;
  Record();
  const std::vector<std::string> told = Told(Inputs());
  EXPECT_THAT(told, AllOf(Contains("apply Secret/cacerts"), Contains("apply Secret/istio-remote-secret-cluster2"),
                          Not(Contains("apply Secret/some-tls"))));
  EXPECT_TRUE(Stored(absl::Base64Escape(key_)));
}

TEST(ServerOnly, AKubeconfigIsRefusedForTheSameKindOfReasonAsBefore) {
  const auto code = [](const std::string& text) {
    return kube::ParseKubeConfig(ServerOnly("c", text), "it").status().code();
  };
  EXPECT_EQ(code("no: kubeconfig"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("\t{"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://a.example}}]\n"
                 "users: [{name: u, user: {exec: {command: aws, apiVersion: v1}}}]\n"
                 "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(kube::RenderKubeConfig({"c", "https://a.example", "", "t"})), absl::StatusCode::kOk);
  EXPECT_NE(ServerOnly("c", "one"), ServerOnly("c", "two"));
}

TEST(Normalise, PassesHostileTypesByAndSharesRootsByTheirDigest) {
  const auto pod = kube::Object::FromJson(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", {{"name", "p"}, {"namespace", "n"}, {"ownerReferences", json::array()}}},
       {"spec",
        {{"containers",
          {7,
           "x",
           {{"name", 3}},
           {{"name", "a"}, {"ports", {1, {{"containerPort", "http"}}, {{"containerPort", 70000}}}}}}},
         {"volumes", "many"}}},
       {"status", "fine"}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  const Normalised out = Normalise(**pod, {});
  EXPECT_EQ(out.body["object"]["spec"]["containers"], json::array({{{"name", "a"}}}));
  const auto root = [](const std::string& pem) {
    const auto secret = kube::MakeSecret("istio-system", "cacerts", {{"root-cert.pem", pem}});
    return Normalise(*secret, {}).body.dump();
  };
  EXPECT_EQ(root("A"), root("A\n"));
  EXPECT_NE(root("A"), root("B"));
}

}  // namespace
}  // namespace wavetank::record
