// What this thread made last, by its bytes: a reader in the same process gets it without OpenSSL, which
// takes longer to read a certificate or a request than it takes to make one. Private to core/x509.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wavetank::x509 {

// Bounded: when `kMost` are kept, all are forgotten.
template <class Made>
class MadeHere {
 public:
  static void Keep(std::string bytes, Made made) {
    if (kept_.size() == kMost) kept_.clear();
    kept_.insert_or_assign(std::move(bytes), std::move(made));
  }
  // Null if it was made elsewhere, or is forgotten.
  static const Made* Find(std::string_view bytes) {
    const auto it = kept_.find(absl::string_view(bytes.data(), bytes.size()));
    return it == kept_.end() ? nullptr : &it->second;
  }

 private:
  static constexpr size_t kMost = 2048;
  static inline thread_local absl::flat_hash_map<std::string, Made> kept_;
};

}  // namespace wavetank::x509
