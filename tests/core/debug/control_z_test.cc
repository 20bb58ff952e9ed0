#include "core/debug/control_z.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_text.h"

namespace wavetank::debug {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(LogScopesTest, EveryScopePrintsInfoUnlessItIsToldOtherwise) {
  LogScopes scopes;
  EXPECT_TRUE(scopes.Printed(Time{}, "info", "ads"));
  EXPECT_FALSE(scopes.Printed(Time{}, "debug", "ads"));
  ASSERT_TRUE(scopes.Configure("ads:warn,default:none,unknown:debug", "ads:error", "kube").ok());
  EXPECT_FALSE(scopes.Printed(Time{}, "info", "ads"));
  EXPECT_TRUE(scopes.Printed(Time{}, "warn", "ads"));
  EXPECT_FALSE(scopes.Printed(Time{}, "error", ""));
  EXPECT_EQ(scopes.Find("ads")->stack_trace, LogLevel::kError);
  EXPECT_TRUE(scopes.Find("kube")->callers);
}

TEST(LogScopesTest, AllIsEveryScopeAndTheLastThatIsLookedAt) {
  LogScopes scopes;
  ASSERT_TRUE(scopes.Configure("all:error,ads:debug", "", "").ok());
  EXPECT_EQ(scopes.Find("ads")->output, LogLevel::kError);
  EXPECT_EQ(scopes.Find("wle")->output, LogLevel::kError);
}

TEST(LogScopesTest, ALevelThatDoesNotExistEndsTheProcess) {
  EXPECT_EQ(LogScopes().Configure("default:warning", "", "").message(), "invalid output level 'default:warning'");
  EXPECT_EQ(LogScopes().Configure("a:b:c", "", "").message(), "invalid output level format 'a:b:c'");
}

TEST(LogScopesTest, AChangeHoldsFromItsInstantOn) {
  LogScopes scopes;
  EXPECT_TRUE(scopes.Set(Time{} + 5s, "ads", LogLevel::kNone, std::nullopt, false));
  EXPECT_FALSE(scopes.Set(Time{} + 5s, "nosuch", LogLevel::kNone, std::nullopt, false));
  EXPECT_TRUE(scopes.Printed(Time{} + 4s, "2023-09-01T00:00:04.000000Z\tinfo\tads\tnew connection"));
  EXPECT_FALSE(scopes.Printed(Time{} + 5s, "2023-09-01T00:00:05.000000Z\tinfo\tads\tnew connection"));
  EXPECT_TRUE(scopes.Printed(Time{} + 5s, "2023-09-01T00:00:05.000000Z\tinfo\tunscoped\twith a tab"));
}

class ControlZTest : public ::testing::Test {
 protected:
  ControlZReply Ask(std::string_view method, std::string_view path, std::string_view body = "") {
    return AnswerControlZ(scopes_, process_, method, path, body);
  }

  LogScopes scopes_;
  ControlZProcess process_{.pod = "istiod-1",
                           .ip = "10.1.0.9",
                           .arguments = {"discovery", "--log_output_level=default:info"},
                           .variables = {{"REVISION", "default"}},
                           .version = "1.18.2",
                           .now = Time{} + 5s,
                           .metrics =
                               "# HELP a_total Things.\n# TYPE a_total counter\na_total{type=\"cds\"} 4\n# TYPE h "
                               "histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 1.5\nh_count 3\n"};
};

TEST_F(ControlZTest, ScopesAreToldAsIstioctlReadsThem) {
  const json all = ParseJson(Ask("GET", "/scopej/").reply.body);
  ASSERT_GT(all.size(), 30u);
  EXPECT_EQ(JsonText(all[0]),
            R"({"description":"ads debugging","log_callers":false,"name":"ads","output_level":"info",)"
            R"("stack_trace_level":"none"})");
  EXPECT_EQ(ParseJson(Ask("GET", "/scopej/ingress%20status").reply.body)["name"], "ingress status");
  EXPECT_EQ(Ask("GET", "/scopej").reply.status, 301);
  EXPECT_EQ(Ask("GET", "/scopej/nosuch").reply.status, 400);
  EXPECT_EQ(Ask("GET", "/scopej/nosuch").reply.body, "unknown scope name: nosuch");
  EXPECT_THAT(Ask("GET", "/scopez/").reply.body, HasSubstr("Istio Authorization Policy"));
}

TEST_F(ControlZTest, APutChangesWhatItNamesAndLeavesTheRest) {
  const ControlZReply reply = Ask("PUT", "/scopej/ads", R"({"name":"ads","output_level":"debug"})");
  EXPECT_EQ(reply.reply.status, 202);
  ASSERT_TRUE(reply.change.has_value());
  EXPECT_EQ(reply.change->scope, "ads");
  EXPECT_EQ(reply.change->output, LogLevel::kDebug);
  EXPECT_FALSE(reply.change->stack_trace.has_value());
  // A level that nobody knows is taken, and changes nothing.
  EXPECT_FALSE(Ask("PUT", "/scopej/ads", R"({"output_level":"loud"})").change->output.has_value());
}

TEST_F(ControlZTest, APutOfNoScopeOrNoJsonIsRefused) {
  EXPECT_EQ(Ask("PUT", "/scopej/nosuch", "{}").reply.body, "unknown scope name: nosuch");
  EXPECT_EQ(Ask("PUT", "/scopej/ads", "").reply.body, "unable to decode request: EOF");
  EXPECT_FALSE(Ask("PUT", "/scopej/ads", "{").change.has_value());
  EXPECT_EQ(Ask("DELETE", "/scopej/ads").reply.status, 405);
}

TEST_F(ControlZTest, ItsOtherTopicsTellOfTheProcess) {
  EXPECT_EQ(ParseJson(Ask("GET", "/argj/").reply.body)[1], "discovery");
  EXPECT_EQ(ParseJson(Ask("GET", "/envj/").reply.body)[0]["name"], "REVISION");
  EXPECT_EQ(ParseJson(Ask("GET", "/procj/").reply.body)["hostname"], "istiod-1");
  EXPECT_EQ(ParseJson(Ask("GET", "/versionj/").reply.body)["version"], "1.18.2");
  EXPECT_EQ(ParseJson(Ask("GET", "/homej").reply.body)["IP"], "10.1.0.9");
  EXPECT_THAT(Ask("GET", "/").reply.body, HasSubstr("/scopez/"));
  EXPECT_EQ(Ask("GET", "/nosuch").reply.status, 404);
  EXPECT_EQ(Ask("GET", "/memj/").reply.status, 501);
}

TEST_F(ControlZTest, MetricsComeAsFamilies) {
  const json families = ParseJson(Ask("GET", "/metricj/").reply.body);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0]["type"], "COUNTER");
  EXPECT_EQ(families[0]["metrics"][0]["labels"]["type"], "cds");
  EXPECT_EQ(families[0]["metrics"][0]["value"], "4");
  EXPECT_EQ(families[1]["metrics"][0]["buckets"]["+Inf"], "3");
  EXPECT_EQ(families[1]["metrics"][0]["count"], "3");
}

}  // namespace
}  // namespace wavetank::debug
