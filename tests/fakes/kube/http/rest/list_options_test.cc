// Streaming lists, and which options of lists and watches go together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::ElementsAre;

constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kStreaming =
    "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

class ListOptionsTest : public RestTest {
 protected:
  void SetUp() override {
    Send("POST", "/api/v1/namespaces", {{"metadata", {{"name", "default"}}}});
    Send("POST", kConfigMaps, ConfigMap("a"));
    version_ = Get(kConfigMaps).body["metadata"]["resourceVersion"];
  }
  std::unique_ptr<Watcher> WatchAs(const std::string& target, const std::string& accept) {
    Request request = Ask("GET", target);
    request.accept = accept;
    Response response = rest_->Handle(request);
    auto watcher = std::make_unique<Watcher>();
    if (response.watch == nullptr) {
      ADD_FAILURE() << response.Text();
      return watcher;
    }
    watcher->stream = std::move(response.watch);
    watcher->stream->Start([w = watcher.get()](const Line& line) { w->events.push_back(json::parse(*line)); },
                           [w = watcher.get()] { w->ended = true; });
    return watcher;
  }
  std::string Refused(const std::string& query) {
    const Answer answer = Get(std::string(kConfigMaps) + query);
    EXPECT_EQ(answer.code, 422) << query;
    EXPECT_EQ(answer.body["reason"], "Invalid") << query;
    return answer.body.value("message", "");
  }

  std::string version_;
};

TEST_F(ListOptionsTest, AStreamingListTellsWhatIsThereThenSaysSoThenWhatChanges) {
  const auto watch = Watch(std::string(kConfigMaps) + kStreaming);
  Send("POST", kConfigMaps, ConfigMap("b"));
  EXPECT_THAT(watch->Told(), ElementsAre("ADDED a", "BOOKMARK ", "ADDED b"));
  const json& mark = watch->events[1]["object"];
  EXPECT_EQ(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  EXPECT_EQ(mark["metadata"]["resourceVersion"], version_);
  EXPECT_EQ(mark["kind"], "ConfigMap");
  EXPECT_FALSE(json::parse(*watch->stream->Bookmark())["object"]["metadata"].contains("annotations"))
      << "only one bookmark ends the list";
}

TEST_F(ListOptionsTest, AStreamingListOfAnOldVersionIsWhatIsThereNow) {
  Send("POST", kConfigMaps, ConfigMap("b"));
  EXPECT_THAT(Watch(std::string(kConfigMaps) + kStreaming + "&resourceVersion=" + version_)->Told(),
              ElementsAre("ADDED a", "ADDED b", "BOOKMARK "));
}

TEST_F(ListOptionsTest, AStreamingListOfAVersionToComeIs504) {
  const Answer answer = Get(std::string(kConfigMaps) + kStreaming + "&resourceVersion=999999");
  EXPECT_EQ(answer.code, 504);
  EXPECT_EQ(answer.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

TEST_F(ListOptionsTest, WhoWantsNoBookmarksGetsNoneAtTheListsEnd) {
  EXPECT_THAT(
      Watch(std::string(kConfigMaps) + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")->Told(),
      ElementsAre("ADDED a"));
}

TEST_F(ListOptionsTest, WhoWantsNothingOfWhatIsThereGetsOnlyWhatChanges) {
  const auto watch =
      Watch(std::string(kConfigMaps) + "?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
  Send("POST", kConfigMaps, ConfigMap("b"));
  EXPECT_THAT(watch->Told(), ElementsAre("ADDED b"));
}

TEST_F(ListOptionsTest, MetadataAndTablesEndTheirListsToo) {
  const auto metadata = WatchAs(std::string(kConfigMaps) + kStreaming,
                                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
  ASSERT_EQ(metadata->events.size(), 2u);
  EXPECT_EQ(metadata->events[1]["object"]["kind"], "PartialObjectMetadata");
  EXPECT_EQ(metadata->events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  const auto table =
      WatchAs(std::string(kConfigMaps) + kStreaming, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  ASSERT_EQ(table->events.size(), 2u);
  const json& end = table->events[1]["object"];
  EXPECT_EQ(end["rows"][0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  EXPECT_EQ(end["rows"][0]["cells"].size(), end["columnDefinitions"].size());
}

TEST_F(ListOptionsTest, OptionsThatExcludeEachOtherAreRefused) {
  const std::string of = "ListOptions.meta.k8s.io \"\" is invalid: ";
  EXPECT_EQ(
      Refused("?resourceVersionMatch=Exact"),
      of + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
  EXPECT_EQ(Refused("?resourceVersion=0&resourceVersionMatch=Exact"),
            of + "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion "
                 "\"0\"");
  EXPECT_EQ(Refused("?resourceVersion=1&resourceVersionMatch=Newest"),
            of + "resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\", "
                 "\"\"");
  EXPECT_EQ(Refused("?sendInitialEvents=true"),
            of + "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
  EXPECT_EQ(Refused("?watch=true&sendInitialEvents=true"),
            of + "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                 "NotOlderThan");
  EXPECT_EQ(Refused("?watch=true&resourceVersionMatch=Exact"),
            of + "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
                 "sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: "
                 "\"NotOlderThan\"]");
}

TEST_F(ListOptionsTest, ALaterPageHasTheVersionOfItsFirst) {
  Send("POST", kConfigMaps, ConfigMap("b"));
  const std::string next = Get(std::string(kConfigMaps) + "?limit=1").body["metadata"]["continue"];
  const Answer answer = Get(std::string(kConfigMaps) + "?limit=1&continue=" + next + "&resourceVersion=" + version_);
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(answer.body["message"], "specifying resource version is not allowed when using continue");
}

TEST_F(ListOptionsTest, LabelsAreComparedAsNumbers) {
  for (const auto& [name, size] : {std::pair("small", "2"), std::pair("large", "10"), std::pair("odd", "ten")})
    Send("POST", kConfigMaps, ConfigMap(name, {{"size", size}}));
  EXPECT_THAT(Names(std::string(kConfigMaps) + "?labelSelector=size%3E3"), ElementsAre("large"));
  EXPECT_THAT(Names(std::string(kConfigMaps) + "?labelSelector=size%3C3,size"), ElementsAre("small"));
  for (const char* method : {"GET", "DELETE"}) {
    const Answer answer = Send(method, std::string(kConfigMaps) + "?labelSelector=size%3Emany");
    EXPECT_EQ(answer.code, 400);
    EXPECT_EQ(answer.body["message"],
              "unable to parse requirement: values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value "
              "must be an integer");
  }
}

}  // namespace
}  // namespace wavetank::fakekube::http
