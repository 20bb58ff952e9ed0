// What a real process would write to its log, told to whoever wants to know. It is no event of a run: nothing follows
// from it, and no digest holds it. Never a key, a token or a Secret's data.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace wavetank {

struct LogLine {
  std::string_view level = "info";
  std::string_view scope = {};  // empty: the default one, whose name is not written
  std::string text;
};

// False where nobody listens now: to make a line costs more than to tell it.
class LogSink {
 public:
  LogSink() = default;
  // `listens`: whether anybody does; without it somebody always does.
  template <class Tell>
  LogSink(Tell tell, std::function<bool()> listens = nullptr) : tell_(std::move(tell)), listens_(std::move(listens)) {}

  explicit operator bool() const { return tell_ != nullptr && (listens_ == nullptr || listens_()); }
  void operator()(const LogLine& line) const {
    if (*this) tell_(line);
  }

 private:
  std::function<void(const LogLine&)> tell_;
  std::function<bool()> listens_;
};

}  // namespace wavetank
