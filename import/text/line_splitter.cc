#include "import/text/line_splitter.h"

#include <algorithm>
#include <cstring>

namespace wavetank::importing {

void LineSplitter::Give(std::string_view line, bool cut) {
  if (line.size() > kMaxLine) line = line.substr(0, kMaxLine), cut = true;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  sink_(line, ++number_, cut);
}

void LineSplitter::Feed(std::string_view chunk) {
  while (!chunk.empty()) {
    const void* const end = std::memchr(chunk.data(), '\n', chunk.size());
    const size_t length = end == nullptr ? chunk.size() : static_cast<const char*>(end) - chunk.data();
    const std::string_view piece = chunk.substr(0, length);
    if (end != nullptr && held_.empty() && !cut_) {
      Give(piece, false);
    } else {
      const size_t room = kMaxLine - held_.size();
      held_.append(piece.substr(0, room));
      cut_ = cut_ || piece.size() > room;
      if (end != nullptr) {
        Give(held_, cut_);
        held_.clear();
        cut_ = false;
      }
    }
    chunk.remove_prefix(std::min(chunk.size(), length + (end == nullptr ? 0 : 1)));
  }
}

bool LineSplitter::Finish() {
  if (held_.empty() && !cut_) return false;
  Give(held_, cut_);
  held_.clear();
  cut_ = false;
  return true;
}

}  // namespace wavetank::importing
