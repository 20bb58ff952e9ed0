// What LogWriter and LogReader share: the schema, the hash chain, SQLite's errors in plain words.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wavetank::replay::format {

inline constexpr uint32_t kApplicationId = 0x57544c47;  // "WTLG"
inline constexpr uint64_t kMaxBlockEvents = 512;
inline constexpr int kMaxRecordBytes = 64 << 20;
inline constexpr int kMaxJsonDepth = 200;

// The schema, one statement per object in order of name. LogReader takes a file with exactly these.
struct SchemaObject {
  const char* name;
  const char* sql;
};
inline constexpr SchemaObject kSchema[] = {
    {"checkpoint",
     "CREATE TABLE checkpoint(number INTEGER PRIMARY KEY, events INTEGER NOT NULL, inputs INTEGER NOT NULL, "
     "at INTEGER NOT NULL, trace_digest TEXT NOT NULL, state_digest TEXT NOT NULL, last INTEGER NOT NULL, "
     "chain BLOB NOT NULL) STRICT"},
    {"header", "CREATE TABLE header(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID"},
    {"input",
     "CREATE TABLE input(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, "
     "body TEXT NOT NULL, chain BLOB NOT NULL) STRICT"},
    {"trace",
     "CREATE TABLE trace(number INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, "
     "body BLOB NOT NULL, chain BLOB NOT NULL) STRICT"},
};

// SHA-256 over what was before and one record, every field with its length.
class ChainHash {
 public:
  ChainHash(std::string_view before, char table) : bytes_(before) { bytes_ += table; }
  ChainHash& Add(std::string_view text);
  ChainHash& Add(int64_t value);
  std::string Finish() const;  // 32 bytes

 private:
  std::string bytes_;
};

std::string Sha256(std::string_view bytes);
std::string Hex(std::string_view bytes);

// Of the header's keys and values, in order; where the chain starts.
std::string HeaderDigest(const std::map<std::string, std::string>& values);
inline constexpr std::string_view kHeaderDigestKey = "digest";

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using DatabaseHandle = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// The Status for the database's last error while doing `what` ("reading", "writing") with `path`.
absl::Status SqliteError(sqlite3* db, int code, std::string_view what, const std::string& path);

std::string_view ColumnBytes(sqlite3_stmt* statement, int column);
inline void Bind(sqlite3_stmt* statement, int index, int64_t value) { sqlite3_bind_int64(statement, index, value); }
// `bytes` must live until the statement was stepped.
void BindText(sqlite3_stmt* statement, int index, std::string_view text);
void BindBlob(sqlite3_stmt* statement, int index, std::string_view bytes);

// What a file is, from its first bytes and its size. OK: an event log of this format, as far as that can be seen.
absl::Status InspectFile(const std::string& path);

}  // namespace wavetank::replay::format
