// `wavetank record` of a served mesh, as a user does it, and what replay, why and run make of the log.
#include <csignal>
#include <set>

#include "fakes/kube/http/transport/fetch.h"
#include "nlohmann/json.hpp"
#include "tests/await.h"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kTwoClusters[] = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
constexpr char kManifests[] = WAVETANK_SOURCE_DIR "/scenarios/manifests";
constexpr char kHost[] = "helloworld.sample.svc.cluster.local";

constexpr char kSteps[] =
    "name: What if\n"
    "flows: [{{name: f, from: {{cluster: {}, namespace: sample, app: sleep}}, to: helloworld.sample:5000}}]\n"
    "steps:\n"
    "  - name: as recorded\n"
    "    then: [{{flow: f, requests: 400}}]\n"
    "    expect: [{{split: {{flow: f, is: {{v1: 25%, v2: 75%}}}}}}]\n"
    "  - name: without the Secret\n"
    "    do: [{{remoteSecret: {{of: cluster2, in: cluster1, state: deleted}}}}]\n"
    "    then: [{{flow: f, requests: 100}}]\n"
    "    expect: [{{split: {{flow: f, is: {{v1: {}}}}}}}]\n";

class Record : public ProgramTest {
 protected:
  // A mesh served in real time, and its kubeconfig at `config_`.
  void Serve(std::vector<std::string> arguments, const std::string& kube = "127.0.0.1:0") {
    arguments.insert(arguments.begin(), "serve");
    for (const char* more : {"--listen", "127.0.0.1:0", "--secure-listen", "", "--json", "--no-watch", "--kube"})
      arguments.push_back(more);
    arguments.push_back(kube);
    server_ = std::make_unique<Process>(std::move(arguments), folder_ / "server");
    const json ready = json::parse(server_->Line(), nullptr, false);
    ASSERT_FALSE(ready.is_discarded()) << Read(folder_ / "server");
    apis_.clear();
    for (const json& api : ready["kube"]) apis_.push_back(api["server"]);
    api_ = apis_.front().substr(7);
    const Ran kubeconfig = Call("kubeconfig --kube " + api_);
    ASSERT_EQ(kubeconfig.code, 0) << kubeconfig.error;
    config_ = Write("config", kubeconfig.output);
  }
  // A recorder that has its first picture, which its log's growth tells.
  std::unique_ptr<Process> StartRecorder(const std::string& log) {
    auto out = std::make_unique<Process>(
        std::vector<std::string>{"record", "--kubeconfig", config_, "-o", folder_ / log}, folder_ / (log + ".errors"));
    EXPECT_TRUE(Await([&] { return Size(log + ".partial") > 24'000; })) << Read(folder_ / (log + ".errors"));
    return out;
  }
  uintmax_t Size(const std::string& name) const {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(folder_ / name, error);
    return error ? 0 : size;
  }
  void Scale(const std::string& deployment, int replicas) {
    std::string text = Read(std::string(kManifests) + "/" + deployment + ".yaml");
    const size_t at = text.find("replicas: 1");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 11, "replicas: " + std::to_string(replicas));
    const std::string file = Write("scaled.yaml", text);
    const std::string cluster = deployment == "helloworld-v2" && clusters_ > 1 ? "cluster2" : "cluster1";
    const Ran ran = Call(fmt::format("apply --server {} --cluster {}={}", api_, cluster, file));
    ASSERT_EQ(ran.code, 0) << ran.error;
  }
  // So many endpoints of helloworld are ready in a cluster.
  bool Ready(size_t cluster, size_t count) {
    return Await([&] {
      const auto slices = fakekube::http::Fetch(
          apis_.at(cluster), "/apis/discovery.k8s.io/v1/namespaces/sample/endpointslices", std::chrono::seconds(5));
      const json list = slices.ok() ? json::parse(*slices, nullptr, false) : json();
      size_t ready = 0;
      for (const json& slice : list.is_object() ? list["items"] : json::array()) {
        if (slice["metadata"]["name"].get<std::string>().rfind("helloworld-", 0) != 0) continue;
        for (const json& endpoint : slice["endpoints"]) ready += endpoint["conditions"]["ready"] == true ? 1 : 0;
      }
      return ready == count;
    });
  }
  // A cluster with one helloworld, on which these steps are played in real time.
  void ServeOneCluster(const std::string& name, const std::string& steps) {
    const std::string scenario = fmt::format(R"(name: {1}
clusters:
  - name: cluster1
    manifests: [{0}/network1.yaml, {0}/istiod.yaml, {0}/sample.yaml, {0}/helloworld-service.yaml, {0}/helloworld-v1.yaml]
steps:)",
                                             kManifests, name);
    const std::string file = Write(name + ".yaml", scenario + steps);
    // `serve` takes a scenario for one by its name.
    std::filesystem::create_directory(folder_ / name);
    std::filesystem::rename(file, folder_ / name / "scenario.yaml");
    Serve({folder_ / name, "--play"});
  }
  // How many pods of helloworld the recording has at its end.
  // `code`: 3 for a log that is not whole.
  size_t Helloworlds(const std::string& log, int code = 0) {
    const Ran ran = Call(fmt::format("replay {} --json", (folder_ / log).string()));
    EXPECT_EQ(ran.code, code) << ran.error;
    return Helloworlds(ran);
  }
  // Waits until a recorder that still runs has written down so many of them. It locks its log, so a copy is looked at;
  // one that was made in the middle of a write cannot be read, and the next one can.
  bool Recorded(const std::string& log, size_t count) {
    const std::filesystem::path running = folder_ / (log + ".partial"), copy = folder_ / "copy.partial";
    return Await([&] {
      std::error_code error;
      for (const char* part : {"", "-journal"}) {
        std::filesystem::remove(copy.string() + part, error);
        std::filesystem::copy_file(running.string() + part, copy.string() + part, error);
      }
      const Ran ran = Call(fmt::format("replay {} --json", copy.string()));
      return ran.code == 3 && Helloworlds(ran) == count;  // nobody has finished it
    });
  }
  static size_t Helloworlds(const Ran& replayed) {
    const json out = json::parse(replayed.output, nullptr, false);
    if (out.is_discarded()) return 0;
    std::set<std::string> pods;
    for (const json& row : out["state"]["endpoints"]) {
      const std::string proxy = row.value("proxy", "");
      if (proxy.rfind("helloworld-", 0) == 0) pods.insert(proxy);
    }
    return pods.size();
  }

  size_t clusters_ = 1;
  std::unique_ptr<Process> server_;
  std::vector<std::string> apis_;
  std::string api_, config_;
};

// `check` of clusters as they are now, by the file with which kubectl reaches them.
TEST_F(Record, ACheckOfAKubeconfigFindsWhatStandsInLiveClustersAndLeavesNoLogBehind) {
  Serve({kTwoClusters});
  const std::filesystem::path temporary = folder_ / "tmp";
  std::filesystem::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const Ran well = Call("check " + config_ + " --fail-on info");
  EXPECT_EQ(well.code, 0) << well.output << well.error;
  const std::string rule = Write("rule.yaml",
                                 "apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\n"
                                 "metadata: {name: helloworld, namespace: sample}\nspec:\n  hosts: [helloworld]\n"
                                 "  http: [{route: [{destination: {host: nowhere}}]}]\n");
  ASSERT_EQ(Call(fmt::format("apply --server {} --cluster cluster1={}", api_, rule)).code, 0);
  const Ran ill = Call("check --kubeconfig " + config_ + " --output sarif");
  EXPECT_EQ(ill.code, 1) << ill.error;
  EXPECT_THAT(ill.output, AllOf(HasSubstr("IST0101"), HasSubstr("VirtualService sample/helloworld in cluster1"),
                                HasSubstr("\"" + config_ + "\"")));
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  unsetenv("TMPDIR");

  const std::string others =
      Write("others.yaml",
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: whole, namespace: sample}\n"
            "spec: {minAvailable: 1, selector: {matchLabels: {app: helloworld}}}\n---\n"
            "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny, namespace: sample}\n"
            "spec: {podSelector: {}, policyTypes: [Ingress]}\n---\n"
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
            "metadata: {name: istio-sidecar-injector-gone, labels: {istio.io/rev: gone}}\nwebhooks:\n"
            "- {name: gone.sidecar-injector.istio.io, sideEffects: None, admissionReviewVersions: [v1],\n"
            "   namespaceSelector: {matchLabels: {istio.io/rev: gone}},\n"
            "   clientConfig: {service: {name: istiod-gone, namespace: istio-system}}}\n");
  ASSERT_EQ(Call(fmt::format("apply --server {} --cluster cluster1={}", api_, others)).code, 0);
  const Ran more = Call("check " + config_ + " --fail-on info");
  EXPECT_THAT(more.output, AllOf(HasSubstr("WT705"), HasSubstr("WT123"), HasSubstr("IST0139"))) << more.error;

