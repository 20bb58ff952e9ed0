// The program from outside: bad input gives one clear message, exit code 2, and leaves nothing half-written.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Program = ProgramTest;

constexpr char kCluster[] = "name: t\nclusters:\n  - {name: c1}\n";

TEST_F(Program, NamesAMissingFile) { ExpectRefused(Call("run no-such-folder"), {"no-such-folder"}); }

TEST_F(Program, NamesAFolderThatStandsInAFilesPlace) {
  const std::string folder = folder_.string(), mesh = Write("s.yaml", kCluster);
  for (const std::string& words : {"pc clusters -f " + folder, "calibrate --endpoints 1 " + folder + " " + folder,
                                   "plan --parameters " + folder + " " + mesh + " --slo 'error 0'", "plan " + folder,
                                   "sweep " + folder + " -o " + folder + "/out",
                                   "serve " + mesh + " --kube 127.0.0.1:0 --kube-client-ca " + folder}) {
    ExpectRefused(Call(words), {folder, "is a folder"});
  }
}

TEST_F(Program, AnAnswerThatCannotBePrintedIsNoSuccess) {
  for (const char* verb : {"profiles", "help", "--help"})
    ExpectRefused(Call(std::string(verb) + " >/dev/full"), {"standard output cannot be written"});
}

TEST_F(Program, AFileThatNeverEndsIsTooLarge) {
  ExpectRefused(Call("run /dev/zero"), {"/dev/zero: larger than 16 MiB"});
  ExpectRefused(Call("apply --cluster c1=/dev/zero"), {"/dev/zero: larger than 64 MiB"});
  ExpectRefused(Call("check /dev/zero"), {"/dev/zero: larger than 64 MiB"});
}

TEST_F(Program, APathThatLeadsInACircleOrIsTooLongIsNotFound) {
  const std::string circle = (folder_ / "circle").string(), longer = std::string(300, 'a');
  std::filesystem::create_symlink(circle, circle);
  ExpectRefused(Call("xds " + circle + " --proxy p"), {"circle: no such scenario"});
  ExpectRefused(Call("xds " + longer + " --proxy p"), {"no such scenario"});
  ExpectRefused(Call("diff " + longer + "@1s " + circle), {"no folder with a folder of manifests"});
  ExpectRefused(Call("diff " + folder_.string() + " " + folder_.string()), {"no folder with a folder of manifests"});
}

TEST_F(Program, ANamespaceOfTheCommandLineHasANamespacesName) {
  const std::string mesh = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/manifests/network1.yaml";
  ExpectRefused(Call("check -n Mine --cluster c1=" + mesh), {"-n Mine: is no namespace's name", "RFC 1123"});
}

TEST_F(Program, AControlPlaneIsOfAClusterThatIsThere) {
  const std::string mesh =
      "apply --cluster a=" + std::string(WAVETANK_SOURCE_DIR) + "/scenarios/manifests/network1.yaml";
  ExpectRefused(Call(mesh + " --control-plane b=a"),
                {"--control-plane b=a: no cluster is called b", "--cluster b=FILE"});
  ExpectRefused(Call(mesh + " --control-plane a=a"), {"--control-plane a=a", "an istiod of its own"});
  ExpectRefused(Call(mesh + " --control-plane a=b --control-plane a=c"),
                {"--control-plane a=c: a has b for its control plane already"});
}

TEST_F(Program, NamesFoldersWithinAFolderOfManifestsWhichAreNotRead) {
  const std::filesystem::path cluster = folder_ / "c1";
  std::filesystem::create_directories(cluster / "base");
  for (const char* file : {"a.yaml", "base/b.yaml"})
    std::ofstream(cluster / file) << "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
  for (const char* verb : {"check ", "apply "}) {
    const Ran ran = Call(verb + cluster.string());
    EXPECT_THAT(ran.output + ran.error, HasSubstr((cluster / "base").string() +
                                                  " with it (name that folder, too): what is there has no effect here"))
        << verb;
  }
}

TEST_F(Program, RunsTheScenarioOfTheEnvironmentIfNoneIsNamed) {
  ExpectRefused(Call("run"), {"name a scenario"});
  setenv("WAVETANK_SCENARIO", "no-such-folder", 1);
  ExpectRefused(Call("run"), {"no-such-folder"});
  unsetenv("WAVETANK_SCENARIO");
}

TEST_F(Program, NamesThePlaceOfBrokenYaml) {
  const std::string file = Write("s.yaml", "name: t\nclusters: [\n  - {\n");
  ExpectRefused(Call("run " + file), {file + ":"});
}

