#include "fakes/kube/http/transport/gzip.h"

#include <zlib.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/assert.h"

namespace wavetank::fakekube::http {
namespace {

constexpr size_t kThreshold = 128 * 1024;
constexpr int kLevel = 1;           // defaultGzipContentEncodingLevel
constexpr int kWindow = MAX_WBITS;  // and 16 more for gzip's head and end

class Deflater {
 public:
  Deflater() {
    const int made = deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindow + 16, 8, Z_DEFAULT_STRATEGY);
    WAVETANK_ASSERT(made == Z_OK, made);
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void Add(std::string_view text, bool last, std::string* out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    std::array<char, 32 * 1024> room;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = static_cast<uInt>(room.size());
      const int done = deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      WAVETANK_ASSERT(done != Z_STREAM_ERROR, done);
      out->append(room.data(), room.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
};

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  const absl::string_view text(accept_encoding.data(), accept_encoding.size());
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (absl::StripAsciiWhitespace(word) == "gzip") return true;
  }
  return false;
}

void CompressIfLarge(Response* response) {
  if (response->watch != nullptr || response->tunnel != nullptr) return;
  bool more = response->produce != nullptr;
  while (more && response->body.size() <= kThreshold) more = response->produce(&response->body);
  if (!more) response->produce = nullptr;
  if (response->body.size() <= kThreshold) return;
  response->headers.emplace_back("Content-Encoding", "gzip");
  response->headers.emplace_back("Vary", "Accept-Encoding");
  const auto deflater = std::make_shared<Deflater>();
  std::string begin;
  deflater->Add(response->body, !more, &begin);
  if (!more) {
    response->body = std::move(begin);
    return;
  }
  response->body.clear();
  response->produce = [deflater, begin = std::move(begin),
                       produce = std::move(response->produce)](std::string* piece) mutable {
    *piece += std::exchange(begin, {});
    // A piece may be all in the compressor's window; an empty chunk would end the answer.
    bool left = true;
    while (left && piece->empty()) {
      std::string text;
      left = produce(&text);
      deflater->Add(text, !left, piece);
    }
    return left;
  };
}

}  // namespace wavetank::fakekube::http
