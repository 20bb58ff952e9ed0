#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "core/base/assert.h"
#include "core/base/digest.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/json_brackets.h"
#include "core/base/trace_names.h"
#include "replay/event_log.h"
#include "replay/log_format.h"
#include "replay/varint.h"

namespace wavetank::replay {
namespace {

// nlohmann's copy and destruction recurse; text that nests deeper than any manifest is refused before it is parsed.
bool TooDeep(std::string_view json) { return DeeperThan(json, format::kMaxJsonDepth); }

bool ParseNumber(const std::string& text, uint64_t* value) {
  if (text.empty() || text.size() > 20) return false;
  unsigned __int128 result = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    result = result * 10 + static_cast<unsigned>(c - '0');
  }
  *value = static_cast<uint64_t>(result);
  return result <= UINT64_MAX;
}

}  // namespace

struct LogReader::Database {
  format::DatabaseHandle db;
  // One cursor per table; the record with the next number stands in one of them.
  struct Cursor {
    const char* sql;
    format::Statement statement;
    int64_t number = 0;  // of the row it stands on; 0: none left
    bool started = false;
  };
  std::array<Cursor, 3> cursors{{{"SELECT number, seq, at, kind, body, chain FROM input ORDER BY number", {}},
                                 {"SELECT number, first, count, body, chain FROM trace ORDER BY number", {}},
                                 {"SELECT number, events, inputs, at, trace_digest, state_digest, last, chain "
                                  "FROM checkpoint ORDER BY number",
                                  {}}}};
};

LogReader::LogReader(std::string path) : path_(std::move(path)), db_(std::make_unique<Database>()) {}
LogReader::~LogReader() = default;

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Open(std::string path) {
  if (absl::Status status = format::InspectFile(path); !status.ok()) return status;
  std::unique_ptr<LogReader> reader(new LogReader(std::move(path)));
  if (absl::Status status = reader->OpenFile(); !status.ok()) return status;
  if (absl::Status status = reader->ReadHeader(); !status.ok()) return status;
  if (absl::Status status = reader->Rewind(); !status.ok()) return status;
  return reader;
}

namespace {

// What a killed run left has a journal or a write-ahead log beside it: SQLite takes the last transaction back, or the
// log in, and removes it. Nothing is left of either for those who then read the file alone.
absl::Status Recover(const std::string& path) {
  std::error_code ignored;
  const auto left = [&](const char* suffix) {
    const auto size = std::filesystem::file_size(path + suffix, ignored);
    return !ignored && size > 0;
  };
  if (!left("-journal") && !left("-wal")) return absl::OkStatus();
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  const format::DatabaseHandle db(raw);
  if (code != SQLITE_OK) return format::SqliteError(raw, code, "reading", path);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  code =
      sqlite3_exec(raw, "PRAGMA locking_mode=EXCLUSIVE; SELECT count(*) FROM sqlite_schema; PRAGMA journal_mode=DELETE",
                   nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : format::SqliteError(raw, code, "reading", path);
}

}  // namespace

absl::Status LogReader::OpenFile() {
  if (absl::Status status = Recover(path_); !status.ok()) return status;
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path_.c_str(), &raw, flags, nullptr);
  db_->db.reset(raw);
  if (code != SQLITE_OK) return format::SqliteError(raw, code, "reading", path_);
  sqlite3_extended_result_codes(raw, 1);
  // The file's schema is input too: nothing in it may run, and no value may be larger than what is ever written.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, format::kMaxRecordBytes + 4096);
  sqlite3_exec(raw, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096;", nullptr, nullptr,
               nullptr);
  return absl::OkStatus();
}

