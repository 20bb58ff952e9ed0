#include "core/x509/openssl.h"

namespace wavetank::x509::ossl {

std::optional<PemBlock> NextPemBlock(std::string_view& text, bool& malformed) {
  malformed = false;
  const size_t begin = text.find("-----BEGIN ");
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(begin);
  const size_t end_line = rest.find("-----END ");
  const size_t end = end_line == std::string_view::npos ? std::string_view::npos : rest.find("-----", end_line + 9);
  if (end == std::string_view::npos) {
    malformed = true;
    text = {};
    return std::nullopt;
  }
  const std::string block(rest.substr(0, end + 5));
  text = rest.substr(end + 5);
  Bio bio(BIO_new_mem_buf(block.data(), static_cast<int>(block.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long length = 0;
  if (PEM_read_bio(bio.get(), &name, &header, &data, &length) != 1) {
    ERR_clear_error();
    malformed = true;
    return std::nullopt;
  }
  PemBlock out{name, header, std::string(reinterpret_cast<char*>(data), static_cast<size_t>(length))};
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_clear_free(data, static_cast<size_t>(length));
  return out;
}

std::string EncodePem(std::string_view label, std::string_view der) {
  std::string out = "-----BEGIN " + std::string(label) + "-----\n";
  std::string base64(4 * ((der.size() + 2) / 3) + 1, '\0');
  base64.resize(static_cast<size_t>(EVP_EncodeBlock(Bytes(base64), Bytes(der), static_cast<int>(der.size()))));
  for (size_t i = 0; i < base64.size(); i += 64) {
    out.append(base64, i, 64);
    out.push_back('\n');
  }
  out += "-----END " + std::string(label) + "-----\n";
  return out;
}

}  // namespace wavetank::x509::ossl
