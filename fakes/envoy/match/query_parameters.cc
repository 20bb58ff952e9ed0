#include "fakes/envoy/match/query_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/text/percent.h"

namespace wavetank::envoysim {

QueryParameters QueryParametersOf(std::string_view path) {
  QueryParameters out;
  const size_t question = path.find('?');
  std::string_view rest = question == path.npos ? std::string_view() : path.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    out[PercentDecodedLoosely(pair.substr(0, equals))].push_back(
        PercentDecodedLoosely(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return out;
}

std::string WithQueryParameters(std::string_view path, const QueryParameters& parameters) {
  std::string out(path.substr(0, path.find('?')));
  char before = '?';
  for (const auto& [name, values] : parameters) {
    for (const std::string& value : values) {
      out.append(1, std::exchange(before, '&')).append(name).append("=").append(value);
    }
  }
  return out;
}

std::string EncodedForQuery(std::string_view value) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '*') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace wavetank::envoysim