absl::Status LogReader::ReadHeader() {
  sqlite3* db = db_->db.get();
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY name", -1, &prepared, nullptr);
  format::Statement schema(prepared);
  if (code != SQLITE_OK) return format::SqliteError(db, code, "reading", path_);
  size_t found = 0;
  while ((code = sqlite3_step(schema.get())) == SQLITE_ROW) {
    if (found == std::size(format::kSchema) || format::ColumnBytes(schema.get(), 0) != "table" ||
        format::ColumnBytes(schema.get(), 1) != format::kSchema[found].name ||
        format::ColumnBytes(schema.get(), 2) != format::kSchema[found].sql) {
      return absl::DataLossError(
          fmt::format("{}: its tables are not those of an event log: take a copy that nobody changed", path_));
    }
    ++found;
  }
  if (code != SQLITE_DONE) return format::SqliteError(db, code, "reading", path_);
  if (found != std::size(format::kSchema)) {
    return absl::DataLossError(fmt::format("{}: tables of an event log are missing: take a whole copy", path_));
  }

  code = sqlite3_prepare_v2(db, "SELECT key, value FROM header ORDER BY key", -1, &prepared, nullptr);
  format::Statement rows(prepared);
  if (code != SQLITE_OK) return format::SqliteError(db, code, "reading", path_);
  std::map<std::string, std::string> values;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    values.emplace(format::ColumnBytes(rows.get(), 0), format::ColumnBytes(rows.get(), 1));
    if (values.size() > 32) break;
  }
  if (code != SQLITE_DONE) {
    return code == SQLITE_ROW ? absl::DataLossError(fmt::format("{}: the header has rows that no event log has", path_))
                              : format::SqliteError(db, code, "reading", path_);
  }
  header_chain_ = format::HeaderDigest(values);
  uint64_t number = 0;
  if (values[std::string(format::kHeaderDigestKey)] != format::Hex(header_chain_)) {
    return absl::DataLossError(fmt::format("{}: the header was altered: take a copy that was not", path_));
  }
  if (!ParseNumber(values["format"], &number) || number != static_cast<uint64_t>(kLogFormat) ||
      !ParseNumber(values["seed"], &header_.seed) || TooDeep(values["world"])) {
    return absl::DataLossError(fmt::format("{}: the header makes no sense: take another copy", path_));
  }
  header_.program_version = values["program"];
  header_.profile = values["profile"];
  header_.scenario_name = values["scenario"];
  header_.scenario_text = values["scenario_text"];
  header_.world = ParseJson(values["world"]);
  if (header_.world.is_discarded() || values["scenario_sha256"] != format::Hex(format::Sha256(header_.scenario_text))) {
    return absl::DataLossError(fmt::format("{}: the header makes no sense: take another copy", path_));
  }
  return absl::OkStatus();
}

absl::Status LogReader::Rewind() {
  status_ = absl::OkStatus();
  record_ = 0;
  chain_ = header_chain_;
  now_ = Time{};
  events_ = inputs_ = left_ = 0;
  ended_ = false;
  names_.assign(1, "");
  causes_.assign(1, {});
  for (Database::Cursor& cursor : db_->cursors) {
    sqlite3_stmt* prepared = nullptr;
    const int code = sqlite3_prepare_v2(db_->db.get(), cursor.sql, -1, &prepared, nullptr);
    cursor.statement.reset(prepared);
    cursor.started = false;
    if (code != SQLITE_OK) return status_ = format::SqliteError(db_->db.get(), code, "reading", path_);
  }
  return absl::OkStatus();
}

std::string LogReader::chain() const { return format::Hex(chain_); }

absl::Status LogReader::Altered(std::string_view what) const {
  return absl::DataLossError(
      fmt::format("{}: record {} {}: the log was altered or damaged: take a copy that was not", path_, record_, what));
}

absl::StatusOr<LogReader::Item> LogReader::Next() {
  if (!status_.ok()) return status_;
  if (left_ > 0) {
    if (status_ = DecodeEvent(); !status_.ok()) return status_;
    return Item::kEvent;
  }
  absl::StatusOr<Item> item = NextRecord();
  if (!item.ok()) status_ = item.status();
  return item;
}

