// What can fail without throwing: nothing in this library throws.
/// \file
/// What can fail without throwing: nothing in this library throws.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace wavetank {

/// Why something could not be done, in one sentence with the place and what to do.
struct Error {
  std::string message;
};

/// A value, or why there is none.
/// \code
/// wavetank::Result<wavetank::World> world = wavetank::World::Open(mesh);
/// if (!world.ok()) return Complain(world.error());
/// \endcode
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}      // NOLINT: either of them is a result
  Result(Error error) : held_(std::move(error)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// Empty if it is ok.
  const std::string& error() const {
    static const std::string* const none = new std::string();
    return ok() ? *none : std::get_if<1>(&held_)->message;
  }
  /// Only if ok(): otherwise the program ends.
  T& operator*() & { return *Get(); }
  const T& operator*() const& { return *const_cast<Result*>(this)->Get(); }
  /// A value of its own, so that `for (auto& each : *world->Endpoints())` walks what still lives.
  T operator*() && { return std::move(*Get()); }
  T* operator->() { return Get(); }
  const T* operator->() const { return const_cast<Result*>(this)->Get(); }

 private:
  T* Get() {
    T* const value = std::get_if<0>(&held_);
    if (value == nullptr) __builtin_trap();
    return value;
  }

  std::variant<T, Error> held_;
};

struct Nothing {};
/// Of what answers nothing but that it was done.
using Status = Result<Nothing>;

}  // namespace wavetank
