#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "core/base/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"
#include "scenarios/actions/action.h"
#include "scenarios/language/range.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGood[] = R"(name: n
clusters:
  - name: c1
flows:
  - {name: f, from: {cluster: c1, app: sleep}, to: "h.ns:5000"}
steps:
  - name: s
    then: [{flow: f, requests: 10}]
    expect:
      - split: {is: {v1: 50%, v2: 50%}}
)";

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("s.yaml", text);
  return scenario.ok() ? "accepted" : std::string(Message(scenario.status()));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Of two clusters, with something under them.
std::string PhysicalError(const std::string& physical) {
  return ErrorOf("name: n\nclusters: [{name: c1}, {name: c2}]\nphysical:\n" + physical + "\n");
}

TEST(ParseScenario, AWordThatMeshConfigDoesNotHaveIsToldWithItsPlaceAndTheNearest) {
  const auto error = [](const std::string& mesh_config) {
    return ErrorOf("name: n\nclusters: [{name: c1}]\nmeshConfig:\n" + mesh_config);
  };
  EXPECT_EQ(error("  enableAutoMtls: false\n"), "accepted");
  EXPECT_THAT(error("  enableAutoMtl: false\n"),
              AllOf(StartsWith("s.yaml:4:"), HasSubstr("MeshConfig has no field 'enableAutoMtl'"),
                    HasSubstr("did you mean 'enableAutoMtls'?")));
  EXPECT_THAT(error("  defaultConfig:\n    tracing: {samplin: 1}\n"),
              AllOf(StartsWith("s.yaml:5:"), HasSubstr("Tracing has no field 'samplin'")));
}

TEST(ParseScenario, WhatLiesUnderTheNetworksIsTakenApartAndToldWithItsPlace) {
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", R"(name: n
clusters: [{name: c1}, {name: c2}]
physical:
  sites: [{name: east, clusters: [c1]}, {name: west, clusters: [c2], private: [192.168.0.0/16]}]
  routes: [{between: [east, west]}, {from: east, to: west, ranges: [192.168.0.0/24]}]
  firewalls: [{state: deny, to: [c2/kube-apiserver], ports: [6443], reject: true}]
  nat: [{site: west, address: 203.0.113.9, port: 443, to: 192.168.0.1, toPort: 15443}, {site: east, as: 203.0.113.1}]
)");
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->physical.routes.size(), 3u);
  EXPECT_EQ(s->physical.firewalls[0].ports[0], 6443);
  EXPECT_EQ(s->physical.nat[0].to_port, 15443);
  EXPECT_THAT(PhysicalError("  sites: [{name: e, clusters: [c3]}]"), HasSubstr("no cluster is named 'c3'"));
  EXPECT_THAT(PhysicalError("  sites: [{name: e, clusters: [c1]}]\n  routes:\n    - {from: e, to: nowhere}"),
              HasSubstr("s.yaml:6:7: physical.routes[0]: no site is named 'nowhere'"));
  EXPECT_THAT(PhysicalError("  sites: [{name: e, clusters: [c1]}]\n  routes: [{from: e}]"), HasSubstr("two ends"));
  EXPECT_THAT(PhysicalError("  firewalls: [{state: removed, name: a}]"), HasSubstr("nothing to remove"));
  EXPECT_THAT(PhysicalError("  firewalls: [{state: deny, to: [10.0.0.0/33]}]"), HasSubstr("'10.0.0.0/33' is no range"));
  EXPECT_THAT(PhysicalError("  nat: [{site: network1, address: lb.example, to: 10.0.0.1}]"),
              HasSubstr("no IP address"));
}

TEST(ParseScenario, ClientsLoopsRampsAndRetriesFitTogetherOrAreRefused) {
  const auto flow = [](const std::string& more) {
    return Replaced(kGood, R"(to: "h.ns:5000"})", R"(to: "h.ns:5000", )" + more + "}");
  };
  const absl::StatusOr<Scenario> s = ParseScenario(
      "s.yaml", flow("closedLoop: {users: 3, think: 1s}, timeout: 2s, retries: {attempts: 2, on: [429]}"));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->flows[0].users, 3);
  EXPECT_EQ(s->flows[0].think, 1s);
  EXPECT_EQ(s->flows[0].timeout, 2s);
  EXPECT_THAT(ErrorOf(flow("rate: 5/s, closedLoop: {users: 3}")), HasSubstr("is no rate"));
  EXPECT_THAT(ErrorOf(flow("ramp: {to: 5/s}")), HasSubstr("over"));
  EXPECT_THAT(ErrorOf(flow("retries: {attempts: 2, on: [sometimes]}")), HasSubstr("'sometimes' is nothing"));
  EXPECT_THAT(ErrorOf(flow("retries: {attempts: 0}")), HasSubstr("attempts"));
}