  ExpectRefused(Call("check " + config_ + " --context nobody"),
                {"it has no context 'nobody'; it has: cluster1, cluster2"});
  ExpectRefused(Call("check --context cluster1"), {"--kubeconfig"});
  ExpectRefused(Call(fmt::format("check {} {}", config_, kTwoClusters)), {"stand alone"});
  ExpectRefused(Call(fmt::format("check {} --with cluster1={}", config_, rule)), {"not with live clusters"});
  server_->Signal(SIGTERM);
  server_->Wait();
  EXPECT_EQ(Call("check " + config_ + " --context nobody").code, 2);
}

TEST_F(Record, AMeshForReplayWhyAndRun) {
  clusters_ = 2;
  Serve({kTwoClusters});
  const std::string log = folder_ / "mesh.wtlog";
  std::unique_ptr<Process> recorder = StartRecorder("mesh.wtlog"), doomed = StartRecorder("killed.wtlog");
  EXPECT_EQ(Call("replay " + log).code, 2) << "it is not finished";
  Scale("helloworld-v2", 3);
  ASSERT_TRUE(Ready(1, 3));
  ASSERT_TRUE(Recorded("mesh.wtlog", 4));
  ASSERT_TRUE(Recorded("killed.wtlog", 4));
  recorder->Signal(SIGINT);
  const std::string said = recorder->Rest();
  EXPECT_EQ(recorder->Wait(), 0) << Read(folder_ / "mesh.wtlog.errors");
  EXPECT_THAT(said, AllOf(HasSubstr(log + ": "), HasSubstr("CONTEXT"), HasSubstr("network2")));
  EXPECT_FALSE(std::filesystem::exists(log + ".partial"));

  const Ran replay = Call("replay " + log);
  EXPECT_EQ(replay.code, 0) << replay.error;
  EXPECT_THAT(replay.output, AllOf(HasSubstr("a recording, so there is nothing to compare"),
                                   HasSubstr("helloworld-v2-"), Not(HasSubstr("as far as it went"))));
  EXPECT_EQ(Helloworlds("mesh.wtlog"), 4u);

  const Ran many = Call(fmt::format("why {} --proxy sleep --host {}", log, kHost));
  EXPECT_EQ(many.code, 2);
  const size_t end = many.error.find("@cluster1", many.error.find("sleep-"));
  ASSERT_NE(end, std::string::npos) << many.error;
  const std::string sleep = many.error.substr(many.error.rfind(' ', end) + 1, end + 9 - many.error.rfind(' ', end) - 1);
  const Ran why = Call(fmt::format("why {} --proxy {} --host {}", log, sleep, kHost));
  EXPECT_EQ(why.code, 0) << why.error;
  EXPECT_THAT(why.output, AllOf(HasSubstr("cluster cluster1, network network1"), HasSubstr("cluster1 1, cluster2 3"),
                                HasSubstr("15443 weight 3")));
  ExpectRefused(Call(fmt::format("why {} --proxy sleep --host {} --step 1", log, kHost)), {"has no steps"});
  ExpectRefused(Call(fmt::format("why {} --proxy sleep --host {} --at 0s", log, kHost)), {"no proxy is connected"});

  const Ran changes = Call("run --from " + log);
  EXPECT_EQ(changes.code, 0) << changes.error;
  EXPECT_THAT(changes.output, AllOf(HasSubstr("the first picture  at 0 ms"), HasSubstr("\nchange at "),
                                    HasSubstr("cluster2: apply EndpointSlice sample/helloworld-"),
                                    HasSubstr("converged in "), HasSubstr("PASSED")));

  // Steps on the mesh as it was, whose clusters the log knows.
  const std::string steps = Write("try.yaml", fmt::format(kSteps, "cluster1", "100%"));
  const std::string again = folder_ / "again.wtlog";
  const Ran ran = Call(fmt::format("run --from {} {} -o {}", log, steps, again));
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("PASSED  2 of 2 expectations held"));
  const Ran same = Call("replay " + again);
  EXPECT_EQ(same.code, 0) << same.output << same.error;
  EXPECT_THAT(same.output, HasSubstr("identical"));
  EXPECT_EQ(
      Call(fmt::format("run --from {} {}", log, Write("no.yaml", fmt::format(kSteps, "cluster1", "1%, v2: 99%")))).code,
      1);
  ExpectRefused(Call(fmt::format("run --from {} {}", log, Write("no.yaml", fmt::format(kSteps, "moon", "100%")))),
                {"no.yaml:2:", "no cluster is named 'moon'"});
  ExpectRefused(Call("run " + steps), {"clusters", "required"});
  ExpectRefused(Call(fmt::format("run --from {} {}", steps, steps)), {"not an event log"});

  // A recorder that had no time to end: what it had written a second before is there.
  doomed->Signal(SIGKILL);
  EXPECT_EQ(doomed->Wait(), 1000 + SIGKILL);
  ExpectRefused(Call("replay " + (folder_ / "killed.wtlog").string()), {"never finished", "killed.wtlog.partial"});
  const Ran left = Call("replay " + (folder_ / "killed.wtlog.partial").string());
  EXPECT_EQ(left.code, 3) << left.error;
  EXPECT_THAT(left.error, HasSubstr("not whole"));
  EXPECT_THAT(left.output, HasSubstr("as far as it went"));
  EXPECT_EQ(Helloworlds("killed.wtlog.partial", 3), 4u);
  EXPECT_EQ(
      Call(fmt::format("why {}.partial --proxy {} --host {}", (folder_ / "killed.wtlog").string(), sleep, kHost)).code,
      3);
  // And its name can be used again.
  const Ran over =
      Call(fmt::format("record --kubeconfig {} --for 0s -o {}", config_, (folder_ / "killed.wtlog").string()));
  EXPECT_EQ(over.code, 0) << over.error;
  EXPECT_EQ(Helloworlds("killed.wtlog"), 4u);
}

