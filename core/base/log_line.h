// What a real process would write to its log, told to whoever wants to know. It is no event of a run: nothing follows
// from it, and no digest holds it. Never a key, a token or a Secret's data.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace wavetank {

struct LogLine {
  std::string_view level = "info";
  std::string_view scope = {};  // empty: the default one, whose name is not written
  std::string text;
};

// Empty where nobody listens.
using LogSink = std::function<void(const LogLine&)>;

}  // namespace wavetank
