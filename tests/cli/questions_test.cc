// golden, xds and why as a user reads them: tables, JSON, exit codes 0, 1 and 2.
#include <filesystem>
#include <map>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

const std::string kCases = std::string(WAVETANK_SOURCE_DIR) + "/tests/oracles/golden/cases";
const std::string kTwoNetworks = kCases + "/two-networks";

// The cells of a table's lines, which stand two blanks or more apart.
std::vector<std::vector<std::string>> Table(const std::string& output) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (size_t at = line.find_first_not_of(' '); at != std::string::npos;) {
      const size_t end = line.find("  ", at);
      cells.push_back(line.substr(at, end - at));
      at = end == std::string::npos ? end : line.find_first_not_of(' ', end);
    }
  }
  return rows;
}

class Questions : public ProgramTest {
 protected:
  // A case that may be spoilt.
  std::string CopyOfCase() {
    const std::filesystem::path copy = folder_ / "two-networks";
    std::filesystem::copy(kTwoNetworks, copy, std::filesystem::copy_options::recursive);
    return copy.string();
  }
  // Changes the recorded endpoints of the copy.
  static void Spoil(const std::filesystem::path& copy) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(copy)) {
      if (file.path().filename() != "eds.json") continue;
      std::string text = Read(file.path());
      const size_t at = text.find("10.10.0.1");
      if (at == std::string::npos) continue;
      text.replace(at, 9, "10.10.0.7");
      std::ofstream(file.path()) << text;
    }
  }
};

TEST_F(Questions, GoldenCountsFilesPerKindAndEndsWithZero) {
  const Ran ran = Call("golden " + kTwoNetworks);
  EXPECT_EQ(ran.code, 0) << ran.error;
  const auto rows = Table(ran.output);
  ASSERT_GE(rows.size(), 3u);
  EXPECT_THAT(rows.front(), ElementsAre("KIND", "FILES", "EQUAL", "DIFFERENT", "CASES", "EQUAL"));
  EXPECT_THAT(rows, Contains(ElementsAre("eds", "2", "2", "0", "1", "1")));
  EXPECT_EQ(rows.back().front(), "all");
}

TEST_F(Questions, GoldenNamesADifferenceAndEndsWithOne) {
  const std::string copy = CopyOfCase();
  Spoil(copy);
  const std::string file = (folder_ / "out.json").string();
  const Ran ran = Call("golden " + copy + " --kind eds --diff --json " + file);
  EXPECT_EQ(ran.code, 1) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("two-networks"), HasSubstr("outbound|8000||cart.shop.svc.cluster.local"),
                                HasSubstr("10.10.0.7"), HasSubstr("10.10.0.1")));
  const json out = json::parse(Read(file));
  EXPECT_THAT(out.dump(), AllOf(HasSubstr("two-networks"), HasSubstr("eds")));
  EXPECT_EQ(Call("golden " + copy + " --kind cds,gateways,shards").code, 0) << "the rest is as it was";
}

TEST_F(Questions, GoldenRefusesWhatIsNoCase) {
  ExpectRefused(Call("golden " + (folder_ / "nowhere").string()), {"nowhere", "name a folder of cases"});
  ExpectRefused(Call("golden " + kCases + " --case 'zzz-*'"), {"zzz-*", "--case"});
  ExpectRefused(Call("golden --kind push"), {"--push-dir"});
  EXPECT_EQ(Call("golden " + kCases + " --kind edz").code, 2);
  EXPECT_EQ(Call("golden " + kTwoNetworks + " --profile istio-1.18+nonsense").code, 2);
  const std::string copy = CopyOfCase();
  std::ofstream(copy + "/case.yaml") << "name: [\n";
  const Ran broken = Call("golden " + copy);
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.error, HasSubstr("case.yaml"));
}