TEST_F(Program, JsonThatNestsWithoutEndIsRefusedAndEndsNothing) {
  std::string open, close;
  for (int i = 0; i < 200'000; ++i) open += "{\"a\":", close += "}";
  const std::string endless = open + "1" + close;
  for (const std::string& text :
       {"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[" + endless + "]}",
        "{\"results\":[[{\"field\":\"@message\",\"value\":" + endless + "},{\"field\":\"@ptr\",\"value\":\"x\"}]]}"})
    EXPECT_EQ(Call("import " + Write("evidence.json", text)).code, 2) << text.substr(0, 60);
  const std::string dump = Write("dump.json", "{\"configs\":[" + endless + "]}");
  ExpectRefused(Call("pc clusters -f " + dump), {dump, "JSON"});
}

TEST_F(Program, NamesAnUnknownFieldWithLineAndTheNearestKnownOne) {
  const std::string file = Write("s.yaml", std::string(kCluster) + "stepz: []\n");
  ExpectRefused(Call("run " + file), {file + ":4:", "stepz", "steps"});
}

TEST_F(Program, NamesAnExpectationThatCannotBeRead) {
  const std::string file =
      Write("s.yaml", std::string(kCluster) + "steps:\n  - name: s\n    expect:\n      - requests: {failed: few}\n");
  ExpectRefused(Call("run " + file), {file + ":7:", "few"});
}

TEST_F(Program, KeepsSecretsInLogsAlone) {
  const std::string file = Write("s.yaml", kCluster);
  ExpectRefused(Call("serve " + file + " --keep-secrets"), {"--keep-secrets", "-o FILE"});
  ExpectRefused(Call("import " + file + " --keep-secrets"), {"--keep-secrets", "-o FILE"});
}

TEST_F(Program, SaysOfALogThatKeepsSecretsThatItDoes) {
  const std::string dump = Write("service.yaml",
                                 "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
                                 "spec: {ports: [{name: http, port: 80}]}\n");
  const std::string log = (folder_ / "kept.wtlog").string();
  const Ran written = Call(fmt::format("import {} -o {} --keep-secrets", dump, log));
  EXPECT_EQ(written.code, 0) << written.error;
  EXPECT_THAT(written.output, HasSubstr("note: " + log + ": holds private keys, tokens and passwords"));
  EXPECT_THAT(Call("replay " + log + " --inputs").error, HasSubstr(log + ": holds private keys"));
  EXPECT_THAT(Call("replay " + log + " --verify").error, HasSubstr(log + ": holds private keys"));
}

TEST_F(Program, NamesAPlaceForAccessLogsThatCannotBeWritten) {
  const std::string file = Write("s.yaml", kCluster);
  ExpectRefused(Call("run " + file + " --access-log /no/such/folder/file"), {"/no/such/folder/file"});
  ExpectRefused(Call("run " + file + " --access-log " + folder_.string()), {folder_.string(), "not a file"});
  const std::string there = (folder_ / "access.log").string();
  EXPECT_EQ(Call("run " + file + " --access-log " + there).code, 0);
  EXPECT_TRUE(std::filesystem::exists(there));
}

TEST_F(Program, NamesAnUnknownActionInItsPlace) {
  const std::string file =
      Write("s.yaml", std::string(kCluster) + "steps:\n  - name: s\n    do:\n      - explode: {}\n");
  ExpectRefused(Call("run " + file), {file + ":7:", "explode"});
}

TEST_F(Program, NamesAManifestOfNoKind) {
  const std::string manifest = Write("m.yaml", "apiVersion: v1\nmetadata: {name: x}\n");
  ExpectRefused(Call("apply --cluster c1=" + manifest), {manifest, "kind"});
}

TEST_F(Program, SaysOfFilesOfKustomizeAndHelmWhatToTakeInTheirPlace) {
  for (const auto& [text, remedy] :
       {std::pair("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
                  "take what `kubectl kustomize` prints of its folder"),
        std::pair("apiVersion: v2\nname: chart\nversion: 1.0.0\n", "take what `helm template` prints")})
    ExpectRefused(Call("apply --cluster c1=" + Write("m.yaml", text)), {"m.yaml:1: no Kubernetes object: ", remedy});
}

TEST_F(Program, SaysOfATemplateThatItHasToBeRenderedFirst) {
  for (const char* text :
       {"{{- if .Values.x }}\nkind: Service\n{{- end }}\n", "kind: Service\nmetadata:\n  name: {{ n }}\n"})
    ExpectRefused(Call("apply --cluster c1=" + Write("m.yaml", text)), {"m.yaml:", "helm template"});
}

TEST_F(Program, NamesAManifestWithBrokenYaml) {
  const std::string manifest = Write("m.yaml", "apiVersion: v1\nkind: [\n");
  ExpectRefused(Call("apply --cluster c1=" + manifest), {manifest + ":"});
}

TEST_F(Program, NamesWhatIsMissingWhereItShouldStand) {
  const std::string file =
      Write("s.yaml", std::string(kCluster) + "steps:\n  - name: s\n    do:\n      - cordon: {cluster: c1}\n");
  ExpectRefused(Call("run " + file), {file + ":7:17: steps[0].do[0].cordon.node: is required but missing"});
  const std::string empty = Write("empty.yaml", "name: e\nclusters:\n  - name: c1\n    manifests: ['']\n");
  ExpectRefused(Call("run " + empty), {empty + ":4:17: clusters[0].manifests[0]: names nothing; write a file's"});
  const std::string none =
      Write("none.yaml", "name: none\nclusters:\n  - name: c1\n    network: n1\n    manifests: [gone.yaml]\n");
  ExpectRefused(Call("run " + none), {none + ":5: cluster c1: manifest ", "gone.yaml does not exist; check the path"});
}

TEST_F(Program, NamesWhatAWebhookDeniesInItsPlace) {
  const std::string manifest = Write("m.yaml",
                                     "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
                                     "apiVersion: networking.istio.io/v1beta1\nkind: Sidecar\n"
                                     "metadata: {name: empty, namespace: shop}\n");
  ExpectRefused(Call("apply --cluster c1=" + manifest),
                {manifest + ":5: cluster c1: Sidecar shop/empty: admission webhook", "empty configuration provided"});
  const std::string scenario = Write("s.yaml", "name: s\nclusters: [{name: c1, network: n1, manifests: [m.yaml]}]\n");
  ExpectRefused(Call("run " + scenario), {manifest + ":5: cluster c1: Sidecar shop/empty: admission webhook"});
}

TEST_F(Program, TellsARemoteSecretThatHoldsNoKubeconfig) {
  const std::string secret =
      Write("s.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: istio-remote-secret-c2, namespace: istio-system, "
            "labels: {istio/multiCluster: \"true\"}}\nstringData: {c2: hello}\n");
  // The API server takes such a Secret; istiod does not, and goes on without it.
  const Ran ran = Call("apply --requests 0 --cluster c1=" + secret);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("c2"), HasSubstr("kubeconfig")));
}

