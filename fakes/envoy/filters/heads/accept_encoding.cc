#include "fakes/envoy/filters/heads/accept_encoding.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace wavetank::envoysim {
namespace {

struct Wish {
  std::string encoding;
  float weight = 1;
};

// Nothing: its weight is no number, and the client is taken not to have said it.
std::optional<Wish> WishOf(absl::string_view token) {
  const size_t semicolon = token.find(';');
  Wish out{std::string(absl::StripAsciiWhitespace(token.substr(0, semicolon))), 1};
  if (semicolon == token.npos) return out;
  const absl::string_view parameter = token.substr(semicolon + 1);
  const size_t equals = parameter.find('=');
  if (equals == parameter.npos) return out;
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parameter.substr(0, equals)), "q")) return out;
  if (!absl::SimpleAtof(absl::StripAsciiWhitespace(parameter.substr(equals + 1)), &out.weight)) return std::nullopt;
  return out;
}

}  // namespace

EncodingChoice ChooseEncoding(std::string_view accepted, std::vector<OfferedEncoding> offered) {
  using Why = EncodingChoice::Why;
  std::vector<Wish> wishes;
  const absl::string_view text(accepted.data(), accepted.size());
  for (const absl::string_view token : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::optional<Wish> wish = WishOf(token);
    if (!wish) continue;
    wishes.push_back(*wish);
    if (wish->weight == 0) std::erase_if(offered, [&](const auto& o) { return o.encoding == wish->encoding; });
  }
  if (wishes.empty() || offered.empty()) return {};
  const auto offer = [&](const std::string& encoding) {
    return std::find_if(offered.begin(), offered.end(), [&](const auto& o) { return o.encoding == encoding; });
  };
  Wish best{"identity", 0};
  for (const Wish& wish : wishes) {
    const auto found = offer(wish.encoding);
    if (found == offered.end() && wish.encoding != "identity" && wish.encoding != "*") continue;
    const bool first = found != offered.end() && found->choose_first;
    if (wish.weight > best.weight || (wish.weight == best.weight && first)) best = wish;
  }
  if (best.weight == 0) return {};
  if (best.encoding == "identity") return {"identity", Why::kIdentity};
  if (best.encoding == "*") return {offered.front().encoding, Why::kWildcard};
  return {best.encoding, Why::kCompressor};
}

}  // namespace wavetank::envoysim