TEST_F(Record, GoesOnAcross410AndBrokenWatches) {
  ServeOneCluster("failing", R"(
  - name: watches break, nobody answers, what happened is forgotten
    at: 2s
    repeat: {times: 6, every: 500ms}
    do:
      - {apiServer: {cluster: cluster1, fault: watches-dropped}}
      - {scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}
      - {apiServer: {cluster: cluster1, fault: unreachable}}
      - {scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 4}}
      - {apiServer: {cluster: cluster1, fault: history-gone}}
      - {apiServer: {cluster: cluster1, fault: none}}
)");
  std::unique_ptr<Process> recorder = StartRecorder("mesh.wtlog");
  ASSERT_TRUE(Ready(0, 4));
  EXPECT_TRUE(Await([&] {
    return Read(folder_ / "mesh.wtlog.errors").find("note: context cluster1") != std::string::npos;
  })) << "its watches broke";
  EXPECT_TRUE(Recorded("mesh.wtlog", 4));
  recorder->Signal(SIGTERM);
  recorder->Rest();
  EXPECT_EQ(recorder->Wait(), 0) << Read(folder_ / "mesh.wtlog.errors");
  EXPECT_THAT(Read(folder_ / "mesh.wtlog.errors"), HasSubstr("note: context cluster1"));
  EXPECT_EQ(Helloworlds("mesh.wtlog"), 4u) << "two of them came while nobody answered";
}

