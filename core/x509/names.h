// Names and extensions as they stand in certificates and in signing requests. Private to core/x509.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/x509/openssl.h"
#include "core/x509/x509.h"

namespace wavetank::x509 {

// Name (RFC 5280), DER: organizations, then the common name.
std::string EncodeName(const Subject& subject);
Subject ReadName(const X509_NAME* name);
std::string NameText(const X509_NAME* name);
std::string NameText(std::string_view name_der);

std::string EncodeExtension(std::string_view oid, bool critical, std::string_view value);
// A critical subjectAltName extension. istiod: security/pkg/pki/util/san.go, BuildSubjectAltNameExtension.
std::string EncodeSans(const std::vector<std::string>& sans);
// What EncodeSans makes of each.
SubjectAltNames SortSans(const std::vector<std::string>& sans);
// False when a name holds a byte that no name may hold (NUL would let "a\0b" pass for "a").
bool ReadSans(const GENERAL_NAMES* names, SubjectAltNames& out);

}  // namespace wavetank::x509
