#include "core/profile/profile.h"

#include <fmt/format.h>

#include <string>

namespace wavetank::pilot {
namespace {

constexpr std::string_view kBase = "istio-1.18";

struct Switch {
  std::string_view name;
  bool Profile::*member;
};
constexpr Switch kSwitches[] = {
    {"gateway-once-per-cla", &Profile::gateway_once_per_cla},
    {"tls-simple-drops-cross-network", &Profile::tls_simple_drops_cross_network},
    {"graceful-secret-update", &Profile::graceful_secret_update},
    {"upstream-envoy", &Profile::upstream_envoy},
};

std::string KnownSwitches() {
  std::string out;
  for (const Switch& s : kSwitches) out += fmt::format("{}+{}", out.empty() ? "" : ", ", s.name);
  return out;
}

}  // namespace

std::string Profile::Name() const {
  std::string out(kBase);
  for (const Switch& s : kSwitches) {
    if (this->*s.member) out += fmt::format("+{}", s.name);
  }
  return out;
}

absl::StatusOr<Profile> ParseProfile(std::string_view name) {
  const std::string_view whole = name;
  const auto next = [&name] {
    const size_t plus = name.find('+');
    const std::string_view part = name.substr(0, plus);
    name = plus == std::string_view::npos ? std::string_view() : name.substr(plus + 1);
    return part;
  };
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("profile '{}': {}; a profile is '{}', followed by any of {}", whole, what, kBase, KnownSwitches()));
  };
  if (whole.ends_with('+')) return bad("ends with '+'");
  if (next() != kBase) return bad("unknown base");
  Profile profile;
  while (!name.empty()) {
    const std::string_view part = next();
    bool known = false;
    for (const Switch& s : kSwitches) {
      if (s.name != part) continue;
      profile.*s.member = true;
      known = true;
    }
    if (!known) return bad(fmt::format("unknown switch '{}'", part));
  }
  return profile;
}

}  // namespace wavetank::pilot
