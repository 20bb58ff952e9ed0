#include "import/sources/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "import/sources/unpack.h"
#include "import/sources/utf16.h"

namespace wavetank::importing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = 1 << 20;
constexpr size_t kTarMagicAt = 257;
constexpr size_t kTarBlock = 512;  // no archive is smaller
// "End of central directory record" (PKWARE's APPNOTE.TXT, 4.3.16); a comment may follow it.
constexpr std::string_view kZipEnd("PK\x05\x06", 4);
constexpr size_t kZipEndSize = 22, kTail = kZipEndSize + 65'535;
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

class FileStream : public ByteStream {
 public:
  explicit FileStream(int descriptor) : descriptor_(descriptor), buffer_(kPiece, '\0') {}
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;
  ~FileStream() override {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
  }
  absl::StatusOr<std::string_view> Next() override {
    while (true) {
      const ssize_t got = read(descriptor_, buffer_.data(), buffer_.size());
      if (got >= 0) return std::string_view(buffer_.data(), static_cast<size_t>(got));
      if (errno != EINTR) return absl::DataLossError(std::strerror(errno));
    }
  }

 private:
  const int descriptor_;
  std::string buffer_;
};

bool LooksPacked(std::string_view head) {
  if (LooksCompressed(head) || head.starts_with("PK\x03\x04")) return true;
  return head.size() > kTarMagicAt + 5 && head.substr(kTarMagicAt, 5) == "ustar";
}

// One archive, read from a stream.
class Unpacker {
 public:
  Unpacker(ByteStream& packed, const SourceLimits& limits)
      : packed_(packed), limits_(limits), archive_(archive_read_new()) {
    archive_read_support_format_tar(archive_);
    archive_read_support_format_zip_streamable(archive_);
    archive_read_support_format_raw(archive_);  // a single file that was packed and is no archive
    opened_ = archive_read_open(archive_, this, nullptr, &Unpacker::Read, nullptr);
  }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() { archive_read_free(archive_); }

  // Null: no more. DataLoss: the rest cannot be had.
  absl::StatusOr<archive_entry*> NextEntry() {
    if (opened_ != ARCHIVE_OK) return Damaged();
    archive_entry* entry = nullptr;
    const int got = archive_read_next_header(archive_, &entry);
    if (got == ARCHIVE_EOF) return nullptr;
    if (got < ARCHIVE_WARN) return Damaged();
    return entry;
  }
  bool Raw() const { return archive_format(archive_) == ARCHIVE_FORMAT_RAW; }
  // Reads what stands behind the last entry. Whether the archive has the end that its format asks for: a tar blocks of
  // zeros, a zip the record that ends its directory. Without it files may be missing that nobody knows of.
  absl::StatusOr<bool> HasEnd() {
    absl::StatusOr<std::string_view> piece = packed_.Next();
    while (piece.ok() && !piece->empty()) {
      Remember(*piece);
      piece = packed_.Next();
    }
    if (!piece.ok()) return piece.status();
    if ((archive_format(archive_) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR) {
      const std::string_view last =
          std::string_view(tail_).substr(tail_.size() < kTarBlock ? 0 : tail_.size() - kTarBlock);
      return last.size() == kTarBlock && last.find_first_not_of('\0') == last.npos;
    }
    const size_t record = tail_.rfind(kZipEnd);
    return record != tail_.npos && tail_.size() - record >= kZipEndSize;
  }

  absl::StatusOr<std::string_view> NextBlock() {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int got = archive_read_data_block(archive_, &block, &size, &offset);
    if (got == ARCHIVE_EOF) return std::string_view();
    if (got < ARCHIVE_WARN) return Damaged();
    unpacked_ += size;
    if (absl::Status status = NoBomb(limits_, packed_bytes_, unpacked_); !status.ok()) return status;
    if (size == 0) return NextBlock();
    return std::string_view(static_cast<const char*>(block), size);
  }

 private:
  static la_ssize_t Read(archive* a, void* self, const void** block) {
    auto& here = *static_cast<Unpacker*>(self);
    absl::StatusOr<std::string_view> piece = here.packed_.Next();
    if (!piece.ok()) {
      here.packed_failed_ = piece.status();
      archive_set_error(a, EIO, "%s", std::string(piece.status().message()).c_str());
      return ARCHIVE_FATAL;
    }
    here.packed_bytes_ += piece->size();
    here.Remember(*piece);
    *block = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }
  void Remember(std::string_view piece) {
    if (piece.size() >= kTail) {
      tail_ = piece.substr(piece.size() - kTail);
      return;
    }
    tail_.append(piece);
    if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  }
  absl::Status Damaged() const {
    if (!packed_failed_.ok()) return packed_failed_;
    const char* const why = archive_error_string(archive_);
    return absl::DataLossError(why == nullptr ? "damaged archive" : why);
  }

  ByteStream& packed_;
  const SourceLimits& limits_;
  archive* const archive_;
  absl::Status packed_failed_;
  int opened_ = ARCHIVE_FATAL;
  uint64_t packed_bytes_ = 0, unpacked_ = 0;
  std::string tail_;  // the last bytes of it
};

class EntryStream : public ByteStream {
 public:
  explicit EntryStream(Unpacker& unpacker) : unpacker_(unpacker) {}
  absl::StatusOr<std::string_view> Next() override { return unpacker_.NextBlock(); }

