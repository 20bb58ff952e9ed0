// gzip read until its very last whole byte: libarchive keeps a block back until it is full, so that of a small file
// that was cut it gives nothing.
#pragma once

#include <zlib.h>

#include <string>

#include "import/sources/source.h"

namespace wavetank::importing {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

// Members one behind the other, as gzip reads them; what follows the last and is none is padding. DataLoss: it ends
// within a member, or a member is damaged; ResourceExhausted: it is a bomb. What came before stands.
class GunzipStream : public ByteStream {
 public:
  GunzipStream(ByteStream& packed, const SourceLimits& limits);
  GunzipStream(const GunzipStream&) = delete;
  GunzipStream& operator=(const GunzipStream&) = delete;
  ~GunzipStream() override;

  absl::StatusOr<std::string_view> Next() override;

 private:
  absl::Status Refill();

  ByteStream& packed_;
  const SourceLimits& limits_;
  z_stream zlib_ = {};
  std::string out_;
  absl::Status failed_;
  uint64_t members_ = 0;  // that were read to their ends
  uint64_t packed_bytes_ = 0, unpacked_ = 0;
  bool packed_ended_ = false, ended_ = false;
};

// OK, or the error of a stream that gave `unpacked` bytes out of `packed`.
absl::Status NoBomb(const SourceLimits& limits, uint64_t packed, uint64_t unpacked);

}  // namespace wavetank::importing
