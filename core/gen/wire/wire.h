// Writes protobuf's wire format straight into a string, for resources that are built too often to be built twice (once
// as message objects, once as bytes). Field numbers come from the generated classes (Route::kMatchFieldNumber).
//
// What has been written is one valid encoding, the same bytes for the same calls. Appending an already encoded message
// to another of the same type merges them, as the format promises: constant parts are encoded once and reused.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace wavetank::pilot::wire {

// The two fields of an entry of any map.
inline constexpr int kMapKey = 1, kMapValue = 2;

class Writer {
 public:
  explicit Writer(std::string* out) : out_(out) {}

  // Scalars; a proto3 scalar outside an optional or a oneof is to be left out by the caller when it has its default.
  void Varint(int field, uint64_t value) {
    Tag(field, 0);
    RawVarint(value);
  }
  void Bool(int field, bool value) { Varint(field, value ? 1 : 0); }
  void Double(int field, double value) {
    Tag(field, 1);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);  // little-endian hosts only, as the rest of the project
    out_->append(raw, sizeof raw);
  }
  // Strings, bytes and messages that are encoded already.
  void Bytes(int field, std::string_view value) {
    Tag(field, 2);
    RawVarint(value.size());
    out_->append(value);
  }
  void NonEmpty(int field, std::string_view value) {
    if (!value.empty()) Bytes(field, value);
  }
  // One string, of several parts.
  void Joined(int field, std::initializer_list<std::string_view> parts) {
    size_t length = 0;
    for (std::string_view part : parts) length += part.size();
    Header(field, length);
    for (std::string_view part : parts) Append(part);
  }
  template <typename Strings>
  void Repeated(int field, const Strings& values) {
    for (const auto& value : values) Bytes(field, value);
  }
  // A message field whose fields `body` writes, with this same writer. Costs one move of the body when that is longer
  // than 127 bytes.
  template <typename Body>
  void Message(int field, Body&& body) {
    Tag(field, 2);
    const size_t length_at = out_->size();
    out_->push_back('\0');
    body();
    CloseMessage(length_at);
  }

  // The wrappers of google/protobuf/wrappers.proto: one field, number 1; left out inside when it has its default.
  void UInt32Value(int field, uint32_t value) {
    Message(field, [&] {
      if (value != 0) Varint(1, value);
    });
  }
  void BoolValue(int field, bool value) {
    Message(field, [&] {
      if (value) Varint(1, 1);
    });
  }
  // google.protobuf.Duration.
  void Duration(int field, int64_t nanoseconds) {
    Message(field, [&] {
      const int64_t seconds = nanoseconds / 1'000'000'000;
      const int64_t rest = nanoseconds % 1'000'000'000;
      if (seconds != 0) Varint(1, static_cast<uint64_t>(seconds));
      if (rest != 0) Varint(2, static_cast<uint64_t>(rest));
    });
  }
  // google.protobuf.Any.
  void Any(int field, std::string_view type_url, std::string_view value) {
    Message(field, [&] {
      Bytes(1, type_url);
      NonEmpty(2, value);
    });
  }

  // Opens a message field whose encoded length is known: the caller appends exactly that much.
  void Header(int field, size_t length) {
    Tag(field, 2);
    RawVarint(length);
  }
  // Fields of the current message, encoded before.
  void Append(std::string_view encoded) { out_->append(encoded); }

 private:
  void Tag(int field, int type) { RawVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type)); }
  void RawVarint(uint64_t value) {
    char raw[10];
    size_t n = 0;
    while (value >= 0x80) {
      raw[n++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    raw[n++] = static_cast<char>(value);
    out_->append(raw, n);
  }
  void CloseMessage(size_t length_at) {
    uint64_t length = out_->size() - length_at - 1;
    if (length < 0x80) {
      (*out_)[length_at] = static_cast<char>(length);
      return;
    }
    char raw[10];
    size_t n = 0;
    while (length >= 0x80) {
      raw[n++] = static_cast<char>(length | 0x80);
      length >>= 7;
    }
    raw[n++] = static_cast<char>(length);
    out_->replace(length_at, 1, raw, n);
  }

  std::string* out_;
};

// The same format from its end to its beginning, fields last to first: a message's length is known when its tag is due,
// so that nothing moves and nothing is counted beforehand. For resources with many small messages in each other. The
// buffer belongs to the caller, and serves for one message after the other.
class ReverseWriter {
 public:
  explicit ReverseWriter(std::string* buffer) : buffer_(buffer), at_(buffer->size()) {}

  std::string_view written() const { return std::string_view(*buffer_).substr(at_); }

  // Makes room for `bytes` more. The calls below need it; `kField` covers one of them without its strings.
  static constexpr size_t kField = 20;
  void Reserve(size_t bytes) {
    if (bytes > at_) Grow(bytes);
  }

  void Varint(int field, uint64_t value) {
    RawVarint(value);
    RawVarint(static_cast<uint64_t>(field) << 3);
  }
  void Bytes(int field, std::string_view value) {
    Append(value);
    Close(field, value.size());
  }
  void NonEmpty(int field, std::string_view value) {
    if (!value.empty()) Bytes(field, value);
  }
  template <typename Body>
  void Message(int field, Body&& body) {
    const size_t end = buffer_->size() - at_;  // counted from the end, as the buffer may grow
    body();
    Close(field, buffer_->size() - at_ - end);
  }
  void UInt32Value(int field, uint32_t value) {
    Message(field, [&] {
      if (value != 0) Varint(1, value);
    });
  }
  void Append(std::string_view encoded) {
    at_ -= encoded.size();
    std::memcpy(buffer_->data() + at_, encoded.data(), encoded.size());
  }

 private:
  void Close(int field, size_t length) {
    RawVarint(length);
    RawVarint(static_cast<uint64_t>(field) << 3 | 2);
  }
  void RawVarint(uint64_t value) {
    size_t n = 1;
    for (uint64_t rest = value >> 7; rest != 0; rest >>= 7) ++n;
    at_ -= n;
    char* to = buffer_->data() + at_;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to = static_cast<char>(value);
  }
  void Grow(size_t bytes) {
    const size_t used = buffer_->size() - at_, size = 2 * (buffer_->size() + bytes);
    std::string larger(size, '\0');
    std::memcpy(larger.data() + size - used, buffer_->data() + at_, used);
    *buffer_ = std::move(larger);
    at_ = size - used;
  }

  std::string* buffer_;  // what is written stands at its end
  size_t at_;
};

// Encodes what `body` writes.
template <typename Body>
std::string Encode(Body&& body) {
  std::string out;
  constexpr size_t kUsual = 240;
  out.reserve(kUsual);
  Writer writer(&out);
  body(writer);
  return out;
}

}  // namespace wavetank::pilot::wire
