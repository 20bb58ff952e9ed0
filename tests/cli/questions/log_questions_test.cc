// What a log leads to, as a user asks: state, fork, bisect, shrink, invariants; answers, exit codes and mistakes.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Two networks; then a Deployment is scaled, a gateway's Service goes, and something unrelated happens.
constexpr char kStory[] = R"(
name: a gateway goes
clusters:
  - name: cluster1
    network: network1
    manifests: [M/network1.yaml, M/eastwest-network1.yaml, M/expose-services.yaml, {path: M/sample.yaml}, {path: M/helloworld-service.yaml, namespace: sample}, {path: M/helloworld-v1.yaml, namespace: sample}, {path: M/sleep.yaml, namespace: sample}]
  - name: cluster2
    network: network2
    manifests: [M/network2.yaml, M/eastwest-network2.yaml, M/expose-services.yaml, {path: M/sample.yaml}, {path: M/helloworld-service.yaml, namespace: sample}, {path: M/helloworld-v2.yaml, namespace: sample}, {path: M/sleep.yaml, namespace: sample}]
remoteSecrets: [{of: cluster2, in: cluster1}, {of: cluster1, in: cluster2}]
flows:
  - {name: f, from: {cluster: cluster1, namespace: sample, app: sleep}, to: helloworld.sample:5000}
steps:
  - name: at rest
    then: [{flow: f, requests: 20}]
    expect: [{requests: {failed: 0}}]
  - name: scaled
    do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 3}}]
    then: [{flow: f, requests: 20}]
  - name: the gateway goes
    do: [{delete: {cluster: cluster2, kind: Service, namespace: istio-system, name: istio-eastwestgateway}}]
    then: [{flow: f, requests: 20}]
  - name: something else
    do: [{label: {cluster: cluster1, kind: Service, namespace: sample, name: helloworld, set: {touched: once}}}]
    then: [{flow: f, requests: 20}]
)";

class LogQuestions : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string text = kStory;
    for (size_t at = text.find("M/"); at != std::string::npos; at = text.find("M/", at)) {
      const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";
      text.replace(at, 2, manifests);
      at += manifests.size();
    }
    scenario_ = Write("story.yaml", text);
    log_ = (folder_ / "story.wtlog").string();
    const Ran ran = Call(fmt::format("run {} -o {}", scenario_, log_));
    ASSERT_EQ(ran.code, 0) << ran.output << ran.error;
  }
  json Json(const std::string& arguments, int code = 0) {
    const Ran ran = Call(arguments);
    EXPECT_EQ(ran.code, code) << ran.error;
    return json::parse(ran.output, nullptr, false);
  }

  std::string scenario_, log_;
};

TEST_F(LogQuestions, ABrokenInvariantIsTheAnswerNoWithItsInput) {
  const json run = Json(fmt::format("run {} --invariants no-foreign-pod-address --json", scenario_), 1);
  const json& violations = run["runs"][0]["invariants"]["violations"];
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0]["invariant"], "no-foreign-pod-address");
  const Ran replay = Call(fmt::format("replay {} --invariants I1", log_));
  EXPECT_EQ(replay.code, 1);
  EXPECT_THAT(replay.output, HasSubstr("identical"));
  EXPECT_THAT(replay.output, HasSubstr("a pod of cluster2, which is in another network"));
}

TEST_F(LogQuestions, ALogThatWatchedInvariantsIsReplayedWithThem) {
  const std::string log = (folder_ / "watched.wtlog").string();
  EXPECT_EQ(Call(fmt::format("run {} --invariants all -o {}", scenario_, log)).code, 1);
  const Ran replay = Call("replay " + log);
  EXPECT_THAT(replay.output, HasSubstr("identical"));
  EXPECT_EQ(replay.code, 1) << "it is broken again";
}

TEST_F(LogQuestions, StateHoldsWhatThereWasThen) {
  const json before = Json(fmt::format("state {} --at scaled -o json", log_));
  const json after = Json(fmt::format("state {} --at \"'something else'\" -o json", log_));
  const auto endpoints = [](const json& state) {
    for (const auto& [name, istiod] : state["istiods"].items()) {
      if (name.find("cluster1") == std::string::npos) continue;
      return istiod["endpointShardz"]["helloworld.sample.svc.cluster.local"]["sample"]["Shards"]["Kubernetes/cluster2"]
          .size();
    }
    return size_t{0};
  };
  EXPECT_EQ(endpoints(before), 1u);
  EXPECT_EQ(endpoints(after), 3u);
  EXPECT_EQ(before["apiServers"]["cluster2"]["Deployment"].size(),
            after["apiServers"]["cluster2"]["Deployment"].size());
  for (const json& secret : after["apiServers"]["cluster1"]["Secret"]) {
    if (!secret.contains("data")) continue;
    for (const json& value : secret["data"]) EXPECT_EQ(value, "redacted");
  }
  const json dump = Json(fmt::format("state {} --proxy sleep@cluster1 -o json", log_));
  EXPECT_EQ(dump["configs"][0]["@type"], "type.googleapis.com/envoy.admin.v3.ClustersConfigDump");
  EXPECT_THAT(Call(fmt::format("state {} --at 'input 3+1s' -o yaml", log_)).output, HasSubstr("apiServers:\n"));
}

