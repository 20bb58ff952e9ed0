// Files, folders and archives as they come from strangers.
#include "import/sources/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "import/importer.h"

namespace wavetank::importing {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

class SourcesTest : public testing::Test {
 protected:
  SourcesTest() : folder_(fs::path(testing::TempDir()) / ("sources-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SourcesTest() override { fs::remove_all(folder_); }

  std::string Put(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  struct Member {
    std::string name, bytes, link;
  };
  static std::string Pack(const std::vector<Member>& members, int format, bool gzip) {
    return Packed(members, format, gzip ? ARCHIVE_FILTER_GZIP : ARCHIVE_FILTER_NONE);
  }
  static std::string Packed(const std::vector<Member>& members, int format, int filter) {
    std::string out(8 << 20, '\0');
    size_t used = 0;
    archive* const a = archive_write_new();
    archive_write_set_format(a, format);
    archive_write_add_filter(a, filter);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_write_open_memory(a, out.data(), out.size(), &used);
    for (const Member& member : members) {
      archive_entry* const entry = archive_entry_new();
      archive_entry_set_pathname(entry, member.name.c_str());
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_filetype(entry, member.link.empty() ? AE_IFREG : AE_IFLNK);
      if (!member.link.empty()) archive_entry_set_symlink(entry, member.link.c_str());
      archive_entry_set_size(entry, static_cast<la_int64_t>(member.bytes.size()));
      archive_write_header(a, entry);
      archive_write_data(a, member.bytes.data(), member.bytes.size());
      archive_entry_free(entry);
    }
    archive_write_close(a);
    archive_write_free(a);
    out.resize(used);
    return out;
  }

  static std::string One(const std::string& bytes, int filter) {
    return Packed({{"file", bytes, ""}}, ARCHIVE_FORMAT_RAW, filter);
  }
  static std::string Gzip(const std::string& bytes) { return Pack({{"file", bytes, ""}}, ARCHIVE_FORMAT_RAW, true); }

  std::map<std::string, std::string> Walk(const std::string& source, const SourceLimits& limits = {}) {
    std::map<std::string, std::string> seen;
    refusals_ = {};
    status_ = WalkSources({source}, limits, refusals_, [&](const SourceFile& file, PeekableStream& bytes) {
      bytes.Peek(3);
      std::string& text = seen[file.name];
      while (true) {
        const auto piece = bytes.Next();
        if (!piece.ok()) refusals_.Add("broken", {file.name, 0}, std::string(piece.status().message()));
        if (!piece.ok() || piece->empty()) break;
        text.append(*piece);
      }
    });
    return seen;
  }
  std::vector<std::string> Reasons() const {
    std::vector<std::string> out;
    for (const auto& [reason, of] : refusals_.reasons()) out.push_back(reason);
    return out;
  }

  std::string Detail(const std::string& reason) const { return refusals_.reasons().at(reason).first.at(0).second; }
  static std::string Lines(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += "line " + std::to_string(int64_t{i} * i * 7919) + "\n";
    return out;
  }

  const fs::path folder_;
  Refusals refusals_;
  absl::Status status_;
};

TEST_F(SourcesTest, EveryPackingGivesTheSameFiles) {
  const std::vector<Member> members = {{"a/istiod.log", "one\ntwo\n", ""}, {"b.txt", "three", ""}};
  for (const int format : {ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FORMAT_ZIP}) {
    for (const bool gzip : {false, true}) {
      EXPECT_THAT(Walk(Put("packed", Pack(members, format, gzip))),
                  UnorderedElementsAre(Pair("a/istiod.log", "one\ntwo\n"), Pair("b.txt", "three")));
      EXPECT_TRUE(refusals_.empty());
    }
  }
  fs::remove(folder_ / "packed");
  Put("in/a/istiod.log", "one\ntwo\n");
  Put("in/b.txt", "three");
  EXPECT_THAT(Walk(folder_ / "in"), UnorderedElementsAre(Pair("a/istiod.log", "one\ntwo\n"), Pair("b.txt", "three")));
}

TEST_F(SourcesTest, AnArchiveInAnArchiveIsRead) {
  const std::string inner = Pack({{"istiod.log", "deep", ""}}, ARCHIVE_FORMAT_TAR_USTAR, true);
  EXPECT_THAT(Walk(Put("outer.zip", Pack({{"inner.tar.gz", inner, ""}}, ARCHIVE_FORMAT_ZIP, false))),
              ElementsAre(Pair("istiod.log", "deep")));
  std::string nested = inner;
  for (int i = 0; i < 4; ++i) nested = Pack({{"x.tar.gz", nested, ""}}, ARCHIVE_FORMAT_TAR_USTAR, true);
  EXPECT_TRUE(Walk(Put("nested", nested)).empty());
  EXPECT_THAT(Reasons(), ElementsAre("archive in too many archives"));
}

TEST_F(SourcesTest, LinksAndNamesThatLeadOutAreNotFollowed) {
  EXPECT_THAT(Walk(Put("bad.tar", Pack({{"../../etc/passwd", "x", ""},
                                        {"/etc/shadow", "x", ""},
                                        {"a/../../b", "x", ""},
                                        {"link", "", "/etc/passwd"},
                                        {"good", "y", ""}},
                                       ARCHIVE_FORMAT_TAR_USTAR, false))),
              ElementsAre(Pair("good", "y")));
  EXPECT_EQ(refusals_.reasons().at("name that leads out of its archive").count, 3u);
  EXPECT_EQ(refusals_.reasons().at("link, not followed").count, 1u);
  Put("in/good", "y");
  fs::create_symlink("/etc/passwd", folder_ / "in/link");
  EXPECT_THAT(Walk(folder_ / "in"), ElementsAre(Pair("good", "y")));
  EXPECT_THAT(Reasons(), ElementsAre("link, not followed"));
}

TEST_F(SourcesTest, ATruncatedArchiveGivesWhatItHas) {
  std::string noise;  // that no packing shortens
  uint64_t state = 1;
  for (int i = 0; i < 300'000; ++i) noise += static_cast<char>((state = state * 6364136223846793005u + 1) >> 56);
  const std::string whole = Pack({{"first", "1", ""}, {"second", noise, ""}}, ARCHIVE_FORMAT_TAR_USTAR, true);
  for (const size_t size : {whole.size() / 2, whole.size() - 10, size_t{20}}) {
    Walk(Put("cut.tar.gz", whole.substr(0, size)));
    EXPECT_TRUE(status_.ok());
    EXPECT_FALSE(refusals_.empty()) << size;
  }
  EXPECT_EQ(Walk(Put("cut.tar.gz", whole.substr(0, whole.size() / 2))).at("first"), "1");
}

TEST_F(SourcesTest, AGzipCutInItsFirstBlockGivesWhatItHas) {
  const std::string lines = Lines(300);
  const std::string whole = Gzip(lines);
  ASSERT_LT(lines.size(), size_t{1} << 16);
  const auto files = Walk(Put("cut.log.gz", whole.substr(0, whole.size() / 2)));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_GT(files.at("cut.log").size(), lines.size() / 4);
  EXPECT_TRUE(lines.starts_with(files.at("cut.log")));
  EXPECT_THAT(Reasons(), ElementsAre("broken"));
}

TEST_F(SourcesTest, AnXzCutInItsFirstBlockGivesWhatItHas) {
  const std::string lines = Lines(3'000);
  ASSERT_LT(lines.size(), size_t{1} << 16);
  const std::string whole = One(lines, ARCHIVE_FILTER_XZ);
  const auto files = Walk(Put("cut.log.xz", whole.substr(0, whole.size() / 2)));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_GT(files.at("cut.log").size(), lines.size() / 4);
  EXPECT_TRUE(lines.starts_with(files.at("cut.log")));
  EXPECT_THAT(Detail("broken"), testing::StartsWith("truncated xz; "));
}

TEST_F(SourcesTest, AZstdGivesItsWholeBlocksAndSaysHowMuchIsLost) {
  const std::string lines = Lines(20'000);
  const std::string whole = One(lines, ARCHIVE_FILTER_ZSTD);
  const auto files = Walk(Put("cut.log.zst", whole.substr(0, whole.size() - 100)));
  EXPECT_EQ(files.at("cut.log"), lines.substr(0, lines.size() / (128 << 10) * (128 << 10)));
  EXPECT_THAT(Detail("broken"),
              testing::AllOf(testing::StartsWith("truncated zstd; 262144 bytes could be unpacked; at least "),
                             testing::EndsWith("that is not whole and gives nothing")));
}

TEST_F(SourcesTest, ABzip2GivesItsWholeBlocksAndSaysHowMuchIsLost) {
  const std::string lines = Lines(100'000);
  const std::string whole = One(lines, ARCHIVE_FILTER_BZIP2);
  const auto files = Walk(Put("cut.log.bz2", whole.substr(0, whole.size() - 100)));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_GT(files.at("cut.log").size(), 800'000u);
  EXPECT_TRUE(lines.starts_with(files.at("cut.log")));
  EXPECT_THAT(Detail("broken"), testing::HasSubstr("lie in a block (of up to 900000 bytes)"));
}

TEST_F(SourcesTest, ABlockThatIsNotWholeGivesNothingAndThatIsSaid) {
  for (const auto& [filter, name] : {std::pair{ARCHIVE_FILTER_BZIP2, "bzip2"}, {ARCHIVE_FILTER_ZSTD, "zstd"}}) {
    const std::string whole = One(Lines(300), filter);
    EXPECT_TRUE(Walk(Put("cut.log", whole.substr(0, whole.size() / 2))).empty());
    EXPECT_THAT(Detail("damaged or truncated archive"),
                testing::AllOf(testing::StartsWith(std::string("truncated ") + name + "; 0 bytes could be unpacked"),
                               testing::HasSubstr("that is not whole and gives nothing")));
  }
}

TEST_F(SourcesTest, OfATarThatWasCutTheFilesBeforeTheCutAreRead) {
  const std::vector<Member> members = {{"first", Lines(300), ""}, {"second", Lines(100'000), ""}};
  for (const int filter : {ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD}) {
    const std::string whole = Packed(members, ARCHIVE_FORMAT_TAR_USTAR, filter);
    const auto files = Walk(Put("cut.tar", whole.substr(0, whole.size() - 200)));
    EXPECT_EQ(files.at("first"), members[0].bytes);
    EXPECT_GT(files.at("second").size(), 800'000u);
    EXPECT_TRUE(members[1].bytes.starts_with(files.at("second")));
    EXPECT_THAT(Reasons(), testing::Contains("broken"));
  }
}

TEST_F(SourcesTest, EveryPackingOfOneFileGivesItWithWhatFollowsIt) {
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD}) {
    const auto files = Walk(Put("two", One("one\n", filter) + One("two\n", filter) + std::string(512, '\0')));
    EXPECT_THAT(files, ElementsAre(Pair("two", "one\ntwo\n"))) << filter;
    EXPECT_TRUE(refusals_.empty()) << filter;
  }
}

TEST_F(SourcesTest, ADamagedBlockIsNamedByItsPacking) {
  for (const auto& [filter, name] : {std::pair{ARCHIVE_FILTER_BZIP2, "bzip2"}, {ARCHIVE_FILTER_XZ, "xz"}}) {
    std::string damaged = One(Lines(300), filter);
    damaged[damaged.size() / 2] ^= 1;
    Walk(Put("damaged", damaged));
    ASSERT_EQ(refusals_.reasons().size(), 1u);
    EXPECT_THAT(refusals_.reasons().begin()->second.first.at(0).second,
                testing::StartsWith(std::string("damaged ") + name + ": "));
  }
}

TEST_F(SourcesTest, AGzipCutWithinItsHeaderIsNamed) {
  const std::string whole = Gzip("x");
  for (const size_t size : {size_t{2}, size_t{5}, size_t{10}}) {
    EXPECT_TRUE(Walk(Put("cut.log.gz", whole.substr(0, size))).empty());
    EXPECT_THAT(Reasons(), ElementsAre("damaged or truncated archive")) << size;
  }
}

TEST_F(SourcesTest, AGzipWithAWrongChecksumIsNamed) {
  std::string damaged = Gzip("one\n");
  damaged[damaged.size() - 8] ^= 1;
  EXPECT_THAT(Walk(Put("one.log.gz", damaged)), ElementsAre(Pair("one.log", "one\n")));
  EXPECT_THAT(Reasons(), ElementsAre("broken"));
}

TEST_F(SourcesTest, ABombIsLeftOut) {
  const std::string bomb =
      Pack({{"zeros", std::string(40 << 20, '\0'), ""}, {"after", "x", ""}}, ARCHIVE_FORMAT_TAR_USTAR, true);
  SourceLimits limits;
  limits.free_bytes = 1 << 20;
  EXPECT_LT(Walk(Put("bomb.tar.gz", bomb), limits)["zeros"].size(), size_t{40} << 20);
  EXPECT_THAT(Reasons(), testing::Contains("broken"));
}

TEST_F(SourcesTest, WhatHoldsNoFileIsNamed) {
  const std::string zeros = Pack({}, ARCHIVE_FORMAT_TAR_USTAR, true);
  EXPECT_TRUE(Walk(Put("zeros.gz", zeros)).empty());
  EXPECT_THAT(Reasons(), ElementsAre("archive that holds no file"));
}

TEST_F(SourcesTest, TextOfWindowsIsSeenAsUtf8) {
  const std::string grin = "\xf0\x9f\x98\x80";
  EXPECT_EQ(Walk(Put("little", std::string("\xff\xfe"
                                           "a\0"
                                           "\xe9\0"
                                           "\x3d\xd8\x00\xde",
                                           10)))["little"],
            "a\xc3\xa9" + grin);
  EXPECT_EQ(Walk(Put("big", std::string("\xfe\xff"
                                        "\0a"
                                        "\xd8\x3d\xde\x00",
                                        8)))["big"],
            "a" + grin);
  EXPECT_EQ(Walk(Put("half", std::string("\xff\xfe"
                                         "\x3d\xd8"
                                         "a\0b",
                                         7)))["half"],
            "\xef\xbf\xbd"
            "a"
            "\xef\xbf\xbd");
  EXPECT_EQ(Walk(Put("marked",
                     "\xef\xbb\xbf"
                     "a"))["marked"],
            "a");
  EXPECT_TRUE(refusals_.empty());
}

TEST_F(SourcesTest, WhatIsNotThereIsSaid) {
  Walk(folder_ / "absent");
  EXPECT_EQ(status_.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status_.message()), testing::HasSubstr("absent"));
}

TEST_F(SourcesTest, AnArchiveThatEndsBetweenTwoFilesLacksItsEnd) {
  const std::vector<Member> members = {{"a.log", std::string(512, 'a'), ""}, {"b.log", "b", ""}};
  const std::string tar = Pack(members, ARCHIVE_FORMAT_TAR_USTAR, false);
  EXPECT_THAT(Walk(Put("cut.tar", tar.substr(0, 1024))), ElementsAre(Pair("a.log", std::string(512, 'a'))));
  EXPECT_THAT(Reasons(), ElementsAre("archive without its end: files may be missing"));
  const std::string zip = Pack(members, ARCHIVE_FORMAT_ZIP, false);
  EXPECT_EQ(Walk(Put("cut.zip", zip.substr(0, zip.size() - 10))).size(), 2u);
  EXPECT_THAT(Reasons(), ElementsAre("archive without its end: files may be missing"));
  EXPECT_TRUE(Walk(Put("head.tar", tar.substr(0, 300))).empty());
  EXPECT_THAT(Reasons(), ElementsAre("damaged or truncated archive"));
}

TEST_F(SourcesTest, WhatStandsBehindAPackedFileIsTold) {
  EXPECT_THAT(Walk(Put("x.log.gz", Gzip("whole\n") + "and more")), ElementsAre(Pair("x.log", "whole\n")));
  EXPECT_THAT(Reasons(), ElementsAre("something behind the end of a packed file, not read"));
  Walk(Put("x.log.gz", Gzip("whole\n") + std::string(600, '\0')));
  EXPECT_TRUE(refusals_.empty()) << "zeros are padding";
}

// As logrotate's copytruncate leaves it where the writer does not append.
TEST_F(SourcesTest, ALogThatBeginsWithZerosIsReadBehindThem) {
  EXPECT_THAT(Walk(Put("x.log", std::string(3 << 20, '\0') + "a line\n")), ElementsAre(Pair("x.log", "a line\n")));
  EXPECT_THAT(Reasons(), ElementsAre("zeros before a file's first line, left out"));
}

TEST_F(SourcesTest, Utf16IsKnownWithoutItsMark) {
  const std::string text = "2024-05-06T07:08:00.000000Z\tinfo\n";
  for (const bool big : {false, true}) {
    std::string wide;
    for (const char c : text) wide += big ? std::string{'\0', c} : std::string{c, '\0'};
    EXPECT_THAT(Walk(Put("x.log", wide)), ElementsAre(Pair("x.log", text)));
  }
}

TEST_F(SourcesTest, NamesDoNotMoveATerminalsCursor) {
  const std::string tar = Pack({{"is\x1b[31mtiod\n.log", "x", ""}}, ARCHIVE_FORMAT_TAR_USTAR, false);
  EXPECT_THAT(Walk(Put("x.tar", tar)), ElementsAre(Pair("is?[31mtiod?.log", "x")));
}

TEST_F(SourcesTest, AnEncryptedFileIsNamedAsThat) {
  std::string zip = Pack({{"a.log", "secret", ""}}, ARCHIVE_FORMAT_ZIP, false);
  zip[6] = static_cast<char>(zip[6] | 1);  // PKWARE's APPNOTE.TXT, 4.4.4
  EXPECT_TRUE(Walk(Put("x.zip", zip)).empty());
  EXPECT_THAT(Reasons(), testing::Contains("encrypted file in an archive; unpack it first"));
}

TEST_F(SourcesTest, WhatARotationPutIntoTwoFilesIsOneStart) {
  const std::string day = "2024-05-06T07:08:0";
  Put("logs/istiod.log.1", day + "0.000000Z\tinfo\tinitializing mesh configuration ./etc/istio/config/mesh\n");
  Put("logs/istiod.log",
      day + "1.000000Z\tinfo\tprocessing secret event for secret istio-system/remote-west\n" + day +
          "1.000100Z\tinfo\tAdding cluster\tcluster=west secret=istio-system/remote-west\n" + day +
          "1.000200Z\tinfo\tNumber of remote clusters: 1\n" + day +
          "1.200000Z\tinfo\tads\tAll caches have been synced up in 1.1s, marking server ready\n" + day +
          "5.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config Sidecar/shop/x: 100ms since last change, 100ms "
          "since last push, full=true\n");
  ImportOptions options;
  options.sources = {folder_ / "logs"};
  const auto imported = Import(options);
  ASSERT_TRUE(imported.ok());
  std::vector<InputKind> changes;
  for (const InferredInput& input : imported->evidence.inputs) {
    if (!input.initial) changes.push_back(input.kind);
  }
  EXPECT_THAT(changes, ElementsAre(InputKind::kConfig));
}

TEST_F(SourcesTest, ReplicasThatSawTheSameTellItOnce) {
  const std::string line =
      "Z\tinfo\tads\tPush debounce stable[2] 1 for config Sidecar/shop/default: 100ms since last change, 100ms since "
      "last push, "
      "full=true\n";
  Put("logs/istiod-1.log", "2024-05-06T07:08:01.100000" + line);
  Put("logs/istiod-2.log", "2024-05-06T07:08:01.103000" + line + "2024-05-06T07:08:09.000000" + line);
  Put("logs/notes.bin", std::string("\x00\x01\x02", 3));
  ImportOptions options;
  options.sources = {folder_ / "logs"};
  const auto imported = Import(options);
  ASSERT_TRUE(imported.ok());
  const Evidence* const evidence = &imported->evidence;
  ASSERT_EQ(evidence->inputs.size(), 2u);
  EXPECT_EQ(evidence->inputs[0].also.size(), 1u);
  EXPECT_EQ(evidence->inputs[1].also.size(), 0u);
  EXPECT_EQ(evidence->claims.size(), 3u);
  EXPECT_TRUE(evidence->refusals.reasons().contains("file of no known kind"));
  // A clock that is off by seconds is put right.
  options.skews = {{"istiod-1.log", 7'900'000'000}};
  const auto moved = Import(options);
  ASSERT_EQ(moved->evidence.inputs.size(), 2u);
  EXPECT_EQ(moved->evidence.inputs[1].also.size(), 1u);
}

TEST_F(SourcesTest, APipeThatNobodyWritesToIsTold) {
  const std::string pipe = folder_ / "istiod.log";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Refusals refusals;
  std::vector<std::string> told, read;
  std::thread writer;
  const auto visit = [&](const SourceFile& file, PeekableStream& bytes) {
    read.push_back(file.name + ": " + std::string(bytes.Peek(100)));
  };
  const absl::Status walked = WalkSources({pipe}, {}, refusals, visit, [&](std::string_view what) {
    told.emplace_back(what);
    writer = std::thread([&] { std::ofstream(pipe) << "a line"; });
  });
  ASSERT_TRUE(writer.joinable());
  writer.join();
  EXPECT_TRUE(walked.ok()) << walked;
  EXPECT_THAT(told, ElementsAre(pipe + " is a pipe that nobody has written to; waiting for it"));
  EXPECT_THAT(read, ElementsAre("istiod.log: a line"));
}

}  // namespace
}  // namespace wavetank::importing
