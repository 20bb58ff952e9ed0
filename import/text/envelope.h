// What collectors put around a line of a container's log: the container runtime's file format (CRI), Docker's JSON,
// `kubectl logs --prefix` and `--timestamps`, the colours of a terminal.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace wavetank::importing {

struct Unwrapped {
  std::string_view line;
  std::string_view pod;             // as kubectl's prefix names it; empty if it does not
  bool complete = true;             // false: the runtime cut the line here, and its rest follows
  std::string_view container = {};  // as the same prefix names it
};

// One per file: pieces of a line that a runtime cut ("P") are put together here, for each stream of the container.
class Envelope {
 public:
  // The result is valid until the next call. Not complete: to be dropped, the whole line comes with its last piece.
  // O(line).
  Unwrapped Unwrap(std::string_view line);
  // Lines of which the file holds the beginning alone, so far.
  size_t Cut() const { return pieces_.size(); }

 private:
  Unwrapped Piece(std::string_view stream, bool last, std::string_view text);

  std::map<std::string, std::string, std::less<>> pieces_;  // by stream
  std::string text_, uncoloured_;
};

// A line without what `kubectl logs --prefix` puts before it: "[pod/istiod-7d4f/discovery] ".
std::string_view WithoutPodPrefix(std::string_view line);

}  // namespace wavetank::importing
