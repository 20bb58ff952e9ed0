#include "core/settings/istiod_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/json_text.h"
#include "core/base/status.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json PodWith(const std::vector<json>& env, const std::vector<json>& args = {}) {
  return {{"metadata", {{"name", "istiod-1"}, {"namespace", "istio-system"}, {"labels", {{"app", "istiod"}}}}},
          {"spec",
           {{"serviceAccountName", "istiod"},
            {"containers", json::array({{{"name", "discovery"}, {"env", env}, {"args", args}}})}}}};
}

json Variable(const char* name, const char* value) { return {{"name", name}, {"value", value}}; }

IstiodSettings SettingsOf(const json& pod) {
  const absl::StatusOr<ContainerSettings> said = ReadContainerSettings(pod, "discovery", nullptr);
  EXPECT_TRUE(said.ok()) << said.status();
  IstiodSettings settings;
  EXPECT_TRUE(Apply(*said, &settings).ok());
  return settings;
}

json PodThatSaysAllDefaults() {
  std::vector<json> env;
  for (const IstiodVariable& variable : IstiodVariables())
    env.push_back(json::object({{"name", variable.name}, {"value", variable.default_value}}));
  return PodWith(env);
}

TEST(IstiodVariables, StandByNameAndEachOnce) {
  const auto all = IstiodVariables();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name == b.name; }),
            all.end());
}

TEST(IstiodVariables, ThatActHaveAMeaningAndWhatTheyDo) {
  for (const IstiodVariable& variable : IstiodVariables()) {
    EXPECT_EQ(variable.apply != nullptr, variable.effect == VariableEffect::kActs) << variable.name;
    EXPECT_EQ(variable.meaning.empty(), variable.effect == VariableEffect::kNone) << variable.name;
  }
}

TEST(IstiodVariables, SetToTheirDefaultsSayNothingThatIsUnheeded) {
  EXPECT_THAT(UnheededSettings(PodThatSaysAllDefaults()), IsEmpty());
}

TEST(IstiodVariables, SetToTheirDefaultsChangeNoOption) {
  const IstiodSettings settings = SettingsOf(PodThatSaysAllDefaults());
  EXPECT_THAT(settings.log, IsEmpty());
  const auto scheduling = [](const IstiodOptions& o) {
    return std::tuple(o.debounce_after, o.debounce_max, o.push_throttle, o.requests_per_second,
                      o.remote_cluster_timeout, o.enable_ca, o.external);
  };
  const auto ca = [](const IstiodOptions& o) {
    return std::tuple(o.ca.ca.max_workload_ttl, o.ca.ca.default_workload_ttl, o.ca.ca.self_signed_ttl,
                      o.ca.root_check_interval, o.ca.root_grace_percent);
  };
  EXPECT_EQ(scheduling(settings.options), scheduling(IstiodOptions()));
  EXPECT_EQ(ca(settings.options), ca(IstiodOptions()));
}

TEST(IstiodSettings, AreReadFromTheEnvironment) {
  const IstiodSettings settings = SettingsOf(
      PodWith({Variable("CLUSTER_ID", "west"), Variable("REVISION", "1-18-2"), Variable("PILOT_DEBOUNCE_AFTER", "5s"),
               Variable("ENABLE_CA_SERVER", "false"), Variable("ISTIOD_CUSTOM_HOST", "a.example,b.example")}));
  EXPECT_EQ(settings.options.cluster_id.str(), "west");
  EXPECT_TRUE(settings.cluster_named);
  EXPECT_EQ(settings.options.revision, "1-18-2");
  EXPECT_EQ(settings.options.debounce_after, 5s);
  EXPECT_FALSE(settings.options.enable_ca);
  EXPECT_THAT(settings.options.custom_hosts, ElementsAre("a.example", "b.example"));
}

TEST(IstiodSettings, AShareOfTracesOutsideOfPerCentsIsOneAndALineOfTheLog) {
  const IstiodSettings half =
      SettingsOf(PodWith({Variable("PILOT_TRACE_SAMPLING", "50"), Variable("PILOT_ENABLE_ISTIO_TAGS", "false")}));
  EXPECT_EQ(half.options.trace_sampling, 50);
  EXPECT_FALSE(half.options.istio_tags);
  EXPECT_THAT(half.log, testing::IsEmpty());
  const IstiodSettings more = SettingsOf(PodWith({Variable("PILOT_TRACE_SAMPLING", "101")}));
  EXPECT_EQ(more.options.trace_sampling, 1);
  EXPECT_THAT(more.log, ElementsAre("PILOT_TRACE_SAMPLING out of range: 101"));
}

