#include "core/x509/der.h"

#include <cstdio>

#include "core/x509/calendar.h"

namespace wavetank::x509::der {

std::string Tlv(uint8_t tag, std::string_view content) {
  std::string out;
  out.reserve(content.size() + 6);
  out.push_back(static_cast<char>(tag));
  size_t n = content.size();
  if (n < 0x80) {
    out.push_back(static_cast<char>(n));
  } else {
    int octets = 0;
    for (size_t rest = n; rest != 0; rest >>= 8) ++octets;
    out.push_back(static_cast<char>(0x80 | octets));
    for (int i = octets - 1; i >= 0; --i) out.push_back(static_cast<char>(n >> (8 * i)));
  }
  out.append(content);
  return out;
}

std::string Sequence(std::initializer_list<std::string_view> parts) {
  std::string content;
  for (std::string_view part : parts) content.append(part);
  return Tlv(kSequence, content);
}

std::string Set(std::string_view part) { return Tlv(kSet, part); }

std::string Integer(std::string_view magnitude) {
  while (magnitude.size() > 1 && magnitude.front() == 0) magnitude.remove_prefix(1);
  std::string content;
  // A set top bit would read as a negative number.
  if (magnitude.empty() || (static_cast<uint8_t>(magnitude.front()) & 0x80) != 0) content.push_back(0);
  content.append(magnitude);
  return Tlv(kInteger, content);
}

std::string SmallInteger(uint8_t value) {
  const char byte = static_cast<char>(value);
  return Integer({&byte, 1});
}

std::string BitString(std::string_view bytes, uint8_t unused_bits) {
  std::string content(1, static_cast<char>(unused_bits));
  content.append(bytes);
  return Tlv(kBitString, content);
}

std::string OctetString(std::string_view bytes) { return Tlv(kOctetString, bytes); }

std::string DateTime(Time time) {
  const CivilTime t = ToCivil(UnixSeconds(time));
  char text[32];
  if (t.year >= 1950 && t.year < 2050) {
    std::snprintf(text, sizeof text, "%02d%02d%02d%02d%02d%02dZ", t.year % 100, t.month, t.day, t.hour, t.minute,
                  t.second);
    return Tlv(kUtcTime, text);
  }
  std::snprintf(text, sizeof text, "%04d%02d%02d%02d%02d%02dZ", t.year, t.month, t.day, t.hour, t.minute, t.second);
  return Tlv(kGeneralizedTime, text);
}

}  // namespace wavetank::x509::der
