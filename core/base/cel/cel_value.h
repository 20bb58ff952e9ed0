// Values of the Common Expression Language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/base/cel/cel_tree.h"

namespace wavetank::cel {

// An operation that failed, or something that is not there.
struct CelError {
  std::string why = "no such overload";  // in cel-go's words
};
struct CelType {
  std::string_view name;
};
class CelMap;
struct CelValue;
using CelList = std::vector<CelValue>;

struct CelValue {
  std::variant<CelError, CelNull, bool, int64_t, uint64_t, double, std::string, CelBytes, absl::Duration, absl::Time,
               CelType, std::shared_ptr<const CelList>, std::shared_ptr<const CelMap>>
      is;

  template <class T>
  const T* As() const {
    return std::get_if<T>(&is);
  }
  bool failed() const { return std::holds_alternative<CelError>(is); }
};

inline CelValue CelText(std::string_view text) { return {std::string(text)}; }
inline CelValue CelFailure(std::string why) { return {CelError{std::move(why)}}; }
inline CelValue CelNoSuchKey(std::string_view key) { return CelFailure("no such key: " + std::string(key)); }

// What has fields, or keys.
class CelMap {
 public:
  virtual ~CelMap() = default;
  virtual CelValue Get(const CelValue& key) const = 0;       // CelError: it has none
  virtual std::optional<int64_t> size() const = 0;           // nothing: nobody knows here
  virtual std::vector<CelValue> Keys() const { return {}; }  // in order
};

}  // namespace wavetank::cel
