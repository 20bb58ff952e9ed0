// Variable-length integers and texts, as trace blocks hold them. Reading never goes past the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank::replay {

inline void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Small magnitudes of either sign stay short.
constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

inline void PutText(std::string& out, std::string_view text) {
  PutVarint(out, text.size());
  out += text;
}

class WireReader {
 public:
  explicit WireReader(std::string_view bytes, size_t offset = 0) : bytes_(bytes), offset_(offset) {}

  bool Varint(uint64_t* value) {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (offset_ >= bytes_.size()) return false;
      const auto byte = static_cast<unsigned char>(bytes_[offset_++]);
      if (shift == 63 && byte > 1) return false;  // more than 64 bits
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  bool Signed(int64_t* value) {
    uint64_t raw = 0;
    if (!Varint(&raw)) return false;
    *value = UnZigZag(raw);
    return true;
  }

  bool Fixed32(uint32_t* value) {
    if (left() < 4) return false;
    *value = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      *value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes_[offset_++])) << shift;
    }
    return true;
  }

  bool Text(std::string_view* text) {
    uint64_t size = 0;
    if (!Varint(&size) || size > left()) return false;
    *text = bytes_.substr(offset_, size);
    offset_ += size;
    return true;
  }

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }

 private:
  std::string_view bytes_;
  size_t offset_;
};

inline void PutFixed32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

}  // namespace wavetank::replay