absl::StatusOr<LogReader::Item> LogReader::NextRecord() {
  WAVETANK_ASSERT(left_ == 0, left_, record_);  // the block before was read to its end
  WAVETANK_ASSERT(status_.ok(), record_);       // nothing of a log counts behind what is wrong in it
  int64_t first = 0;
  size_t which = 0;
  for (size_t i = 0; i < db_->cursors.size(); ++i) {
    Database::Cursor& cursor = db_->cursors[i];
    // The cursor whose row was used last moves on; the others stand where they are.
    if (!cursor.started || (cursor.number != 0 && cursor.number <= static_cast<int64_t>(record_))) {
      const int64_t before = cursor.started ? cursor.number : INT64_MIN;
      cursor.started = true;
      const int code = sqlite3_step(cursor.statement.get());
      if (code != SQLITE_ROW && code != SQLITE_DONE) {
        absl::Status status = format::SqliteError(db_->db.get(), code, "reading", path_);
        return absl::Status(status.code(), fmt::format("{} (after record {})", Message(status), record_));
      }
      cursor.number = code == SQLITE_ROW ? sqlite3_column_int64(cursor.statement.get(), 0) : 0;
      if (code == SQLITE_ROW && (cursor.number <= before || cursor.number <= static_cast<int64_t>(record_))) {
        return absl::DataLossError(
            fmt::format("{}: record {} is not in its place: the log was altered or damaged", path_, cursor.number));
      }
    }
    if (cursor.number != 0 && (first == 0 || cursor.number < first)) {
      first = cursor.number;
      which = i;
    }
  }
  if (first == 0) return Item::kEnd;
  ++record_;
  if (first != static_cast<int64_t>(record_)) return Altered("is missing");
  if (ended_) return Altered("comes after the log's end");
  switch (which) {
    case 0:
      if (absl::Status status = ReadInput(); !status.ok()) return status;
      return Item::kInput;
    case 1:
      if (absl::Status status = ReadBlock(); !status.ok()) return status;
      if (absl::Status status = DecodeEvent(); !status.ok()) return status;
      return Item::kEvent;
    default:
      if (absl::Status status = ReadCheckpoint(); !status.ok()) return status;
      return Item::kCheckpoint;
  }
}

absl::Status LogReader::ReadInput() {
  sqlite3_stmt* row = db_->cursors[0].statement.get();
  const int64_t seq = sqlite3_column_int64(row, 1), at = sqlite3_column_int64(row, 2);
  const std::string_view kind = format::ColumnBytes(row, 3), body = format::ColumnBytes(row, 4);
  chain_ =
      format::ChainHash(chain_, 'i').Add(static_cast<int64_t>(record_)).Add(seq).Add(at).Add(kind).Add(body).Finish();
  if (chain_ != format::ColumnBytes(row, 5)) return Altered("(an input) does not match its hash");
  if (Time(Duration(at)) < now_) return Altered("(an input) lies before the record that precedes it");
  if (TooDeep(body)) return Altered("(an input) nests too deeply");
  input_.body = ParseJson(body);
  if (input_.body.is_discarded()) return Altered("(an input) is no JSON");
  now_ = input_.at = Time(Duration(at));
  input_.seq = static_cast<uint64_t>(seq);
  input_.kind = kind;
  ++inputs_;
  return absl::OkStatus();
}

absl::Status LogReader::ReadBlock() {
  sqlite3_stmt* row = db_->cursors[1].statement.get();
  const int64_t first = sqlite3_column_int64(row, 1), count = sqlite3_column_int64(row, 2);
  const std::string_view body = format::ColumnBytes(row, 3);
  block_ = body;
  offset_ = 0;
  const std::string chain =
      format::ChainHash(chain_, 't').Add(static_cast<int64_t>(record_)).Add(first).Add(count).Add(body).Finish();
  const bool intact = chain == format::ColumnBytes(row, 4);
  if (first != static_cast<int64_t>(events_) || count <= 0 || count > static_cast<int64_t>(format::kMaxBlockEvents)) {
    return Altered(fmt::format("(trace) claims {} events from event {}, after {} events", count, first, events_));
  }
  left_ = static_cast<uint64_t>(count);
  WireReader in(block_);
  int64_t start = 0;
  uint64_t names = 0, causes = 0;
  bool ok = in.Signed(&start) && in.Varint(&names);
  for (uint64_t i = 0; ok && i < names; ++i) {
    std::string_view name;
    if (ok = in.Text(&name); ok) names_.emplace_back(name);
  }
  ok = ok && in.Varint(&causes);
  for (uint64_t i = 0; ok && i < causes; ++i) {
    uint64_t size = 0;
    ok = in.Varint(&size) && size <= in.left();
    std::vector<uint64_t> inputs;
    uint64_t before = 0, delta = 0;
    for (uint64_t k = 0; ok && k < size; ++k) {
      if (ok = in.Varint(&delta); ok) inputs.push_back(before += delta);
    }
    if (ok) causes_.push_back(std::move(inputs));
  }
  if (!ok) return Altered("(trace) has names or causes that cannot be read");
  if (!intact) {
    offset_ = in.offset();
    event_.time = Time(Duration(start));
    return NameAlteredEvent();
  }
  if (Time(Duration(start)) < now_) return Altered("(trace) lies before the record that precedes it");
  event_.time = Time(Duration(start));
  offset_ = in.offset();
  chain_ = chain;
  return absl::OkStatus();
}

