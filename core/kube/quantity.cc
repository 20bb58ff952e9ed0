#include "core/kube/quantity.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {
namespace {

struct QuantitySuffix {
  std::string_view text;
  int exponent = 0;  // of ten
  int shift = 0;     // of two
};
constexpr QuantitySuffix kQuantitySuffixes[] = {
    {""},      {"n", -9}, {"u", -6},     {"m", -3},     {"k", 3},      {"M", 6},      {"G", 9},      {"T", 12},
    {"P", 15}, {"E", 18}, {"Ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};
const absl::int128 kMostNanos = absl::int128(std::numeric_limits<int64_t>::max()) * kNanosPerUnit;

// "Ki", or "e3" as of a number; nullopt: neither.
std::optional<QuantitySuffix> SuffixOf(std::string_view text) {
  for (const QuantitySuffix& suffix : kQuantitySuffixes) {
    if (suffix.text == text) return suffix;
  }
  int exponent = 0;
  if ((text.front() != 'e' && text.front() != 'E') ||
      !absl::SimpleAtoi(absl::string_view(text.data() + 1, text.size() - 1), &exponent)) {
    return std::nullopt;
  }
  return QuantitySuffix{text, std::clamp(exponent, -1000, 1000)};
}

}  // namespace

std::optional<absl::int128> QuantityNanos(const nlohmann::json& quantity) {
  if (!quantity.is_string() && !quantity.is_number()) return std::nullopt;
  const std::string kept = quantity.is_string() ? quantity.get<std::string>() : JsonText(quantity);
  std::string_view text = kept;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);

  absl::int128 amount = 0;
  int exponent = 9;
  size_t digits = 0;
  bool fraction = false, finer = false;
  for (; !text.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(text.front())) || text.front() == '.');
       text.remove_prefix(1)) {
    if (text.front() == '.') {
      if (fraction) return std::nullopt;
      fraction = true;
      continue;
    }
    ++digits;
    if (amount > std::numeric_limits<int64_t>::max()) {  // a digit more decides nothing but whether it is more
      finer |= text.front() != '0';
      if (!fraction) ++exponent;
      continue;
    }
    amount = amount * 10 + (text.front() - '0');
    if (fraction) --exponent;
  }
  const std::optional<QuantitySuffix> suffix = SuffixOf(text);
  if (digits == 0 || !suffix) return std::nullopt;
  amount <<= suffix->shift;
  exponent += suffix->exponent;
  for (; exponent < 0 && amount != 0; ++exponent) {
    finer |= amount % 10 != 0;
    amount /= 10;
  }
  if (finer) ++amount;
  for (; exponent > 0 && amount != 0 && amount < kMostNanos; --exponent) amount *= 10;
  amount = std::min(amount, kMostNanos);
  return negative ? -amount : amount;
}

std::string QuantityText(const nlohmann::json& quantity) {
  return quantity.is_string() ? quantity.get<std::string>() : JsonText(quantity);
}

}  // namespace wavetank::kube
