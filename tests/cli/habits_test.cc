// What hands that know other programs do first: help, versions, misspelt verbs, 80 columns, and JSON that always looks
// the same.
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kScenarios = std::string(WAVETANK_SOURCE_DIR) + "/scenarios";
const std::string kTwoRoots = kScenarios + "/two-roots";

class Habits : public ProgramTest {
 protected:
  static size_t Widest(const std::string& text) {
    size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
  }
};

TEST_F(Habits, WithoutAVerbTheHelpIsPrinted) {
  const Ran bare = Call("");
  EXPECT_EQ(bare.code, 0);
  EXPECT_THAT(bare.output, AllOf(HasSubstr("\n  run "), HasSubstr("\n  why "), HasSubstr("wavetank help VERB")));
  EXPECT_EQ(Call("help").output, bare.output);
}

TEST_F(Habits, HelpOfAVerbIsItsHelp) {
  const Ran ran = Call("help why");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_EQ(ran.output, Call("why --help").output);
  ExpectRefused(Call("help yhw"), {"'yhw' is no verb", "did you mean 'why'?"});
}

TEST_F(Habits, AMisspeltVerbIsAnsweredWithTheNearest) {
  ExpectRefused(Call("rnu"), {"'rnu' is no verb", "did you mean 'run'?"});
  ExpectRefused(Call("xyzzyx"), {"'xyzzyx' is no verb", "`wavetank help`"});
}

TEST_F(Habits, ACallThatIsNotUnderstoodNamesItsPlaceAndTheHelp) {
  const std::string help = "`wavetank help run` lists what it takes";
  ExpectRefused(Call("run a.yaml --sed 3"), {"wavetank: run: '--sed' is no option: did you mean '--seed'?", help});
  ExpectRefused(Call("run a.yaml --seed many"), {"wavetank: run: --seed: 'many' is no whole number", help});
  ExpectRefused(Call("run a.yaml --seed"), {"wavetank: run: --seed: a value has to follow", help});
  ExpectRefused(Call("plan"), {"wavetank: plan: fleet is missing (", "`wavetank help plan`"});
  ExpectRefused(Call("--seed 3"), {"wavetank: '--seed' is no option", "`wavetank help`"});
}

TEST_F(Habits, ACallThatIsNotUnderstoodDoesNotRepeatItsToken) {
  const std::string token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzbGVlcCJ9.c2lnbmF0dXJl";
  EXPECT_THAT(Call("run a.yaml --header=" + token).error, AllOf(HasSubstr("'--header'"), Not(HasSubstr("eyJ"))));
  EXPECT_THAT(Call("plan a.yaml " + token).error, AllOf(HasSubstr("too many"), Not(HasSubstr("eyJ"))));
}

TEST_F(Habits, NoHelpIsWiderThanATerminal) {
  std::istringstream lines(Call("").output);
  int verbs = 0;
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    listed = listed || line == "Subcommands:";
    if (!listed || line.size() < 4 || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_LE(Widest(Call("help " + verb).output), 80u) << verb;
    ++verbs;
  }
  EXPECT_GE(verbs, 14);
  EXPECT_LE(Widest(Call("--help-all").output), 80u);
}

TEST_F(Habits, TheVersionIsAFlagToo) { EXPECT_EQ(Call("--version").output, Call("version").output); }

TEST_F(Habits, ProfilesAreListed) {
  const json profiles = json::parse(Call("profiles --json").output);
  EXPECT_GE(profiles["switches"].size(), 4u);
  const std::string listed = Call("profiles").output;
  for (const json& each : profiles["switches"]) EXPECT_THAT(listed, HasSubstr("+" + each["name"].get<std::string>()));
}

TEST_F(Habits, JsonHasOneShapeForOneScenarioAndForTwo) {
  const json one = json::parse(Call("run --json " + kTwoRoots).output);
  const json two = json::parse(Call("run --json " + kTwoRoots + " " + kTwoRoots).output);
  EXPECT_EQ(one["runs"].size(), 1u);
  EXPECT_EQ(two["runs"].size(), 2u);
  EXPECT_EQ(two["runs"][1], one["runs"][0]);
  EXPECT_EQ(one["passed"], true);
}

