// Addresses as Go's net/url reads and writes them, where a program in Go decides what is one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavetank {

struct GoUrl {
  std::string scheme;  // in lower case; empty: none was given
  std::string rest;    // all behind it, as String() writes it once there is a scheme: "//host/path?query#fragment"
};

// nullopt if it is none: "10.0.0.1:5000/x" (its first part holds a colon and is no scheme), "%zz". O(text).
std::optional<GoUrl> ParseGoUrl(std::string_view text);

// The path without "//", "." and "..", as Go's net/http writes it before it looks for a page (its cleanPath): "/"
// first, a slash at the end stays. O(path).
std::string CleanPath(std::string_view path);

}  // namespace wavetank
