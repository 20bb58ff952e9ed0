// Files, folders, archives and archives in archives as one sequence of named byte streams, in bounded memory. Nothing
// is ever written, no link followed.
//
// Fault model: any bytes. What is damaged, too large for what it was packed as, a link or leads out of its archive is
// counted by reason, and the rest goes on. Texts in UTF-16 are seen as UTF-8, and byte order marks not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "import/evidence/evidence.h"

namespace wavetank::importing {

// Bytes in pieces. One piece is valid until the next is asked for.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Empty: the end. DataLoss, ResourceExhausted: no more of it can be had; what came before stands.
  virtual absl::StatusOr<std::string_view> Next() = 0;
};

// A stream whose beginning can be looked at before it is read.
class PeekableStream : public ByteStream {
 public:
  explicit PeekableStream(ByteStream& under) : under_(under) {}
  // The first `size` bytes, fewer if there are not as many or no more can be had.
  std::string_view Peek(size_t size);
  // As if they were not there.
  void Skip(size_t size);
  absl::StatusOr<std::string_view> Next() override;

 private:
  ByteStream& under_;
  std::string held_, given_;
  absl::Status end_;
  bool ended_ = false;
};

struct SourceLimits {
  // An archive that unpacks to more than `free_bytes` and more than `ratio` times its own size is a bomb.
  uint64_t free_bytes = 256 << 20;
  uint64_t ratio = 500;
  int depth = 3;  // of archives in archives
  size_t entries = 1'000'000;
};

struct SourceFile {
  std::string source;  // as it was given
  std::string name;    // of the file in it, with '/'; of a single file its last part
};

// `visit` reads as much of a file as it wants. "-": standard input. NotFound, PermissionDenied: a source that is not
// there or cannot be read, before any is visited.
using VisitFile = std::function<void(const SourceFile& file, PeekableStream& bytes)>;
// Told what is waited for: a pipe with a name (FIFO) that nobody has written to for a second.
using TellOfWaiting = std::function<void(std::string_view what)>;
absl::Status WalkSources(const std::vector<std::string>& sources, const SourceLimits& limits, Refusals& refusals,
                         const VisitFile& visit, const TellOfWaiting& waits = nullptr);

}  // namespace wavetank::importing
