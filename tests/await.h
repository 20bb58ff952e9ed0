// Real time in tests: the only file that sleeps (tests/architecture_test.cc holds it). What is simulated needs none of
// it.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

namespace wavetank {

// Waits for what another thread or process does: asks `fn` again every few milliseconds until it says true. False after
// a minute, so that a test that waits in vain fails by its own words instead of by a time limit.
template <class Fn>
bool Await(Fn&& fn, std::chrono::milliseconds every = std::chrono::milliseconds(5)) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!std::forward<Fn>(fn)()) {
    if (std::chrono::steady_clock::now() >= patience) return false;
    std::this_thread::sleep_for(every);
  }
  return true;
}

// Lets real time pass where time itself is what a test is about: a loop that follows the clock, a slow reader, a writer
// at a pace, a thing that must stay as it is. Never to wait for something: that is Await.
inline void LetTimePass(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }

}  // namespace wavetank
