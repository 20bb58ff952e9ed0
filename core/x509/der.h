// Writes DER (X.690), the few types that certificates are made of. Private to core/x509.
//
// Certificates are encoded here, not by OpenSSL: OpenSSL 3.0 cannot sign ECDSA deterministically through its
// certificate functions, and this is faster. What is written is always read back by OpenSSL, so an encoding error
// cannot pass.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace wavetank::x509::der {

inline constexpr uint8_t kInteger = 0x02, kBitString = 0x03, kOctetString = 0x04, kOid = 0x06, kUtf8String = 0x0c,
                         kSequence = 0x30, kSet = 0x31, kPrintableString = 0x13, kUtcTime = 0x17,
                         kGeneralizedTime = 0x18, kBoolean = 0x01;
constexpr uint8_t Context(uint8_t n) { return static_cast<uint8_t>(0x80 | n); }
constexpr uint8_t ContextConstructed(uint8_t n) { return static_cast<uint8_t>(0xa0 | n); }

std::string Tlv(uint8_t tag, std::string_view content);
std::string Sequence(std::initializer_list<std::string_view> parts);
std::string Set(std::string_view part);
// A non-negative integer from its big-endian magnitude; leading zeros are dropped.
std::string Integer(std::string_view magnitude);
std::string SmallInteger(uint8_t value);  // value < 128
std::string BitString(std::string_view bytes, uint8_t unused_bits = 0);
std::string OctetString(std::string_view bytes);
// UTCTime until 2049, GeneralizedTime after (RFC 5280, 4.1.2.5).
std::string DateTime(Time time);

// Encoded object identifiers, complete with tag and length.
namespace oid {
using namespace std::string_view_literals;
inline constexpr std::string_view kEcPublicKey = "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"sv;
inline constexpr std::string_view kPrime256v1 = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"sv;
inline constexpr std::string_view kSecp384r1 = "\x06\x05\x2b\x81\x04\x00\x22"sv;
inline constexpr std::string_view kEcdsaWithSha256 = "\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"sv;
inline constexpr std::string_view kEcdsaWithSha384 = "\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03"sv;
inline constexpr std::string_view kSha256WithRsa = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"sv;
inline constexpr std::string_view kOrganization = "\x06\x03\x55\x04\x0a"sv;
inline constexpr std::string_view kCommonName = "\x06\x03\x55\x04\x03"sv;
inline constexpr std::string_view kKeyUsage = "\x06\x03\x55\x1d\x0f"sv;
inline constexpr std::string_view kExtendedKeyUsage = "\x06\x03\x55\x1d\x25"sv;
inline constexpr std::string_view kBasicConstraints = "\x06\x03\x55\x1d\x13"sv;
inline constexpr std::string_view kSubjectKeyId = "\x06\x03\x55\x1d\x0e"sv;
inline constexpr std::string_view kAuthorityKeyId = "\x06\x03\x55\x1d\x23"sv;
inline constexpr std::string_view kSubjectAltName = "\x06\x03\x55\x1d\x11"sv;
inline constexpr std::string_view kServerAuth = "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"sv;
inline constexpr std::string_view kClientAuth = "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02"sv;
inline constexpr std::string_view kExtensionRequest = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e"sv;
}  // namespace oid

}  // namespace wavetank::x509::der
