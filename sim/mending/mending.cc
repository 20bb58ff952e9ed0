#include "sim/mending/mending.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::sim {
namespace {

// In the order of Mend.
constexpr std::string_view kMendNames[] = {"istiod",  "clusterID", "external", "controlPlane", "address",
                                           "servers", "rbac",      "roots",    "tokens",       "network"};
constexpr uint32_t kAllMends = (1U << std::size(kMendNames)) - 1;

uint32_t BitOf(Mend what) { return 1U << static_cast<uint32_t>(what); }

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

absl::StatusOr<Mending> Mending::Parse(std::string_view text) {
  Mending out;
  if (Trimmed(text).empty()) return out;
  out.chosen_ = true;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::string_view name = Trimmed({part.data(), part.size()});
    if (name == "none") continue;
    if (name == "all") {
      out.done_ = kAllMends;
      continue;
    }
    const auto* const known = std::find(std::begin(kMendNames), std::end(kMendNames), name);
    if (known == std::end(kMendNames)) {
      return absl::InvalidArgumentError(fmt::format("nothing is mended that is called '{}'; there are: all, none, {}",
                                                    name, fmt::join(kMendNames, ", ")));
    }
    out.done_ |= 1U << static_cast<uint32_t>(known - std::begin(kMendNames));
  }
  return out;
}

std::string Mending::Text() const {
  if (!chosen_) return "";
  if (done_ == 0) return "none";
  if (done_ == kAllMends) return "all";
  std::string out;
  for (uint32_t i = 0; i < std::size(kMendNames); ++i) {
    if ((done_ >> i & 1U) != 0) out += (out.empty() ? "" : ",") + std::string(kMendNames[i]);
  }
  return out;
}

Mending::Choice Mending::Of(Mend what) const {
  if (!chosen_) return Choice::kSketch;
  return (done_ & BitOf(what)) != 0 ? Choice::kYes : Choice::kNo;
}

Mending Mending::Without(Mend what) const {
  Mending out = *this;
  out.done_ &= ~BitOf(what);
  return out;
}

bool Mending::Does(Mend what, bool sketch) const {
  const Choice choice = Of(what);
  return choice == Choice::kYes || (choice == Choice::kSketch && sketch);
}

std::string_view MendName(Mend what) { return kMendNames[static_cast<size_t>(what)]; }

}  // namespace wavetank::sim
