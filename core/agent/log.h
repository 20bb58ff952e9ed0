// What the agent says, in pilot-agent's words: a level, the scope that speaks, a text. Drivers print it, or keep it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace wavetank::agent {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };

// Empty: nobody listens. No key and no token is ever in a text.
using Log = std::function<void(Level level, std::string_view scope, std::string_view text)>;

inline void Say(const Log& log, Level level, std::string_view scope, std::string_view text) {
  if (log) log(level, scope, text);
}

// As Istio's logger prints it to a terminal: "2023-09-01T00:00:00.000000Z\tinfo\tcache\ttext"; the default scope has no
// name (istio.io/pkg/log).
std::string LogLine(Time time, Level level, std::string_view scope, std::string_view text);

}  // namespace wavetank::agent
