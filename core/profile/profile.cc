#include "core/profile/profile.h"

#include <fmt/format.h>

#include <string>

#include "core/profile/known_profiles.h"

namespace wavetank::pilot {
namespace {

constexpr std::string_view kBase = "istio-1.18";

struct Switch {
  std::string_view name;
  bool Profile::*member;
  std::string_view meaning;
};
constexpr Switch kSwitches[] = {
    {"gateway-once-per-cla", &Profile::gateway_once_per_cla,
     "an east-west gateway stands once in a ClusterLoadAssignment, not once per locality group (istio#56355)"},
    {"tls-simple-drops-cross-network", &Profile::tls_simple_drops_cross_network,
     "a DestinationRule with TLS mode SIMPLE keeps endpoints of other networks out, as DISABLE does (istio#46555)"},
    {"graceful-secret-update", &Profile::graceful_secret_update,
     "a changed remote Secret starts and syncs the new registry before the old one is removed (istio#36365)"},
    {"upstream-envoy", &Profile::upstream_envoy,
     "what a stock Envoy does not know (istio.alpn, metadata exchange, istio.stats) is left out"},
};

std::string KnownSwitches() {
  std::string out;
  for (const Switch& s : kSwitches) out += fmt::format("{}+{}", out.empty() ? "" : ", ", s.name);
  return out;
}

}  // namespace

std::string_view ProfileBase() { return kBase; }

const std::vector<ProfileSwitch>& ProfileSwitches() {
  static const auto* const all = [] {
    auto* out = new std::vector<ProfileSwitch>;
    for (const Switch& s : kSwitches) out->push_back({s.name, s.meaning});
    return out;
  }();
  return *all;
}

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
