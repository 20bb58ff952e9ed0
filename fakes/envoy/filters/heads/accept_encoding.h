// Which encoding of those that a chain's compressors offer a client wants: the header accept-encoding.
// Envoy: source/extensions/filters/http/compressor/compressor_filter.cc, chooseEncoding
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::envoysim {

struct EncodingChoice {
  enum class Why { kCompressor, kIdentity, kWildcard, kNotValid };
  std::string encoding = "identity";
  Why why = Why::kNotValid;
};

struct OfferedEncoding {
  std::string encoding;
  bool choose_first = false;  // of several that a client likes as much
};

// `offered`: in the order of their filters' registration.
EncodingChoice ChooseEncoding(std::string_view accepted, std::vector<OfferedEncoding> offered);

}  // namespace wavetank::envoysim
