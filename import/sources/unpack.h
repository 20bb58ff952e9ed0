// gzip, bzip2, xz and zstd read until the very last whole byte or block: libarchive keeps what it unpacked back until a
// buffer of its own is full, so that of a small file that was cut it gives nothing.
//
// What the formats allow (RFC 1952, the XZ file format 1.1.0, RFC 8878, bzip2's decompress.c): gzip and xz give each
// byte as it comes; zstd a block of at most 128 KiB, bzip2 one of at most 900 kB, only when it is whole.
#pragma once

#include <memory>
#include <string_view>

#include "import/sources/source.h"

namespace wavetank::importing {

// Whether a file that begins so is packed by one of them.
bool LooksCompressed(std::string_view head);

// What `packed` unpacks to; null if it is none of them. Members (streams, frames) one behind the other are one file,
// and what follows the last and is none is padding. DataLoss: it ends within a member, or a member is damaged, and how
// much that leaves out; ResourceExhausted: it is a bomb, or asks for more memory than a reader of strangers' files
// gives. What came before stands. `more` becomes true if what follows the last member is no zeros.
std::unique_ptr<ByteStream> OpenCompressed(std::string_view head, ByteStream& packed, const SourceLimits& limits,
                                           bool* more = nullptr);

// OK, or the error of a stream that gave `unpacked` bytes out of `packed`.
absl::Status NoBomb(const SourceLimits& limits, uint64_t packed, uint64_t unpacked);

}  // namespace wavetank::importing
