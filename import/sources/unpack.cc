#include "import/sources/unpack.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>

#include "core/base/assert.h"
#include "fmt/format.h"

namespace wavetank::importing {
namespace {

constexpr size_t kUnpacked = 1 << 18;
constexpr int kGzipAlone = 16 + MAX_WBITS;         // zlib.h, inflateInit2: a gzip header and its checksum are expected
constexpr uint64_t kMemory = uint64_t{256} << 20;  // of one decoder; xz -9 takes 65 MiB, zstd --ultra -22 128 MiB
// A decoder reads on behind the block that it gives; in slices it is known how far, as nearly as this.
constexpr size_t kSlice = 1 << 10;
constexpr uint64_t kInFlight = 64;  // packed bytes without output that a byte-wise format may hold

// What a decoder has to read and where it may write.
struct Cursor {
  const char* in;
  size_t in_left;
  char* out;
  size_t out_left;
};

// One format. A member's end makes it ready for the next one.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // True: a member has ended. DataLoss: damaged, why.
  virtual absl::StatusOr<bool> Run(Cursor& at) = 0;
  // Of the current member, as its header says; 0: it does not.
  virtual uint64_t FullSize() const { return 0; }
};

class Gzip : public Decoder {
 public:
  Gzip() {
    const int made = inflateInit2(&zlib_, kGzipAlone);
    WAVETANK_ASSERT(made == Z_OK, made);
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&zlib_); }

  absl::StatusOr<bool> Run(Cursor& at) override {
    // zlib does not write to what it reads (zlib.h, ZLIB_CONST).
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(at.in));
    zlib_.avail_in = static_cast<uInt>(at.in_left);
    zlib_.next_out = reinterpret_cast<Bytef*>(at.out);
    zlib_.avail_out = static_cast<uInt>(at.out_left);
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    at = {at.in + (at.in_left - zlib_.avail_in), zlib_.avail_in, at.out + (at.out_left - zlib_.avail_out),
          zlib_.avail_out};
    if (result == Z_STREAM_END) inflateReset(&zlib_);
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return result == Z_STREAM_END;
    return absl::DataLossError(zlib_.msg == nullptr ? zError(result) : zlib_.msg);
  }

 private:
  z_stream zlib_ = {};
};

class Bzip2 : public Decoder {
 public:
  Bzip2() { Begin(); }
  Bzip2(const Bzip2&) = delete;
  Bzip2& operator=(const Bzip2&) = delete;
  ~Bzip2() override { BZ2_bzDecompressEnd(&bzip_); }

  absl::StatusOr<bool> Run(Cursor& at) override {
    bzip_.next_in = const_cast<char*>(at.in);
    bzip_.avail_in = static_cast<unsigned>(at.in_left);
    bzip_.next_out = at.out;
    bzip_.avail_out = static_cast<unsigned>(at.out_left);
    const int result = BZ2_bzDecompress(&bzip_);
    at = {at.in + (at.in_left - bzip_.avail_in), bzip_.avail_in, bzip_.next_out, bzip_.avail_out};
    if (result == BZ_OK) return false;
    if (result != BZ_STREAM_END)
      return absl::DataLossError(result == BZ_DATA_ERROR ? "a block's checksum or content is wrong" : "wrong header");
    BZ2_bzDecompressEnd(&bzip_);
    Begin();
    return true;
  }

 private:
  void Begin() {
    bzip_ = {};
    const int made = BZ2_bzDecompressInit(&bzip_, 0, 0);
    WAVETANK_ASSERT(made == BZ_OK, made);
  }
  bz_stream bzip_ = {};
};