TEST(ParseScenario, WhatIsSaidTwiceAndPathsWithoutASlashAreRefused) {
  EXPECT_THAT(ErrorOf(Replaced(kGood, "to: \"h.ns:5000\"", "to: \"h.ns:5000\", path: hello")),
              HasSubstr("'hello' is no path of a request"));
  const std::string two = Replaced(kGood, "  - name: c1\n", "  - name: c1\n  - name: c2\n");
  EXPECT_THAT(ErrorOf(Replaced(two, "flows:",
                               "links:\n  - {between: [c1, c2], latency: 1ms}\n"
                               "  - {between: [c2, c1], latency: 2ms}\nflows:")),
              HasSubstr("the line between c2 and c1 was said already"));
  EXPECT_THAT(ErrorOf(Replaced(two, "flows:", "remoteSecrets:\n  - {of: c2, in: c1}\n  - {of: c2, in: c1}\nflows:")),
              HasSubstr("the remote Secret of c2 in c1 was said already"));
}

TEST(ParseScenario, AFlowsBodyHasALengthAndIsOfHttp) {
  const auto flow = [](const std::string& more) {
    return Replaced(kGood, R"(to: "h.ns:5000"})", R"(to: "h.ns:5000", )" + more + "}");
  };
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", flow("body: {bytes: 100, over: 2s, pieces: 4}"));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->flows[0].body_bytes, 100);
  EXPECT_EQ(s->flows[0].body_over, 2s);
  EXPECT_EQ(s->flows[0].body_pieces, 4);
  EXPECT_EQ(s->flows[0].method, "POST");
  EXPECT_EQ(ParseScenario("s.yaml", flow("method: PUT, body: {bytes: 1}"))->flows[0].method, "PUT");
  EXPECT_THAT(ErrorOf(flow("body: {over: 2s}")), HasSubstr("bytes"));
  EXPECT_THAT(ErrorOf(flow("body: {bytes: 1, pieces: 4}")), HasSubstr("say over which time"));
  EXPECT_THAT(ErrorOf(flow("body: {bytes: 1}, headers: {Content-Length: '1'}")), HasSubstr("header content-length"));
  EXPECT_THAT(ErrorOf(flow("body: {bytes: 1}, protocol: tcp")), HasSubstr("is of HTTP"));
}

TEST(ParseScenario, AStepBeginsAtAnInstantOrSomeTimeAfterAnother) {
  const auto with = [](const std::string& at) { return std::string(kGood) + "  - {name: t, at: " + at + "}\n"; };
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", with("s+2s"));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->steps[1].at_step, "s");
  EXPECT_EQ(s->steps[1].at, 2s);
  EXPECT_EQ(ParseScenario("s.yaml", with("1m30s"))->steps[1].at, 90s);
  EXPECT_THAT(ErrorOf(with("nothing+2s")), HasSubstr("at 'nothing': no duration and no step"));
  EXPECT_THAT(ErrorOf(with("5s, after: 3s")), HasSubstr("stands beside at"));
}

