#include "serve/pods/spdy.h"

#include <zlib.h>

#include <optional>
#include <utility>

namespace wavetank::serve {
namespace {

constexpr size_t kMostPayload = 1 << 20;
constexpr size_t kMostHeaders = 64 << 10;  // of one block, unpacked
constexpr size_t kOurPiece = 32 << 10;     // of data in one frame

enum Type : uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
  kWindowUpdate = 9
};
constexpr uint8_t kFin = 1;

void Put32(uint32_t value, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}
void Put24(uint32_t value, std::string& out) {
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}
uint32_t Get(std::string_view in, size_t at, size_t bytes) {
  uint32_t out = 0;
  for (size_t i = 0; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(in[at + i]);
  return out;
}

std::string ControlFrame(Type type, uint8_t flags, const std::string& payload) {
  std::string out;
  out += static_cast<char>(0x80);
  out += static_cast<char>(3);
  out += static_cast<char>(0);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  Put24(static_cast<uint32_t>(payload.size()), out);
  return out + payload;
}

// What both ends give their compressors before the first header: words with their lengths, then words without
// (SPDY protocol, draft 3, 2.6.10.1).
const std::string& Dictionary() {
  static const auto* const dictionary = [] {
    auto* out = new std::string();
    for (const char* word : {"options",
                             "head",
                             "post",
                             "put",
                             "delete",
                             "trace",
                             "accept",
                             "accept-charset",
                             "accept-encoding",
                             "accept-language",
                             "accept-ranges",
                             "age",
                             "allow",
                             "authorization",
                             "cache-control",
                             "connection",
                             "content-base",
                             "content-encoding",
                             "content-language",
                             "content-length",
                             "content-location",
                             "content-md5",
                             "content-range",
                             "content-type",
                             "date",
                             "etag",
                             "expect",
                             "expires",
                             "from",
                             "host",
                             "if-match",
                             "if-modified-since",
                             "if-none-match",
                             "if-range",
                             "if-unmodified-since",
                             "last-modified",
                             "location",
                             "max-forwards",
                             "pragma",
                             "proxy-authenticate",
                             "proxy-authorization",
                             "range",
                             "referer",
                             "retry-after",
                             "server",
                             "te",
                             "trailer",
                             "transfer-encoding",
                             "upgrade",
                             "user-agent",
                             "vary",
                             "via",
                             "warning",
                             "www-authenticate",
                             "method",
                             "get",
                             "status",
                             "200 OK",
                             "version",
                             "HTTP/1.1",
                             "url",
                             "public",
                             "set-cookie",
                             "keep-alive",
                             "origin"}) {
      const std::string text = word;
      Put32(static_cast<uint32_t>(text.size()), *out);
      *out += text;
    }
    *out +=
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
        "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
        "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
        "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
        "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
    return out;
  }();
  return *dictionary;
}

const Bytef* Bytes(const std::string& text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

// Both compressors live as long as the connection: each block goes on where the one before ended.
struct Spdy::Codec {
  Codec() {
    inflateInit(&in);
    deflateInit(&out, Z_BEST_COMPRESSION);
    deflateSetDictionary(&out, Bytes(Dictionary()), static_cast<uInt>(Dictionary().size()));
  }
  ~Codec() {
    inflateEnd(&in);
    deflateEnd(&out);
  }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  std::optional<std::string> Unpack(std::string_view block) {
    std::string packed(block), unpacked;
    in.next_in = reinterpret_cast<Bytef*>(packed.data());
    in.avail_in = static_cast<uInt>(packed.size());
    char piece[4096];
    while (true) {
      in.next_out = reinterpret_cast<Bytef*>(piece);
      in.avail_out = sizeof piece;
      const int result = inflate(&in, Z_SYNC_FLUSH);
      if (result == Z_NEED_DICT) {
        if (inflateSetDictionary(&in, Bytes(Dictionary()), static_cast<uInt>(Dictionary().size())) != Z_OK) {
          return std::nullopt;
        }
        continue;
      }
      unpacked.append(piece, sizeof piece - in.avail_out);
      if (unpacked.size() > kMostHeaders) return std::nullopt;
      if (result == Z_BUF_ERROR || (result == Z_OK && in.avail_in == 0 && in.avail_out > 0)) return unpacked;
      if (result != Z_OK) return std::nullopt;
    }
  }

  std::string Pack(const std::string& block) {
    std::string packed;
    std::string copy = block;
    out.next_in = reinterpret_cast<Bytef*>(copy.data());
    out.avail_in = static_cast<uInt>(copy.size());
    char piece[4096];
    do {
      out.next_out = reinterpret_cast<Bytef*>(piece);
      out.avail_out = sizeof piece;
      deflate(&out, Z_SYNC_FLUSH);
      packed.append(piece, sizeof piece - out.avail_out);
    } while (out.avail_out == 0);
    return packed;
  }

  z_stream in{}, out{};
};

namespace {

std::optional<StreamHeaders> ReadHeaders(std::string_view block) {
  StreamHeaders out;
  if (block.size() < 4) return std::nullopt;
  const uint32_t pairs = Get(block, 0, 4);
  size_t at = 4;
  const auto text = [&]() -> std::optional<std::string> {
    if (block.size() - at < 4) return std::nullopt;
    const size_t size = Get(block, at, 4);
    at += 4;
    if (block.size() - at < size) return std::nullopt;
    std::string value(block.substr(at, size));
    at += size;
    return value;
  };
  for (uint32_t i = 0; i < pairs; ++i) {
    std::optional<std::string> name = text(), value;
    if (name) value = text();
    if (!value) return std::nullopt;
    out.emplace(*std::move(name), value->substr(0, value->find('\0')));
  }
  return out;
}

}  // namespace

Spdy::Spdy(Events events) : events_(std::move(events)), codec_(std::make_unique<Codec>()) {}
Spdy::~Spdy() = default;

bool Spdy::Take(std::string_view bytes) {
  in_ += bytes;
  size_t at = 0;
  bool good = true;
  while (good && in_.size() - at >= 8) {
    const std::string_view head = std::string_view(in_).substr(at);
    const size_t size = Get(head, 5, 3);
    if (size > kMostPayload) return false;
    if (head.size() < 8 + size) break;
    const std::string payload(head.substr(8, size));
    const auto flags = static_cast<uint8_t>(head[4]);
    const uint32_t first = Get(head, 0, 4);
    at += 8 + size;
    if ((first & 0x80000000u) != 0) {
      if ((first >> 16 & 0x7fff) != 3) return false;
      good = Control(static_cast<uint16_t>(first), flags, payload);
      continue;
    }
    if (!payload.empty()) events_.on_data(first, payload);
    if ((flags & kFin) != 0) events_.on_end(first);
  }
  in_.erase(0, at);
  return good;
}

bool Spdy::Control(uint16_t type, uint8_t flags, std::string_view payload) {
  switch (type) {
    case kSynStream:
      return Stream(flags, payload);
    case kHeaders:
    case kSynReply:
      // Their blocks are part of the compressed whole, whoever wants them.
      return payload.size() >= 4 && codec_->Unpack(payload.substr(4)).has_value();
    case kRstStream:
      if (payload.size() < 8) return false;
      events_.on_reset(Get(payload, 0, 4) & 0x7fffffffu);
      return true;
    case kPing:
      events_.send(ControlFrame(kPing, 0, std::string(payload)));
      return true;
    case kGoAway:
      client_goes_ = true;
      return true;
    case kSettings:
    case kWindowUpdate:
      return true;
    default:
      return false;
  }
}

bool Spdy::Stream(uint8_t flags, std::string_view payload) {
  if (payload.size() < 10) return false;
  const uint32_t stream = Get(payload, 0, 4) & 0x7fffffffu;
  const std::optional<std::string> block = codec_->Unpack(payload.substr(10));
  if (!block) return false;
  std::optional<StreamHeaders> headers = ReadHeaders(*block);
  if (!headers || stream <= last_stream_) return false;
  last_stream_ = stream;
  events_.on_stream(stream, *std::move(headers));
  if ((flags & kFin) != 0) events_.on_end(stream);
  return true;
}

void Spdy::Accept(uint32_t stream) {
  std::string payload, none;
  Put32(stream, payload);
  Put32(0, none);
  events_.send(ControlFrame(kSynReply, 0, payload + codec_->Pack(none)));
}

void Spdy::Data(uint32_t stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kOurPiece);
    std::string frame;
    Put32(stream, frame);
    frame += static_cast<char>(0);
    Put24(static_cast<uint32_t>(piece.size()), frame);
    frame += piece;
    events_.send(std::move(frame));
    bytes.remove_prefix(piece.size());
  }
}

void Spdy::End(uint32_t stream) {
  std::string frame;
  Put32(stream, frame);
  frame += static_cast<char>(kFin);
  Put24(0, frame);
  events_.send(std::move(frame));
}

}  // namespace wavetank::serve
