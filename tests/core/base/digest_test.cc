#include "core/base/digest.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/cause_table.h"
#include "core/base/containers/name_table.h"

namespace wavetank {
namespace {

struct Given {
  int64_t time = 5;
  TraceRecord record{TraceKind::kStep, NameId{1}, NameId{2}, 3, 4, "detail"};
  std::string subject = "s", object = "o";
  std::vector<uint64_t> inputs{1, 2};
};

std::string DigestOf(const Given& g) {
  TraceDigest digest;
  digest.Add(Time(Duration(g.time)), g.record, g.subject, g.object, g.inputs);
  return digest.Hex();
}

TEST(TraceDigest, SeesEveryFieldOfARecord) {
  const std::string base = DigestOf({});
  EXPECT_EQ(DigestOf({}), base);
  const auto changed = [](auto change) {
    Given given;
    change(given);
    return DigestOf(given);
  };
  EXPECT_NE(changed([](Given& g) { g.time = 6; }), base);
  EXPECT_NE(changed([](Given& g) { g.record.kind = TraceKind::kConverged; }), base);
  EXPECT_NE(changed([](Given& g) { g.record.a = 4; }), base);
  EXPECT_NE(changed([](Given& g) { g.record.b = -4; }), base);
  EXPECT_NE(changed([](Given& g) { g.record.detail = "detaik"; }), base);
  EXPECT_NE(changed([](Given& g) { g.subject = "t"; }), base);
  EXPECT_NE(changed([](Given& g) { g.object = "p"; }), base);
  EXPECT_NE(changed([](Given& g) { g.inputs = {1}; }), base);
  // Text that moves from one field to the next is another record.
  EXPECT_NE(changed([](Given& g) { g.subject = "so", g.object = ""; }), base);
}

TEST(TraceDigest, NamesCountAsTextNotAsNumbers) {
  Given other;
  other.record.subject = NameId{7};
  EXPECT_EQ(DigestOf(other), DigestOf({}));
}

// The encoding is part of the log format (docs/event-log.md): these bytes hold on every machine and compiler.
TEST(TraceDigest, IsTheSameOnEveryMachine) { EXPECT_EQ(DigestOf({}), "17ce602c020e6471227d17a46bd0d6e1"); }

TEST(TraceDigest, MayBeReadOnTheWay) {
  TraceDigest a, b;
  const Given g;
  for (int i = 0; i < 3; ++i) {
    a.Add(Time{}, g.record, g.subject, g.object, {});
    b.Add(Time{}, g.record, g.subject, g.object, {});
    EXPECT_EQ(a.Hex(), a.Hex());
  }
  EXPECT_EQ(a.Hex(), b.Hex());
  EXPECT_EQ(a.records(), 3u);
}

TEST(TraceDigest, KnowsTheHashOfTheRecordAddedLast) {
  TraceDigest digest;
  Given g;
  for (size_t inputs : {300u, 2u, 0u}) {  // the encoding's buffer stays as long as it was
    g.inputs.assign(inputs, 7);
    digest.Add(Time{}, g.record, g.subject, g.object, g.inputs);
    EXPECT_EQ(digest.LastHash(), TraceDigest::Hash(Time{}, g.record, g.subject, g.object, g.inputs));
  }
}

TEST(NameTable, CountsFromOneInOrderOfFirstUseAndKeepsTexts) {
  NameTable names;
  EXPECT_EQ(names.Intern(""), kNoName);
  EXPECT_EQ(names.Intern("a"), NameId{1});
  for (int i = 0; i < 10'000; ++i) names.Intern("filler-" + std::to_string(i));
  EXPECT_EQ(names.Intern("a"), NameId{1});
  EXPECT_EQ(names.Text(NameId{1}), "a");
  EXPECT_EQ(names.Text(NameId{10'001}), "filler-9999");
  EXPECT_EQ(names.Text(kNoName), "");
}

TEST(CauseTable, MergingIsASetUnion) {
  CauseTable table;
  const CauseId a = table.Of(1), b = table.Of(2), c = table.Of(3);
  const CauseId ab = table.Merge(a, b);
  EXPECT_EQ(table.Merge(b, a), ab);
  EXPECT_EQ(table.Merge(ab, a), ab);
  EXPECT_EQ(table.Merge(ab, kNoCause), ab);
  EXPECT_EQ(table.Merge(kNoCause, ab), ab);
  EXPECT_EQ(table.Merge(table.Merge(c, a), b), table.Merge(a, table.Merge(b, c)));
  EXPECT_EQ(table.Inputs(ab), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(table.Contains(ab, 2));
  EXPECT_FALSE(table.Contains(ab, 3));
  EXPECT_TRUE(table.Inputs(kNoCause).empty());
}

}  // namespace
}  // namespace wavetank