class Xz : public Decoder {
 public:
  Xz() { Begin(); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;
  ~Xz() override { lzma_end(&lzma_); }

  absl::StatusOr<bool> Run(Cursor& at) override {
    lzma_.next_in = reinterpret_cast<const uint8_t*>(at.in);
    lzma_.avail_in = at.in_left;
    lzma_.next_out = reinterpret_cast<uint8_t*>(at.out);
    lzma_.avail_out = at.out_left;
    const lzma_ret result = lzma_code(&lzma_, LZMA_RUN);
    at = {at.in + (at.in_left - lzma_.avail_in), lzma_.avail_in, at.out + (at.out_left - lzma_.avail_out),
          lzma_.avail_out};
    if (result == LZMA_STREAM_END) Begin();
    if (result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR) return result == LZMA_STREAM_END;
    if (result == LZMA_MEMLIMIT_ERROR)
      return absl::ResourceExhaustedError(
          fmt::format("xz that takes {} MiB to unpack, of {} MiB allowed; unpack it first with xz -d",
                      (lzma_memusage(&lzma_) >> 20) + 1, kMemory >> 20));
    return absl::DataLossError(result == LZMA_OPTIONS_ERROR ? "a filter that this program does not know"
                                                            : "content or checksum is wrong");
  }

 private:
  void Begin() {
    const lzma_ret made = lzma_stream_decoder(&lzma_, kMemory, 0);
    WAVETANK_ASSERT(made == LZMA_OK, static_cast<int>(made));
  }
  lzma_stream lzma_ = LZMA_STREAM_INIT;
};

class Zstd : public Decoder {
 public:
  Zstd() : zstd_(ZSTD_createDCtx()) { WAVETANK_ASSERT(zstd_ != nullptr); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDCtx(zstd_); }

  absl::StatusOr<bool> Run(Cursor& at) override {
    if (begins_) {  // the size stands in the first bytes, if it was known to who packed it
      const unsigned long long size = ZSTD_getFrameContentSize(at.in, at.in_left);
      full_size_ = size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ? 0 : size;
    }
    ZSTD_inBuffer in{at.in, at.in_left, 0};
    ZSTD_outBuffer out{at.out, at.out_left, 0};
    const size_t result = ZSTD_decompressStream(zstd_, &out, &in);
    at = {at.in + in.pos, at.in_left - in.pos, at.out + out.pos, at.out_left - out.pos};
    if (ZSTD_isError(result) != 0) {
      if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
        return absl::ResourceExhaustedError(
            "zstd with a window of more than 128 MiB; unpack it first with zstd -d --long=31");
      return absl::DataLossError(ZSTD_getErrorName(result));
    }
    begins_ = result == 0;
    return begins_;
  }
  uint64_t FullSize() const override { return full_size_; }

