// `control-plane-diff` and `run --control-plane` from outside. A living wavetank stands in for the real istiod, told by
// a script that speaks to the outside as pilot-discovery does; with $WAVETANK_PILOT_DISCOVERY a real one is asked.
#include <cstdlib>

#include "nlohmann/json.hpp"
#include "tests/cli/program.h"
#include "tests/left_out.h"

namespace wavetank {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ControlPlane : public ProgramTest {
 protected:
  // One cluster, one client, one service; `replicas` of it.
  std::string Scenario(const std::string& name, int replicas, const std::string& steps) {
    const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests";
    std::filesystem::create_directories(folder_ / name);
    const std::string deployment = Write(name + "/more.yaml", fmt::format(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {{name: more, namespace: sample}}
spec:
  replicas: {}
  selector: {{matchLabels: {{app: helloworld, version: more}}}}
  template:
    metadata: {{labels: {{app: helloworld, version: more}}}}
    spec:
      containers:
        - {{name: helloworld, image: example, ports: [{{containerPort: 5000}}]}}
)",
                                                                          replicas));
    return Write(name + "/scenario.yaml", fmt::format(R"(
name: {0}
clusters:
  - name: cluster1
    network: network1
    manifests: [{1}/istiod.yaml, {1}/sample.yaml, {1}/helloworld-service.yaml, {2}, {1}/sleep.yaml]
flows:
  - {{name: calls, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", path: /hello}}
steps:
{3})",
                                                      name, manifests, deployment, steps));
  }