TEST_F(LogQuestions, BisectNamesTheInputThatBreaksIt) {
  const json found = Json(fmt::format("bisect {} --holds no-foreign-pod-address --json", log_));
  EXPECT_EQ(found["input"]["kind"], "delete");
  EXPECT_EQ(found["input"]["body"]["name"], "istio-eastwestgateway");
  EXPECT_EQ(Call(fmt::format("bisect {} --holds no-address-twice", log_)).code, 1) << "it holds to the end";
}

TEST_F(LogQuestions, BisectNamesWhatBreaksRequestsAndNotTheRequestsThatShowIt) {
  const json found = Json(fmt::format("bisect {} --holds 'requests: {{flow: f, retried: 0}}' --json", log_));
  EXPECT_EQ(found["input"]["kind"], "delete");
  EXPECT_EQ(found["input"]["body"]["name"], "istio-eastwestgateway");
}

TEST_F(LogQuestions, BisectTakesAHostAsShortAsAScenarioDoes) {
  for (const std::string host : {"helloworld.sample", "helloworld.sample.svc.cluster.local"}) {
    const json found =
        Json(fmt::format("bisect {} --json --holds 'endpoints: {{of_proxy: {{cluster: cluster1, namespace: "
                         "sample, app: sleep}}, host: {}, port: 5000, count: <= 2}}'",
                         log_, host));
    EXPECT_EQ(found["input"]["kind"], "delete") << host;
    EXPECT_EQ(found["input"]["body"]["name"], "istio-eastwestgateway") << host;
  }
}

TEST_F(LogQuestions, ShrinkLeavesWhatStillShowsIt) {
  const std::string small = (folder_ / "small.wtlog").string();
  const Ran ran = Call(fmt::format("shrink {} --shows no-foreign-pod-address -o {} -q", log_, small));
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, Not(HasSubstr("traffic")));
  EXPECT_THAT(ran.output, Not(HasSubstr("touched")));
  EXPECT_FALSE(std::filesystem::exists(small + ".shrinking"));
  EXPECT_THAT(Call("replay " + small).output, HasSubstr("identical"));
  EXPECT_EQ(Call(fmt::format("replay {} --invariants I1", small)).code, 1) << "it is shown still";
  const Ran none = Call(fmt::format("shrink {} --shows no-address-twice -o {} -q", log_, small));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output, HasSubstr("does not show"));
}

TEST_F(LogQuestions, ShrinkDoesNotSlipToAnotherCause) {
  const std::string small = (folder_ / "small.wtlog").string();
  // Traffic alone would fail as well: there would be nobody to ask.
  const Ran ran = Call(fmt::format("shrink {} --shows 'not: {{requests: {{failed: 0}}}}' -o {} -q", log_, small));
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("apply"));
  EXPECT_THAT(ran.output, Not(HasSubstr("touched")));
  EXPECT_THAT(Call(fmt::format("why {} --failed", small)).output, HasSubstr("503 URX,UF"));
}

TEST_F(LogQuestions, ForkGoesOnDifferently) {
  const std::string other = Write("other.yaml", R"(
name: other
flows: [{name: f, from: {cluster: cluster1, namespace: sample, app: sleep}, to: helloworld.sample:5000}]
steps:
  - name: none left
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}}]
    then: [{flow: f, requests: 50}]
    expect: [{split: {is: {v2: 100%}}}, {requests: {failed: 0}}]
)");
  const std::string forked = (folder_ / "forked.wtlog").string();
  const Ran ran = Call(fmt::format("fork {} {} --at scaled+1s -o {}", log_, other, forked));
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(Call("replay " + forked).output, HasSubstr("identical"));
  EXPECT_THAT(Call("replay --inputs " + forked).output, Not(HasSubstr("touched")));
}

TEST_F(LogQuestions, ExportTellsTheSameStory) {
  const std::string folder = (folder_ / "exported").string();
  const Ran ran = Call(fmt::format("export {} {}", log_, folder));
  ASSERT_EQ(ran.code, 0) << ran.error;
  const json run = Json(fmt::format("run {} --json", folder));
  const json replay = Json(fmt::format("replay {} --json", log_));
  EXPECT_EQ(run["runs"][0]["digest"], replay["digest"]) << "every event is the same";
  EXPECT_THAT(Read(folder + "/scenario.yaml"), HasSubstr("replicas: 3"));
  ExpectRefused(Call(fmt::format("export {} {}", log_, folder)), {folder, "name a new folder"});
}

