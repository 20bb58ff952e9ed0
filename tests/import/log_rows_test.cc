// What consoles of log stores export: each form holds the same log, newest first as they show it, and tells what the
// file of that log tells.
#include "import/text/log_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using Tree = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kPod = "istiod-7d4f-x";
const std::vector<std::string>& Lines() {
  static const auto* const lines = new std::vector<std::string>{
      "2024-05-06T07:08:01.000000Z\tinfo\tads\tIncremental push, service web.shop.svc.cluster.local at shard "
      "Kubernetes/west has no endpoints",
      "2024-05-06T07:08:01.100000Z\tinfo\tads\tPush debounce stable[1] 1 for config "
      "ServiceEntry/shop/web.shop.svc.cluster.local: 100ms since last change, 100ms since last push, full=false",
      "2024-05-06T07:08:02.000000Z\tinfo\tads\tXDS: Incremental Pushing ConnectedEndpoints:2 Version:",
      "2024-05-06T07:08:05.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/\"web\": "
      "100ms "
      "since last change, 100ms since last push, full=true"};
  return *lines;
}

// Of a line its time as a store shows it that takes what a line begins with.
std::string Instant(const std::string& line) { return line.substr(0, 23) + "Z"; }

std::string Quoted(const std::string& text) { return "\"" + absl::StrReplaceAll(text, {{"\"", "\"\""}}) + "\""; }

class LogRows : public ImportTest {
 protected:
  static std::string Told(const Imported& imported) {
    std::string out;
    for (const InferredInput& input : imported.evidence.inputs)
      out += fmt::format("{} {} {} {}\n", FormatWall(input.at), static_cast<int>(input.kind), input.host, input.name);
    for (const Claim& claim : imported.evidence.claims)
      out +=
          fmt::format("{} {} {} {}\n", FormatWall(claim.at), static_cast<int>(claim.kind), claim.config, claim.events);
    return out;
  }
  static std::vector<std::string> Reasons(const Imported& imported) {
    std::vector<std::string> out;
    for (const auto& [reason, counts] : imported.evidence.refusals.reasons()) out.push_back(reason);
    return out;
  }
  // Each line as a record, newest first, as one JSON list.
  static Tree NewestFirst(const std::function<Tree(const std::string&)>& record) {
    Tree out = Tree::array();
    for (auto line = Lines().rbegin(); line != Lines().rend(); ++line) out.push_back(record(*line));
    return out;
  }
  void ExpectTheLog(const std::string& name, const std::string& text) {
    SCOPED_TRACE(text.substr(0, 400));
    const std::string plain = Told(Read({Put("plain.log", absl::StrJoin(Lines(), "\n") + "\n")}));
    ASSERT_THAT(plain, HasSubstr("DestinationRule"));
    const Imported imported = Read({Put(name, text)});
    EXPECT_EQ(Told(imported), plain);
    EXPECT_THAT(Reasons(imported), IsEmpty());
  }
};

TEST_F(LogRows, AnswersOfInsightsAreLogs) {
  const Tree results = NewestFirst([](const std::string& line) {
    return Tree{{{"field", "@timestamp"}, {"value", absl::StrReplaceAll(line.substr(0, 23), {{"T", " "}})}},
                {{"field", "@message"}, {"value", line}},
                {{"field", "@ptr"}, {"value", "CnQKPwo7"}}};
  });
  const Tree answer = {{"queryLanguage", "CWLI"},
                       {"results", results},
                       {"statistics", {{"recordsMatched", 4.0}, {"recordsScanned", 90.0}}},
                       {"status", "Complete"}};
  ExpectTheLog("insights.json", answer.dump());
  ExpectTheLog("insights.json", answer.dump(4));
}