TEST_F(Habits, ADeadPathBehindRetriesIsOnTheFirstScreen) {
  const Ran ran = Call("run " + kTwoRoots);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output.substr(0, ran.output.find("\n\n")),
              AllOf(HasSubstr("DEAD PATH"), HasSubstr("cluster2's gateway istio-eastwestgateway"),
                    HasSubstr("the caller does not believe its certificate")));
  EXPECT_THAT(ran.output, HasSubstr("although"));
}

TEST_F(Habits, AFlowThatNobodySendsFailsTheRunOnTheFirstScreen) {
  const std::string file = Write("nobody.yaml", "name: Nobody sends\nextends: " WAVETANK_SOURCE_DIR
                                                "/scenarios/multi-primary-multi-network/scenario.yaml\n"
                                                "flows: [{name: f, from: {cluster: cluster1, namespace: sample, app: "
                                                "slep}, to: helloworld.sample:5000}]\n"
                                                "steps: [{name: one, then: [{flow: f, requests: 10}]}]\n");
  const Ran ran = Call("run " + file);
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_THAT(ran.output.substr(0, ran.output.find("\n\n")),
              AllOf(HasSubstr("NOBODY SENDS  f: no pod of app slep of sample in cluster1"), HasSubstr("10 requests")));
  EXPECT_THAT(ran.output, HasSubstr("FAILED"));
  const json run = json::parse(Call("run --json " + file).output)["runs"][0];
  EXPECT_EQ(run["silentFlows"][0]["flow"], "f");
  EXPECT_EQ(run["passed"], false);
}

TEST_F(Habits, VerbsAboutAProxySayWhyThereIsNone) {
  const std::string file = Write("bare.yaml",
                                 "name: No sidecar\nclusters:\n  - name: c1\n    manifests:\n"
                                 "      - objects: [{apiVersion: v1, kind: Namespace, metadata: {name: sample}}]\n"
                                 "      - " WAVETANK_SOURCE_DIR "/scenarios/manifests/sleep.yaml\n");
  const std::string log = folder_ / "bare.wtlog";
  ASSERT_EQ(Call("run " + file + " -o " + log).code, 0);
  for (const std::string& verb :
       {"xds " + file + " --proxy sleep", "pc cluster " + file + " --proxy sleep", "stats " + file + " --proxy sleep",
        "state " + log + " --proxy sleep", "why " + file + " --proxy sleep --host helloworld.sample"}) {
    ExpectRefused(Call(verb), {"none of the 2 pods that run has a sidecar", "istio-injection=enabled", "sample in c1"});
  }
  EXPECT_THAT(Call("ps " + file).error, HasSubstr("no proxy is connected: none of the 2 pods"));
}

TEST_F(Habits, WhyTellsARequestHopByHop) {
  const Ran retried = Call("why " + kTwoRoots + " --flow from-cluster1 --retried");
  EXPECT_EQ(retried.code, 0) << retried.error;
  EXPECT_THAT(retried.output, AllOf(HasSubstr("sleep"), HasSubstr("try 1         cluster2's gateway"),
                                    HasSubstr("the caller does not believe its certificate"),
                                    HasSubstr("outbound|5000||helloworld.sample.svc.cluster.local")));
  const json failed = json::parse(Call("why " + kTwoRoots + " --flow from-cluster1 --failed --json").output);
  EXPECT_EQ(failed["tries"].size(), 3u);
  ExpectRefused(Call("why " + kTwoRoots + " --flow from-cluster2 --failed --request 99999"),
                {"no such request", "fit"});
}