TEST_F(LogQuestions, ExportKeepsTheDateTheMendingAndHowClustersWereInstalled) {
  const std::string log = (folder_ / "dated.wtlog").string(), folder = (folder_ / "dated").string();
  const std::string scenario =
      Write("dated.yaml",
            fmt::format("name: dated\ndate: 2026-01-01\nmend: istiod,clusterID\nclusters:\n  - name: cluster1\n"
                        "    network: network1\n    networkPolicies: strict\n    installed: {{clusterName: other}}\n"
                        "    manifests: [{0}/one-network.yaml, {0}/istiod.yaml, {0}/sample.yaml, "
                        "{0}/helloworld-service.yaml, {0}/helloworld-v1.yaml, {0}/sleep.yaml]\n"
                        "flows: [{{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "
                        "'helloworld.sample:5000'}}]\nsteps: [{{name: send, then: [{{flow: f, requests: 20}}]}}]\n",
                        WAVETANK_SOURCE_DIR "/scenarios/manifests"));
  ASSERT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
  ASSERT_EQ(Call(fmt::format("export {} {}", log, folder)).code, 0);
  const json run = Json(fmt::format("run {} --json", folder));
  EXPECT_EQ(run["runs"][0]["digest"], Json(fmt::format("replay {} --json", log))["digest"]);
  EXPECT_THAT(Read(folder + "/scenario.yaml"),
              testing::AllOf(HasSubstr("2026-01-01T00:00:00Z"), HasSubstr("networkPolicies: strict"),
                             HasSubstr("clusterName: other"), HasSubstr("mend: ")));
}

// What goes on beside all steps is the scenario's `throughout` again, with what became of it; bodies stay as they were.
TEST_F(LogQuestions, ExportKeepsTrafficThatGoesOnAndWhatItCarries) {
  const auto digests = [&](const std::string& name, const std::string& flow, const std::string& steps) {
    const std::string log = (folder_ / (name + ".wtlog")).string(), folder = (folder_ / name).string();
    const std::string scenario =
        Write(name + ".yaml",
              fmt::format("name: {}\nextends: {}/scenarios/multi-primary-multi-network/scenario.yaml\n"
                          "flows: [{{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "
                          "'helloworld.sample:5000', rate: 20/s{}}}]\n{}",
                          name, WAVETANK_SOURCE_DIR, flow, steps));
    EXPECT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
    EXPECT_EQ(Call(fmt::format("export {} {}", log, folder)).code, 0);
    const json run = Json(fmt::format("run {} --json", folder));
    EXPECT_EQ(run["runs"][0]["digest"], Json(fmt::format("replay {} --json", log))["digest"]) << name;
    return Read(folder + "/scenario.yaml");
  };
  const std::string gone =
      digests("gone", "",
              "throughout: {traffic: [{flow: f}]}\nsteps:\n"
              "  - {name: gone, at: 2s, settle: 0s, do: [{kill: {cluster: cluster2, namespace: "
              "istio-system, app: istio-eastwestgateway}}]}\n  - {name: the end, at: 6s, settle: 0s}\n");
  EXPECT_THAT(gone, testing::AllOf(HasSubstr("throughout:"), HasSubstr("failed: "), Not(HasSubstr("kind: traffic"))));
  digests("trailers", ", trailers: {x-sum: abc}",
          "throughout: {traffic: [{flow: f}]}\nsteps: [{name: the end, at: 6s, settle: 0s}]\n");
  digests("body", ", body: {bytes: 200000, over: 1s, pieces: 4}",
          "steps:\n  - {name: fed, then: [{flow: f, requests: 20}]}\n");
}

// Traffic of one step beside its actions, and users that wait for answers, are words of the language again.
TEST_F(LogQuestions, ExportWritesTrafficOfAStepAndItsUsersAsAPersonWould) {
  const std::string scenario = Write("meanwhile.yaml", fmt::format(R"(name: meanwhile
extends: {}/scenarios/multi-primary-multi-network/scenario.yaml
flows:
  - {{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: 'helloworld.sample:5000', rate: 20/s}}
  - name: u
    from: {{cluster: cluster2, namespace: sample, app: sleep}}
    to: 'helloworld.sample:5000'
    connections: keep-alive
    closedLoop: {{users: 3, think: 50ms}}
    timeout: 2s
steps:
  - name: scaled
    do: [{{scale: {{cluster: cluster2, deployment: sample/helloworld-v2, replicas: 3}}}}]
    meanwhile: [{{flow: f}}, {{flow: u}}]
    then: [{{flow: f, requests: 20}}]
  - {{name: loop, then: [{{flow: u, requests: 50}}]}}
  - {{name: nothing, meanwhile: [{{flow: f}}], linger: 2s}}
)",
                                                                   WAVETANK_SOURCE_DIR));
  const std::string log = (folder_ / "meanwhile.wtlog").string(), folder = (folder_ / "as-written").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
  ASSERT_EQ(Call(fmt::format("export {} {}", log, folder)).code, 0);
  const std::string text = Read(folder + "/scenario.yaml");
  EXPECT_THAT(text, testing::AllOf(HasSubstr("meanwhile:"), HasSubstr("users: 3"), HasSubstr("think: \"50ms\""),
                                   HasSubstr("linger: \"2s\""), HasSubstr("of: meanwhile")));
  EXPECT_THAT(text, Not(HasSubstr("input:"))) << "no raw input is left";
  const json run = Json(fmt::format("run {} --json", folder));
  EXPECT_EQ(run["runs"][0]["digest"], Json(fmt::format("replay {} --json", log))["digest"]) << text;
}