TEST(ParseScenario, ReadsFlowsStepsAndShares) {
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", kGood);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->flows[0].host, "h.ns");
  EXPECT_EQ(s->flows[0].port, 5000);
  EXPECT_EQ(s->steps[0].then[0].requests, 10);
  EXPECT_EQ(s->steps[0].expectations[0].shares_ppm.at("v1"), 500'000);
}

TEST(ParseScenario, NamesFileLineColumnAndRemedyOfAnUnknownField) {
  EXPECT_EQ(ErrorOf(Replaced(kGood, "requests: 10", "reqests: 10")),
            "s.yaml:8:22: steps[0].then[0]: unknown field 'reqests'; did you mean 'requests'?");
}

TEST(ParseScenario, NoTimeIsLongerThanTenYears) {
  const auto lingering = [](const std::string& time) {
    return ErrorOf(std::string(kGood) + "    linger: " + time + "\n");
  };
  EXPECT_EQ(lingering("87840h"), "accepted");
  for (const char* time : {"87841h", "2562047h47m16.8s"})
    EXPECT_THAT(lingering(time), AllOf(StartsWith("s.yaml:11:"), HasSubstr("longer than ten years"))) << time;
}

TEST(ParseScenario, NoMoreRequestsAreSentThanTheirRateBringsInTime) {
  const auto sent = [](const std::string& rate) {
    return ErrorOf(Replaced(kGood, "requests: 10}", "requests: 10000000, rate: " + rate + "}"));
  };
  EXPECT_EQ(sent("1/s"), "accepted");
  EXPECT_THAT(sent("0.001/s"), AllOf(StartsWith("s.yaml:8:"), HasSubstr("ten years"), HasSubstr("send fewer")));
}

TEST(ParseScenario, AWorkloadIsScaledToAsManyReplicasAsAManifestMayHave) {
  const auto scaled = [](const std::string& replicas) {
    return ErrorOf("name: n\nclusters: [{name: c1}]\nsteps:\n  - name: s\n    do:\n" +
                   ("      - scale: {cluster: c1, deployment: a/b, replicas: " + replicas + "}\n"));
  };
  EXPECT_EQ(scaled("20000"), "accepted");
  EXPECT_THAT(scaled("20001"), AllOf(StartsWith("s.yaml:6:"), HasSubstr("replicas"), HasSubstr("20000")));
}

TEST(ParseScenario, TrailersOfAFlowNeedABodyInChunks) {
  const auto flow = [](const std::string& more) {
    return Replaced(kGood, R"(to: "h.ns:5000"})", R"(to: "h.ns:5000", trailers: {X-Sum: abc})" + more + "}");
  };
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", flow(""));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(s->flows[0].trailers, testing::ElementsAre(testing::Pair("x-sum", "abc")));
  EXPECT_TRUE(ParseScenario("s.yaml", flow(", protocol: http2, body: {bytes: 1}")).ok());
  EXPECT_THAT(ErrorOf(flow(", body: {bytes: 1}")), HasSubstr("this one tells its length"));
  EXPECT_THAT(ErrorOf(flow(", protocol: http1.0")), HasSubstr("HTTP/1.0"));
  EXPECT_THAT(ErrorOf(flow(", protocol: tcp")), HasSubstr("are of HTTP"));
}

TEST(ParseScenario, AProfileThatNobodyKnowsIsToldWithItsPlace) {
  EXPECT_THAT(ErrorOf("name: n\nprofile: istio-9\nclusters: [{name: c1}]\n"),
              AllOf(StartsWith("s.yaml:2:"), HasSubstr("profile 'istio-9': unknown base")));
}

TEST(ParseScenario, WhatNoClusterOrLineCanBeIsToldWithItsPlace) {
  const auto cluster = [](const std::string& fields) {
    return ErrorOf("name: n\nclusters:\n  - " + fields + "\n  - {name: c2}\n");
  };
  EXPECT_EQ(cluster("{name: \"arn:aws:eks:east:1:cluster/one\", nodes: [{name: n.a, region: r_1}]}"), "accepted");
  EXPECT_EQ(cluster("{name: c1, pods: \"10.1.0.0/16,fd00:10:1::/64\", loadBalancers: 10.9.0.1-10.9.0.9}"), "accepted");
  for (const auto& [fields, field, why] :
       {std::tuple("{name: \"\"}", "clusters[0].name", "no name of a cluster"),
        std::tuple("{name: \"a\\nb\"}", "clusters[0].name", "no name of a cluster"),
        std::tuple("{name: c1, network: a b}", "clusters[0].network", "no label's value"),
        std::tuple("{name: c1, pods: x}", "clusters[0].pods", "'x' is no CIDR"),
        std::tuple("{name: c1, services: 10.0.0.0/33}", "clusters[0].services", "'10.0.0.0/33' is no CIDR"),
        std::tuple("{name: c1, pods: \"10.1.0.0/16,10.2.0.0/16\"}", "clusters[0].pods", "one of each"),
        std::tuple("{name: c1, loadBalancers: \"10.1.0.0/16,fd00::/64\"}", "clusters[0].loadBalancers", "no CIDR"),
        std::tuple("{name: c1, nodes: [{name: a b}]}", "clusters[0].nodes[0].name", "no name of a node"),
        std::tuple("{name: c1, nodes: [{name: a, zone: a/b}]}", "clusters[0].nodes[0].zone", "no label's value"),
        std::tuple("{name: c1, nodes: [{name: a}, {name: a}]}", "clusters[0].nodes[1].name",
                   "two nodes are named 'a'")})
    EXPECT_THAT(cluster(fields), AllOf(StartsWith("s.yaml:3:"), HasSubstr(field), HasSubstr(why))) << fields;
  const auto rest = [](const std::string& text) {
    return ErrorOf("name: n\nclusters: [{name: c1}, {name: c2}]\n" + text);
  };
  EXPECT_THAT(rest("links:\n  - {between: [c1, c2], latency: 2h}\n"),
              AllOf(StartsWith("s.yaml:4:"), HasSubstr("links[0].latency"), HasSubstr("between 0 and one hour")));
  EXPECT_THAT(rest("timing:\n  istiod.debounce_after: -1s\n"),
              AllOf(StartsWith("s.yaml:4:"), HasSubstr("timing.istiod.debounce_after"), HasSubstr("cannot be read")));
  EXPECT_THAT(rest("timing:\n  nobodys: 1s\n"), AllOf(StartsWith("s.yaml:4:"), HasSubstr("`wavetank timing`")));
}

TEST(ParseScenario, RejectsWhatCannotBeMeant) {
  EXPECT_THAT(ErrorOf(Replaced(kGood, "flow: f,", "flow: g,")), HasSubstr("no flow is named 'g'"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "flow: f,", "flow: '',")), HasSubstr("no flow is named ''"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "v2: 50%", "v2: 60%")), HasSubstr("shares add up to 110.0 %"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "split:", "spilt:")), HasSubstr("did you mean 'split'?"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "h.ns:5000", "h.ns:port")), HasSubstr("'port' is no port"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "cluster: c1", "cluster: c2")), HasSubstr("no cluster is named 'c2'"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "cluster: c1", "cluster: ''")), HasSubstr("no cluster is named ''"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "name: n\n", "name: n\nseed: minus\n")), HasSubstr("no whole number"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "name: n\n", "name: n\nname: m\n")), HasSubstr("is given twice"));
  EXPECT_THAT(ErrorOf(Replaced(kGood, "- name: c1", "- name: c1\n  - name: c1")), HasSubstr("two clusters are named"));
}

