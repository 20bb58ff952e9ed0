// From bytes to records: lines, what collectors put around them, and both of istiod's forms. All of it is hostile
// input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/evidence/evidence.h"
#include "import/istiod/record_reader.h"
#include "import/report/report.h"
#include "import/text/envelope.h"
#include "import/text/line_splitter.h"
#include "import/text/log_store.h"

namespace wavetank::importing {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Lines(const std::vector<std::string>& chunks) {
  std::vector<std::string> out;
  LineSplitter splitter(
      [&](std::string_view line, uint64_t, bool cut) { out.push_back(std::string(line) + (cut ? "+" : "")); });
  for (const std::string& chunk : chunks) splitter.Feed(chunk);
  splitter.Finish();
  return out;
}

TEST(LineSplitter, PiecesOfAnySizeGiveTheSameLines) {
  const std::string text = "one\r\n\ntwo\nthree";
  for (size_t size = 1; size <= text.size(); ++size) {
    std::vector<std::string> chunks;
    for (size_t at = 0; at < text.size(); at += size) chunks.push_back(text.substr(at, size));
    EXPECT_THAT(Lines(chunks), ElementsAre("one", "", "two", "three")) << size;
  }
}

TEST(LineSplitter, AHundredMegabytesWithoutAnEndAreCut) {
  size_t longest = 0, lines = 0;
  LineSplitter splitter([&](std::string_view line, uint64_t, bool cut) {
    longest = std::max(longest, line.size());
    lines += cut ? 1 : 0;
  });
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) splitter.Feed(piece);
  splitter.Feed("\nnext\n");
  EXPECT_EQ(longest, kMaxLine);
  EXPECT_EQ(lines, 1u);
  EXPECT_EQ(splitter.lines(), 2u);
}

TEST(Envelope, KnowsWhatCollectorsPutAroundALine) {
  const std::string line = "2024-05-06T07:08:01.000000Z\tinfo\tads\thello world";
  for (const std::string& wrapped : {
           line,
           "2024-05-06T07:08:01.123456789Z stderr F " + line,
           "2024-05-06T07:08:01.123456789Z " + line,
           "[pod/istiod-1/discovery] " + line,
           "[pod/istiod-1/discovery] 2024-05-06T07:08:01.123456789Z " + line,
           std::string(
               R"({"log":"2024-05-06T07:08:01.000000Z\tinfo\tads\thello world\n","stream":"stderr","time":"t"})"),
           "\x1b[32m" + line + "\x1b[0m",
       }) {
    Envelope envelope;
    EXPECT_EQ(envelope.Unwrap(wrapped).line, line) << wrapped;
  }
}

TEST(Envelope, BlanksInThePlaceOfTabsAreTabs) {
  Envelope envelope;
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.100000Z     info    ads     Push debounce stable[1] 1 for x").line,
            "2024-05-06T07:08:01.100000Z\tinfo\tads\tPush debounce stable[1] 1 for x");
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.100000Z info Number of remote clusters: 1").line,
            "2024-05-06T07:08:01.100000Z\tinfo\tNumber of remote clusters: 1");
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.100000Z info Adding cluster cluster=west secret=istio-system/w").line,
            "2024-05-06T07:08:01.100000Z\tinfo\tAdding cluster\tcluster=west secret=istio-system/w");
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.100000Z GET /path").line, "2024-05-06T07:08:01.100000Z GET /path");
}

TEST(Envelope, SternsPrefixNamesThePod) {
  Envelope envelope;
  const Unwrapped found = envelope.Unwrap("istiod-7d4f-x discovery 2024-05-06T07:08:01.100000Z\tinfo\tads\ttext");
  EXPECT_EQ(found.pod, "istiod-7d4f-x");
  EXPECT_EQ(found.container, "discovery");
  EXPECT_EQ(found.line, "2024-05-06T07:08:01.100000Z\tinfo\tads\ttext");
  EXPECT_TRUE(envelope.Unwrap("three small words").pod.empty());
}