TEST_F(LogQuestions, ALogIsNotReplacedByWhatIsMadeOfIt) {
  const std::string before = Read(log_);
  const std::string steps =
      Write("steps.yaml",
            "name: s\nsteps: [{name: one, do: [{label: {cluster: cluster1, kind: Service, namespace: sample, "
            "name: helloworld, set: {a: b}}}]}]\n");
  for (const std::string& call : {fmt::format("anonymise {0} -o {0}", log_),
                                  fmt::format("shrink {0} --shows no-foreign-pod-address -o {0} -q", log_),
                                  fmt::format("fork {0} {1} --at scaled -o {0}", log_, steps),
                                  fmt::format("run --from {0} {1} -o {0}", log_, steps)}) {
    ExpectRefused(Call(call), {log_, "name another file"});
  }
  EXPECT_EQ(Read(log_), before);
}

TEST_F(LogQuestions, ForkTellsWhatBecomesOfTheLogsRequests) {
  const std::string scenario = Write(
      "going.yaml", fmt::format("name: going\nextends: {}/scenarios/multi-primary-multi-network/scenario.yaml\n"
                                "flows: [{{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "
                                "'helloworld.sample:5000', rate: 20/s}}]\nthroughout: {{traffic: [{{flow: f}}]}}\n"
                                "steps: [{{name: calm, at: 10s, settle: 0s}}]\n",
                                WAVETANK_SOURCE_DIR));
  const std::string log = (folder_ / "going.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
  const std::string steps =
      Write("none.yaml",
            "name: none left\nflows: [{name: f, from: {cluster: cluster2, namespace: sample, app: sleep}, to: "
            "'helloworld.sample:5000', rate: 10/s}]\nsteps:\n  - name: gone\n    do: [{scale: {cluster: cluster1, "
            "deployment: "
            "sample/helloworld-v1, replicas: 0}}, {scale: {cluster: cluster2, deployment: sample/helloworld-v2, "
            "replicas: 0}}]\n"
            "    then: [{flow: f, requests: 10}]\n");
  const json run = Json(fmt::format("fork {} {} --at 12s --json", log, steps));
  const json& of_log = run["steps"].back();
  EXPECT_EQ(of_log["name"], "traffic of the log") << run["steps"].dump(1);
  // The log's own go on, though the scenario's flow has the same name.
  EXPECT_GT(of_log["traffic"][0]["sent"], 60);
  EXPECT_GT(of_log["traffic"][0]["failed"], 10);
  EXPECT_EQ(run["steps"][0]["traffic"][0]["sent"], 10);
}

TEST_F(LogQuestions, ExportWritesNothingOutsideOfItsFolderWhateverClustersAreCalled) {
  std::string text = Read(scenario_);
  for (size_t at = text.find("cluster2"); at != std::string::npos; at = text.find("cluster2", at + 1))
    text.replace(at, 8, "\"../evil\"");
  const std::string log = (folder_ / "evil.wtlog").string(), folder = (folder_ / "sub" / "exported").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", Write("evil.yaml", text), log)).code, 0);
  const Ran ran = Call(fmt::format("export {} {}", log, folder));
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sub" / "evil.yaml"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/%2E.%2Fevil.yaml"));
  EXPECT_EQ(Json(fmt::format("run {} --json", folder))["runs"][0]["digest"],
            Json(fmt::format("replay {} --json", log))["digest"]);
}

// Clusters of an import have no controllers, so the mesh stays a log; what changed stands in the scenario.
TEST_F(LogQuestions, ExportOfAnImportRunsFromItsMesh) {
  for (const char* cluster : {"cluster1", "cluster2"})
    Write(std::string(cluster) + ".log", Call(fmt::format("logs {} istiod@{}", log_, cluster)).output);
  const std::string imported = (folder_ / "imported.wtlog").string(), folder = (folder_ / "of-import").string();
  const std::string one = (folder_ / "cluster1.log").string(), two = (folder_ / "cluster2.log").string();
  const Ran read =
      Call(fmt::format("import --cluster cluster1={} --cluster cluster2={} {} {} -o {}", one, two, one, two, imported));
  ASSERT_EQ(read.code, 0) << read.error;
  const Ran ran = Call(fmt::format("export {} {}", imported, folder));
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("claims stand among the steps"));
  EXPECT_THAT(Read(folder + "/cluster2.yaml"), HasSubstr("kind: "));
  const json again = Json(fmt::format("run {0} --from {0}/mesh.wtlog --json", folder));
  EXPECT_THAT(ran.output, HasSubstr(again["runs"][0]["digest"].get<std::string>()));
}

TEST_F(LogQuestions, ForkTakesStepsWithoutNames) {
  const std::string steps =
      Write("nameless.yaml",
            "steps:\n  - do: [{label: {cluster: cluster1, kind: Service, namespace: sample, name: helloworld, set: {a: "
            "b}}}]\n"
            "  - do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}]\n");
  const json run = Json(fmt::format("fork {} {} --at scaled+1s --json", log_, steps));
  EXPECT_EQ(run["scenario"], "nameless");
  EXPECT_EQ(run["steps"][0]["name"], "step 1");
  EXPECT_EQ(run["steps"][1]["name"], "step 2");
}