TEST_F(LogRows, WhatTheConsoleOfInsightsDownloadsIsALog) {
  const auto row = [](const std::string& line) {
    return Tree{{"@timestamp", line.substr(0, 10) + " " + line.substr(11, 12)}, {"@message", line}};
  };
  ExpectTheLog("logs-insights-results.json", NewestFirst(row).dump());
  std::string table = "@timestamp,@message\n";
  for (const Tree& each : NewestFirst(row))
    table += each["@timestamp"].get<std::string>() + "," + Quoted(each["@message"].get<std::string>()) + "\n";
  ExpectTheLog("logs-insights-results.csv", table);
  ExpectTheLog("logs-insights-results.csv", "\xef\xbb\xbf" + absl::StrReplaceAll(table, {{"\n", "\r\n"}}));
}

TEST_F(LogRows, ARecordOfACollectorWithinARowTellsWhoseLineItIs) {
  const Tree rows = NewestFirst([](const std::string& line) {
    const Tree record = {
        {"time", Instant(line)}, {"log", line}, {"kubernetes", {{"pod_name", kPod}, {"container_name", "discovery"}}}};
    return Tree{{"@timestamp", line.substr(0, 10) + " " + line.substr(11, 12)}, {"@message", record}};
  });
  ExpectTheLog("container-insights.json", rows.dump());
  EXPECT_EQ(Read({Put("container-insights.json", rows.dump())}).evidence.runs.at(0).replica, kPod);
}

TEST_F(LogRows, ResultsOfSplunkAreLogs) {
  const auto row = [](const std::string& line) {
    return Tree{
        {"_time", line.substr(0, 23) + "+0000"}, {"_raw", line}, {"pod", kPod}, {"container_name", "discovery"}};
  };
  std::string lines, table = "\"_time\",\"pod\",\"_raw\"\n";
  for (const Tree& each : NewestFirst(row)) {
    lines += Tree{{"preview", false}, {"result", each}}.dump() + "\n";
    table += fmt::format("{},{},{}\n", Quoted(each["_time"]), Quoted(each["pod"]), Quoted(each["_raw"]));
  }
  ExpectTheLog("search.json", lines);
  ExpectTheLog("search.json", Tree{{"preview", false}, {"results", NewestFirst(row)}}.dump());
  ExpectTheLog("search.csv", table);
  EXPECT_EQ(Read({Put("search.csv", table)}).evidence.runs.at(0).replica, kPod);
}

TEST_F(LogRows, WhatGrafanaDownloadsIsALog) {
  const auto nanos = [](const std::string& line) { return std::to_string(ParseWall(Instant(line))); };
  const Tree rows = NewestFirst([&](const std::string& line) {
    return Tree{{"line", line}, {"timestamp", nanos(line)}, {"fields", {{"pod", kPod}, {"container", "discovery"}}}};
  });
  std::string text = "Common labels: {\"container\":\"discovery\",\"pod\":\"" + std::string(kPod) +
                     "\"}\nLine limit: \"1000 reached\"\n\n\n";
  std::string table = "Date,Time,Line,tsNs,id\n";
  for (const Tree& row : rows) {
    const std::string line = row["line"], date = Instant(line);
    text += nanos(line).substr(0, 13) + "\t" + date + "\t" + line + "\n";
    table += date + "," + nanos(line).substr(0, 13) + "," + Quoted(line) + "," + nanos(line) + ",id_1\n";
  }
  ExpectTheLog("explore.json", rows.dump());
  ExpectTheLog("explore.json", rows.dump(2));
  ExpectTheLog("explore.txt", text);
  ExpectTheLog("explore.csv", table);
  for (const std::string& path : {Put("explore.json", rows.dump()), Put("explore.txt", text)})
    EXPECT_EQ(Read({path}).evidence.runs.at(0).replica, kPod) << path;
}

TEST_F(LogRows, LogsOfDatadogsAPIAreLogs) {
  const Tree data = NewestFirst([](const std::string& line) {
    return Tree{{"id", "AAAA"},
                {"type", "log"},
                {"attributes",
                 {{"timestamp", Instant(line)},
                  {"message", line},
                  {"tags", {"pod_name:" + std::string(kPod), "kube_container_name:discovery"}}}}};
  });
  ExpectTheLog("datadog.json", Tree{{"data", data}, {"meta", {{"status", "done"}}}}.dump());
}

