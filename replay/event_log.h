// The event log of a run: one SQLite file that holds everything a replay needs and everything it is compared with.
//
// Three tables are append-only: `input` (what changed the world from outside), `trace` (blocks of derived events) and
// `checkpoint` (digests on the way and at the end). All rows share one numbering, and each carries the SHA-256 of the
// row before and its own content: a change anywhere is found, with the record's number. docs/event-log.md is the page
// of the format.
//
// Fault model: a file is hostile until read. Missing, foreign, cut short, altered, of another version, full disk: each
// gives one Status that names the file, what is wrong and what to do, and no file that was there before is touched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cause_table.h"
#include "core/base/containers/name_table.h"
#include "core/base/time.h"
#include "core/base/trace.h"
#include "nlohmann/json.hpp"

namespace wavetank::replay {

// Raised whenever the file's layout or the meaning of a field changes. A program reads its own version only: what an
// older program did cannot be re-executed by a newer one anyway (docs/determinism.md).
inline constexpr int kLogFormat = 1;

// Set in LogHeader::world of a recording of real clusters, and of a run that real istiods served. Both hold inputs
// alone, and nothing that followed from them.
inline constexpr std::string_view kRecordingKey = "recording", kRealIstiodKey = "realIstiod";

struct LogHeader {
  uint64_t seed = 0;
  std::string program_version;
  std::string profile;        // the behaviour that was simulated: "1.18.2"
  std::string scenario_name;  // for people; a folder's name, never a path
  std::string scenario_text;  // the scenario as it was read
  // What the world needs to start, beside the scenario's text; the world's own business.
  nlohmann::json world = nlohmann::json::object();

  bool IsRecording() const { return Says(kRecordingKey); }
  bool OfRealIstiod() const { return Says(kRealIstiodKey); }
  bool HoldsInputsAlone() const { return IsRecording() || OfRealIstiod(); }
  // Of the world. A served world's clock is the calendar's; people are told times since then.
  Time Beginning() const;

 private:
  bool Says(std::string_view key) const { return world.is_object() && world.value(key, nlohmann::json()) == true; }
};

// Something that changed the world from outside.
struct LogInput {
  Time at{};
  uint64_t seq = 0;                                // the world's number for it, as causes name it
  std::string kind;                                // "apply", "kill", "link", "traffic", ...
  nlohmann::json body = nlohmann::json::object();  // no private key, no token: LogWriter refuses them
};

// A derived event, with names as text. `inputs`: which inputs caused it, sorted.
struct LoggedEvent {
  uint64_t index = 0;  // from 0
  Time time{};
  TraceKind kind = TraceKind::kNone;
  std::string subject, object, detail;
  int64_t a = 0, b = 0;
  std::vector<uint64_t> inputs;

  bool operator==(const LoggedEvent&) const = default;
};

// "event 17 at 1.500000 s: XdsSent subject -> object ..." on one line, for messages. Times are since `beginning`.
std::string Describe(const LoggedEvent& event, Time beginning = Time{});
std::string Describe(const LogInput& input, Time beginning = Time{});
// What an input was done to: "Service sample/helloworld" of an object, else its plain fields, as far as a line has
// room; empty: it has none.
std::string SubjectOf(const LogInput& input);

struct LogCheckpoint {
  uint64_t events = 0;  // events before it
  uint64_t inputs = 0;
  Time at{};
  std::string trace_digest;  // TraceDigest::Hex() after `events` events
  std::string state_digest;  // of the world's state, if the recorder was given one
  bool last = false;         // the run ended here, as planned
};

struct LogWriterOptions {
  uint64_t checkpoint_every = 10'000;  // events
  // 0: as large as the disk allows. Beyond it the writer answers as for a full disk.
  int64_t max_bytes = 0;
  // Inputs may hold private keys and tokens: the user of the recorder asked for that.
  bool keep_secrets = false;
  // What Commit() has returned from survives the death of the process, and of the machine. Otherwise only Finish() does
  // so, and a transaction is as large as speed wants it.
  bool durable_commits = false;
};

// Appends to FILE.partial and renames it to FILE in Finish(). A writer that goes away before leaves FILE as it was and
// no FILE.partial; a killed process leaves FILE.partial, which LogReader reads up to its last committed record.
//
// Memory is bounded by the number of distinct names and causes. Not thread-safe.
class LogWriter {
 public:
  // AlreadyExists if FILE is there and no event log (one is replaced in Finish()), or if another run is writing it.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Create(std::string path, const LogHeader& header,
                                                           const LogWriterOptions& options = {});
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  // Inputs and events in the order in which they happened. Times never go back. Any error of the writer (a full disk,
  // an input that holds a secret) is kept and returned by every later call.
  absl::Status Add(const LogInput& input);
  // O(1); names and causes are interned again, in the log's own order of first use. `hash`: the record's own, of which
  // 32 bits are kept so that an altered event can be named. An error is kept and returned by every later call.
  absl::Status Add(Time time, const TraceRecord& record, CauseId cause, const NameTable& names,
                   const CauseTable& causes, uint64_t hash);
  // Digests after what was added so far. Recorder calls it every checkpoint_every events.
  absl::Status AddCheckpoint(std::string trace_digest, std::string state_digest = {});
  // A process that is killed from now on has lost nothing of what was added. Costs a write of the file, and a sync of
  // it with durable_commits. Nothing to commit costs nothing.
  absl::Status Commit();
  // Whether anything was added since the last Commit().
  bool uncommitted() const { return uncommitted_ > 0 || block_events_ > 0; }
  // For a process that is about to die: brings what was added to disk in FILE.partial, with a checkpoint of that moment
  // behind it if `trace_digest` is not empty, so that a replay goes on until then. Nothing can be added afterwards.
  absl::Status Rescue(Time at, std::string trace_digest);
  // FILE.partial, as long as the log is not finished.
  std::string partial_path() const;
  bool CheckpointDue() const { return events_ - checkpointed_ >= options_.checkpoint_every; }

