#include "core/kube/safe_text.h"

#include <string_view>

namespace wavetank::kube {
namespace {

constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";

}  // namespace

std::string SafeText(uint64_t value, int letters) {
  std::string out;
  for (int i = 0; i < letters; ++i, value /= kLetters.size()) out += kLetters[value % kLetters.size()];
  return out;
}

std::string SafeText(RandomStream& random, int letters) {
  std::string out;
  for (int i = 0; i < letters; ++i) out += kLetters[random.Below(kLetters.size())];
  return out;
}

}  // namespace wavetank::kube
