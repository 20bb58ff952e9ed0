// Bytes into lines, at the speed of memchr, in bounded memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace wavetank::importing {

// Longer lines are cut: a line of 100 MB is no line of a log.
inline constexpr size_t kMaxLine = 1 << 20;

class LineSplitter {
 public:
  // `line` without its end; valid during the call only. `cut`: there was more of it. `whole`: its end was there.
  using Sink = std::function<void(std::string_view line, uint64_t number, bool cut)>;
  explicit LineSplitter(Sink sink) : sink_(std::move(sink)) {}

  void Feed(std::string_view chunk);
  // The last line, if its end is missing. True: it was.
  bool Finish();
  uint64_t lines() const { return number_; }

 private:
  void Give(std::string_view line, bool cut);

  Sink sink_;
  std::string held_;  // the beginning of a line
  bool cut_ = false;  // more of it than is held
  uint64_t number_ = 0;
};

// The first line of a text that is there as a whole, without its end; the text goes on behind it.
inline std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace wavetank::importing