TEST_F(LogRows, AnAuditLogInRowsIsOne) {
  const std::string event =
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"services","namespace":"shop","name":"web"},"responseStatus":{"code":200},"stageTimestamp":"2024-05-06T07:08:01.000000Z"})";
  const Tree rows = {
      {{"@timestamp", "2024-05-06 07:08:01.000"}, {"@message", event}, {"@logStream", "kube-apiserver-audit-1"}}};
  // Its console shows a line of JSON as what it is.
  const Tree shown = {{{"@timestamp", "2024-05-06 07:08:01.000"}, {"@message", Tree::parse(event)}}};
  for (const std::string& text :
       {rows.dump(), shown.dump(), "@timestamp,@message\n2024-05-06 07:08:01.000," + Quoted(event) + "\n"}) {
    const Imported imported = Read({Put("audit", text)});
    ASSERT_EQ(imported.kube.history.size(), 1u) << text;
    EXPECT_TRUE(imported.kube.history[0].deleted);
  }
}

TEST_F(LogRows, AnAnswerThatIsNotWholeSaysSo) {
  Tree answer = {{"results", {{{{"field", "@message"}, {"value", Lines()[0]}}}}},
                 {"statistics", {{"recordsMatched", 25000.0}}},
                 {"status", "Running"}};
  const std::string notes = absl::StrJoin(Read({Put("insights.json", answer.dump())}).evidence.notes, "\n");
  EXPECT_THAT(notes, HasSubstr("the query's status is Running: its answer is not whole"));
  EXPECT_THAT(notes, HasSubstr("the query matched 25000 records, of which the answer holds 1"));
}

TEST_F(LogRows, RowsWithoutALineAreCountedAndTheRemedyIsNamed) {
  const Tree answer = {{"results", {{{{"field", "objectRef.name"}, {"value", "web"}}}}},
                       {"statistics", {{"recordsMatched", 1.0}}},
                       {"status", "Complete"}};
  const Imported imported = Read({Put("insights.json", answer.dump())});
  EXPECT_THAT(Reasons(imported), testing::Contains("line that is no record of a log store"));
  EXPECT_THAT(absl::StrJoin(imported.evidence.notes, "\n"),
              HasSubstr("1 rows hold no line of a log: let the query give it (`fields @timestamp, @message`)"));
}

TEST_F(LogRows, ARowOfATableWithMoreFieldsThanNamesCostsNoOther) {
  const Imported imported =
      Read({Put("export.csv", "@timestamp,@message\n2024-05-06 07:08:01.000,a,b\n2024-05-06 07:08:01.000," +
                                  Quoted(Lines()[3]) + "\n")});
  EXPECT_THAT(Reasons(imported), ElementsAre("line that is no record of a log store"));
  EXPECT_FALSE(imported.evidence.claims.empty());
}

TEST(LogRowTimes, AreReadAsConsolesWriteThem) {
  const WallNs second = ParseWall("2024-05-06T07:08:01Z");
  for (const char* text : {"2024-05-06T07:08:01Z", "2024-05-06 07:08:01", "2024-05-06 07:08:01.000", "1714979281",
                           "1714979281000", "1714979281000000000", "2024-05-06T09:08:01.000+0200",
                           "5/6/2024, 7:08:01.000 AM", "May 6, 2024 @ 07:08:01.000"}) {
    EXPECT_EQ(ParseRowTime(text), second) << text;
  }
  EXPECT_EQ(ParseRowTime("5/6/2024, 7:08:01 PM"), second + int64_t{12} * 3600 * 1'000'000'000);
  for (const char* text : {"", "yesterday", "99999999999999999999", "12", "2024-13-06 07:08:01", "9999999999999999999"})
    EXPECT_EQ(ParseRowTime(text), kNoTime) << text;
}

}  // namespace
}  // namespace wavetank::importing