TEST(Envelope, PiecesOfTwoStreamsDoNotMix) {
  Envelope envelope;
  EXPECT_FALSE(envelope.Unwrap("2024-05-06T07:08:01.1Z stderr P one ").complete);
  EXPECT_FALSE(envelope.Unwrap("2024-05-06T07:08:01.1Z stdout P other ").complete);
  EXPECT_EQ(envelope.Cut(), 2u);
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.1Z stderr F line").line, "one line");
  EXPECT_EQ(envelope.Unwrap("2024-05-06T07:08:01.1Z stdout F end").line, "other end");
  EXPECT_EQ(envelope.Cut(), 0u);
}

TEST(LogStore, ALineWhoseRestIsNotThereIsNoted) {
  const std::string whose = R"("kubernetes":{"pod_name":"istiod-7d4f-x","container_name":"discovery"})";
  const std::string whole = R"({"time":"2024-05-06T07:08:01Z","_p":"F","log":"one",)" + whose + "}\n",
                    begun = R"({"time":"2024-05-06T07:08:02Z","_p":"P","log":"two",)" + whose + "}\n";
  EXPECT_THAT(ReadLogStore(LogStoreFile::kCollected, whole).notes, IsEmpty());
  EXPECT_THAT(ReadLogStore(LogStoreFile::kCollected, whole + begun).notes,
              ElementsAre(HasSubstr("1 lines that the runtime cut")));
  EXPECT_THAT(ReadLogStore(LogStoreFile::kCollected, begun + whole).notes, IsEmpty());
}

struct Seen {
  std::vector<std::string> records;
  Refusals refusals;
};
Seen Records(const std::string& text) {
  Seen seen;
  RecordReader reader("f", seen.refusals, [&](const LogRecord& r) {
    seen.records.push_back(std::string(r.level) + "|" + std::string(r.scope) + "|" + std::string(r.message) + "|" +
                           std::string(r.labels));
  });
  LineSplitter splitter([&](std::string_view line, uint64_t number, bool cut) { reader.Line(line, number, cut); });
  splitter.Feed(text);
  splitter.Finish();
  reader.Finish();
  return seen;
}

TEST(RecordReader, BothFormsSayTheSame) {
  EXPECT_THAT(Records("2024-05-06T07:08:01.000000Z\tinfo\tkube\tsyncing\tcluster=a b secret=c/d\n").records,
              ElementsAre("info|kube|syncing|cluster=a b secret=c/d"));
  EXPECT_THAT(Records("2024-05-06T07:08:01.000000Z\tinfo\tAdding cluster\tcluster=a\n").records,
              ElementsAre("info||Adding cluster|cluster=a"));
  EXPECT_THAT(Records("2024-05-06T07:08:01.000000Z\tinfo\tads\txds/ads.go:175\tADS: new\n").records,
              ElementsAre("info|ads|ADS: new|"));
  EXPECT_THAT(
      Records(R"({"level":"info","time":"2024-05-06T07:08:01.000000Z","scope":"kube","msg":"syncing","cluster":"a"})"
              "\n")
          .records,
      ElementsAre("info|kube|syncing|cluster=a"));
}

TEST(RecordReader, ALabelMayHoldBlanks) {
  LogRecord record;
  record.labels = "cluster=a b secret=c/d mycluster=x";
  EXPECT_EQ(record.Label("cluster"), "a b");
  EXPECT_EQ(record.Label("secret"), "c/d");
  EXPECT_EQ(record.Label("absent"), "");
}