  // What it serves is the mesh of `scenario`, whatever its config cluster holds.
  std::string StandIn(const std::string& scenario) {
    const std::string path = Write("pilot-discovery", fmt::format(R"sh(#!/bin/sh
{}/wavetank serve {} --listen 127.0.0.1:0 --secure-listen "" --json --no-watch > ready &
trap 'kill $!; wait; exit 0' TERM
while ! grep -q plaintext ready; do sleep 0.05; done
echo "info	starting gRPC discovery service at $(sed 's/.*"plaintext":"\([^"]*\)".*/\1/' ready)"
wait
)sh",
                                                                  WAVETANK_BINARY_DIR, scenario));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
};

TEST_F(ControlPlane, DiffFindsNothingWhereBothServeTheSameMeshAndNamesTheFieldWhereNot) {
  const std::string two = Scenario("two", 2, "  - name: nothing happens\n");
  const std::string steps =
      "  - name: one more\n    do:\n      - scale: {cluster: cluster1, deployment: sample/more, replicas: 3}\n";
  const std::string three = Scenario("three", 2, steps);
  const std::string program = StandIn(two);
  Ran ran = Call("control-plane-diff " + two + " --json --control-plane " + program);
  ASSERT_EQ(ran.code, 0) << ran.error << ran.output;
  json out = json::parse(ran.output);
  EXPECT_EQ(out["equal"], true);
  ASSERT_EQ(out["steps"].size(), 2u);
  EXPECT_EQ(out["steps"][0]["name"], "the mesh is up");
  EXPECT_EQ(out["steps"][1]["name"], "nothing happens");
  EXPECT_EQ(out["steps"][0]["proxies"], 3);
  EXPECT_GT(out["steps"][0]["resources"], 50);

  // The stand-in knows nothing of the third replica: who holds what is said by proxy, type and path.
  ran = Call("control-plane-diff " + three + " --json --patience 300ms --control-plane " + program);
  ASSERT_EQ(ran.code, 1) << ran.error;
  out = json::parse(ran.output);
  EXPECT_EQ(out["steps"][0]["equal"], true);
  ASSERT_EQ(out["steps"][1]["equal"], false);
  bool endpoint = false;
  for (const json& difference : out["steps"][1]["differences"]) {
    const std::string at = difference["path"];
    endpoint = endpoint || (difference["type"] == "eds" && at.find("outbound|5000||helloworld.sample") == 0 &&
                            at.find("lb_endpoints[2]") != std::string::npos && difference.contains("ours") &&
                            !difference.contains("real"));
  }
  EXPECT_TRUE(endpoint) << ran.output;
  ran = Call("control-plane-diff " + three + " --diff --patience 300ms --control-plane " + program);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, HasSubstr("+++ ours/"));
  EXPECT_THAT(ran.output, HasSubstr("AFTER "));
}

TEST_F(ControlPlane, AScenariosExpectationsAreJudgedInRealTime) {
  const std::string scenario = Scenario("traffic", 2,
                                        "  - name: calls\n    then:\n      - {flow: calls, requests: 20}\n"
                                        "    expect:\n      - requests: {failed: 0, sent: 20}\n");
  const std::string program = StandIn(scenario);
  Ran ran = Call("run " + scenario + " --json --control-plane " + program);
  ASSERT_EQ(ran.code, 0) << ran.error << ran.output;
  // What was done to the mesh, for our own istiod to live through.
  const std::string log = (folder_ / "log").string();
  ran = Call("run " + scenario + " -o " + log + " --control-plane " + program);
  ASSERT_EQ(ran.code, 0) << ran.error << ran.output;
  ran = Call("replay --json " + log);
  ASSERT_EQ(ran.code, 0) << ran.error;
  const json replayed = json::parse(ran.output);
  EXPECT_EQ(replayed["realIstiod"], true);
  EXPECT_EQ(replayed["complete"], true);
  EXPECT_FALSE(replayed.contains("identical")) << ran.output;
  EXPECT_FALSE(replayed["state"]["endpoints"].empty()) << ran.output;
  ran = Call("replay --inputs " + log);
  EXPECT_THAT(ran.output, HasSubstr("traffic"));
  ExpectRefused(Call("run " + scenario + " --from " + log + " --control-plane " + program), {"--from"});
}

TEST_F(ControlPlane, WhatAServedMeshWentThroughWithARealOneIsReplayedOnOurs) {
  const std::string scenario = Scenario("served", 2, "  - name: nothing happens\n");
  const std::string log = (folder_ / "log").string(), stand_in = StandIn(scenario);
  // One whose serve is killed must go with it, so it is one process.
  const std::string idle =
      Write("idle", "#!/bin/sh\necho starting gRPC discovery service at 127.0.0.1:1\nexec sleep 600\n");
  std::filesystem::permissions(idle, std::filesystem::perms::owner_all);
  for (const bool killed : {false, true}) {
    const std::string program = killed ? idle : stand_in;
    Process server({"serve", scenario, "--control-plane", program, "--listen", "127.0.0.1:0", "--secure-listen", "",
                    "--kube", "127.0.0.1:0", "--json", "--no-watch", "-o", log},
                   (folder_ / "server").string());
    const json ready = json::parse(server.Line(), nullptr, false);
    ASSERT_FALSE(ready.is_discarded()) << Read(folder_ / "server");
    const std::string api = ready["kube"][0]["server"].get<std::string>().substr(7);
    std::string more = Read(folder_ / "served/more.yaml");
    more.replace(more.find("replicas: 2"), 11, "replicas: 4");
    const Ran applied = Call("apply --server " + api + " --cluster cluster1=" + Write("four.yaml", more));
    ASSERT_EQ(applied.code, 0) << applied.error;
    server.Signal(killed ? SIGKILL : SIGTERM);
    EXPECT_EQ(server.Wait(), killed ? 1000 + SIGKILL : 0) << Read(folder_ / "server");

    const std::string kept = killed ? log + ".partial" : log;
    Ran ran = Call("replay " + kept);
    EXPECT_EQ(ran.code, killed ? 3 : 0) << ran.error;
    EXPECT_THAT(ran.output, HasSubstr("a real istiod served this run, and here ours did"));
    ran = Call("replay --json " + kept);
    ASSERT_EQ(ran.code, killed ? 3 : 0) << ran.error;
    const json replayed = json::parse(ran.output);
    EXPECT_EQ(replayed["complete"], !killed);
    EXPECT_THAT(replayed["state"]["endpoints"].dump(), HasSubstr("helloworld.sample"));
    ran = Call("run --json --from " + kept);
    ASSERT_EQ(ran.code, killed ? 3 : 0) << ran.error;
    const json steps = json::parse(ran.output)["runs"][0]["steps"];
    EXPECT_THAT(steps.back()["actions"].dump(), HasSubstr("/apis/apps/v1/namespaces/sample/deployments/more")) << steps;
    EXPECT_GT(steps.back()["convergence"]["proxies"].size(), 0u) << steps.back();
    std::filesystem::remove(kept);
  }
}

TEST_F(ControlPlane, WhatIsNoControlPlaneIsBadInput) {
  const std::string scenario = Scenario("one", 1, "  - name: nothing happens\n");
  for (const char* verb : {"control-plane-diff", "run", "serve"}) {
    ExpectRefused(Call(fmt::format("{} {} --control-plane {}", verb, scenario, (folder_ / "none").string())),
                  {"none: there is no such file"});
  }
  EXPECT_EQ(Call("control-plane-diff " + (folder_ / "nowhere").string() + " --control-plane /bin/true").code, 2);
  const Ran ran = Call("control-plane-diff " + scenario + " --control-plane /bin/true");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, HasSubstr("the istiod of cluster1 ended with exit code 0"));
}

TEST_F(ControlPlane, ARealIstiodHoldsWhatOursHolds) {
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY names a pilot-discovery of Istio 1.18.2");
  for (const char* scenario : {"scenarios/multi-primary-multi-network", "scenarios/multi-primary-one-network",
                               "scenarios/primary-remote-multi-network", "scenarios/primary-remote-one-network",
                               "tests/cli/real_control_plane"}) {
    const Ran ran =
        Call(fmt::format("control-plane-diff {}/{} --control-plane {}", WAVETANK_SOURCE_DIR, scenario, program));
    EXPECT_EQ(ran.code, 0) << scenario << "\n" << ran.output << ran.error;
  }
}

}  // namespace
}  // namespace wavetank