// As `why` has it for a log: what check finds behind the errors, and what mends it.
TEST_F(LogQuestions, TheReportHasTheRemedyOfItsErrors) {
  const std::string report = (folder_ / "report").string();
  Call(fmt::format("run {} --report {}", scenario_, report));
  const std::string page = Read(report + "/report.html");
  EXPECT_THAT(page, testing::ContainsRegex("\"findings\":\\[\\{"));
  EXPECT_THAT(page, HasSubstr("\"remedy\":\""));
}

TEST_F(LogQuestions, WhyWalksBackToTheInput) {
  const json chains = Json(fmt::format("why {} --push 2 --json", log_));
  ASSERT_FALSE(chains.empty());
  EXPECT_THAT(chains[0][0]["what"].get<std::string>(), HasSubstr("input "));
  EXPECT_THAT(chains[0].back()["what"].get<std::string>(), HasSubstr("PushContextReady"));
  ExpectRefused(Call(fmt::format("why {} --push 99999", log_)), {"they are numbered 1 to"});
  ExpectRefused(Call(fmt::format("why {} --nack 1", log_)), {"0 responses were refused"});
  ExpectRefused(Call(fmt::format("why {} --push 1", scenario_)), {"name a log"});
}

// Two primaries see the same changes: each hop to a push is of the istiod that made it.
TEST_F(LogQuestions, WhyStaysWithTheIstiodThatPushed) {
  const json chains = Json(fmt::format("why {} --push 2 --json", log_));
  ASSERT_EQ(chains.size(), 2u) << "each primary made one";
  for (const json& chain : chains) {
    const std::string push = chain.back()["what"];
    const std::string istiod = push.substr(17, push.find(' ', 17) - 17);  // behind "PushContextReady "
    int hops = 0;
    for (const json& hop : chain) {
      const std::string what = hop["what"];
      for (const char* of_istiod : {"WatchDelivered ", "ConfigUpdate ", "Debounced ", "PushContextReady "}) {
        if (!what.starts_with(of_istiod)) continue;
        ++hops;
        EXPECT_THAT(what, HasSubstr(" " + istiod)) << chain.dump(1);
      }
    }
    EXPECT_EQ(hops, 4) << chain.dump(1);
  }
}

TEST_F(LogQuestions, WhyOfAnEndpointIsAboutItsOwnService) {
  const json endpoints = Json(fmt::format("state {} --at 10s --proxy sleep@cluster1 -o json", log_));
  std::string address;
  for (const json& config : endpoints["configs"]) {
    for (const json& one : config.value("dynamic_endpoint_configs", json::array())) {
      const json& cla = one["endpoint_config"];
      if (cla.value("cluster_name", "") != "outbound|5000||helloworld.sample.svc.cluster.local") continue;
      const json& where = cla["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"];
      address = fmt::format("{}:{}", where["address"].get<std::string>(), where["port_value"].get<int>());
    }
  }
  ASSERT_FALSE(address.empty());
  const json chain = Json(fmt::format("why {} --endpoint {} --proxy sleep@cluster1 --at 10s --json", log_, address))[0];
  const std::string all = chain.dump();
  EXPECT_THAT(all, HasSubstr("ServiceEntry/sample/helloworld.sample.svc.cluster.local"));
  const size_t received = all.find("XdsReceived");
  EXPECT_EQ(all.find("XdsReceived", received + 1), std::string::npos) << "the response that brought it, alone";
  EXPECT_THAT(all, testing::Not(HasSubstr("sample/sleep.sample"))) << "another Service's endpoints";
}

// Pods of one name in two clusters are two proxies: whose a dump is, is said as elsewhere.
TEST_F(LogQuestions, ADumpIsComparedWithTheProxyThatIsNamed) {
  const std::string of_one =
      Write("one.json", Call(fmt::format("state {} --proxy sleep@cluster1 -o json", log_)).output);
  EXPECT_EQ(Call(fmt::format("compare {} {} --proxy sleep@cluster1", log_, of_one)).code, 0);
  EXPECT_EQ(Call(fmt::format("compare {} {} --proxy sleep@cluster2", log_, of_one)).code, 1);
  ExpectRefused(Call(fmt::format("compare {} {} --proxy sleep", log_, of_one)), {"@cluster1", "@cluster2"});
  // At an instant as `state` takes it: before the Deployment was scaled less was held.
  EXPECT_EQ(Call(fmt::format("compare {} {} --proxy sleep@cluster1 --at \"'scaled'\"", log_, of_one)).code, 1);
  // Behind a gateway more of the same address are told by its weight alone.
  const std::string three = Write(
      "three.json", Call(fmt::format("state {} --proxy sleep@cluster1 --at \"'scaled'+2s\" -o json", log_)).output);
  const Ran weights = Call(fmt::format("compare {} {} --proxy sleep@cluster1 --at \"'scaled'\"", log_, three));
  EXPECT_EQ(weights.code, 1);
  EXPECT_THAT(weights.output, HasSubstr("15443 has weight 3, and 1 here")) << weights.output;
}