TEST(RecordReader, ARecordThatAnotherOneInterruptsIsCutThere) {
  const Seen seen = Records(
      "2024-05-06T07:08:01.000000Z\tinfo\tads\tFull pu2024-05-06T07:08:01.000001Z\tinfo\tkube\twhole\n"
      "2024-05-06T07:08:01.000002Z\tinfo\tkube\tnext\n"
      R"({"level":"info","time":"2024-05-06T07:08:01.000000Z","ms{"level":"warn","time":"2024-05-06T07:08:01.000000Z","msg":"b"})"
      "\n");
  EXPECT_THAT(seen.records, ElementsAre("info|kube|whole|", "info|ads|Full pu|", "info|kube|next|", "warn||b|"));
  ASSERT_TRUE(seen.refusals.reasons().contains("line cut short by another one"));
  EXPECT_EQ(seen.refusals.reasons().at("line cut short by another one").count, 2u);
}

// As two writers of one pipe leave it.
TEST(RecordReader, ARecordWhoseRestFollowsTheOneThatInterruptedItIsWhole) {
  const Seen text = Records(
      "2024-05-06T07:08:01.000000Z\tinfo\tads\tFull pu2024-05-06T07:08:01.000001Z\tinfo\tkube\twhole\n"
      "sh, new\n");
  EXPECT_THAT(text.records, ElementsAre("info|kube|whole|", "info|ads|Full push, new|"));
  EXPECT_TRUE(text.refusals.empty());
  const Seen json = Records(
      R"({"level":"info","time":"2024-05-06T07:08:01.000000Z","ms{"level":"warn","time":"2024-05-06T07:08:01.000000Z","msg":"b"})"
      "\ng\":\"a\"}\n");
  EXPECT_THAT(json.records, ElementsAre("warn||b|", "info||a|"));
  EXPECT_TRUE(json.refusals.empty());
}

TEST(RecordReader, AMessageOfSeveralLinesIsOne) {
  EXPECT_THAT(Records("2024-05-06T07:08:01.000000Z\tinfo\tmesh networks configuration updated to: {\n"
                      "    \"a\": 1\n}\n2024-05-06T07:08:02.000000Z\tinfo\tnext\n")
                  .records,
              ElementsAre("info||mesh networks configuration updated to: {\n    \"a\": 1\n}|", "info||next|"));
}

TEST(Wall, TimesAreReadAndPrinted) {
  EXPECT_EQ(FormatWall(ParseWall("2024-05-06T07:08:01.000123Z")), "2024-05-06T07:08:01.000123Z");
  EXPECT_EQ(ParseWall("2024-05-06T09:08:01.5+02:00"), ParseWall("2024-05-06T07:08:01.500Z"));
  for (const char* no : {"", "2024-05-06", "2024-13-06T07:08:01Z", "2024-05-06T07:08:01", "2024-05-06T27:08:01Z",
                         "9999-12-31T23:59:59Z", "2024-05-06T07:08:01.5+02", "\xff\xff\xff\xff-05-06T07:08:01Z"}) {
    EXPECT_EQ(ParseWall(no), kNoTime) << no;
  }
  EXPECT_EQ(ParseGoDuration("1m2.5s"), 62'500'000'000);
  EXPECT_EQ(ParseGoDuration("20.891\xc2\xb5s"), 20'891);
  EXPECT_EQ(ParseGoDuration("100.222245ms"), 100'222'245);
  for (const char* no : {"", "5", "ms", "1.2.3s", "1s2", "99999999999999999999999s"})
    EXPECT_EQ(ParseGoDuration(no), -1) << no;
}

TEST(Report, NoCredentialOfALogIsPrinted) {
  Evidence evidence;
  Claim& nack = evidence.claims.emplace_back();
  nack.kind = ClaimKind::kNack;
  nack.detail = "Internal: header Authorization: Bearer hunter2hunter2 is bad";
  InferredInput& mesh = evidence.inputs.emplace_back();
  mesh.kind = InputKind::kMeshConfig;
  mesh.detail = R"({"extensionProviders":[{"lightstep":{"accessToken":"hunter2hunter2"}}]})";
  evidence.refusals.Add("line that continues no message", {"f", 3}, "password: hunter2hunter2");
  const std::string text = ToJson(evidence).dump() + Summary(evidence) + Timeline(evidence);
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, HasSubstr("accessToken"));
}

}  // namespace
}  // namespace wavetank::importing