TEST(IstiodSettings, ArgumentsHaveTheLastWord) {
  const IstiodSettings settings = SettingsOf(
      PodWith({Variable("CLUSTER_ID", "west")},
              {"discovery", "--clusterID=east", "--keepaliveMaxServerConnectionAge", "5m", "--domain", "d.e"}));
  EXPECT_EQ(settings.options.cluster_id.str(), "east");
  EXPECT_EQ(settings.connection_age, Duration(5min));
  EXPECT_EQ(settings.options.domain_suffix, "d.e");
}

TEST(IstiodSettings, WhatCannotBeReadLeavesTheDefaultAndALineOfTheLog) {
  const IstiodSettings settings = SettingsOf(PodWith({Variable("PILOT_DEBOUNCE_AFTER", "soon")}));
  EXPECT_EQ(settings.options.debounce_after, IstiodOptions().debounce_after);
  EXPECT_THAT(settings.log, ElementsAre("Invalid environment variable value `soon`, expecting a duration, defaulting "
                                        "to 100ms"));
}

// What the command line's library says (pflag 1.0.5, cobra 1.7.0); nothing: istiod starts.
std::string Refusal(const std::vector<json>& args) {
  const absl::StatusOr<ContainerSettings> said = ReadContainerSettings(PodWith({}, args), "discovery", nullptr);
  IstiodSettings settings;
  return said.ok() ? std::string(Message(Apply(*said, &settings))) : "unreadable";
}

TEST(IstiodSettings, AnArgumentOfAnotherTypeKeepsItFromStarting) {
  EXPECT_EQ(Refusal({"discovery", "--shutdownDuration", "5"}),
            "invalid argument \"5\" for \"--shutdownDuration\" flag: time: missing unit in duration \"5\"");
  EXPECT_EQ(Refusal({"discovery", "--keepaliveMaxServerConnectionAge=1d"}),
            "invalid argument \"1d\" for \"--keepaliveMaxServerConnectionAge\" flag: time: unknown unit \"d\" in "
            "duration \"1d\"");
  EXPECT_EQ(Refusal({"discovery", "--kubernetesApiBurst=many"}),
            "invalid argument \"many\" for \"--kubernetesApiBurst\" flag: strconv.ParseInt: parsing \"many\": invalid "
            "syntax");
  EXPECT_EQ(Refusal({"discovery", "--clusterAliases=old"}),
            "invalid argument \"old\" for \"--clusterAliases\" flag: old must be formatted as key=value");
  EXPECT_EQ(Refusal({"discovery", "--domain"}), "flag needs an argument: --domain");
}

TEST(IstiodSettings, AWordThatIsNoFlagsValueKeepsItFromStarting) {
  EXPECT_EQ(Refusal({"discovery", "--log_as_json", "true"}), "accepts 0 arg(s), received 1");
  EXPECT_EQ(Refusal({"discover", "--domain", "a.b"}), "unknown command \"discover\" for \"pilot-discovery\"");
  EXPECT_THAT(Refusal({"--domain", "a.b"}), HasSubstr("no command"));
  EXPECT_EQ(Refusal({}), "");  // a sketch
  EXPECT_EQ(Refusal({"discovery", "--of-another-release", "value", "--domain", "a.b"}), "");
}

TEST(IstiodSettings, AValueThatVariablesCannotHaveIsTold) {
  EXPECT_THAT(UnheededSettings(PodWith({Variable("PILOT_DEBOUNCE_AFTER", "5 s"), Variable("XDS_AUTH", "yes")})),
              ElementsAre("variable PILOT_DEBOUNCE_AFTER=5 s, where istiod expects a duration,",
                          "variable XDS_AUTH=yes, where istiod expects true/false,"));
}

TEST(IstiodSettings, ItsNamespaceIsWhatItIsTold) {
  EXPECT_EQ(SettingsOf(PodWith({})).options.system_namespace, "istio-system");
  EXPECT_EQ(SettingsOf(PodWith({Variable("POD_NAMESPACE", "mesh")})).options.system_namespace, "mesh");
  const json told = PodWith({Variable("POD_NAMESPACE", "mesh")}, {"discovery", "-n", "m2"});
  EXPECT_EQ(SettingsOf(told).options.system_namespace, "m2");
}