 private:
  Unpacker& unpacker_;
};

// As UTF-8, without the mark before it.
class Utf8Stream : public ByteStream {
 public:
  Utf8Stream(ByteStream& under, Utf16Decoder decoder) : under_(under), decoder_(decoder) {}
  absl::StatusOr<std::string_view> Next() override {
    text_.clear();
    while (text_.empty() && !ended_) {
      const absl::StatusOr<std::string_view> piece = under_.Next();
      if (!piece.ok()) return piece.status();
      ended_ = piece->empty();
      if (ended_) {
        decoder_.Finish(&text_);
      } else {
        decoder_.Feed(*piece, &text_);
      }
    }
    return std::string_view(text_);
  }

 private:
  ByteStream& under_;
  Utf16Decoder decoder_;
  std::string text_;
  bool ended_ = false;
};

// Without the zeros that it begins with.
class AfterZeros : public ByteStream {
 public:
  explicit AfterZeros(ByteStream& under) : under_(under) {}
  absl::StatusOr<std::string_view> Next() override {
    while (true) {
      absl::StatusOr<std::string_view> piece = under_.Next();
      if (!piece.ok() || piece->empty() || begun_) return piece;
      const size_t first = piece->find_first_not_of('\0');
      if (first == piece->npos) continue;
      begun_ = true;
      return piece->substr(first);
    }
  }

 private:
  ByteStream& under_;
  bool begun_ = false;
};

// Names are shown to people: without what moves a terminal's cursor.
std::string Printable(std::string name) {
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return name;
}

// The name in its archive with single slashes; nothing if it would lie outside.
std::optional<std::string> InsideName(std::string_view name) {
  if (name.starts_with('/')) return std::nullopt;
  std::string out;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(name.data(), name.size()), '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return std::nullopt;
    if (!out.empty()) out += '/';
    out.append(part.data(), part.size());
  }
  return Printable(std::move(out));
}