TEST(ParseScenario, WhatHoldsAlwaysIsAboutAllTrafficOfItsStepUnlessItSaysWhich) {
  using Phase = Expectation::Phase;
  const auto phase = [](const std::string& expectation) {
    const absl::StatusOr<Scenario> s =
        ParseScenario("s.yaml", Replaced(kGood, "split: {is: {v1: 50%, v2: 50%}}", expectation));
    EXPECT_TRUE(s.ok()) << s.status();
    return s.ok() ? s->steps[0].expectations[0].phase : Phase::kThen;
  };
  EXPECT_EQ(phase("requests: {failed: 0}"), Phase::kThen);
  EXPECT_EQ(phase("always: {requests: {failed: 0}}"), Phase::kAll);
  EXPECT_EQ(phase("always: {requests: {of: then, failed: 0}}"), Phase::kThen);
  EXPECT_EQ(phase("eventually: {requests: {of: meanwhile, failed: 0}}"), Phase::kMeanwhile);
  EXPECT_THAT(ErrorOf(Replaced(kGood, "split: {is: {v1: 50%, v2: 50%}}", "always: {requests: {sent: 5}}")),
              HasSubstr("no instant has all"));
}

TEST(ParseScenario, RepeatsOnlyWhatThereIsAndSoOften) {
  const std::string step = "  - name: s\n    repeat: {times: 3, every: 20ms}\n";
  EXPECT_THAT(ErrorOf(Replaced(kGood, "  - name: s\n", step)), HasSubstr("there is nothing to repeat"));
  const std::string action = "    do: [{dns: {name: a.example, addresses: [10.0.0.1]}}]\n";
  const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", Replaced(kGood, "  - name: s\n", step + action));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->steps[0].repeat, 3);
  EXPECT_EQ(s->steps[0].every, 20ms);
}

TEST(ParseScenario, DnsAnswersWithAddressesOrKnowsNobody) {
  const auto step = [](const std::string& dns) {
    return Replaced(kGood, "  - name: s\n", "  - name: s\n    do: [{dns: " + dns + "}]\n");
  };
  const auto described = [&](const std::string& dns) {
    const absl::StatusOr<Scenario> s = ParseScenario("s.yaml", step(dns));
    return s.ok() ? Describe(s->steps[0].actions[0]) : s.status().ToString();
  };
  EXPECT_EQ(described("{name: a.example, addresses: [10.0.0.1, 10.0.0.2]}"),
            "DNS says 10.0.0.1, 10.0.0.2 for a.example");
  EXPECT_EQ(described("{name: a.example}"), "DNS knows a.example no more");
  EXPECT_THAT(ErrorOf(step("{name: a.example, addresses: [b.example]}")), HasSubstr("is no IP address"));
}

