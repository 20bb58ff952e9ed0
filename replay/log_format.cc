#include "replay/log_format.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/escaping.h"
#include "core/base/assert.h"
#include "replay/event_log.h"

namespace wavetank::replay::format {
namespace {

uint32_t BigEndian(const unsigned char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

// SHA256() would look the algorithm up each time, which takes as long as hashing an input does.
std::string Sha256(std::string_view bytes) {
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  const bool done = EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1;
  WAVETANK_ASSERT(done, bytes.size());
  return digest;
}

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

ChainHash& ChainHash::Add(int64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(static_cast<uint64_t>(value) >> shift);
  return *this;
}

ChainHash& ChainHash::Add(std::string_view text) {
  Add(static_cast<int64_t>(text.size()));
  bytes_ += text;
  return *this;
}

std::string ChainHash::Finish() const { return Sha256(bytes_); }

std::string HeaderDigest(const std::map<std::string, std::string>& values) {
  ChainHash hash("wavetank event log", 'h');
  for (const auto& [key, value] : values) {
    if (key != kHeaderDigestKey) hash.Add(key).Add(value);
  }
  return hash.Finish();
}

absl::Status SqliteError(sqlite3* db, int code, std::string_view what, const std::string& path) {
  const std::string detail = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int os_error = db != nullptr ? sqlite3_system_errno(db) : 0;
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          fmt::format("{}: no space left while {} it: free some, or name a file elsewhere", path, what));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(fmt::format(
          "{}: the file is damaged ({}): take a copy that was not, or run the scenario again", path, detail));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          fmt::format("{}: another process is writing it: try again when it has ended", path));
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return absl::PermissionDeniedError(fmt::format(
          "{}: no permission while {} it ({}): name a file in a folder that may be written", path, what, detail));
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::DataLossError(
          fmt::format("{}: a record is larger than any that Wavetank writes: the file is damaged "
                      "or none of its event logs",
                      path));
    case SQLITE_IOERR:
      // A quota or a limit on file sizes arrives as a failed write.
      if (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_TRUNCATE) {
        return absl::ResourceExhaustedError(
            fmt::format("{}: no space left, or the disk fails, while {} it ({}): free some, or name a file elsewhere",
                        path, what, detail));
      }
      [[fallthrough]];
    default:
      return absl::UnavailableError(fmt::format("{}: {} it failed: {}{}{}", path, what, detail,
                                                os_error != 0 ? ": " : "", os_error != 0 ? strerror(os_error) : ""));
  }
}

std::string_view ColumnBytes(sqlite3_stmt* statement, int column) {
  const void* bytes = sqlite3_column_blob(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

void BindText(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data() != nullptr ? text.data() : "", static_cast<int>(text.size()),
                    SQLITE_STATIC);
}

void BindBlob(sqlite3_stmt* statement, int index, std::string_view bytes) {
  sqlite3_bind_blob(statement, index, bytes.data() != nullptr ? bytes.data() : "", static_cast<int>(bytes.size()),
                    SQLITE_STATIC);
}

absl::Status InspectFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      const std::string partial = path + ".partial";
      if (stat(partial.c_str(), &info) == 0) {
        return absl::NotFoundError(
            fmt::format("{}: was never finished; what was written until the end is {}", path, partial));
      }
      return absl::NotFoundError(fmt::format("{}: no such file: `wavetank run -o {}` writes one", path, path));
    }
    return absl::PermissionDeniedError(fmt::format("{}: {}", path, strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: not a file: name an event log that `wavetank run -o` wrote", path));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::PermissionDeniedError(fmt::format("{}: cannot be opened: {}", path, strerror(errno)));
  std::array<unsigned char, 100> head{};
  const ssize_t got = read(fd, head.data(), head.size());
  close(fd);
  if (got < 0) return absl::UnavailableError(fmt::format("{}: cannot be read: {}", path, strerror(errno)));
  if (got == 0) {
    return absl::DataLossError(fmt::format("{}: the file is empty: run the scenario again with -o", path));
  }
  const size_t magic = std::min<size_t>(static_cast<size_t>(got), 16);
  if (std::memcmp(head.data(), "SQLite format 3", magic) != 0 ||
      (got == 100 && BigEndian(&head[68], 4) != kApplicationId)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: not an event log of Wavetank: name a file that `wavetank run -o` wrote", path));
  }
  if (got < 100)
    return absl::DataLossError(fmt::format("{}: the file is cut short after {} bytes: take a whole copy", path, got));
  const auto version = static_cast<int>(BigEndian(&head[60], 4));
  if (version != kLogFormat) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: an event log of format {}, this program reads format {}: replay it with the version of Wavetank "
        "that wrote it (sqlite3 {} \"SELECT value FROM header WHERE key='program'\"), or run the scenario again",
        path, version, kLogFormat, path));
  }
  uint32_t page = BigEndian(&head[16], 2);
  if (page == 1) page = 65536;
  const uint64_t whole = static_cast<uint64_t>(page) * BigEndian(&head[28], 4);
  // What a killed run left may be longer or shorter, until the journal beside it is read.
  const auto beside = [&](const char* suffix) {
    struct stat other;
    return stat((path + suffix).c_str(), &other) == 0 && other.st_size > 0;
  };
  if (static_cast<uint64_t>(info.st_size) < whole && !beside("-journal") && !beside("-wal")) {
    return absl::DataLossError(
        fmt::format("{}: the file is cut short: {} bytes of {}: take a whole copy", path, info.st_size, whole));
  }
  if (static_cast<uint64_t>(info.st_size) > whole && !beside("-journal") && !beside("-wal")) {
    return absl::DataLossError(fmt::format("{}: {} bytes stand behind the log's end: take a copy that nobody changed",
                                           path, static_cast<uint64_t>(info.st_size) - whole));
  }
  return absl::OkStatus();
}

}  // namespace wavetank::replay::format