TEST_F(LogQuestions, FailedRequestsAreGroupedByTheInputBehindThem) {
  // The gateway's Service is gone, so cluster2's pods are sent as they are, and cluster1 does not reach them.
  const json why = Json(fmt::format("why {} --failed --json", log_));
  EXPECT_EQ(why["sent"], 80);
  for (const json& group : why["groups"]) EXPECT_EQ(group["input"]["kind"], "delete") << group.dump();
}

TEST_F(LogQuestions, WhoBoundsTheInputsThatAreLeftOutIsToldOfHowMany) {
  const json all = Json(fmt::format("why {} --failed --json", log_));
  EXPECT_EQ(all["inputs"], 3) << "scaled, deleted, labelled";
  EXPECT_EQ(all["inputsTried"], 3);
  const json one = Json(fmt::format("why {} --failed --tries 1 --json", log_));
  EXPECT_EQ(one["inputs"], 3);
  EXPECT_EQ(one["inputsTried"], 1);
  EXPECT_GE(one["worlds"], 5) << "as it was, without it, and as it was with other chance three times";
  EXPECT_LE(one["worlds"], 8) << "without it three times more if a failure is missing then";
  EXPECT_GT(all["worlds"], one["worlds"]);
  EXPECT_THAT(Call(fmt::format("why {} --failed --tries 1", log_)).output, HasSubstr("1 of 3 inputs were left out"));
  ExpectRefused(Call(fmt::format("why {} --failed --request 1 --tries 1", log_)), {"--tries", "why LOG --failed"});
}

TEST_F(LogQuestions, WhatCheckFindsOfACauseIsToldWithItsRemedy) {
  const json why = Json(fmt::format("why {} --failed --json", log_));
  ASSERT_FALSE(why["groups"].empty());
  const json& finding = why["groups"][0]["findings"][0];
  EXPECT_EQ(finding["code"], "WT101") << why.dump(1);
  EXPECT_EQ(finding["before"], false) << "the gateway was there before its Service was deleted";
  const std::string remedy = finding["remedy"];
  EXPECT_THAT(remedy, HasSubstr("topology.istio.io/network"));
  EXPECT_THAT(Call(fmt::format("why {} --failed", log_)).output,
              testing::AllOf(HasSubstr("check finds WT101"), HasSubstr("remedy      " + remedy)));
  // One of them, hop by hop: what stood against it when it was sent.
  EXPECT_THAT(Call(fmt::format("why {} --failed --request 1", log_)).output,
              testing::AllOf(HasSubstr("check finds WT101"), HasSubstr(remedy)));
  // Scaling up breaks no rule.
  EXPECT_THAT(Call(fmt::format("why {} --push 2", log_)).output, testing::Not(HasSubstr("check finds")));
}

TEST_F(LogQuestions, ALargerInputIsNotToBlameWhereItsAbsenceMovesChanceAlone) {
  // A fault that fails all requests, gone again; then an application fails a few. Without the fault other requests
  // would have met the application that fails, though as many.
  const std::string steps = R"(
  - name: all fail
    do:
      - apply: {cluster: cluster1, objects: [{apiVersion: networking.istio.io/v1alpha3, kind: VirtualService, metadata: {name: hw, namespace: sample}, spec: {hosts: [helloworld], http: [{fault: {abort: {httpStatus: 404, percentage: {value: 100}}}, route: [{destination: {host: helloworld}}]}]}}]}
    then: [{flow: f, requests: 200}]
  - name: none fails
    do: [{delete: {cluster: cluster1, kind: VirtualService, namespace: sample, name: hw}}]
    then: [{flow: f, requests: 50}]
  - name: some fail
    do: [{behaviour: {app: helloworld, version: v2, answers: [{code: 500, share: 30%}]}}]
    then: [{flow: f, requests: 60}]
)";
  std::ifstream in(scenario_);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.resize(text.find("  - name: scaled"));
  const std::string log = (folder_ / "chance.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", Write("chance.yaml", text + steps), log)).code, 0);
  const json why = Json(fmt::format("why {} --failed --json", log));
  ASSERT_EQ(why["groups"].size(), 2u) << why.dump(1);
  EXPECT_EQ(why["groups"][0]["requests"], 200);
  EXPECT_EQ(why["groups"][0]["input"]["kind"], "apply");
  EXPECT_GE(why["groups"][1]["requests"], 5);
  EXPECT_EQ(why["groups"][1]["input"]["kind"], "behaviour");
}

