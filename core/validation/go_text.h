// What Go's packages say of texts that they cannot read, in their words; "" of texts that they can.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank::validation {

// strconv.Quote.
std::string Quoted(std::string_view text);

// netip.ParseAddr, netip.ParsePrefix.
std::string AddressError(const std::string& text);
std::string PrefixError(const std::string& text);

// strconv.Atoi; `value` is set if it is a number. strconv.ParseUint of 32 bits.
std::string NumberError(const std::string& text, int64_t* value);
std::string PortTextError(const std::string& text, uint64_t* value);

// net.SplitHostPort.
struct HostPort {
  std::string host, port, error;
};
HostPort SplitHostPort(const std::string& text);

// net/url.Parse.
struct UrlParts {
  std::string scheme, port, error;  // scheme in lower case; port as it stands there
  std::string host, path;           // host with its port, and neither unescaped
};
UrlParts ParseUrl(const std::string& text);

// regexp.Compile: "error parsing regexp: missing closing ): `a(`".
std::string RegexError(const std::string& text);

}  // namespace wavetank::validation