std::string WithoutPackedSuffix(std::string name) {
  for (const std::string_view suffix : {".gz", ".bz2", ".xz", ".zst"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

class Walker {
 public:
  Walker(const SourceLimits& limits, Refusals& refusals, const VisitFile& visit)
      : limits_(limits), refusals_(refusals), visit_(visit) {}

  void Stream(const SourceFile& file, ByteStream& bytes, int depth) {
    PeekableStream peekable(bytes);
    const std::string_view head = peekable.Peek(kTarMagicAt + 8);
    if (!LooksPacked(head)) return Plain(file, head, peekable);
    if (depth >= limits_.depth) return refusals_.Add("archive in too many archives", {file.name, 0});
    if (LooksCompressed(head)) return Compressed(file, head, peekable, depth);
    Packed(file, peekable, true, depth);
  }

  // In order of name, so that two walks are one.
  void Folder(const std::string& source, const fs::path& top, const fs::path& folder) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      entries.push_back(*it);
    if (error) refusals_.Add("folder that cannot be read", {fs::relative(folder, top).string(), 0}, error.message());
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
    for (const fs::directory_entry& entry : entries) {
      const std::string name = Printable(entry.path().lexically_relative(top).string());
      const fs::file_status status = entry.symlink_status(error);
      if (fs::is_symlink(status)) {
        refusals_.Add("link, not followed", {name, 0});
      } else if (fs::is_directory(status)) {
        Folder(source, top, entry.path());
      } else if (fs::is_regular_file(status)) {
        const int descriptor = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (descriptor < 0) {
          refusals_.Add("file that cannot be read", {name, 0}, std::strerror(errno));
          continue;
        }
        FileStream bytes(descriptor);
        Stream({source, name}, bytes, 0);
      } else {
        refusals_.Add("neither file nor folder", {name, 0});
      }
    }
  }

 private:
  void Plain(const SourceFile& file, std::string_view head, PeekableStream& bytes) {
    if (const std::optional<Utf16Decoder> decoder = Utf16Decoder::Of(head)) {
      Utf8Stream text(bytes, *decoder);
      PeekableStream peekable(text);
      return visit_(file, peekable);
    }
    // A log that was cut off while its writer went on (logrotate's copytruncate) begins with as many zeros.
    if (head.starts_with('\0')) {
      refusals_.Add("zeros before a file's first line, left out", {file.name, 0});
      AfterZeros text(bytes);
      PeekableStream peekable(text);
      return visit_(file, peekable);
    }
    if (head.starts_with(kUtf8Mark)) bytes.Skip(kUtf8Mark.size());
    visit_(file, bytes);
  }

  // What is in it counts as one archive with it: .tar.gz.
  void Compressed(const SourceFile& file, std::string_view magic, ByteStream& packed, int depth) {
    bool more = false;
    const std::unique_ptr<ByteStream> unpacked = OpenCompressed(magic, packed, limits_, &more);
    PeekableStream peekable(*unpacked);
    const std::string_view head = peekable.Peek(kTarBlock);
    const SourceFile inner{file.source, WithoutPackedSuffix(file.name)};
    if (LooksCompressed(head)) return Stream(inner, peekable, depth + 1);
    if (head.size() == kTarBlock || LooksPacked(head)) {
      Packed(file, peekable, LooksPacked(head), depth);
    } else if (!head.empty()) {
      Plain(inner, head, peekable);
    }
    if (more) refusals_.Add("something behind the end of a packed file, not read", {file.name, 0});
    if (!head.empty()) return;
    const absl::StatusOr<std::string_view> nothing = peekable.Next();
    if (nothing.ok()) return refusals_.Add("archive that holds no file", {file.name, 0});
    refusals_.Add("damaged or truncated archive", {file.name, 0}, std::string(nothing.status().message()));
  }

  // What stands behind an archive's last file is none, but its packing may have been cut there.
  void Rest(const SourceFile& file, Unpacker& unpacker) {
    const absl::StatusOr<bool> end = unpacker.HasEnd();
    if (!end.ok()) {
      refusals_.Add("damaged or truncated archive", {file.name, 0}, std::string(end.status().message()));
    } else if (!*end) {
      refusals_.Add("archive without its end: files may be missing", {file.name, 0});
    }
  }

  // `archive`: it begins as one, so that it is no single file.
  void Packed(const SourceFile& file, ByteStream& packed, bool archive, int depth) {
    Unpacker unpacker(packed, limits_);
    for (bool first = true;; first = false) {
      if (++entries_ > limits_.entries) return refusals_.Add("more files than an archive may hold", {file.name, 0});
      const absl::StatusOr<archive_entry*> entry = unpacker.NextEntry();
      if (!entry.ok()) {
        return refusals_.Add("damaged or truncated archive", {file.name, 0}, std::string(entry.status().message()));
      }
      // Zeros without an end are the end of a tape to who expects one.
      if (*entry == nullptr && first) return refusals_.Add("archive that holds no file", {file.name, 0});
      if (*entry == nullptr) return Rest(file, unpacker);
      if (archive && unpacker.Raw()) {
        return refusals_.Add("damaged or truncated archive", {file.name, 0}, "it holds no whole entry");
      }
      SourceFile inner{file.source, WithoutPackedSuffix(file.name)};
      if (!unpacker.Raw()) {
        const char* const raw = archive_entry_pathname(*entry);
        const std::optional<std::string> name = InsideName(raw == nullptr ? "" : raw);
        if (!name) {
          refusals_.Add("name that leads out of its archive", {file.name, 0}, raw == nullptr ? "" : raw);
          continue;
        }
        if (archive_entry_hardlink(*entry) != nullptr || archive_entry_filetype(*entry) == AE_IFLNK) {
          refusals_.Add("link, not followed", {*name, 0});
          continue;
        }
        if (archive_entry_filetype(*entry) == AE_IFDIR) continue;
        if (archive_entry_filetype(*entry) != AE_IFREG && archive_entry_filetype(*entry) != 0) {
          refusals_.Add("neither file nor folder", {*name, 0});
          continue;
        }
        inner.name = *name;
        if (archive_entry_is_encrypted(*entry) != 0) {
          refusals_.Add("encrypted file in an archive; unpack it first", {*name, 0});
          continue;
        }
      }
      EntryStream bytes(unpacker);
      Stream(inner, bytes, depth + 1);
      if (unpacker.Raw()) return;
    }
  }

  const SourceLimits& limits_;
  Refusals& refusals_;
  const VisitFile& visit_;
  size_t entries_ = 0;
};

// To open one for reading waits until somebody opens it for writing, and tells nobody.
int OpenFifo(const std::string& path, const TellOfWaiting& waits) {
  constexpr int kPatienceMs = 1000;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return descriptor;
  pollfd written{descriptor, POLLIN, 0};
  int got = poll(&written, 1, kPatienceMs);
  if (got == 0 && waits) waits(fmt::format("{} is a pipe that nobody has written to; waiting for it", path));
  while (got == 0 || (got < 0 && errno == EINTR)) got = poll(&written, 1, -1);
  fcntl(descriptor, F_SETFL, O_RDONLY);
  return descriptor;
}

}  // namespace

std::string_view PeekableStream::Peek(size_t size) {
  while (held_.size() < size && !ended_) {
    absl::StatusOr<std::string_view> piece = under_.Next();
    if (!piece.ok()) end_ = piece.status();
    ended_ = !piece.ok() || piece->empty();
    if (!ended_) held_.append(*piece);
  }
  return std::string_view(held_).substr(0, size);
}

void PeekableStream::Skip(size_t size) {
  Peek(size);
  held_.erase(0, size);
}

absl::StatusOr<std::string_view> PeekableStream::Next() {
  if (!held_.empty()) {
    given_ = std::move(held_);
    held_.clear();
    return std::string_view(given_);
  }
  if (!end_.ok()) return end_;
  if (ended_) return std::string_view();
  absl::StatusOr<std::string_view> piece = under_.Next();
  if (!piece.ok()) end_ = piece.status();
  ended_ = !piece.ok() || piece->empty();
  return piece;
}

absl::Status WalkSources(const std::vector<std::string>& sources, const SourceLimits& limits, Refusals& refusals,
                         const VisitFile& visit, const TellOfWaiting& waits) {
  for (const std::string& source : sources) {
    if (source == "-") continue;
    if (access(source.c_str(), R_OK) == 0) continue;
    const std::string why = std::strerror(errno);
    if (errno == EACCES) return absl::PermissionDeniedError(fmt::format("{}: {}", source, why));
    return absl::NotFoundError(fmt::format("{}: {}; name a log, a dump, an archive or a folder of them", source, why));
  }
  Walker walker(limits, refusals, visit);
  for (const std::string& source : sources) {
    if (source == "-") {
      FileStream bytes(STDIN_FILENO);
      walker.Stream({source, "stdin"}, bytes, 0);
      continue;
    }
    std::error_code error;
    if (fs::is_directory(source, error)) {
      walker.Folder(source, source, source);
      continue;
    }
    const int descriptor =
        fs::is_fifo(source, error) ? OpenFifo(source, waits) : open(source.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return absl::UnavailableError(fmt::format("{}: {}", source, std::strerror(errno)));
    FileStream bytes(descriptor);
    walker.Stream({source, fs::path(source).filename().string()}, bytes, 0);
  }
  return absl::OkStatus();
}

}  // namespace wavetank::importing