TEST(IstiodSettings, ReferencesAreResolved) {
  const std::vector<json> env = {
      {{"name", "POD"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
      {{"name", "CLUSTER_ID"}, {"valueFrom", {{"configMapKeyRef", {{"name", "settings"}, {"key", "cluster"}}}}}},
      Variable("REVISION", "of-$(POD)-$$(POD)-$(NOBODY)")};
  const auto said =
      ReadContainerSettings(PodWith(env), "discovery", [](std::string_view kind, const std::string& name) {
        return std::optional(
            std::map<std::string, std::string>{{"cluster", std::string(kind) + "/" + name + "/cluster"}});
      });
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->variables.at("CLUSTER_ID"), "ConfigMap/settings/cluster");
  EXPECT_EQ(said->variables.at("REVISION"), "of-istiod-1-$(POD)-$(NOBODY)");
}

TEST(IstiodSettings, AKeyThatIsNotThereKeepsTheContainerFromStarting) {
  const std::vector<json> env = {json::object(
      {{"name", "CLUSTER_ID"}, {"valueFrom", {{"secretKeyRef", {{"name", "settings"}, {"key", "cluster"}}}}}})};
  const auto said = ReadContainerSettings(PodWith(env), "discovery", [](auto, const auto&) { return std::nullopt; });
  EXPECT_EQ(said.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(said.status())),
              HasSubstr("couldn't find key cluster in Secret istio-system/settings"));
}

TEST(IstiodSettings, AWholeConfigMapIsItsEnvironmentAndSingleVariablesOverride) {
  json pod = PodWith({Variable("REVISION", "r-$(CLUSTER_ID)")});
  json& container = pod["spec"]["containers"][0];
  container["envFrom"] = json::array({{{"configMapRef", {{"name", "one"}}}},
                                      {{"prefix", "PILOT_"}, {"secretRef", {{"name", "two"}}}},
                                      {{"configMapRef", {{"name", "none"}, {"optional", true}}}}});
  const KeySource keys = [](std::string_view kind,
                            const std::string& name) -> std::optional<std::map<std::string, std::string>> {
    if (name == "none") return std::nullopt;
    if (kind == "Secret") return std::map<std::string, std::string>{{"DEBOUNCE_AFTER", "5s"}};
    return std::map<std::string, std::string>{{"CLUSTER_ID", "west"}, {"REVISION", "x"}, {"not a name", "y"}};
  };
  const auto said = ReadContainerSettings(pod, "discovery", keys);
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->variables.at("REVISION"), "r-west");
  EXPECT_EQ(said->variables.at("PILOT_DEBOUNCE_AFTER"), "5s");
  EXPECT_FALSE(said->variables.contains("not a name"));
  container["envFrom"][2]["configMapRef"].erase("optional");
  EXPECT_THAT(std::string(Message(ReadContainerSettings(pod, "discovery", keys).status())),
              HasSubstr("CreateContainerConfigError: configmap \"none\" not found"));
}

TEST(UnheededSettings, NamesVariablesAndArgumentsWithoutEffect) {
  const json pod = PodWith({Variable("PILOT_HTTP10", "true"), Variable("NO_SUCH", "1"), Variable("CLUSTER_ID", "w")},
                           {"discovery", "--httpsAddr=:1", "--nonsense", "x", "--log_output_level=all:debug"});
  EXPECT_THAT(
      UnheededSettings(pod),
      ElementsAre("argument --httpsAddr=:1", "argument --nonsense, which pilot-discovery 1.18.2 does not know",
                  "variable NO_SUCH, which pilot-discovery 1.18.2 does not know", "variable PILOT_HTTP10=true"));
}

TEST(UnheededSettings, OtherWordsForADefaultAreNone) {
  EXPECT_THAT(UnheededSettings(
                  PodWith({Variable("PILOT_HTTP10", "F"), Variable("PILOT_WORKLOAD_ENTRY_GRACE_PERIOD", "10000ms")})),
              IsEmpty());
}

TEST(ContainerSettings, WhatIsNoTextEndsNothing) {
  const json pod = PodWith({json::parse(R"({"name":7,"value":[1]})"), 3, json::parse(R"({"valueFrom":"x"})")},
                           {1, json::parse(R"({"a":2})"), nullptr});
  EXPECT_TRUE(ReadContainerSettings(pod, "discovery", nullptr).ok());
  EXPECT_FALSE(UnheededSettings(pod).empty());
}

}  // namespace
}  // namespace wavetank::pilot