TEST_F(Record, GoesOnInAnotherLifeOfTheServer) {
  ServeOneCluster("scaling", R"(
  - name: scaled
    at: 1s
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 4}}]
)");
  std::unique_ptr<Process> recorder = StartRecorder("mesh.wtlog");
  const std::string before = api_;
  ASSERT_TRUE(Ready(0, 4));
  ASSERT_TRUE(Recorded("mesh.wtlog", 4));
  server_->Signal(SIGKILL);
  server_->Wait();
  Serve({folder_ / "scaling"}, api_);  // at the same place, and nothing was scaled in it
  ASSERT_EQ(api_, before);
  ASSERT_TRUE(Ready(0, 1));
  EXPECT_TRUE(Recorded("mesh.wtlog", 1)) << "it came back to the server of the same address";
  recorder->Signal(SIGTERM);
  recorder->Rest();
  EXPECT_EQ(recorder->Wait(), 0) << Read(folder_ / "mesh.wtlog.errors");
  const Ran run = Call("run --from " + (folder_ / "mesh.wtlog").string());
  EXPECT_EQ(run.code, 0) << run.error;
  std::set<std::string> pods;
  const std::string put = "apply Pod sample/helloworld-v1-";
  for (size_t at = 0; (at = run.output.find(put, at)) != std::string::npos; ++at)
    pods.insert(run.output.substr(at, run.output.find('\n', at) - at));
  EXPECT_GE(pods.size(), 4u) << run.output;
  EXPECT_EQ(Helloworlds("mesh.wtlog"), 1u) << "those of the other life are gone";
}

TEST_F(Record, SaysWhatItCannotDo) {
  const std::string record = "record -o " + (folder_ / "x.wtlog").string();
  ExpectRefused(Call(record + " --kubeconfig " + (folder_ / "none").string()), {"none"});
  const std::string config = Write("config",
                                   "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "
                                   "\"http://127.0.0.1:1\"}}]\nusers: [{name: u, user: {}}]\n"
                                   "contexts: [{name: here, context: {cluster: c, user: u}}]\n");
  ExpectRefused(Call(record + " --kubeconfig " + config + " --for soon"), {"soon", "duration"});
  ExpectRefused(Call(record + " --kubeconfig " + config + " --context there"), {"no context 'there'", "here"});
  EXPECT_EQ(Call(record).code, 2) << "--kubeconfig is required";
  ExpectRefused(Call("record --kubeconfig " + config + " -o " + folder_.string()), {folder_.string()});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.wtlog.partial"));
}

}  // namespace
}  // namespace wavetank