TEST_F(Program, TellsACaSecretThatHoldsNoCertificate) {
  const std::string secret =
      Write("s.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: cacerts, namespace: istio-system}\nstringData: "
            "{ca-cert.pem: a, ca-key.pem: b, root-cert.pem: c, cert-chain.pem: d}\n");
  const Ran ran = Call("apply --requests 0 --cluster c1=" + secret);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("istiod"), HasSubstr("ca-cert.pem")));
}

TEST_F(Program, RefusesALogThatIsNone) {
  const std::string file = Write("x.wtlog", "this is no log");
  ExpectRefused(Call("replay " + file), {file});
}

TEST_F(Program, FindsAFlippedBitInALog) {
  const std::string log = (folder_ / "run.wtlog").string();
  ASSERT_EQ(
      Call(fmt::format("run {}/scenarios/multi-primary-one-network --until 1s --log {}", WAVETANK_SOURCE_DIR, log))
          .code,
      0);
  std::string bytes = Read(log);
  // In the body of a record: somewhere past the middle.
  bytes[bytes.size() * 3 / 4] = static_cast<char>(bytes[bytes.size() * 3 / 4] ^ 1);
  std::ofstream(log, std::ios::binary) << bytes;
  ExpectRefused(Call("replay " + log), {log});
  EXPECT_EQ(Read(log), bytes) << "reading changed the file";
}

TEST_F(Program, WritesNoReportWhenTheInputIsBad) {
  const std::string file = Write("s.yaml", std::string(kCluster) + "stepz: []\n");
  EXPECT_EQ(Call("run " + file + " --report " + (folder_ / "report").string()).code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report"));
}

TEST_F(Program, RefusesAnUnknownVerbAndOption) {
  EXPECT_EQ(Call("fly").code, 2);
  EXPECT_EQ(Call("run --fly x").code, 2);
  EXPECT_EQ(Call("").code, 0);  // prints the help
}

TEST_F(Program, HasHelpEverywhere) {
  for (const char* verb : {"", "run", "replay", "apply", "xds", "why", "timing", "version"}) {
    const Ran ran = Call(fmt::format("{} --help", verb));
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_NE(ran.output, "") << verb;
  }
  EXPECT_EQ(Call("help").code, 0);
  EXPECT_THAT(Call("version").output, HasSubstr("1.18.2"));
}

TEST_F(Program, EnvoyDiffSaysWhichEnvoyOrCasesItMisses) {
  ExpectRefused(Call("envoy-diff cases.json --envoy /nowhere/envoy"), {"/nowhere/envoy", "tools/envoy"});
  ExpectRefused(Call("envoy-diff " + (folder_ / "cases.json").string() + " --envoy /bin/true"), {"cases.json"});
  const std::string bad = Write("cases.json", R"({"cases": [{"name": "one", "steps": [{"dance": 1}]}]})");
  ExpectRefused(Call("envoy-diff " + bad + " --envoy /bin/true"), {bad, "case 'one'", "dance"});
}

TEST_F(Program, EnvoyDiffSaysNoWithOneWhereTheEnvoysDiffer) {
  const std::string path =
      Write("cases.json", R"({"cases": [{"name": "one", "resources": {"clusters": [{"static": "c"}]}}]})");
  const Ran ran = Call("envoy-diff " + path + " --json --envoy /bin/true");
  EXPECT_EQ(ran.code, 1) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("\"different\": 1"), HasSubstr("Envoy ended")));
}

}  // namespace
}  // namespace wavetank