TEST_F(Questions, XdsShowsEndpointsAsIstioctlDoes) {
  const Ran ran = Call("xds " + kTwoNetworks + " --proxy client-east --type eds");
  ASSERT_EQ(ran.code, 0) << ran.error;
  const auto rows = Table(ran.output);
  ASSERT_FALSE(rows.empty());
  EXPECT_THAT(rows[0], ElementsAre("ENDPOINT", "STATUS", "WEIGHT", "LOCALITY", "PRIORITY", "CLUSTER"));
  const std::string cluster = "outbound|8000||cart.shop.svc.cluster.local";
  EXPECT_THAT(rows, Contains(ElementsAre("10.10.0.1:8080", "HEALTHY", "1", "//", "0", cluster)));
  EXPECT_THAT(rows, Contains(ElementsAre("198.51.100.2:15443", "HEALTHY", "1", "//", "0", cluster)))
      << "the other network's gateway";
}

TEST_F(Questions, XdsShowsFourTypesUnlessOneIsNamed) {
  const Ran all = Call("xds " + kTwoNetworks + " --proxy client-west");
  ASSERT_EQ(all.code, 0) << all.error;
  EXPECT_THAT(all.output,
              AllOf(HasSubstr("BlackHoleCluster"), HasSubstr("ENDPOINT"), HasSubstr("ADDRESS"), HasSubstr("DOMAINS")));
  const Ran as_json = Call("xds " + kTwoNetworks + " --proxy client-west -o json");
  const json types = json::parse(as_json.output);
  EXPECT_EQ(types.size(), 4u);
  for (const char* type : {"CDS", "EDS", "LDS", "RDS"}) EXPECT_TRUE(types.contains(type)) << type;
  const json endpoints = json::parse(Call("xds " + kTwoNetworks + " --proxy client-west --type eds -o json").output);
  ASSERT_TRUE(endpoints.is_array());
  EXPECT_EQ(endpoints, types["EDS"]);
}

// Its clusters that Envoy resolves hold a message that nothing else here reads.
TEST_F(Questions, XdsOpensWhatOnlyEnvoysOwnDescriptorsKnow) {
  const Ran ran =
      Call("xds " + kCases + "/outside-services --profile istio-1.30 --proxy client-east --type cds -o json");
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("CaresDnsResolverConfig"), HasSubstr("\"udpMaxQueries\": 100")));
}

TEST_F(Questions, XdsShowsExtensionsButNoPullSecret) {
  const std::string xds = "xds " + kCases + "/wasm-plugins --proxy till --type ecds --step 0";
  const Ran table = Call(xds);
  ASSERT_EQ(table.code, 0) << table.error;
  EXPECT_THAT(Table(table.output)[0], ElementsAre("NAME", "TYPE"));
  EXPECT_THAT(table.output, HasSubstr("envoy.extensions.filters.http.wasm.v3.Wasm"));
  const std::string secret = "ISTIO_META_WASM_IMAGE_PULL_SECRET";
  const Ran shown = Call(xds + " -o json");
  ASSERT_THAT(shown.output, HasSubstr(secret));
  EXPECT_THAT(shown.output, testing::Not(testing::ContainsRegex(secret + R"(": "[^(])")));
}

TEST_F(Questions, XdsRefusesWhatItCannotAnswer) {
  const std::string xds = "xds " + kTwoNetworks;
  ExpectRefused(Call(xds + " --proxy nobody"), {"nobody", "client-east, client-west"});
  ExpectRefused(Call(xds + " --proxy client"), {"more than one", "client-east, client-west"});
  ExpectRefused(Call(xds + " --proxy client-east --step 7"), {"--step 7"});
  ExpectRefused(Call(xds + " --proxy client-east --at 3s"), {"--at"});
  ExpectRefused(Call(xds + " --proxy client-east --type sds"), {"cds, eds, lds, rds and ecds"});
  ExpectRefused(Call("xds " + (folder_ / "nowhere").string() + " --proxy a"), {"nowhere"});
  EXPECT_EQ(Call(xds + " --proxy client-east --type xds").code, 2);
  EXPECT_EQ(Call(xds).code, 2) << "--proxy is required";
}

class Why : public ProgramTest {
 protected:
  static constexpr char kScenario[] = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
  static constexpr char kHost[] = "helloworld.sample.svc.cluster.local";

  // The sleep pod of cluster1, whose name is generated: the program itself names those that there are.
  std::string Sleep() {
    const Ran ran = Call(fmt::format("why {} --step 0 --proxy sleep --host {}", kScenario, kHost));
    EXPECT_EQ(ran.code, 2);
    const size_t end = ran.error.find("@cluster1");
    const size_t begin = ran.error.rfind(' ', end);
    EXPECT_NE(end, std::string::npos) << ran.error;
    return ran.error.substr(begin + 1, end + 9 - begin - 1);
  }
};