TEST(ParseScenario, KeySetsAreThereFromTheStartOrAStepOn) {
  const std::string sets = "name: n\nkeySets:\n  - {uri: 'https://i.example/k', keys: {keys: []}}\n";
  const std::string action = "  - name: s\n    do: [{keySet: {uri: 'https://i.example/k'}}]\n";
  const absl::StatusOr<Scenario> s =
      ParseScenario("s.yaml", Replaced(Replaced(kGood, "name: n\n", sets), "  - name: s\n", action));
  ASSERT_TRUE(s.ok()) << s.status();
  ASSERT_EQ(s->key_sets.size(), 1u);
  EXPECT_EQ(s->key_sets[0]["uri"], "https://i.example/k");
  EXPECT_EQ(s->steps[0].actions[0].kind, "keySet");
  EXPECT_THAT(ErrorOf(Replaced(kGood, "name: n\n", "name: n\nkeySets: [{keys: {}}]\n")), HasSubstr("uri"));
}

TEST(ParseScenario, NamesThePlaceOfBrokenYaml) {
  EXPECT_THAT(ErrorOf("name: [1, 2\nclusters: }"), StartsWith("s.yaml:2:"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty"));
}

TEST(ParseScenario, RefusesHostileDepthInsteadOfRecursing) {
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nested deeper"));
}

TEST(ParseRange, ReadsNumbersSharesAndDurations) {
  EXPECT_TRUE(ParseRange("0")->Holds(0));
  EXPECT_FALSE(ParseRange("0")->Holds(1));
  EXPECT_TRUE(ParseRange("<= 3")->Holds(3));
  EXPECT_FALSE(ParseRange("< 3")->Holds(3));
  EXPECT_TRUE(ParseRange(">= 10%")->Holds(100'000));
  EXPECT_TRUE(ParseRange("40..60%")->Holds(500'000));
  EXPECT_FALSE(ParseRange("40..60%")->Holds(39));
  EXPECT_TRUE(ParseRange("<= 500ms")->Holds(500'000'000));
  EXPECT_FALSE(ParseRange("about 3").ok());
  EXPECT_FALSE(ParseRange("9..3").ok());
}

TEST(ParseScenario, AQuantityHasTheUnitOfWhatItIsAbout) {
  const auto error = [](const std::string& expectation) {
    return ErrorOf(Replaced(kGood, "split: {is: {v1: 50%, v2: 50%}}", expectation));
  };
  EXPECT_THAT(error("requests: {p99: <= 5}"), HasSubstr("'<= 5' has another unit than p99 has"));
  EXPECT_THAT(error("requests: {sent: 50%}"), HasSubstr("write something like <= 3"));
  EXPECT_THAT(error("requests: {retried: 5ms}"), HasSubstr("write something like <= 3 or >= 10%"));
  EXPECT_THAT(error("mtls: {verified: 100}"), HasSubstr("verified"));
  EXPECT_EQ(error("requests: {failed: <= 1%, retried: '>= 10%', p50: 0, sent: 5..9}"), "accepted");
  EXPECT_FALSE(ParseRange("3ms..5%").ok());
}

std::string FileText(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What editors complete is what the parser takes: both are the rows.
TEST(ScenarioSchema, IsMadeOfTheRows) {
  EXPECT_EQ(FileText(WAVETANK_SOURCE_DIR "/scenarios/scenario.schema.json"), ScenarioSchema().dump(1) + "\n")
      << "write it again: build/wavetank schema > scenarios/scenario.schema.json";
}

TEST(ScenarioSchema, RefersToRowsThatAreThere) {
  std::set<std::string_view> names;
  for (const MappingRow& row : AllMappings()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  for (const MappingRow& row : AllMappings()) {
    for (const FieldRow& field : row.fields) {
      if (field.row.empty()) continue;
      EXPECT_TRUE(names.contains(field.row)) << row.name << "." << field.name;
    }
  }
}

TEST(ScenariosReadme, HasTheTablesOfTheRows) {
  const std::string readme = FileText(std::string(WAVETANK_SOURCE_DIR) + "/" + "scenarios/README.md");
  for (const std::string& table : {ActionTable(), ExpectationTable()}) {
    EXPECT_THAT(readme, HasSubstr(table)) << "write it again: build/wavetank schema --tables";
  }
}

TEST(Catalogue, EveryScenarioOfTheCatalogueLoads) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WAVETANK_SOURCE_DIR "/scenarios")) {
    if (!std::filesystem::exists(entry.path() / "scenario.yaml")) continue;
    const absl::StatusOr<Scenario> scenario = LoadScenario(entry.path().string());
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(LoadScenario, SaysWhatToGiveWhenNothingIsThere) {
  const absl::StatusOr<Scenario> scenario = LoadScenario("no/such/place");
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(std::string(Message(scenario.status())), HasSubstr("no such scenario"));
}

TEST(ParseScenario, AnActionWithInlineObjectsIsToldByTheirNames) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(
      "s.yaml", Replaced(kGood, "    then:",
                         "    do:\n      - apply: {cluster: c1, objects: [{apiVersion: v1, kind: Secret, metadata: "
                         "{name: cacerts}, data: {key: c2VjcmV0}}, 5]}\n    then:"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(Describe(scenario->steps[0].actions[0]), "apply Secret cacerts, ? ? in c1");
}

class Settings : public testing::Test {
 protected:
  Settings() {
    std::filesystem::create_directories(folder_);
    Write("base.yaml", Replaced(kGood, "name: n", "name: base\ntiming: {istiod.debounce_after: 50ms}"));
    Write("story.yaml", "name: story\nextends: base.yaml\nsteps:\n  - {name: later, after: 1s}\n");
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  absl::StatusOr<Scenario> With(const std::vector<Setting>& settings) {
    return LoadScenario((folder_ / "story.yaml").string(), {}, settings);
  }
  std::string Why(const std::vector<Setting>& settings) { return std::string(Message(With(settings).status())); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Settings, AreReadInThePlaceOfWhatTheFileAndItsBaseSay) {
  const absl::StatusOr<Scenario> scenario = With({{"steps.later.after", "3s"},
                                                  {"timing.istiod.debounce_after", "7ms"},
                                                  {"flows.f.rate", "7/s"},
                                                  {"profile", "istio-1.30"}});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->steps[0].after, 3s);
  EXPECT_EQ(scenario->timing.at("istiod.debounce_after"), "7ms");
  EXPECT_EQ(scenario->flows[0].rate_per_kilosecond, 7000);
  EXPECT_EQ(scenario->profile, "istio-1.30");
  EXPECT_EQ(scenario->settings[0], "steps.later.after=3s");
  // The files are what they were.
  EXPECT_EQ(With({})->steps[0].after, 1s);
}

TEST_F(Settings, ThatTheScenarioDoesNotTakeAreToldByName) {
  const std::string file = (folder_ / "story.yaml").string(), base = (folder_ / "base.yaml").string();
  EXPECT_EQ(Why({{"steps.later.afte", "3s"}}),
            "with steps.later.afte=3s: " + file + ": steps[0]: unknown field 'afte'; did you mean 'after'?");
  EXPECT_THAT(Why({{"flows.g.rate", "3/s"}}), HasSubstr(base + ": flows has no item 'g'; it has f"));
  EXPECT_THAT(Why({{"flows.f.rate", "fast"}}), HasSubstr(base + ": flows[0].rate: 'fast' is no rate"));
  EXPECT_THAT(Why({{"extends", "other.yaml"}}), HasSubstr("another mesh is another scenario"));
}

TEST_F(Settings, OfAScenarioThatExtendsAFolderGoIntoItsScenarioYaml) {
  std::filesystem::create_directories(folder_ / "mesh");
  Write("mesh/scenario.yaml", Replaced(kGood, "name: c1", "name: c1\n    manifests: [m.yaml]"));
  Write("mesh/m.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n");
  Write("story.yaml", "name: story\nextends: mesh\nsteps:\n  - {name: later, after: 1s}\n");
  const absl::StatusOr<Scenario> scenario = With({{"flows.f.rate", "7/s"}});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->flows[0].rate_per_kilosecond, 7000);
  EXPECT_EQ(scenario->clusters[0].manifests[0].path, (folder_ / "mesh/m.yaml").string());
}

TEST_F(Settings, AreNotBlamedForWhatIsWrongWithoutThem) {
  Write("story.yaml", "name: story\nextends: base.yaml\nstep: []\n");
  EXPECT_EQ(Why({{"profile", "istio-1.30"}}), Why({}));
}

}  // namespace
}  // namespace wavetank::scenario
