#include "replay/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <rapidcheck.h>

#include "core/base/digest.h"
#include "core/base/status.h"
#include "replay/secret_source.h"
#include "replay/secrets.h"
#include "tests/replay/temp_folder.h"
#include "tests/replay/toy_world.h"

namespace wavetank::replay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<Throw> kThrows = {{Time(0s), "red", 40}, {Time(5ms), "blue", 30}, {Time(9ms), "red", 7}};

std::string Error(const absl::Status& status) { return std::string(Message(status)); }

// What Open and Verify say; "" if the log is whole.
std::string Fault(const std::string& path) {
  absl::StatusOr<std::unique_ptr<LogReader>> log = LogReader::Open(path);
  if (!log.ok()) return Error(log.status());
  const absl::StatusOr<LogReader::Summary> summary = (*log)->Verify();
  if (!summary.ok()) return Error(summary.status());
  return summary->complete ? "" : "incomplete";
}

void Sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error != nullptr ? error : "");
  sqlite3_free(error);
  sqlite3_close(db);
}

TEST(EventLog, HoldsWhatWasAppendedInOrder) {
  TempFolder folder;
  const absl::StatusOr<std::string> digest = RecordToy(folder / "log", 7, kThrows, Time(1s));
  ASSERT_TRUE(digest.ok()) << digest.status();
  absl::StatusOr<std::unique_ptr<LogReader>> log = LogReader::Open(folder / "log");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->header().seed, 7u);
  EXPECT_EQ((*log)->header().scenario_text, "name: toy\n");
  EXPECT_EQ((*log)->header().profile, "1.18.2");

  uint64_t inputs = 0, events = 0;
  for (auto item = (*log)->Next(); *item != LogReader::Item::kEnd; item = (*log)->Next()) {
    ASSERT_TRUE(item.ok()) << item.status();
    if (*item == LogReader::Item::kInput) {
      EXPECT_EQ((*log)->input().at, kThrows[inputs].at);
      EXPECT_EQ((*log)->input().body["ball"], kThrows[inputs].ball);
      EXPECT_EQ((*log)->input().seq, ++inputs);
    } else if (*item == LogReader::Item::kEvent) {
      const LoggedEvent& event = (*log)->event();
      EXPECT_EQ(event.index, events++);
      EXPECT_EQ(event.kind, TraceKind::kStep);
      EXPECT_EQ(event.b, static_cast<int64_t>(events));
      EXPECT_EQ(event.object, event.a == 0 ? "ground" : "wall");
      ASSERT_EQ(event.inputs.size(), 1u);
      EXPECT_EQ(event.subject, kThrows[event.inputs[0] - 1].ball);
    }
  }
  EXPECT_EQ(inputs, 3u);
  EXPECT_EQ(events, 41u + 31 + 8);
  const absl::StatusOr<LogReader::Summary> summary = (*log)->Verify();
  ASSERT_TRUE(summary.ok());
  EXPECT_TRUE(summary->complete);
  EXPECT_EQ(summary->end, Time(1s));
  EXPECT_EQ(summary->trace_digest, *digest);
}

TEST(EventLog, TheSameRunWritesTheSameChain) {
  TempFolder folder;
  std::string chains[2];
  for (std::string& chain : chains) {
    ASSERT_TRUE(RecordToy(folder / "log", 7, kThrows, Time(1s)).ok());
    chain = (*LogReader::Open(folder / "log"))->Verify()->chain;
  }
  EXPECT_EQ(chains[0], chains[1]);
  ASSERT_TRUE(RecordToy(folder / "other", 8, kThrows, Time(1s)).ok());
  EXPECT_NE((*LogReader::Open(folder / "other"))->Verify()->chain, chains[0]);
}

TEST(EventLog, CheckpointsFallDueEveryNEvents) {
  TempFolder folder;
  ASSERT_TRUE(RecordToy(folder / "log", 7, kThrows, Time(1s), {.checkpoint_every = 20}).ok());
  EXPECT_EQ((*LogReader::Open(folder / "log"))->Verify()->checkpoints, 80u / 20 + 1);
}