 private:
  ZSTD_DCtx* const zstd_;
  bool begins_ = true;
  uint64_t full_size_ = 0;
};

struct Format {
  std::string_view magic, name;
  uint64_t block;  // what must be whole before any of it can be had, in unpacked bytes; 0: each byte
  std::unique_ptr<Decoder> (*make)();
};
template <class T>
std::unique_ptr<Decoder> Make() {
  return std::make_unique<T>();
}
constexpr Format kFormats[] = {
    {"\x1f\x8b", "gzip", 0, &Make<Gzip>},
    {"BZh", "bzip2", 900'000, &Make<Bzip2>},
    {"\xfd"
     "7zXZ",
     "xz", 0, &Make<Xz>},
    {"\x28\xb5\x2f\xfd", "zstd", 128 << 10, &Make<Zstd>},
};

const Format* FormatOf(std::string_view head) {
  for (const Format& format : kFormats) {
    if (head.starts_with(format.magic)) return &format;
  }
  return nullptr;
}

class Unpacking : public ByteStream {
 public:
  Unpacking(const Format& format, ByteStream& packed, const SourceLimits& limits, bool* more)
      : format_(format),
        packed_(packed),
        limits_(limits),
        more_(more),
        decoder_(format.make()),
        out_(kUnpacked, '\0') {}

  absl::StatusOr<std::string_view> Next() override {
    Cursor at{nullptr, 0, out_.data(), out_.size()};
    while (!ended_ && failed_.ok() && at.out_left == out_.size()) {
      if (between_) {
        Between();
        continue;
      }
      const size_t most = std::min(in_.size() - begin_, format_.block > 0 ? kSlice : in_.size());
      at.in = in_.data() + begin_;
      at.in_left = most;
      const absl::StatusOr<bool> end = decoder_->Run(at);
      const size_t read = most - at.in_left;
      begin_ += read;
      const size_t got = out_.size() - at.out_left;
      unpacked_ += got;
      of_member_ += got;
      without_output_ = got > 0 ? 0 : without_output_ + read;
      if (!end.ok()) {
        failed_ = absl::IsResourceExhausted(end.status())
                      ? end.status()
                      : absl::DataLossError(fmt::format("damaged {}: {}; {}", format_.name,
                                                        std::string(end.status().message()), Had()));
      } else if (*end) {
        between_ = true;
        of_member_ = without_output_ = 0;
      } else if (got == 0 && read == 0) {
        if (packed_ended_) {
          failed_ = absl::DataLossError(fmt::format("truncated {}; {}", format_.name, Had()));
        } else {
          Refill();
        }
      }
      if (failed_.ok()) failed_ = NoBomb(limits_, packed_bytes_, unpacked_);
    }
    const size_t got = out_.size() - at.out_left;
    if (got == 0 && !failed_.ok()) return failed_;
    return std::string_view(out_).substr(0, got);
  }

 private:
  void Refill() {
    const absl::StatusOr<std::string_view> piece = packed_.Next();
    if (!piece.ok()) {
      failed_ = piece.status();
      return;
    }
    packed_ended_ = piece->empty();
    packed_bytes_ += piece->size();
    in_.erase(0, begin_);
    in_.append(*piece);
    begin_ = 0;
  }
  // Behind a member's end: another one, or padding. xz fills up with zeros between streams, too (its format, 2.2).
  void Between() {
    while (begin_ < in_.size() && in_[begin_] == '\0') ++begin_;
    const std::string_view rest = std::string_view(in_).substr(begin_);
    if (rest.size() < format_.magic.size() && !packed_ended_) return Refill();
    ended_ = !rest.starts_with(format_.magic);
    if (ended_ && !rest.empty() && more_ != nullptr) *more_ = true;
    between_ = false;
  }
  // How much of it there is, and what of it is for nothing.
  std::string Had() const {
    const uint64_t full = decoder_->FullSize();
    std::string said = full > of_member_ && full > 0 ? fmt::format("{} of {} bytes could be unpacked", of_member_, full)
                                                     : fmt::format("{} bytes could be unpacked", unpacked_);
    if (format_.block > 0 && without_output_ > kInFlight) {
      said += fmt::format(
          "; at least {} of its {} packed bytes lie in a block (of up to {} bytes) that is not whole and "
          "gives nothing",
          without_output_, packed_bytes_, format_.block);
    }
    return said;
  }

  const Format& format_;
  ByteStream& packed_;
  const SourceLimits& limits_;
  bool* const more_;
  const std::unique_ptr<Decoder> decoder_;
  std::string in_, out_;
  size_t begin_ = 0;  // of what is not read of `in_`
  absl::Status failed_;
  uint64_t packed_bytes_ = 0, unpacked_ = 0, of_member_ = 0, without_output_ = 0;
  bool packed_ended_ = false, ended_ = false, between_ = true;
};

}  // namespace

absl::Status NoBomb(const SourceLimits& limits, uint64_t packed, uint64_t unpacked) {
  if (unpacked <= limits.free_bytes || unpacked / limits.ratio <= packed) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format("unpacks to more than {} times its size", limits.ratio));
}

bool LooksCompressed(std::string_view head) { return FormatOf(head) != nullptr; }

std::unique_ptr<ByteStream> OpenCompressed(std::string_view head, ByteStream& packed, const SourceLimits& limits,
                                           bool* more) {
  const Format* const format = FormatOf(head);
  if (format == nullptr) return nullptr;
  return std::make_unique<Unpacking>(*format, packed, limits, more);
}

}  // namespace wavetank::importing