TEST_F(Why, ShowsEachFilterForEachEndpoint) {
  const std::string call = fmt::format("why {} --step 0 --proxy {} --host ", kScenario, Sleep());
  const Ran ran = Call(call + kHost);
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("cluster cluster1, network network1"),
                                HasSubstr("service of namespace sample: seen; endpoints of all ports: cluster1 1, "
                                          "cluster2 1"),
                                HasSubstr("outbound|5000||helloworld.sample.svc.cluster.local"),
                                HasSubstr("gateways between networks: yes")));
  std::map<std::string, std::vector<std::string>> by_cluster;
  for (const auto& row : Table(ran.output)) {
    if (row.size() == 12) by_cluster[row[1]] = row;
  }
  EXPECT_THAT(by_cluster["CLUSTER"], ElementsAre("ENDPOINT", "CLUSTER", "NETWORK", "LOCALITY", "SCOPE", "PORT",
                                                 "SUBSET", "DRAINING", "VIEW", "MTLS", "LOCALITY LB", "REACHED"));
  ASSERT_EQ(by_cluster.count("cluster1") + by_cluster.count("cluster2"), 2u) << ran.output;
  EXPECT_EQ(by_cluster["cluster1"].back(), "directly, weight 1");
  EXPECT_THAT(by_cluster["cluster2"].back(), testing::MatchesRegex("gateway .*:15443 weight 1"));

  const Ran nobody = Call(call + "nobody.example");
  EXPECT_EQ(nobody.code, 0);
  EXPECT_THAT(nobody.output, HasSubstr("no registry has a service of that name"));
}

TEST_F(Why, SaysWhenAnAddressIsOfAnotherNetworkAndWhenAClusterIsWatchedNoMore) {
  const auto ask = [&](const std::string& story) {
    return Call(fmt::format("why {}/scenarios/{} --step 2 --proxy {} --host {}", WAVETANK_SOURCE_DIR, story, Sleep(),
                            kHost))
        .output;
  };
  EXPECT_THAT(ask("gateway-without-dns"), HasSubstr("directly, weight 1 (another network, no gateway to it is known)"));
  EXPECT_THAT(ask("remote-secret-broken"), HasSubstr("cluster2 is watched no more"));
}

TEST_F(Why, AnswersAsJson) {
  const Ran ran = Call(fmt::format("why {} --step 0 --json --proxy {} --host {}", kScenario, Sleep(), kHost));
  ASSERT_EQ(ran.code, 0) << ran.error;
  const json out = json::parse(ran.output);
  EXPECT_EQ(out["host"], kHost);
  EXPECT_EQ(out["seen"], "sample");
  ASSERT_EQ(out["clusters"].size(), 1u);
  const json& endpoints = out["clusters"][0]["endpoints"];
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_EQ(endpoints[0]["throughGateways"], false);
  EXPECT_EQ(endpoints[1]["throughGateways"], true);
  EXPECT_EQ(endpoints[1]["routes"][0]["gateway"], true);
  for (const auto& [filter, passed] : endpoints[0]["filters"].items()) EXPECT_EQ(passed, true) << filter;

  const std::string address = endpoints[0]["address"];
  const Ran one = Call(
      fmt::format("why {} --step 0 --json --proxy {} --host {} --endpoint {}", kScenario, Sleep(), kHost, address));
  EXPECT_EQ(json::parse(one.output)["clusters"][0]["endpoints"].size(), 1u);
}

TEST_F(Why, TimesAreSinceTheWorldsBeginningWhateverItsDate) {
  const Ran ran = Call(fmt::format("why {} --set date=2026-11-23 --at 20s --flow from-cluster1", kScenario));
  EXPECT_THAT(ran.output, testing::ContainsRegex("/hello at [0-9.]+ s: 200 from ")) << ran.error;
}

