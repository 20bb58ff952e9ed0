#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/assert.h"
#include "core/base/digest.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "replay/event_log.h"
#include "replay/log_format.h"
#include "replay/secrets.h"
#include "replay/varint.h"

namespace wavetank::replay {
namespace {

// A transaction's size: large enough for speed, small enough that a killed run loses little.
constexpr size_t kCommitBytes = 4 << 20;
constexpr size_t kBlockBytes = 64 << 10;
// Files that SQLite keeps beside its own.
constexpr const char* kBeside[] = {"-journal", "-wal", "-shm"};

std::string Folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// The file behind a symbolic link, which renaming would replace otherwise.
std::string Resolve(std::string path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

struct LogWriter::Database {
  int lock = -1;  // closed after the database: closing any descriptor of a file ends the process's POSIX locks on it
  std::string partial;
  format::DatabaseHandle db;
  format::Statement input, trace, checkpoint;

  ~Database() { Close(); }

  void Close() {
    input.reset();
    trace.reset();
    checkpoint.reset();
    db.reset();
    if (lock >= 0) close(lock);
    lock = -1;
  }

  absl::Status Run(const char* sql, const std::string& path) {
    const int code = sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : format::SqliteError(db.get(), code, "writing", path);
  }

  absl::Status Step(sqlite3_stmt* statement, const std::string& path) {
    const int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? absl::OkStatus() : format::SqliteError(db.get(), code, "writing", path);
  }
};

absl::Status CheckWritable(const std::string& named, const std::string& source) {
  if (named.empty()) return absl::InvalidArgumentError("the event log's name is empty: name a file");
  const std::string path = Resolve(named);
  std::error_code error;
  // Evidence that nobody can make again.
  if (!source.empty() && std::filesystem::equivalent(path, source, error)) {
    return absl::AlreadyExistsError(
        fmt::format("{}: is the log that this is made of, and would be gone: name another file", path));
  }
  if (std::filesystem::exists(path, error)) {
    if (!std::filesystem::is_regular_file(path, error)) {
      return absl::AlreadyExistsError(fmt::format("{}: there, and not a file: name another", path));
    }
    // A log of another version, or a damaged one, is still somebody's log: only what a rerun makes again is replaced.
    if (absl::Status status = format::InspectFile(path); !status.ok()) {
      return absl::AlreadyExistsError(
          fmt::format("{}: there already, and not an event log that this run could replace: remove it, or name another "
                      "file",
                      path));
    }
  }
  const std::string folder = Folder(path);
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(
        fmt::format("{}: the folder {} does not exist: create it, or name another", path, folder));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{}: the folder {} cannot be written ({}): name a file elsewhere", path, folder, strerror(errno)));
  }
  return absl::OkStatus();
}

LogWriter::LogWriter(std::string path, const LogWriterOptions& options)
    : path_(std::move(path)), options_(options), db_(std::make_unique<Database>()) {
  db_->partial = path_ + ".partial";
}

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Create(std::string path, const LogHeader& header,
                                                             const LogWriterOptions& options) {
  if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  std::unique_ptr<LogWriter> writer(new LogWriter(Resolve(std::move(path)), options));
  if (absl::Status status = writer->Open(header); !status.ok()) return status;
  return writer;
}

LogWriter::~LogWriter() {
  if (finished_ || rescued_ || db_->lock < 0) return;
  const std::string partial = db_->partial;
  db_->db.reset();
  unlink(partial.c_str());
  for (const char* suffix : kBeside) unlink((partial + suffix).c_str());
}

absl::Status LogWriter::Open(const LogHeader& header) {
  const std::string& partial = db_->partial;
  const int lock = open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, options_.keep_secrets ? 0600 : 0644);
  if (lock < 0) {
    return absl::PermissionDeniedError(
        fmt::format("{}: cannot be created: {}: name a file elsewhere", partial, strerror(errno)));
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::AlreadyExistsError(
        fmt::format("{}: another run is writing it: wait for it, or name another file", partial));
  }
  struct stat info;
  if (fstat(lock, &info) != 0 || (info.st_size > 0 && !S_ISREG(info.st_mode))) {
    close(lock);
    return absl::AlreadyExistsError(fmt::format("{}: in the way: remove it, or name another file", partial));
  }
  if (info.st_size > 0) {
    absl::Status known = format::InspectFile(partial);
    if (known.code() == absl::StatusCode::kInvalidArgument) {
      close(lock);
      return absl::AlreadyExistsError(fmt::format(
          "{}: there already, and not what an interrupted run left: remove it, or name another file", partial));
    }
  }
  if (ftruncate(lock, 0) != 0) {
    if (info.st_size == 0) unlink(partial.c_str());  // else it is what another run left
    close(lock);
    return absl::PermissionDeniedError(fmt::format("{}: {}", partial, strerror(errno)));
  }
  // An interrupted run may have left it open to all.
  if (options_.keep_secrets && fchmod(lock, 0600) != 0) {
    close(lock);
    return absl::PermissionDeniedError(fmt::format("{}: cannot be kept from others: {}", partial, strerror(errno)));
  }
  for (const char* suffix : kBeside) unlink((partial + suffix).c_str());
  db_->lock = lock;

  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(partial.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  db_->db.reset(raw);
  if (code != SQLITE_OK) return Fail(format::SqliteError(raw, code, "writing", partial));
  sqlite3_extended_result_codes(raw, 1);
  // A killed process leaves a journal that takes the file back to the last transaction; against a power cut the file
  // is synced once, before it gets its name.
  std::string setup = fmt::format(
      "PRAGMA page_size=4096; PRAGMA journal_mode=DELETE; PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; "
      "PRAGMA cache_size=-4096; PRAGMA application_id={}; PRAGMA user_version={};",
      format::kApplicationId, kLogFormat);
  if (options_.max_bytes > 0) setup += fmt::format("PRAGMA max_page_count={};", options_.max_bytes / 4096);
  setup += "BEGIN;";
  for (const format::SchemaObject& object : format::kSchema) setup += fmt::format("{};", object.sql);
  if (absl::Status status = db_->Run(setup.c_str(), partial); !status.ok()) return Fail(status);

  std::map<std::string, std::string> values;
  try {
    values = {{"format", std::to_string(kLogFormat)},
              {"seed", std::to_string(header.seed)},
              {"program", header.program_version},
              {"profile", header.profile},
              {"scenario", header.scenario_name},
              {"scenario_text", header.scenario_text},
              {"scenario_sha256", format::Hex(format::Sha256(header.scenario_text))},
              {"world", JsonText(header.world)}};
  } catch (const nlohmann::json::exception& e) {
    return Fail(
        absl::InvalidArgumentError(fmt::format("{}: the world's start cannot be written: {}", path_, e.what())));
  }
  for (const auto& [key, value] : values) {
    if (HoldsSecret(value)) {
      return Fail(absl::InvalidArgumentError(fmt::format(
          "{}: the header's '{}' holds a private key or a token, which no event log may: take it out of the scenario",
          path_, key)));
    }
  }
  chain_ = format::HeaderDigest(values);
  values.emplace(format::kHeaderDigestKey, format::Hex(chain_));
  const auto prepare = [&](const char* sql, format::Statement& statement) {
    sqlite3_stmt* prepared = nullptr;
    const int result = sqlite3_prepare_v3(raw, sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    statement.reset(prepared);
    return result == SQLITE_OK ? absl::OkStatus() : Fail(format::SqliteError(raw, result, "writing", partial));
  };
  format::Statement insert;
  if (absl::Status status = prepare("INSERT INTO header VALUES(?,?)", insert); !status.ok()) return status;
  for (const auto& [key, value] : values) {
    format::BindText(insert.get(), 1, key);
    format::BindText(insert.get(), 2, value);
    if (absl::Status status = db_->Step(insert.get(), partial); !status.ok()) return Fail(status);
  }
  if (absl::Status status = prepare("INSERT INTO input VALUES(?,?,?,?,?,?)", db_->input); !status.ok()) return status;
  if (absl::Status status = prepare("INSERT INTO trace VALUES(?,?,?,?,?)", db_->trace); !status.ok()) return status;
  if (absl::Status status = prepare("INSERT INTO checkpoint VALUES(?,?,?,?,?,?,?,?)", db_->checkpoint); !status.ok()) {
    return status;
  }
  // From here on the file says what it is, whatever happens to the process.
  // Commits append to a log beside the file, and are synced with it: one sync each, and no state between two of them is
  // ever seen, whatever stops.
  const char* const begin =
      options_.durable_commits ? "COMMIT; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; BEGIN" : "COMMIT; BEGIN";
  if (absl::Status status = db_->Run(begin, partial); !status.ok()) return Fail(status);
  uncommitted_ = 0;
  return absl::OkStatus();
}

absl::Status LogWriter::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

std::string LogWriter::chain() const { return format::Hex(chain_); }

absl::Status LogWriter::Wrote(size_t bytes) {
  uncommitted_ += bytes;
  if (uncommitted_ < kCommitBytes) return absl::OkStatus();
  uncommitted_ = 0;
  if (absl::Status status = db_->Run("COMMIT; BEGIN", db_->partial); !status.ok()) return Fail(status);
  return absl::OkStatus();
}

absl::Status LogWriter::Commit() {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  if (!uncommitted()) return absl::OkStatus();
  if (absl::Status status = FlushBlock(); !status.ok()) return status;
  return Wrote(kCommitBytes);
}

absl::Status LogWriter::Add(const LogInput& input) {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  std::string body;
  try {
    body = JsonText(input.body);
  } catch (const nlohmann::json::exception& e) {
    return Fail(absl::InvalidArgumentError(
        fmt::format("{}: input {} ({}) cannot be written as JSON: {}", path_, input.seq, input.kind, e.what())));
  }
  if (!options_.keep_secrets && (HoldsSecret(body) || HoldsSecret(input.kind))) {
    return Fail(absl::InvalidArgumentError(fmt::format(
        "{}: input {} ({}) holds a private key or a token, which no event log may: replace it in the manifest", path_,
        input.seq, input.kind)));
  }
  if (body.size() > static_cast<size_t>(format::kMaxRecordBytes)) {
    return Fail(absl::InvalidArgumentError(fmt::format("{}: input {} ({}) is larger than {} bytes: split it", path_,
                                                       input.seq, input.kind, format::kMaxRecordBytes)));
  }
  if (input.at < now_) {
    return Fail(absl::InvalidArgumentError(fmt::format("{}: input {} ({}) lies {} ns before what was logged", path_,
                                                       input.seq, input.kind, (now_ - input.at).count())));
  }
  if (absl::Status status = FlushBlock(); !status.ok()) return status;
  WAVETANK_ASSERT(block_events_ == 0, block_events_);  // records stand in the order in which things happened
  now_ = input.at;
  const auto number = static_cast<int64_t>(++record_);
  const auto seq = static_cast<int64_t>(input.seq);
  const int64_t at = input.at.time_since_epoch().count();
  chain_ = format::ChainHash(chain_, 'i').Add(number).Add(seq).Add(at).Add(input.kind).Add(body).Finish();
  sqlite3_stmt* row = db_->input.get();
  format::Bind(row, 1, number);
  format::Bind(row, 2, seq);
  format::Bind(row, 3, at);
  format::BindText(row, 4, input.kind);
  format::BindText(row, 5, body);
  format::BindBlob(row, 6, chain_);
  if (absl::Status status = db_->Step(row, db_->partial); !status.ok()) return Fail(status);
  WAVETANK_ASSERT(chain_.size() == 32, chain_.size());
  ++inputs_;
  return Wrote(body.size() + 100);
}

uint32_t LogWriter::NameNumber(NameId id, const NameTable& names) {
  if (id == kNoName) return 0;
  const auto index = static_cast<uint32_t>(id);
  if (index >= name_numbers_.size()) name_numbers_.resize(std::max<size_t>(index + 1, names.size()), 0);
  uint32_t& number = name_numbers_[index];
  if (number == 0) {
    number = ++names_;
    ++block_names_;
    PutText(new_names_, names.Text(id));
  }
  return number;
}

uint32_t LogWriter::CauseNumber(CauseId id, const CauseTable& causes) {
  if (id == kNoCause) return 0;
  const auto index = static_cast<uint32_t>(id);
  if (index >= cause_numbers_.size()) cause_numbers_.resize(index + 1, 0);
  uint32_t& number = cause_numbers_[index];
  if (number == 0) {
    number = ++causes_;
    ++block_causes_;
    const std::vector<uint64_t>& inputs = causes.Inputs(id);
    PutVarint(new_causes_, inputs.size());
    uint64_t before = 0;
    for (uint64_t input : inputs) {
      PutVarint(new_causes_, input - before);
      before = input;
    }
  }
  return number;
}

// Most details come again and again (a request's flags and upstream); the first ones are numbered like names. Once
// there are very many, they are no such texts, and stand where they are used.
void LogWriter::PutDetail(std::string_view detail) {
  constexpr size_t kNumbered = 1 << 16;
  if (detail.empty()) return PutVarint(body_, 0);
  auto it = details_.find(absl::string_view(detail.data(), detail.size()));
  if (it == details_.end() && details_.size() < kNumbered && detail.size() < 512) {
    it = details_.emplace(std::string(detail), ++names_).first;
    ++block_names_;
    PutText(new_names_, detail);
  }
  if (it != details_.end()) return PutVarint(body_, uint64_t{it->second} + 1);
  PutVarint(body_, 1);
  PutText(body_, detail);
}

absl::Status LogWriter::Add(Time time, const TraceRecord& record, CauseId cause, const NameTable& names,
                            const CauseTable& causes, uint64_t hash) {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  if (time < now_) {
    return Fail(absl::InvalidArgumentError(
        fmt::format("{}: event {} lies {} ns before what was logged", path_, events_, (now_ - time).count())));
  }
  now_ = time;
  if (block_events_ == 0) block_start_ = block_last_ = time;
  WAVETANK_ASSERT(time >= block_last_, time, block_last_);
  PutVarint(body_, static_cast<uint64_t>((time - block_last_).count()));
  block_last_ = time;
  PutVarint(body_, static_cast<uint64_t>(record.kind));
  PutVarint(body_, NameNumber(record.subject, names));
  PutVarint(body_, NameNumber(record.object, names));
  PutVarint(body_, ZigZag(record.a));
  PutVarint(body_, ZigZag(record.b));
  PutVarint(body_, CauseNumber(cause, causes));
  PutDetail(record.detail);
  PutFixed32(body_, static_cast<uint32_t>(hash));
  ++block_events_;
  ++events_;
  if (block_events_ == format::kMaxBlockEvents || body_.size() + new_names_.size() > kBlockBytes) return FlushBlock();
  return absl::OkStatus();
}

absl::Status LogWriter::FlushBlock() {
  if (block_events_ == 0) return absl::OkStatus();
  std::string block;
  block.reserve(new_names_.size() + new_causes_.size() + body_.size() + 32);
  PutVarint(block, ZigZag(block_start_.time_since_epoch().count()));
  PutVarint(block, block_names_);
  block += new_names_;
  PutVarint(block, block_causes_);
  block += new_causes_;
  block += body_;
  const auto number = static_cast<int64_t>(++record_);
  WAVETANK_ASSERT(block_events_ <= events_, block_events_, events_);
  WAVETANK_ASSERT(block_events_ <= format::kMaxBlockEvents, block_events_);
  const auto first = static_cast<int64_t>(events_ - block_events_);
  const auto count = static_cast<int64_t>(block_events_);
  chain_ = format::ChainHash(chain_, 't').Add(number).Add(first).Add(count).Add(block).Finish();
  sqlite3_stmt* row = db_->trace.get();
  format::Bind(row, 1, number);
  format::Bind(row, 2, first);
  format::Bind(row, 3, count);
  format::BindBlob(row, 4, block);
  format::BindBlob(row, 5, chain_);
  if (absl::Status status = db_->Step(row, db_->partial); !status.ok()) return Fail(status);
  new_names_.clear();
  new_causes_.clear();
  body_.clear();
  block_names_ = block_causes_ = block_events_ = 0;
  return Wrote(block.size() + 100);
}

absl::Status LogWriter::AddCheckpoint(std::string trace_digest, std::string state_digest) {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  return Checkpoint(now_, std::move(trace_digest), std::move(state_digest), false);
}

absl::Status LogWriter::Checkpoint(Time at, std::string trace_digest, std::string state_digest, bool last) {
  if (absl::Status status = FlushBlock(); !status.ok()) return status;
  const auto number = static_cast<int64_t>(++record_);
  const int64_t when = at.time_since_epoch().count();
  const auto events = static_cast<int64_t>(events_), inputs = static_cast<int64_t>(inputs_);
  chain_ = format::ChainHash(chain_, 'c')
               .Add(number)
               .Add(events)
               .Add(inputs)
               .Add(when)
               .Add(trace_digest)
               .Add(state_digest)
               .Add(int64_t{last})
               .Finish();
  sqlite3_stmt* row = db_->checkpoint.get();
  format::Bind(row, 1, number);
  format::Bind(row, 2, events);
  format::Bind(row, 3, inputs);
  format::Bind(row, 4, when);
  format::BindText(row, 5, trace_digest);
  format::BindText(row, 6, state_digest);
  format::Bind(row, 7, last ? 1 : 0);
  format::BindBlob(row, 8, chain_);
  if (absl::Status status = db_->Step(row, db_->partial); !status.ok()) return Fail(status);
  checkpointed_ = events_;
  return Wrote(200);
}

std::string LogWriter::partial_path() const { return db_->partial; }

absl::Status LogWriter::Rescue(Time at, std::string trace_digest) {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  absl::Status status = trace_digest.empty() ? FlushBlock() : Checkpoint(at, std::move(trace_digest), {}, false);
  if (!status.ok()) return status;
  if (status = db_->Run("COMMIT", db_->partial); !status.ok()) return Fail(status);
  if (fsync(db_->lock) != 0) return Fail(absl::ResourceExhaustedError(fmt::format("{}: {}", path_, strerror(errno))));
  rescued_ = true;
  Fail(absl::FailedPreconditionError(fmt::format("{}: the log ends where the program failed", path_))).IgnoreError();
  return absl::OkStatus();
}

absl::Status LogWriter::Finish(Time at, std::string trace_digest, std::string state_digest) {
  if (!status_.ok()) return status_;
  if (finished_) return absl::FailedPreconditionError(fmt::format("{}: the log is finished", path_));
  if (at < now_) return Fail(absl::InvalidArgumentError(fmt::format("{}: the run ends before its last record", path_)));
  absl::Status status = Checkpoint(at, std::move(trace_digest), std::move(state_digest), true);
  if (!status.ok()) return status;
  if (status = db_->Run("COMMIT", db_->partial); !status.ok()) return Fail(status);
  if (options_.durable_commits) {
    // What stands beside the file goes into it, which alone is renamed.
    if (status = db_->Run("PRAGMA journal_mode=DELETE", db_->partial); !status.ok()) return Fail(status);
  }
  db_->input.reset();
  db_->trace.reset();
  db_->checkpoint.reset();
  db_->db.reset();
  if (fsync(db_->lock) != 0) {
    return Fail(absl::ResourceExhaustedError(fmt::format(
        "{}: cannot be brought to disk: {}: free space, or name a file elsewhere", path_, strerror(errno))));
  }
  if (rename(db_->partial.c_str(), path_.c_str()) != 0) {
    return Fail(absl::PermissionDeniedError(fmt::format("{}: cannot be given its name: {}", path_, strerror(errno))));
  }
  finished_ = true;
  if (const int folder = open(Folder(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    fsync(folder);  // some file systems cannot; the file itself is safe
    close(folder);
  }
  db_->Close();
  return absl::OkStatus();
}

}  // namespace wavetank::replay
