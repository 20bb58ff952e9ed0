#include "import/sources/gunzip.h"

#include "core/base/assert.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

constexpr size_t kUnpacked = 1 << 18;
constexpr int kGzipAlone = 16 + MAX_WBITS;  // zlib.h, inflateInit2: a gzip header and its checksum are expected

}  // namespace

absl::Status NoBomb(const SourceLimits& limits, uint64_t packed, uint64_t unpacked) {
  if (unpacked <= limits.free_bytes || unpacked / limits.ratio <= packed) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format("unpacks to more than {} times its size", limits.ratio));
}

GunzipStream::GunzipStream(ByteStream& packed, const SourceLimits& limits)
    : packed_(packed), limits_(limits), out_(kUnpacked, '\0') {
  const int made = inflateInit2(&zlib_, kGzipAlone);
  WAVETANK_ASSERT(made == Z_OK, made);
}

GunzipStream::~GunzipStream() { inflateEnd(&zlib_); }

absl::Status GunzipStream::Refill() {
  const absl::StatusOr<std::string_view> piece = packed_.Next();
  if (!piece.ok()) return piece.status();
  packed_ended_ = piece->empty();
  packed_bytes_ += piece->size();
  // zlib does not write to what it reads (zlib.h, ZLIB_CONST).
  zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece->data()));
  zlib_.avail_in = static_cast<uInt>(piece->size());
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> GunzipStream::Next() {
  zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
  zlib_.avail_out = static_cast<uInt>(out_.size());
  while (!ended_ && failed_.ok() && zlib_.avail_out == out_.size()) {
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    // Since a member's end no more was read than decides whether another one begins.
    const bool behind_one = members_ > 0 && zlib_.total_in <= kGzipMagic.size();
    if (result == Z_STREAM_END) {
      ++members_;
      inflateReset(&zlib_);
    } else if (result == Z_BUF_ERROR && !packed_ended_) {
      failed_ = Refill();
    } else if (result == Z_BUF_ERROR) {
      ended_ = behind_one && zlib_.total_in < kGzipMagic.size();
      if (!ended_) failed_ = absl::DataLossError("truncated gzip");
    } else if (result != Z_OK) {
      ended_ = behind_one;
      if (!ended_)
        failed_ =
            absl::DataLossError(fmt::format("damaged gzip: {}", zlib_.msg == nullptr ? zError(result) : zlib_.msg));
    }
    unpacked_ += out_.size() - zlib_.avail_out;
    if (failed_.ok()) failed_ = NoBomb(limits_, packed_bytes_, unpacked_);
  }
  const size_t got = out_.size() - zlib_.avail_out;
  if (got == 0 && !failed_.ok()) return failed_;
  return std::string_view(out_).substr(0, got);
}

}  // namespace wavetank::importing