absl::Status LogReader::DecodeEvent() {
  WAVETANK_ASSERT(left_ > 0, events_, record_);
  WAVETANK_ASSERT(offset_ <= block_.size(), offset_, block_.size());
  WAVETANK_ASSERT(!names_.empty(), events_);   // number 0 is no name
  WAVETANK_ASSERT(!causes_.empty(), events_);  // and no cause
  WireReader in(block_, offset_);
  uint64_t delta = 0, kind = 0, subject = 0, object = 0, cause = 0, numbered = 0;
  std::string_view detail;
  if (!(in.Varint(&delta) && in.Varint(&kind) && in.Varint(&subject) && in.Varint(&object) && in.Signed(&event_.a) &&
        in.Signed(&event_.b) && in.Varint(&cause) && in.Varint(&numbered) && (numbered != 1 || in.Text(&detail)) &&
        in.Fixed32(&check_)) ||
      delta > INT64_MAX || kind > UINT16_MAX || subject >= names_.size() || object >= names_.size() ||
      cause >= causes_.size() || numbered > names_.size()) {
    return Altered(fmt::format("(trace) cannot be read at event {}", events_));
  }
  offset_ = in.offset();
  int64_t time = 0;
  if (__builtin_add_overflow(event_.time.time_since_epoch().count(), static_cast<int64_t>(delta), &time)) {
    return Altered(fmt::format("(trace) has no time for event {}", events_));
  }
  now_ = event_.time = Time(Duration(time));
  event_.kind = static_cast<TraceKind>(kind);
  event_.subject = names_[subject];
  event_.object = names_[object];
  event_.inputs = causes_[cause];
  if (numbered > 1) detail = names_[numbered - 1];
  event_.detail = detail;
  event_.index = events_++;
  if (--left_ == 0 && in.left() != 0) return Altered("(trace) holds more than its events");
  return absl::OkStatus();
}

// The block does not match its hash; which of its events is it?
absl::Status LogReader::NameAlteredEvent() {
  while (left_ > 0) {
    if (absl::Status status = DecodeEvent(); !status.ok()) return status;
    TraceRecord record{.kind = event_.kind, .a = event_.a, .b = event_.b, .detail = event_.detail};
    const uint64_t hash = TraceDigest::Hash(event_.time, record, event_.subject, event_.object, event_.inputs);
    if (static_cast<uint32_t>(hash) != check_) {
      return Altered(
          fmt::format("(trace) does not match its hash, event {} of the trace being the first altered", event_.index));
    }
  }
  return Altered("(trace) does not match its hash");
}