// One request was under way to a gateway that was killed. A balancer may have sent it elsewhere, so that nothing is
// proved; it said that the request fails without the kill as well, and is over since then.
TEST_F(LogQuestions, AnInputThatAloneSparesARequestIsNamedThoughChanceMayToo) {
  const std::string scenario = Write("killed.yaml", fmt::format(R"(name: killed under a request
extends: {}/scenarios/multi-primary-multi-network/scenario.yaml
seed: 4
flows: [{{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: 'helloworld.sample:5000', rate: 20/s}}]
throughout: {{traffic: [{{flow: f}}]}}
steps:
  - {{name: calm, at: 1s, settle: 0s}}
  - {{name: killed, at: 2s, settle: 0s, do: [{{kill: {{cluster: cluster2, namespace: istio-system, app: istio-eastwestgateway}}}}]}}
  - {{name: the end, at: 6s, settle: 0s}}
)",
                                                                WAVETANK_SOURCE_DIR));
  const std::string log = (folder_ / "killed.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
  const json why = Json(fmt::format("why {} --failed --json", log));
  ASSERT_EQ(why["failed"], 1) << "another seed, in which the request goes to cluster2";
  const json& group = why["groups"][0];
  EXPECT_FALSE(group.contains("input")) << why.dump(1);
  EXPECT_EQ(group["perhaps"]["kind"], "kill") << why.dump(1);
  EXPECT_FALSE(group.contains("until")) << "nothing after the kill ended it";
  EXPECT_THAT(Call(fmt::format("why {} --failed", log)).output, HasSubstr("perhaps     input"));
}

TEST_F(LogQuestions, DiffOfALogSendsWhatTheLogSentAndNamesTheObject) {
  // A rule about a path: requests of any other path are as before.
  const std::string policy =
      "{apiVersion: security.istio.io/v1beta1, kind: AuthorizationPolicy, metadata: {name: no-loaves, namespace: "
      "sample}, spec: {action: DENY, rules: [{to: [{operation: {paths: [/loaf]}}]}]}}";
  const std::string scenario = Write(
      "loaf.yaml",
      fmt::format("name: loaves\nextends: {}/scenarios/multi-primary-multi-network/scenario.yaml\n"
                  "flows: [{{name: bread, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "
                  "'helloworld.sample:5000', path: /loaf}}]\nsteps:\n"
                  "  - {{name: fed, then: [{{flow: bread, requests: 20}}]}}\n"
                  "  - {{name: locked, do: [{{apply: {{cluster: cluster2, objects: [{}]}}}}], then: [{{flow: bread, "
                  "requests: 20}}]}}\n",
                  WAVETANK_SOURCE_DIR, policy));
  const std::string log = (folder_ / "loaf.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", scenario, log)).code, 0);
  const Ran ran = Call(fmt::format("diff {0}@fed {0}@locked", log));
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, testing::AllOf(HasSubstr("| bread | fate"), HasSubstr("fail**"),
                                         HasSubstr("| cluster2 | AuthorizationPolicy sample/no-loaves | appears |")));
}

TEST_F(LogQuestions, InputsThatFailRequestsOnlyTogetherAreAllNamed) {
  const std::string steps = R"(
  - name: nobody at home
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}}]
    then: [{flow: f, requests: 20}]
  - name: nobody elsewhere
    do: [{remoteSecret: {of: cluster2, in: cluster1, state: deleted}}]
    then: [{flow: f, requests: 40}]
)";
  std::ifstream in(scenario_);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.resize(text.find("  - name: scaled"));
  const std::string log = (folder_ / "together.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", Write("together.yaml", text + steps), log)).code, 0);
  const json why = Json(fmt::format("why {} --failed --json", log));
  ASSERT_EQ(why["groups"].size(), 1u) << why.dump(1);
  EXPECT_EQ(why["groups"][0]["input"]["kind"], "remoteSecret");
  ASSERT_EQ(why["groups"][0]["also"].size(), 1u) << why.dump(1);
  EXPECT_EQ(why["groups"][0]["also"][0]["body"]["name"], "helloworld-v1");
}

TEST_F(LogQuestions, LogsOfBothIstiodsMakeAMeshThatDoesTheSame) {
  std::string sources;
  for (const char* cluster : {"cluster1", "cluster2"}) {
    sources += " " + Write(fmt::format("istiod-{}.log", cluster),
                           Call(fmt::format("logs {} istiod@{}", log_, cluster)).output);
  }
  const std::string imported = (folder_ / "imported.wtlog").string();
  ASSERT_EQ(Call(fmt::format("import{} -o {}", sources, imported)).code, 0);
  const json judged = Json(fmt::format("replay {} --json", imported), 1);
  EXPECT_GE(judged["agrees"], 20) << judged.dump(1);
  EXPECT_GE(judged["reproduced"], 0.75) << judged.dump(1);
  // No line tells a root: that the two of the skeleton differ is nothing of the mesh's.
  const Ran checked = Call("check " + imported);
  EXPECT_THAT(checked.output, Not(HasSubstr("WT301")));
}

// The line names the policy alone; its selector was made up, and so is whatever is wrong with that.
TEST_F(LogQuestions, WhatAnImportMadeUpIsNoFinding) {
  const std::string istiod = Write(
      "istiod.log",
      "2024-05-06T07:08:00.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config AuthorizationPolicy/shop/x: 100ms "
      "since last change, 100ms since last push, full=true\n");
  const std::string imported = (folder_ / "imported.wtlog").string();
  ASSERT_EQ(Call(fmt::format("import {} -o {}", istiod, imported)).code, 0);
  const Ran ran = Call("check " + imported);
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(ran.output, testing::AllOf(Not(HasSubstr("AuthorizationPolicy shop/x")), Not(HasSubstr("WT211"))));
  EXPECT_THAT(ran.error, HasSubstr("made up of lines which name them"));
}

