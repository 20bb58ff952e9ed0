// An answer that goes on: lines that come while something happens (a watch, a log that is followed).
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace wavetank::fakekube::http {

using Line = std::shared_ptr<const std::string>;

// On the store's thread only, its end included.
class LineStream {
 public:
  virtual ~LineStream() = default;

  // `write` gets each line, or several at once; `end` is called at most once when nothing follows. Both also from
  // inside Start().
  virtual void Start(std::function<void(Line)> write, std::function<void()> end) = 0;

  // A line that carries nothing but the present version: of what has Response::watch_bookmarks.
  virtual Line Bookmark() const { return nullptr; }
};

}  // namespace wavetank::fakekube::http
