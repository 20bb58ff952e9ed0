// One callback after several: what waits until all of them have been called.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace wavetank {

// The result is to be called `count` times (at least once); the last of them calls `then`.
inline std::function<void()> AfterCalls(size_t count, std::function<void()> then) {
  return [left = std::make_shared<size_t>(count), then = std::move(then)] {
    if (--*left == 0) then();
  };
}

}  // namespace wavetank
