// Assertions: what holds whatever comes from outside. They are on in every build that users run.
//
//   WAVETANK_ASSERT(delay >= Duration::zero(), delay, now_);
//
// One that fails is a defect of this program, never bad input. It prints file, line, expression, the values named
// behind the condition, virtual time and the line that leads there again, has the event log written as far as it goes,
// and aborts. State the invariant that a reader needs; one condition each, so that the message says which.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/run_context.h"
#include "core/base/time.h"

namespace wavetank::assertion {

struct Place {
  const char* file;
  int line;
  const char* condition;
  const char* values;  // their expressions, with commas between
};

inline std::string Shown(Duration value) { return std::to_string(value.count()) + " ns"; }
inline std::string Shown(Time value) { return Shown(value.time_since_epoch()); }
inline std::string Shown(bool value) { return value ? "true" : "false"; }
inline std::string Shown(const void* value) { return value == nullptr ? "null" : "not null"; }  // addresses differ
inline std::string Shown(std::string_view value) { return "'" + std::string(value.substr(0, 200)) + "'"; }
template <class T>
requires std::is_arithmetic_v<T> std::string Shown(T value) { return std::to_string(value); }
template <class T>
requires std::is_enum_v<T> std::string Shown(T value) { return std::to_string(static_cast<long long>(value)); }

// `shown`: the values, in the order of their expressions.
[[noreturn]] void Fail(const Place& place, const std::string* shown, size_t count);

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void FailWith(const Place& place, const Values&... values) {
  const std::array<std::string, sizeof...(Values)> shown{Shown(values)...};
  Fail(place, shown.data(), shown.size());
}

}  // namespace wavetank::assertion

#if !defined(WAVETANK_NO_ASSERTIONS)  // defined only to measure what they cost (docs/performance.md)
#define WAVETANK_ASSERT(condition, ...)                                                                              \
  do {                                                                                                               \
    if (!(condition)) [[unlikely]] {                                                                                 \
      ::wavetank::assertion::FailWith({__FILE__, __LINE__, #condition, "" #__VA_ARGS__} __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                                \
  } while (false)
#else
#define WAVETANK_ASSERT(condition, ...) \
  do {                                  \
    if (false) (void)(condition);       \
  } while (false)
#endif

// For what a measurement has shown to be too dear in a build for users: on in Debug builds and under sanitizers.
#if defined(WAVETANK_DEBUG_ASSERTIONS) || !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#define WAVETANK_DEBUG_ASSERT(condition, ...) WAVETANK_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define WAVETANK_DEBUG_ASSERT(condition, ...) \
  do {                                        \
    (void)sizeof(!(condition));               \
  } while (false)
#endif