absl::Status LogReader::ReadCheckpoint() {
  sqlite3_stmt* row = db_->cursors[2].statement.get();
  const int64_t events = sqlite3_column_int64(row, 1), inputs = sqlite3_column_int64(row, 2);
  const int64_t at = sqlite3_column_int64(row, 3), last = sqlite3_column_int64(row, 6);
  const std::string_view trace = format::ColumnBytes(row, 4), state = format::ColumnBytes(row, 5);
  chain_ = format::ChainHash(chain_, 'c')
               .Add(static_cast<int64_t>(record_))
               .Add(events)
               .Add(inputs)
               .Add(at)
               .Add(trace)
               .Add(state)
               .Add(last)
               .Finish();
  if (chain_ != format::ColumnBytes(row, 7)) return Altered("(a checkpoint) does not match its hash");
  if (events != static_cast<int64_t>(events_) || inputs != static_cast<int64_t>(inputs_) || Time(Duration(at)) < now_) {
    return Altered("(a checkpoint) does not fit what stands before it");
  }
  checkpoint_ = {.events = events_,
                 .inputs = inputs_,
                 .at = Time(Duration(at)),
                 .trace_digest = std::string(trace),
                 .state_digest = std::string(state),
                 .last = last != 0};
  ended_ = checkpoint_.last;
  return absl::OkStatus();
}

absl::StatusOr<LogReader::Summary> LogReader::Verify() {
  if (absl::Status status = Rewind(); !status.ok()) return status;
  Summary summary;
  while (true) {
    absl::StatusOr<Item> item = Next();
    if (!item.ok()) return item.status();
    if (*item == Item::kCheckpoint) {
      ++summary.checkpoints;
      summary.trace_digest = checkpoint_.trace_digest;
      summary.state_digest = checkpoint_.state_digest;
      now_ = checkpoint_.at;
    }
    if (*item == Item::kEnd) break;
  }
  summary.records = record_;
  summary.inputs = inputs_;
  summary.events = events_;
  summary.complete = ended_;
  summary.end = now_;
  summary.chain = chain();
  if (absl::Status status = Rewind(); !status.ok()) return status;
  return summary;
}

Time LogHeader::Beginning() const {
  const auto start = world.find("startNs");
  return start != world.end() && start->is_number_integer() ? Time{Duration(start->get<int64_t>())} : Time{};
}

std::string Describe(const LoggedEvent& event, Time beginning) {
  std::string text = fmt::format("event {} at {:.6f} s: {} {}", event.index, ToMillis(event.time - beginning) / 1e3,
                                 TraceKindName(event.kind), event.subject);
  if (!event.object.empty()) text += " -> " + event.object;
  text += TraceNumbers(event.kind, event.a, event.b);
  if (!event.detail.empty()) text += " \"" + event.detail + "\"";
  if (!event.inputs.empty()) text += fmt::format(" because of input {}", fmt::join(event.inputs, ", "));
  return text;
}

std::string SubjectOf(const LogInput& input) {
  constexpr size_t kRoom = 120;
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  };
  for (const auto& [key, value] : input.body.items()) {
    if (value.is_object() && value.contains("kind") && value.contains("metadata")) {
      const std::string ns = Text(value["metadata"], "namespace");
      add(fmt::format("{} {}{}", Text(value, "kind"), ns.empty() ? "" : ns + "/", Text(value["metadata"], "name")));
    } else if (value.is_string()) {
      const std::string& text = value.get_ref<const std::string&>();
      if (!text.empty()) add(fmt::format("{} {}", key, text));
    } else if (value.is_number() || value.is_boolean()) {
      add(fmt::format("{} {}", key, JsonText(value)));
    } else if (value.is_array() && !value.empty() && value.front().is_string()) {
      std::string list;
      for (const auto& each : value) {
        if (each.is_string()) list += (list.empty() ? "" : " ") + each.get<std::string>();
      }
      add(fmt::format("{} {}", key, list));
    }
    if (out.size() > kRoom) break;
  }
  if (out.size() <= kRoom) return out;
  size_t kept = kRoom;
  while (kept > 0 && (static_cast<unsigned char>(out[kept]) & 0xc0) == 0x80)
    --kept;  // within a letter of several bytes
  return out.substr(0, kept) + "...";
}

std::string Describe(const LogInput& input, Time beginning) {
  const std::string subject = SubjectOf(input);
  return fmt::format("input {} at {:.6f} s: {}{}", input.seq, ToMillis(input.at - beginning) / 1e3, input.kind,
                     subject.empty() ? "" : " (" + subject + ")");
}

}  // namespace wavetank::replay