TEST(EventLog, AFileGetsItsNameOnlyWhenItIsWhole) {
  TempFolder folder;
  const std::string path = folder / "log";
  {
    auto writer = LogWriter::Create(path, {});
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(std::filesystem::exists(path + ".partial"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "an abandoned log leaves nothing";
  auto writer = LogWriter::Create(path, {});
  ASSERT_TRUE((*writer)->Finish(Time(0s), "d").ok());
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial-journal"));
  EXPECT_FALSE((*writer)->Add(LogInput{}).ok());
  EXPECT_EQ(Fault(path), "");
}

TEST(EventLog, AnEarlierLogStaysUntilTheNextIsWhole) {
  TempFolder folder;
  const std::string path = folder / "log";
  ASSERT_TRUE(RecordToy(path, 1, kThrows, Time(1s)).ok());
  const std::string before = ReadAll(path);
  { ASSERT_TRUE(LogWriter::Create(path, {}).ok()); }
  EXPECT_EQ(ReadAll(path), before);
  ASSERT_TRUE(RecordToy(path, 2, kThrows, Time(1s)).ok());
  EXPECT_EQ((*LogReader::Open(path))->header().seed, 2u);
}

TEST(EventLog, AForeignFileIsNeverOverwritten) {
  TempFolder folder;
  const std::string path = folder / "thesis.txt";
  WriteAll(path, "three years of work");
  const auto writer = LogWriter::Create(path, {});
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Error(writer.status()), AllOf(HasSubstr(path), HasSubstr("name another")));
  EXPECT_EQ(ReadAll(path), "three years of work");
  WriteAll(folder / "log.partial", "notes");
  EXPECT_EQ(LogWriter::Create(folder / "log", {}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadAll(folder / "log.partial"), "notes");
}

TEST(EventLog, TwoRunsCannotWriteOneFile) {
  TempFolder folder;
  const auto first = LogWriter::Create(folder / "log", {});
  ASSERT_TRUE(first.ok());
  const auto second = LogWriter::Create(folder / "log", {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Error(second.status()), HasSubstr("another run"));
  EXPECT_TRUE((*first)->Finish(Time(0s), "").ok());
}

TEST(EventLog, ASymbolicLinkStaysALink) {
  TempFolder folder;
  ASSERT_TRUE(RecordToy(folder / "target", 1, kThrows, Time(1s)).ok());
  std::filesystem::create_symlink(folder / "target", folder / "link");
  ASSERT_TRUE(RecordToy(folder / "link", 2, kThrows, Time(1s)).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ((*LogReader::Open(folder / "target"))->header().seed, 2u);
}

TEST(EventLog, APlaceThatCannotBeWrittenIsNamed) {
  TempFolder folder;
  EXPECT_THAT(Error(LogWriter::Create(folder / "no/such/log", {}).status()), HasSubstr("does not exist: create it"));
  EXPECT_THAT(Error(LogWriter::Create(folder.path(), {}).status()), HasSubstr("not a file"));
  EXPECT_THAT(Error(LogWriter::Create("", {}).status()), HasSubstr("empty"));
  EXPECT_FALSE(LogWriter::Create("/dev/null", {}).ok());
  EXPECT_FALSE(LogWriter::Create("/proc/log", {}).ok());
}

TEST(EventLog, AFullDiskIsSaidOnceAndLeavesNothingBehind) {
  TempFolder folder;
  const std::string path = folder / "log";
  ASSERT_TRUE(RecordToy(path, 1, kThrows, Time(1s)).ok());
  const std::string before = ReadAll(path);
  const absl::StatusOr<std::string> result =
      RecordToy(path, 2, {{Time(0s), "red", 100'000}}, Time(1000s), {.max_bytes = 200'000});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Error(result.status()), AllOf(HasSubstr(path), HasSubstr("no space left"), HasSubstr("free some")));
  EXPECT_EQ(ReadAll(path), before);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial-journal"));
}

TEST(EventLog, ALimitOnFileSizesIsAFullDiskToo) {
  TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = RecordToy(folder / "log", 2, {{Time(0s), "red", 100'000}}, Time(1000s));
    const bool good = result.status().code() == absl::StatusCode::kResourceExhausted &&
                      !std::filesystem::exists(folder / "log") && !std::filesystem::exists(folder / "log.partial");
    if (!good) fprintf(stderr, "%s\n", result.status().ToString().c_str());
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(EventLog, AKilledRunsRecordsCanBeReadUpToItsLastTransaction) {
  TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    auto writer = LogWriter::Create(folder / "log", {.seed = 3});
    for (uint64_t i = 0; i < 200; ++i) {
      (void)(*writer)->Add(
          LogInput{.at = Time(0s), .seq = i, .kind = "apply", .body = {{"pad", std::string(50'000, 'x')}}});
    }
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto log = LogReader::Open(folder / "log.partial");
  ASSERT_TRUE(log.ok()) << log.status();
  const auto summary = (*log)->Verify();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->complete);
  EXPECT_GT(summary->inputs, 80u);
  EXPECT_LT(summary->inputs, 200u);
  EXPECT_TRUE(LogWriter::Create(folder / "log", {}).ok()) << "what it left is in nobody's way";
}

TEST(EventLog, WhatIsNoLogIsToldSo) {
  TempFolder folder;
  EXPECT_THAT(Fault(folder / "missing"), HasSubstr("no such file"));
  EXPECT_THAT(Fault(folder.path()), HasSubstr("not a file"));
  WriteAll(folder / "empty", "");
  EXPECT_THAT(Fault(folder / "empty"), HasSubstr("empty"));
  WriteAll(folder / "yaml", "kind: Service\n");
  EXPECT_THAT(Fault(folder / "yaml"), HasSubstr("not an event log"));
  WriteAll(folder / "long", std::string(100'000, 'x'));
  EXPECT_THAT(Fault(folder / "long"), HasSubstr("not an event log"));
  Sql(folder / "other.db", "CREATE TABLE t(x)");
  EXPECT_THAT(Fault(folder / "other.db"), HasSubstr("not an event log"));
  Sql(folder / "claims.db", "PRAGMA application_id=1465142343; PRAGMA user_version=1; CREATE TABLE t(x)");
  EXPECT_THAT(Fault(folder / "claims.db"), HasSubstr("not those of an event log"));
}

TEST(EventLog, AnotherFormatIsRefusedWithTheVersionThatIsNeeded) {
  TempFolder folder;
  const std::string path = folder / "log";
  ASSERT_TRUE(RecordToy(path, 1, kThrows, Time(1s)).ok());
  Sql(path, "PRAGMA user_version=2");
  EXPECT_THAT(Fault(path),
              AllOf(HasSubstr("format 2"), HasSubstr("reads format 1"), HasSubstr("the version of Wavetank")));
  const std::string before = ReadAll(path);
  EXPECT_EQ(LogWriter::Create(path, {}).status().code(), absl::StatusCode::kAlreadyExists) << "nor is it overwritten";
  EXPECT_EQ(ReadAll(path), before);
}

TEST(EventLog, AChangedRecordIsFoundWithItsNumber) {
  TempFolder folder;
  const std::string path = folder / "log";
  ASSERT_TRUE(RecordToy(path, 1, kThrows, Time(1s), {.checkpoint_every = 50}).ok());
  const std::string whole = ReadAll(path);
  struct Case {
    const char* change;
    const char* fault;
  };
  // Records: 1 input, 2 trace, 3 input, 4 trace, 5 input, 6 trace, 7 checkpoint, 8 trace, 9 checkpoint.
  const Case cases[] = {
      {"UPDATE input SET body='{\"ball\":\"red\",\"bounces\":41}' WHERE number=1",
       "record 1 (an input) does not match its hash"},
      {"UPDATE input SET at=at+1 WHERE number=3", "record 3 (an input) does not match its hash"},
      {"UPDATE input SET kind='kill' WHERE number=5", "record 5 (an input) does not match its hash"},
      {"DELETE FROM input WHERE number=3", "record 3 is missing"},
      {"DELETE FROM trace WHERE number=4", "record 4 is missing"},
      {"DELETE FROM input WHERE number=3; UPDATE trace SET number=3 WHERE number=4", "record 3 (trace)"},
      {"UPDATE trace SET first=first+1 WHERE number=4", "record 4 (trace) claims"},
      {"UPDATE trace SET count=count+1 WHERE number=8", "record 8 (trace)"},
      {"UPDATE trace SET body=zeroblob(30000000) WHERE number=4", "record 4 (trace)"},
      {"UPDATE trace SET body=x'ffffffffffffffffffff' WHERE number=4", "record 4 (trace)"},
      {"UPDATE checkpoint SET trace_digest='0' WHERE number=7", "record 7 (a checkpoint) does not match its hash"},
      {"UPDATE checkpoint SET last=1 WHERE number=7", "record 7 (a checkpoint) does not match its hash"},
      {"INSERT INTO input SELECT 10, seq, at, kind, body, chain FROM input WHERE number=1",
       "record 10 comes after the log's end"},
      {"UPDATE header SET value='99' WHERE key='seed'", "the header was altered"},
      {"UPDATE header SET value='name: other' WHERE key='scenario_text'", "the header was altered"},
      {"DELETE FROM header", "the header was altered"},
      {"CREATE TABLE more(x)", "not those of an event log"},
      {"DROP TABLE trace", "tables of an event log are missing"},
      {"CREATE TRIGGER t AFTER INSERT ON input BEGIN DELETE FROM input; END", "not those of an event log"},
  };
  for (const Case& each : cases) {
    WriteAll(path, whole);
    Sql(path, each.change);
    EXPECT_THAT(Fault(path), AllOf(HasSubstr(each.fault), HasSubstr(path))) << each.change;
  }
  WriteAll(path, whole);
  Sql(path, "DELETE FROM checkpoint WHERE last");
  EXPECT_EQ(Fault(path), "incomplete") << "indistinguishable from an interrupted run, and told as one";
}

TEST(EventLog, AChangedEventIsNamed) {
  TempFolder folder;
  const std::string path = folder / "log";
  NameTable names;
  CauseTable causes;
  auto writer = LogWriter::Create(path, {});
  for (int64_t i = 0; i < 300; ++i) {
    const std::string detail = "pad" + std::string(600, 'x') + std::to_string(i);  // too long to be numbered
    const TraceRecord record{.kind = TraceKind::kStep, .a = i, .detail = detail};
    const uint64_t hash = TraceDigest::Hash(Time(0s), record, "", "", {});
    ASSERT_TRUE((*writer)->Add(Time(0s), record, kNoCause, names, causes, hash).ok());
  }
  ASSERT_TRUE((*writer)->Finish(Time(0s), "").ok());
  ASSERT_EQ(Fault(path), "");
  std::string bytes = ReadAll(path);
  const size_t at = bytes.find("x217");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'y';
  WriteAll(path, bytes);
  EXPECT_THAT(Fault(path), HasSubstr("event 217 of the trace being the first altered"));
}

TEST(EventLog, DetailsThatComeAgainAreStoredOnce) {
  TempFolder folder;
  uint64_t sizes[2];
  for (bool differ : {false, true}) {
    const std::string path = folder / (differ ? "differ" : "same");
    NameTable names;
    CauseTable causes;
    auto writer = LogWriter::Create(path, {});
    for (int64_t i = 0; i < 5000; ++i) {
      const std::string detail = "-|via_upstream|10.0.0." + std::to_string(differ ? i : i % 7);
      ASSERT_TRUE(
          (*writer)->Add(Time(0s), {.kind = TraceKind::kRequest, .detail = detail}, kNoCause, names, causes, 0).ok());
    }
    ASSERT_TRUE((*writer)->Finish(Time(0s), "").ok());
    EXPECT_EQ(Fault(path), "");
    sizes[differ ? 1 : 0] = std::filesystem::file_size(path);
  }
  EXPECT_LT(sizes[0] * 2, sizes[1]);
}

TEST(EventLog, AFileCutShortAnywhereIsToldSo) {
  TempFolder folder;
  ASSERT_TRUE(RecordToy(folder / "log", 1, {{Time(0s), "red", 2000}}, Time(10s)).ok());
  const std::string whole = ReadAll(folder / "log");
  for (size_t size = 0; size < whole.size(); size += 1 + size / 3) {
    WriteAll(folder / "cut", whole.substr(0, size));
    EXPECT_THAT(Fault(folder / "cut"), ::testing::AnyOf(HasSubstr("cut short"), HasSubstr("empty"))) << size;
  }
  WriteAll(folder / "cut", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(Fault(folder / "cut"), HasSubstr("cut short"));
}

TEST(EventLog, NoFlippedBitGoesUnseenOrDoesHarm) {
  TempFolder folder;
  ASSERT_TRUE(RecordToy(folder / "log", 1, {{Time(0s), "red", 300}, {Time(3ms), "blue", 20}}, Time(1s)).ok());
  const std::string whole = ReadAll(folder / "log");
  const std::string chain = (*LogReader::Open(folder / "log"))->Verify()->chain;
  RandomStream random(1, "bits");
  int found = 0;
  for (size_t at = 0; at < whole.size(); at += 1 + random.Below(40)) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.Below(8)));
    WriteAll(folder / "flipped", flipped);
    // Either somebody notices, or the bit lay where nothing is.
    if (!Fault(folder / "flipped").empty()) {
      ++found;
    } else {
      EXPECT_EQ((*LogReader::Open(folder / "flipped"))->Verify()->chain, chain) << "byte " << at;
    }
    EXPECT_EQ(ReadAll(folder / "flipped"), flipped) << "reading changed the file, byte " << at;
  }
  EXPECT_GT(found, 100);
}

TEST(EventLog, ReadingNeedsNoPermissionToWrite) {
  TempFolder folder;
  ASSERT_TRUE(RecordToy(folder / "log", 1, kThrows, Time(1s)).ok());
  chmod((folder / "log").c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  EXPECT_EQ(Fault(folder / "log"), "");
  chmod(folder.path().c_str(), 0755);
}

TEST(EventLog, KeysAndTokensAreRefused) {
  TempFolder folder;
  const std::string pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n";
  const std::string base64 =
      "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBCi0tLS0tRU5EIFJTQSBQUklWQVRFIEtFWS0tLS0tCg==";
  const std::string jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl";
  for (const std::string& secret : {pem, base64, jwt}) {
    const nlohmann::json body = {{"objects", {{{"kind", "Secret"}, {"data", {{"ca-key.pem", secret}}}}}}};
    auto writer = LogWriter::Create(folder / "log", {});
    const absl::Status status = (*writer)->Add(LogInput{.seq = 4, .kind = "apply", .body = body});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Error(status), AllOf(HasSubstr("input 4 (apply)"), HasSubstr("private key")));
    EXPECT_THAT(Error(status), Not(HasSubstr(secret)));
    const nlohmann::json redacted = Redacted(body);
    EXPECT_FALSE(HoldsSecret(redacted.dump()));
    EXPECT_EQ(redacted["objects"][0]["kind"], "Secret");
    EXPECT_TRUE((*LogWriter::Create(folder / "redacted", {}))->Add(LogInput{.kind = "apply", .body = redacted}).ok());
  }
  EXPECT_FALSE(HoldsSecret("-----BEGIN CERTIFICATE-----"));
  EXPECT_FALSE(HoldsSecret(std::string(1000, 'A')));
}

TEST(EventLog, WhatWasTakenOutComesBackFromTheManifestsThatHaveIt) {
  TempFolder folder;
  const std::string pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n";
  const nlohmann::json body = {{"objects",
                                {{{"apiVersion", "v1"},
                                  {"kind", "Secret"},
                                  {"metadata", {{"name", "cacerts"}, {"namespace", "istio-system"}}},
                                  {"stringData", {{"ca-key.pem", pem}, {"note", "left as it is"}}}}}}};
  nlohmann::json logged = Redacted(body);
  EXPECT_FALSE(HoldsSecret(logged.dump()));

  std::filesystem::create_directories(folder / "deep/er");
  std::ofstream(folder / "deep/er/ca.yaml")
      << "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData:\n  other.pem: |\n"
      << "    -----BEGIN RSA PRIVATE KEY-----\n    MIIEpAIBAAKCAQEA\n"
      << "    -----END RSA PRIVATE KEY-----\n";
  std::ofstream(folder / "deep/no-manifest.yaml") << "name: a scenario, say\n";
  const absl::StatusOr<SecretSource> source = SecretSource::Load({folder / "deep"});
  ASSERT_TRUE(source.ok()) << source.status();
  nlohmann::json restored = logged;
  ASSERT_TRUE(source->Restore(&restored).ok());
  EXPECT_EQ(restored, body);

  const absl::Status missing = SecretSource().Restore(&logged);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Error(missing), "Secret istio-system/cacerts");
  EXPECT_THAT(Error(SecretSource::Load({folder / "deep/no-manifest.yaml"}).status()), HasSubstr("no-manifest.yaml"));
  EXPECT_FALSE(SecretSource::Load({folder / "nowhere"}).ok());
}

// Any inputs and events come back as they went in, whatever bytes the names hold.
TEST(EventLog, RoundTripOfAnything) {
  TempFolder folder;
  const std::string path = folder / "log";
  EXPECT_TRUE(rc::check([&] {
    NameTable names;
    CauseTable causes;
    std::vector<LoggedEvent> events;
    std::vector<LogInput> inputs;
    auto writer = LogWriter::Create(path, {.seed = *rc::gen::arbitrary<uint64_t>()},
                                    {.checkpoint_every = *rc::gen::inRange<uint64_t>(1, 50)});
    RC_ASSERT(writer.ok());
    Time now{};
    const int count = *rc::gen::inRange(0, 200);
    for (int i = 0; i < count; ++i) {
      now += Duration(*rc::gen::inRange<int64_t>(0, 1'000'000'000));
      if (*rc::gen::inRange(0, 10) == 0) {
        LogInput input{.at = now,
                       .seq = *rc::gen::arbitrary<uint64_t>(),
                       .kind = "kind",
                       .body = {{"value", *rc::gen::arbitrary<int64_t>()}}};
        RC_ASSERT((*writer)->Add(input).ok());
        inputs.push_back(std::move(input));
        continue;
      }
      LoggedEvent event{.index = events.size(),
                        .time = now,
                        .kind = TraceKind(*rc::gen::arbitrary<uint16_t>()),
                        .subject = *rc::gen::arbitrary<std::string>(),
                        .object = *rc::gen::arbitrary<std::string>(),
                        .detail = *rc::gen::arbitrary<std::string>(),
                        .a = *rc::gen::arbitrary<int64_t>(),
                        .b = *rc::gen::arbitrary<int64_t>()};
      CauseId cause = kNoCause;
      for (uint64_t input : *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 1000))) {
        cause = causes.Merge(cause, causes.Of(input));
      }
      event.inputs = causes.Inputs(cause);
      const TraceRecord record{event.kind,  names.Intern(event.subject), names.Intern(event.object), event.a, event.b,
                               event.detail};
      const uint64_t hash = TraceDigest::Hash(now, record, event.subject, event.object, event.inputs);
      RC_ASSERT((*writer)->Add(now, record, cause, names, causes, hash).ok());
      if ((*writer)->CheckpointDue()) RC_ASSERT((*writer)->AddCheckpoint("trace", "state").ok());
      events.push_back(std::move(event));
    }
    RC_ASSERT((*writer)->Finish(now, "end").ok());
    auto log = LogReader::Open(path);
    RC_ASSERT(log.ok());
    size_t event = 0, input = 0;
    for (auto item = (*log)->Next();; item = (*log)->Next()) {
      RC_ASSERT(item.ok());
      if (*item == LogReader::Item::kEnd) break;
      if (*item == LogReader::Item::kEvent) RC_ASSERT((*log)->event() == events[event++]);
      if (*item == LogReader::Item::kInput) {
        RC_ASSERT((*log)->input().at == inputs[input].at);
        RC_ASSERT((*log)->input().seq == inputs[input].seq);
        RC_ASSERT((*log)->input().body == inputs[input++].body);
      }
    }
    RC_ASSERT(event == events.size());
    RC_ASSERT(input == inputs.size());
    RC_ASSERT((*log)->chain() == (*writer)->chain());
  }));
}

}  // namespace
}  // namespace wavetank::replay
