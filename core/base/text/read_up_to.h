// Bytes of a stream that may never end (a device, a pipe), as many as anybody wants of it.
#pragma once

#include <algorithm>
#include <array>
#include <istream>
#include <string>

namespace wavetank {

// The first `most` bytes, fewer where it ends before. A caller that asks for one byte more than it takes
// learns that there are more.
inline std::string ReadUpTo(std::istream& in, size_t most) {
  std::string out;
  std::array<char, 64 << 10> piece;
  while (out.size() < most) {
    in.read(piece.data(), static_cast<std::streamsize>(std::min(piece.size(), most - out.size())));
    if (in.gcount() <= 0) break;
    out.append(piece.data(), static_cast<size_t>(in.gcount()));
  }
  return out;
}

}  // namespace wavetank