TEST_F(Why, APodThatIsNotReadySaysWhatItWaitsFor) {
  const Ran ran =
      Call(fmt::format("why {} --set 'meshConfig={{defaultConfig: {{proxyMetadata: {{CA_ADDR: "
                       "\"ca.nowhere.svc:15012\"}}}}}}' --step 0 --from sleep@cluster1 --to "
                       "helloworld.sample:5000",
                       kScenario));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("it is not ready, and sends none: Envoy proxy is NOT ready: "),
                               HasSubstr("lookup ca.nowhere.svc: no such host")));
}

TEST_F(Why, RefusesWhatItCannotAnswer) {
  const std::string why = fmt::format("why {} --step 0 --host {}", kScenario, kHost);
  const Ran nobody = Call(why + " --proxy nobody");
  EXPECT_EQ(nobody.code, 2);
  EXPECT_THAT(nobody.error, AllOf(HasSubstr("no connected proxy"), HasSubstr("sleep-")));
  ExpectRefused(Call(why + " --proxy sleep --at soon"), {"soon", "duration"});
  EXPECT_EQ(Call(why).code, 2) << "--proxy is required";
  ExpectRefused(Call(fmt::format("why {}/nowhere --proxy a --host b", folder_.string())), {"nowhere"});
}

TEST_F(Questions, StatsTellsWhatAProxyHasCounted) {
  const std::string main = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/multi-primary-multi-network";
  const std::string asked =
      "stats " + main + " --step 0 --proxy sleep@cluster1 --filter 'helloworld.*membership_total'";
  EXPECT_EQ(Call(asked).output, "cluster.outbound|5000||helloworld.sample.svc.cluster.local.membership_total: 2\n");
  EXPECT_THAT(Call(asked + " -o prometheus").output,
              HasSubstr("envoy_cluster_membership_total{cluster_name=\"outbound|5000||helloworld.sample.svc.cluster."
                        "local\"} 2\n"));
  // A counter of Envoy 1.38 is none of 1.26's.
  const std::string newer = "stats " + main + " --step 0 --proxy sleep@cluster1 --filter 'helloworld.*active_overflow'";
  EXPECT_EQ(Call(newer).output, "");
  EXPECT_THAT(Call(newer + " --profile istio-1.30").output, HasSubstr("upstream_rq_active_overflow: 0"));
  // Istio's own metrics: who asked, who answered, in which cluster, and how.
  const std::string measured = (folder_ / "measured.yaml").string();
  std::ofstream(measured)
      << "name: measured\nextends: " + main +
             "\nmeshConfig: {defaultProviders: {metrics: [prometheus]}}\nflows: [{name: f, from: {cluster: "
             "cluster1, namespace: sample, app: sleep}, to: helloworld.sample:5000, rate: 100/s}]\n"
             "steps: [{name: ask, then: [{flow: f, requests: 100}]}]\n";
  const std::string istio =
      Call("stats " + measured + " --proxy sleep@cluster1 --filter istio_requests_total -o prometheus").output;
  for (const char* cluster : {"cluster1", "cluster2"}) {
    EXPECT_THAT(istio,
                testing::ContainsRegex(
                    "istio_requests_total\\{reporter=\"source\",source_workload=\"sleep\".*source_principal=\""
                    "spiffe://cluster.local/ns/sample/sa/sleep\",source_app=\"sleep\".*destination_workload=\""
                    "helloworld-v[12]\".*destination_principal=\"spiffe://cluster.local/ns/sample/sa/default\".*"
                    "destination_service=\"helloworld.sample.svc.cluster.local\".*destination_cluster=\"" +
                    std::string(cluster) +
                    "\",request_protocol=\"http\",response_code=\"200\",grpc_response_status=\"\",response_flags="
                    "\"-\",connection_security_policy=\"unknown\"\\} [0-9]+\n"));
  }
  EXPECT_THAT(
      Call("stats " + measured + " --proxy helloworld-v2@cluster2 --filter istio_requests -o prometheus").output,
      testing::ContainsRegex("reporter=\"destination\",source_workload=\"sleep\".*source_cluster=\"cluster1\".*"
                             "connection_security_policy=\"mutual_tls\""));
  const Ran wrong = Call("stats " + main + " --proxy sleep@cluster1 --filter '('");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("missing )"));
  EXPECT_EQ(Call("stats --proxy sleep@cluster1").code, 2);
}

}  // namespace
}  // namespace wavetank
