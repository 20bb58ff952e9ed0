// Paths made canonical before anything looks at them.
// Envoy: source/common/http/path_utility.cc, conn_manager_utility.cc (maybeNormalizePath)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank::envoysim {

struct PathNormalisation {
  // HttpConnectionManager.PathWithEscapedSlashesAction
  enum class EscapedSlashes : uint8_t { kKeep, kReject, kRedirect, kForward };
  bool normalise = false, merge_slashes = false;
  EscapedSlashes escaped = EscapedSlashes::kKeep;

  bool empty() const { return !normalise && !merge_slashes && escaped == EscapedSlashes::kKeep; }
  enum class Verdict : uint8_t { kGoOn, kReject, kRedirect };
  // Changes *path, query and all.
  Verdict Apply(std::string* path) const;
};

// A path without its query: dot segments resolved, unreserved characters unescaped, backslashes turned. False: it is
// none that can be made canonical.
bool CanonicalPath(std::string* path);

}  // namespace wavetank::envoysim
