// UTF-16 into UTF-8: how shells of Windows write what a command prints ("kubectl logs ... > istiod.log").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wavetank::importing {

// Of a text that begins with a byte order mark, in pieces of any size.
class Utf16Decoder {
 public:
  explicit Utf16Decoder(bool big_endian) : big_endian_(big_endian) {}
  // What the mark says; nothing: it is no UTF-16.
  static std::optional<Utf16Decoder> Of(std::string_view head);

  // Appends it; the mark itself is left out. What is no character becomes U+FFFD.
  void Feed(std::string_view bytes, std::string* out);
  // At the end: half a character is none.
  void Finish(std::string* out);

 private:
  void Unit(uint16_t unit, std::string* out);

  const bool big_endian_;
  bool begun_ = false;
  std::optional<unsigned char> first_byte_;
  std::optional<uint16_t> high_;  // of a pair, whose low half is still to come
};

}  // namespace wavetank::importing