  // Writes the last checkpoint, syncs the file and gives it its name. `at`: where the clock stood.
  absl::Status Finish(Time at, std::string trace_digest, std::string state_digest = {});

  uint64_t events() const { return events_; }
  uint64_t inputs() const { return inputs_; }
  const absl::Status& status() const { return status_; }
  // SHA-256 of the last record, hexadecimal: names the whole log.
  std::string chain() const;

 private:
  struct Database;
  LogWriter(std::string path, const LogWriterOptions& options);

  absl::Status Open(const LogHeader& header);
  absl::Status Checkpoint(Time at, std::string trace_digest, std::string state_digest, bool last);
  absl::Status FlushBlock();
  absl::Status Wrote(size_t bytes);
  absl::Status Fail(absl::Status status);
  uint32_t NameNumber(NameId id, const NameTable& names);
  uint32_t CauseNumber(CauseId id, const CauseTable& causes);
  void PutDetail(std::string_view detail);

  const std::string path_;
  const LogWriterOptions options_;
  std::unique_ptr<Database> db_;
  absl::Status status_;
  bool finished_ = false;
  bool rescued_ = false;  // FILE.partial stays

  uint64_t record_ = 0;  // number of the last one
  std::string chain_;    // 32 bytes
  Time now_{};
  uint64_t events_ = 0, inputs_ = 0, checkpointed_ = 0;
  size_t uncommitted_ = 0;

  // The block being filled. Names and causes are numbered in order of first use, from 1.
  std::string new_names_, new_causes_, body_;
  uint32_t block_names_ = 0, block_causes_ = 0, block_events_ = 0;
  Time block_start_{}, block_last_{};
  std::vector<uint32_t> name_numbers_, cause_numbers_;  // by NameId, CauseId; 0: not yet
  uint32_t names_ = 0, causes_ = 0;
  absl::flat_hash_map<std::string, uint32_t> details_;  // those that have a number, as names have
};

// Reads an event log as a stream and checks the chain as it goes; memory is bounded as in LogWriter.
class LogReader {
 public:
  // Reads the header. NotFound, InvalidArgument (no event log, another version), DataLoss (cut short, altered),
  // PermissionDenied.
  static absl::StatusOr<std::unique_ptr<LogReader>> Open(std::string path);
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  ~LogReader();

  const LogHeader& header() const { return header_; }
  const std::string& path() const { return path_; }

  // The log's records in order. Next() answers kEnd after the last; DataLoss names the record that is missing or
  // altered. After an error it keeps answering it.
  enum class Item { kInput, kEvent, kCheckpoint, kEnd };
  absl::StatusOr<Item> Next();
  // What Next() found.
  const LogInput& input() const { return input_; }
  const LoggedEvent& event() const { return event_; }
  const LogCheckpoint& checkpoint() const { return checkpoint_; }
  uint64_t record() const { return record_; }
  // The next Next() begins a new record.
  bool AtRecordEnd() const { return left_ == 0; }
  std::string chain() const;

  // Starts over. An error of the file is told as by Next().
  absl::Status Rewind();

  // Reads everything and starts over. `complete`: the last checkpoint is there; without it the run was interrupted.
  // Errors are those of Next().
  struct Summary {
    uint64_t records = 0, inputs = 0, events = 0, checkpoints = 0;
    bool complete = false;
    Time end{};
    std::string trace_digest, state_digest;  // of the last checkpoint
    std::string chain;
  };
  absl::StatusOr<Summary> Verify();

 private:
  struct Database;
  explicit LogReader(std::string path);

  absl::Status OpenFile();
  absl::Status ReadHeader();
  absl::StatusOr<Item> NextRecord();
  absl::Status ReadInput();
  absl::Status ReadBlock();
  absl::Status ReadCheckpoint();
  absl::Status DecodeEvent();
  absl::Status NameAlteredEvent();
  absl::Status Altered(std::string_view what) const;

  const std::string path_;
  std::unique_ptr<Database> db_;
  absl::Status status_;
  LogHeader header_;
  std::string header_chain_;

  uint64_t record_ = 0;
  std::string chain_;
  Time now_{};
  uint64_t events_ = 0, inputs_ = 0;
  bool ended_ = false;
  LogInput input_;
  LoggedEvent event_;
  LogCheckpoint checkpoint_;

  std::string block_;  // the trace block being read
  size_t offset_ = 0;
  uint64_t left_ = 0;  // events of it still to come
  uint32_t check_ = 0;
  std::vector<std::string> names_;
  std::vector<std::vector<uint64_t>> causes_;
};

// Verify(), and that there is something to build a world from. FailedPrecondition: a recording that was ended before
// its first picture of the clusters was whole; half a mesh would tell nothing but lies.
absl::StatusOr<LogReader::Summary> VerifyUsable(LogReader& log);

// Checks, without changing anything, that an event log could be written to `path`: for use before a long run.
// The error names the folder and the remedy. `source`: the log that is made another of, which stays as it is.
absl::Status CheckWritable(const std::string& path, const std::string& source = {});

}  // namespace wavetank::replay
