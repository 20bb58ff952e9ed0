// One file of logs: an istiod's, a proxy's, or several of both, as kubectl's `--prefix` and cluster-info dump put them
// into one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/access/access_format.h"
#include "import/evidence/traffic.h"
#include "import/sources/source.h"

namespace wavetank::importing {

// Whose lines a file holds, where neither its path nor its lines' prefixes say so.
enum class LogKind : uint8_t { kNone, kIstiod, kProxy };
// `path`: with the folders above it, as far as they are known.
LogKind KindOfLog(const std::string& path, std::string_view head, const std::vector<AccessFormat>& formats);

struct LogReading {
  const std::vector<AccessFormat>& formats;  // given ones first
  Evidence& evidence;
  Traffic& traffic;
  uint64_t& own_lines;           // of proxies: what is no access log
  uint64_t& other_lines;         // of containers that are neither istiod nor proxy
  std::set<std::string>& dated;  // replicas whose clock was told
};

// `path`: as for KindOfLog; `name`: for people. `cluster`: of the source, if it was named. `skew`: added to all times,
// if it was told.
void ReadLogFile(LogKind kind, const std::string& path, const std::string& name, const std::string& cluster,
                 std::optional<WallNs> skew, PeekableStream& bytes, LogReading into);

}  // namespace wavetank::importing
