#include "core/x509/names.h"

#include <arpa/inet.h>

#include "core/x509/der.h"

namespace wavetank::x509 {
namespace {

std::string Attribute(std::string_view oid, std::string_view value) {
  return der::Set(der::Sequence({oid, der::Tlv(der::kUtf8String, value)}));
}

// The 4 or 16 octets of an IP address, empty if `text` is none.
std::string ParseIp(const std::string& text) {
  unsigned char buffer[16];
  if (inet_pton(AF_INET, text.c_str(), buffer) == 1) return std::string(reinterpret_cast<char*>(buffer), 4);
  if (inet_pton(AF_INET6, text.c_str(), buffer) == 1) return std::string(reinterpret_cast<char*>(buffer), 16);
  return {};
}

std::string IpText(const std::string& octets) {
  char buffer[INET6_ADDRSTRLEN] = {};
  inet_ntop(octets.size() == 4 ? AF_INET : AF_INET6, octets.data(), buffer, sizeof buffer);
  return buffer;
}

std::string Text(const ASN1_STRING* s) {
  unsigned char* utf8 = nullptr;
  const int n = ASN1_STRING_to_UTF8(&utf8, s);
  if (n < 0) {
    ERR_clear_error();
    return {};
  }
  std::string out(reinterpret_cast<char*>(utf8), static_cast<size_t>(n));
  OPENSSL_free(utf8);
  return out;
}

}  // namespace

std::string EncodeName(const Subject& subject) {
  std::string content;
  for (const std::string& organization : subject.organizations) {
    content += Attribute(der::oid::kOrganization, organization);
  }
  if (!subject.common_name.empty()) content += Attribute(der::oid::kCommonName, subject.common_name);
  return der::Tlv(der::kSequence, content);
}

Subject ReadName(const X509_NAME* name) {
  Subject out;
  for (int i = 0; i < X509_NAME_entry_count(name); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(name, i);
    const int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_commonName) out.common_name = Text(X509_NAME_ENTRY_get_data(entry));
    if (nid == NID_organizationName) out.organizations.push_back(Text(X509_NAME_ENTRY_get_data(entry)));
  }
  return out;
}

std::string NameText(const X509_NAME* name) {
  ossl::Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0,
                     (ASN1_STRFLGS_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB)) |
                         XN_FLAG_SEP_CPLUS_SPC | XN_FLAG_FN_SN);
  char* data = nullptr;
  const long n = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(n));
}

std::string NameText(std::string_view name_der) {
  if (name_der.size() <= 2) return {};  // an empty sequence
  const unsigned char* p = ossl::Bytes(name_der);
  X509_NAME* name = d2i_X509_NAME(nullptr, &p, static_cast<long>(name_der.size()));
  if (name == nullptr) return {};
  std::string out = NameText(name);
  X509_NAME_free(name);
  return out;
}

std::string EncodeExtension(std::string_view oid, bool critical, std::string_view value) {
  static const std::string kTrue = der::Tlv(der::kBoolean, "\xff");
  return der::Sequence({oid, critical ? std::string_view(kTrue) : std::string_view(), der::OctetString(value)});
}

SubjectAltNames SortSans(const std::vector<std::string>& sans) {
  SubjectAltNames out;
  for (const std::string& san : sans) {
    if (const std::string ip = ParseIp(san); !ip.empty()) {
      out.ip_addresses.push_back(IpText(ip));
    } else if (san.starts_with("spiffe://")) {
      out.uris.push_back(san);
    } else {
      out.dns_names.push_back(san);
    }
  }
  return out;
}

std::string EncodeSans(const std::vector<std::string>& sans) {
  std::string names;
  for (const std::string& san : sans) {
    if (const std::string ip = ParseIp(san); !ip.empty()) {
      names += der::Tlv(der::Context(7), ip);
    } else {
      names += der::Tlv(der::Context(san.starts_with("spiffe://") ? 6 : 2), san);
    }
  }
  return EncodeExtension(der::oid::kSubjectAltName, true, der::Tlv(der::kSequence, names));
}

bool ReadSans(const GENERAL_NAMES* names, SubjectAltNames& out) {
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    if (type != GEN_URI && type != GEN_DNS && type != GEN_IPADD) continue;
    const auto* string = static_cast<const ASN1_STRING*>(value);
    const std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
                           static_cast<size_t>(ASN1_STRING_length(string)));
    if (type == GEN_IPADD) {
      if (text.size() != 4 && text.size() != 16) return false;
      out.ip_addresses.push_back(IpText(text));
      continue;
    }
    for (char c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) return false;
    }
    (type == GEN_URI ? out.uris : out.dns_names).push_back(text);
  }
  return true;
}

}  // namespace wavetank::x509
