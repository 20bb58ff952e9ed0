#include "import/sources/utf16.h"

#include <cstdint>

namespace wavetank::importing {
namespace {

constexpr uint32_t kReplacement = 0xfffd, kByteOrderMark = 0xfeff;

void Append(uint32_t character, std::string* out) {
  const auto push = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (character < 0x80) return push(character);
  if (character < 0x800) {
    push(0xc0 | character >> 6);
    return push(0x80 | (character & 0x3f));
  }
  if (character < 0x10000) {
    push(0xe0 | character >> 12);
  } else {
    push(0xf0 | character >> 18);
    push(0x80 | (character >> 12 & 0x3f));
  }
  push(0x80 | (character >> 6 & 0x3f));
  push(0x80 | (character & 0x3f));
}

}  // namespace

std::optional<Utf16Decoder> Utf16Decoder::Of(std::string_view head) {
  if (head.starts_with("\xff\xfe")) return Utf16Decoder(false);
  if (head.starts_with("\xfe\xff")) return Utf16Decoder(true);
  // Without a mark: ASCII, of which every other byte is zero.
  constexpr size_t kSeen = 32;
  if (head.size() < kSeen) return std::nullopt;
  for (const size_t zero : {size_t{1}, size_t{0}}) {
    bool all = true;
    for (size_t i = 0; i < kSeen && all; ++i) {
      const auto byte = static_cast<unsigned char>(head[i]);
      all = i % 2 == zero ? byte == 0 : byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r';
    }
    if (all) return Utf16Decoder(zero == 0);
  }
  return std::nullopt;
}

void Utf16Decoder::Feed(std::string_view bytes, std::string* out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!first_byte_) {
      first_byte_ = byte;
      continue;
    }
    const unsigned high = big_endian_ ? *first_byte_ : byte, low = big_endian_ ? byte : *first_byte_;
    first_byte_.reset();
    Unit(static_cast<uint16_t>(high << 8 | low), out);
  }
}

void Utf16Decoder::Unit(uint16_t unit, std::string* out) {
  if (!begun_) {
    begun_ = true;
    if (unit == kByteOrderMark) return;
  }
  const bool low_half = unit >= 0xdc00 && unit < 0xe000;
  if (high_ && low_half) {
    Append(0x10000 + ((*high_ - 0xd800u) << 10) + (unit - 0xdc00u), out);
    high_.reset();
    return;
  }
  if (high_) Append(kReplacement, out);
  high_.reset();
  if (unit >= 0xd800 && unit < 0xdc00) {
    high_ = unit;
  } else {
    Append(low_half ? kReplacement : unit, out);
  }
}

void Utf16Decoder::Finish(std::string* out) {
  if (high_ || first_byte_) Append(kReplacement, out);
  high_.reset();
  first_byte_.reset();
}

}  // namespace wavetank::importing