TEST_F(LogQuestions, WithOtherNamesALogDoesTheSame) {
  const std::string other = (folder_ / "other.wtlog").string();
  const Ran ran = Call(fmt::format("anonymise {} -o {}", log_, other));
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("both behave alike"));
  const std::string inputs = Call("replay --inputs " + other).output;
  EXPECT_THAT(inputs, Not(HasSubstr("helloworld")));
}

// Which replica goes when a Deployment shrinks, and which pod of a lost node first, is a matter of names that end in
// hashes.
TEST_F(LogQuestions, WithOtherNamesPodsAreOnTheSameNodes) {
  std::ifstream in(scenario_);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.insert(text.find("network: network2"), "nodes: [{name: na}, {name: nb}, {name: nc}]\n    ");
  text += R"(
  - name: more
    do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 7}}]
    then: [{flow: f, requests: 20}]
  - name: fewer
    do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 4}}]
    then: [{flow: f, requests: 20}]
  - name: a node is emptied
    do: [{drain: {cluster: cluster2, node: nb}}]
    then: [{flow: f, requests: 20}]
)";
  const std::string log = (folder_ / "nodes.wtlog").string();
  ASSERT_EQ(Call(fmt::format("run {} -o {}", Write("nodes.yaml", text), log)).code, 0);
  const Ran ran = Call(fmt::format("anonymise {} -o {}", log, (folder_ / "other.wtlog").string()));
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
}

TEST_F(LogQuestions, DiffOfTwoInstantsNamesWhatCameBetween) {
  const Ran same = Call(fmt::format("diff {0}@scaled {0}@scaled --fail-on-change", log_));
  EXPECT_EQ(same.code, 0) << same.output << same.error;
  const Ran ran = Call(fmt::format("diff {0}@scaled \"{0}@something else\" --fail-on-change", log_));
  EXPECT_EQ(ran.code, 1) << ran.output << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("helloworld"));
}

// An engineer knows when it was, not how long after the world's beginning.
TEST_F(LogQuestions, OfAnImportedLogTheCalendarsTimeIsTaken) {
  const std::string day = "2024-05-06T07:08:";
  const std::string istiod = Write(
      "istiod.log", day +
                        "00.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config Sidecar/shop/x: 100ms since last "
                        "change, 100ms since last push, full=true\n" +
                        day +
                        "20.100000Z\tinfo\tads\tPush debounce stable[3] 1 for config Sidecar/shop/y: 100ms since "
                        "last change, 100ms since last push, full=true\n");
  const std::string log = (folder_ / "imported.wtlog").string();
  ASSERT_EQ(Call(fmt::format("import {} -o {}", istiod, log)).code, 0);
  const auto sidecars = [&](const std::string& at) {
    return Json(fmt::format("state {} --at {} -o json", log, at))["apiServers"]["primary"]["Sidecar"].size();
  };
  EXPECT_EQ(sidecars(day + "10Z"), 1u);
  EXPECT_EQ(sidecars(day + "21Z"), 2u);
  ExpectRefused(Call(fmt::format("state {} --at 2024-05-06T07:00:00Z", log)), {"2024-05-06T07:07:00", "a later one"});
  EXPECT_THAT(Call(fmt::format("why {} --push 2 --json", log)).output, HasSubstr("\"at\":"));
  ExpectRefused(Call(fmt::format("state {} --at 2024-05-06T07:00:00Z", log_)), {"--at"});
}

TEST_F(LogQuestions, MistakesNameThePlaceAndTheRemedy) {
  ExpectRefused(Call(fmt::format("state {} --at 1h", log_)), {"1h", "it ends at", "take an earlier one"});
  ExpectRefused(Call(fmt::format("state {} --at 'input 9999'", log_)), {"it has inputs 0 to"});
  ExpectRefused(Call(fmt::format("state {} --at nonsense", log_)), {"--at 'nonsense'", "something else"});
  ExpectRefused(Call(fmt::format("bisect {} --holds nonsense", log_)), {"--holds", "wavetank invariants"});
  ExpectRefused(Call(fmt::format("bisect {} --holds 'requests: {{flow: g, failed: 0}}'", log_)),
                {"--holds:1:", "no flow is named 'g'"});
  ExpectRefused(Call(fmt::format("bisect {} --holds 'converged: {{within: <= 1s}}'", log_)), {"a log has none"});
  ExpectRefused(Call(fmt::format("shrink {} --shows I1 -o /nowhere/small", log_)), {"/nowhere"});
  ExpectRefused(Call(fmt::format("run {} --invariants I99", scenario_)), {"I99", "wavetank invariants"});
  std::filesystem::resize_file(log_, std::filesystem::file_size(log_) / 2);
  for (const char* verb : {"state {}", "bisect {} --holds I1", "shrink {} --shows I1 -o /dev/null/x"})
    EXPECT_EQ(Call(fmt::format(fmt::runtime(verb), log_)).code, 2) << verb;
}

}  // namespace
}  // namespace wavetank
