// What is known of the run that a thread is busy with: an assertion that fails tells it, and gives those a last word
// who keep something of the run (an event log).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <utility>

#include "core/base/time.h"

namespace wavetank::assertion {

class RunContext {
 public:
  // Writes what must not be lost, and returns a line about it for people; empty if there is nothing to say.
  using LastWord = std::function<std::string()>;

  // `now` is read when an assertion fails, and must live as long as this.
  RunContext(const Time& now, uint64_t seed) : now_(now), seed_(seed) {}
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  Time now() const { return now_; }
  uint64_t seed() const { return seed_; }
  // A command that does the run again; empty if nothing but the seed is known.
  const std::string& reproduce() const { return reproduce_; }
  void set_reproduce(std::string command) { reproduce_ = std::move(command); }

  // Its last word is asked for as long as this stands. The context must outlive it.
  class Registration {
   public:
    Registration() = default;
    Registration(RunContext& of, LastWord word) : of_(&of), at_(of.words_.insert(of.words_.end(), std::move(word))) {}
    Registration(Registration&& other) noexcept : of_(std::exchange(other.of_, nullptr)), at_(other.at_) {}
    Registration& operator=(Registration&& other) noexcept {
      Drop();
      of_ = std::exchange(other.of_, nullptr);
      at_ = other.at_;
      return *this;
    }
    ~Registration() { Drop(); }
    void Drop() {
      if (of_ != nullptr) of_->words_.erase(at_);
      of_ = nullptr;
    }

   private:
    RunContext* of_ = nullptr;
    std::list<LastWord>::iterator at_;
  };

  const std::list<LastWord>& last_words() const { return words_; }

 private:
  const Time& now_;
  const uint64_t seed_;
  std::string reproduce_;
  std::list<LastWord> words_;
};

// The run that this thread is busy with; null outside of any. Assertions that fail read it, and points of buggify
// (core/base/buggify), which stay silent unless an input of that very run has switched them on: no other result can
// depend on it.
inline constinit thread_local RunContext* current_run = nullptr;

class ScopedRun {
 public:
  explicit ScopedRun(RunContext& run) : before_(std::exchange(current_run, &run)) {}
  ~ScopedRun() { current_run = before_; }
  ScopedRun(const ScopedRun&) = delete;
  ScopedRun& operator=(const ScopedRun&) = delete;

 private:
  RunContext* before_;
};

}  // namespace wavetank::assertion
