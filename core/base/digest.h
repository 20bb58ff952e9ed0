// The digest of a trace: XXH3-128 over every record in a canonical encoding, names as text. Two runs with the same
// digest did the same things at the same times for the same reasons.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/base/trace.h"

namespace wavetank {

class TraceDigest {
 public:
  TraceDigest();
  ~TraceDigest();

  // `inputs`: of the record's cause, sorted.
  void Add(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
           const std::vector<uint64_t>& inputs);

  // The own hash of the record that was added last: Hash() of the same.
  uint64_t LastHash() const;
  // A record's own hash, apart from any digest.
  static uint64_t Hash(Time time, const TraceRecord& record, std::string_view subject, std::string_view object,
                       const std::vector<uint64_t>& inputs);

  std::string Hex() const;  // 32 lower-case digits; does not end the digest
  uint64_t records() const { return records_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  uint64_t records_ = 0;
};

}  // namespace wavetank