TEST_F(Habits, WhySendsAProbe) {
  const Ran ran = Call("why " + kTwoRoots + " --from sleep@cluster1 --to helloworld.sample:5000 --step 0");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("GET helloworld.sample:5000/"), HasSubstr("endpoint      ")));
  const Ran elsewhere = Call("why " + kTwoRoots + " --from sleep@cluster1 --to helloworld.sample:500 --step 0");
  EXPECT_THAT(elsewhere.output, HasSubstr("cluster PassthroughCluster at 10.")) << elsewhere.output;
  EXPECT_THAT(elsewhere.output, HasSubstr("Service sample/helloworld has no port 500; it has 5000"));
  const std::string routed = Write("routed.yaml", fmt::format(R"(name: n
extends: {}/scenarios/multi-primary-one-network/scenario.yaml
steps:
  - name: routed
    do: [{{apply: {{cluster: cluster1, manifest: {}}}}}]
)",
                                                              WAVETANK_SOURCE_DIR, Write("objects.yaml", R"(
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata: {name: to-v1, namespace: sample}
spec:
  hosts: [helloworld]
  http: [{match: [{uri: {prefix: /v1}}], route: [{destination: {host: helloworld, subset: v1}}]}]
---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: {name: versions, namespace: sample}
spec: {host: helloworld, subsets: [{name: v1, labels: {version: v1}}]}
)")));
  EXPECT_THAT(
      Call("why " + routed + " --from sleep@cluster1 --to helloworld.sample:5000 --path /v1").output,
      AllOf(HasSubstr("of VirtualService sample/to-v1\n"), HasSubstr("shaped by DestinationRule sample/versions\n")));
  ExpectRefused(Call("why " + kTwoRoots + " --from sleep@cluster1 --to helloworld.sample:5000 --path x"),
                {"--path 'x': a path begins with /"});
  ExpectRefused(Call("why " + kTwoRoots + " --flow from-cluster1 --path /x"), {"add --from and --to"});
  ExpectRefused(Call("why " + kTwoRoots + " --from sleep@cluster1 --to helloworld.sample:5000 -H x"),
                {"write it as 'name: value'"});
  ExpectRefused(Call("why " + kTwoRoots + " --from sleep --to helloworld.sample:5000 --step 0"),
                {"more than one pod is named 'sleep'", "@cluster1", "@cluster2"});
  ExpectRefused(Call("why " + kTwoRoots + " --from sleep@cluster1"), {"--from and --to go together"});
}

TEST_F(Habits, ALargeMeshShowsOnceWhatManyProxiesHold) {
  const std::string manifest = Write("large.yaml", R"(apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 30
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: example/cart}]}
)");
  const Ran ran = Call("apply --requests 0 --cluster c1=" + manifest);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr(" and 29 more that hold the same: cart-"));
  size_t lines = 0;
  for (size_t at = 0; (at = ran.output.find("outbound|80||cart.shop", at)) != ran.output.npos; ++at) ++lines;
  EXPECT_EQ(lines, 30u);  // an endpoint each
}

TEST_F(Habits, EventsHaveNames) {
  const std::string log = (folder_ / "a.wtlog").string();
  ASSERT_EQ(Call("run " + kTwoRoots + " --until 10s -o " + log).code, 0);
  const std::string events = Call("replay --events " + log).output;
  EXPECT_THAT(events, AllOf(HasSubstr(": ObjectApplied cluster1"), HasSubstr(": Request "), HasSubstr(" code=200 ")));
  EXPECT_THAT(events, Not(HasSubstr(": kind ")));
}

TEST_F(Habits, AnEmptyAccessLogSaysWhy) {
  const Ran ran = Call("run " + kTwoRoots + " --until 9s --access-log " + (folder_ / "log").string());
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("names no accessLogFile"));
}

TEST_F(Habits, TheSameMomentIsTheSameClockForEveryVerb) {
  const std::string log = (folder_ / "a.wtlog").string();
  const Ran run = Call("run " + kTwoRoots + " --until \"'at rest'+2s\" -o " + log);
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_THAT(run.output, HasSubstr("ended at 10.2 s, as asked for; 4 expectations were not judged"));
  EXPECT_THAT(Call("replay " + log + " --until 10s").output, HasSubstr("\nat 10.0 s\n"));
  ExpectRefused(Call("run " + kTwoRoots + " --until soon"), {"--until 'soon'", "at rest"});
}

TEST_F(Habits, CtrlCLeavesWhatIsKnown) {
  const std::string log = (folder_ / "a.wtlog").string();
  std::vector<std::string> arguments = {"run", "-o", log, kTwoRoots};
  arguments.insert(arguments.end(), 20, kScenarios + "/push-storm");
  Process process(arguments, (folder_ / "stderr").string());
  EXPECT_THAT(process.Line(), StartsWith("Two root certificates"));  // the first is over, another under way
  process.Signal(SIGINT);
  const std::string rest = process.Rest();
  EXPECT_EQ(process.Wait(), 130);
  EXPECT_THAT(rest, HasSubstr("INTERRUPTED"));
  EXPECT_EQ(Call("replay " + log + "-1").code, 0) << "the log of what was over is whole";
}

}  // namespace
}  // namespace wavetank
