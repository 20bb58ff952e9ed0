#include "core/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "core/profile/releases.h"

namespace wavetank::pilot {
namespace {

// The next number of "1.20.3", which is taken off with its dot; 0 where there is none.
int NextNumber(std::string_view* release) {
  int number = 0;
  const auto [end, error] = std::from_chars(release->data(), release->data() + release->size(), number);
  release->remove_prefix(error == std::errc() ? static_cast<size_t>(end - release->data()) : release->size());
  if (release->starts_with('.')) release->remove_prefix(1);
  return number;
}

std::string Listed(std::string_view prefix, const auto& rows) {
  std::string out;
  for (const auto& row : rows) out += fmt::format("{}{}{}", out.empty() ? "" : ", ", prefix, row.name);
  return out;
}

}  // namespace

const std::vector<Release>& Releases() {
  static const auto* const rows = new std::vector<Release>{{"istio-1.18", "1.18.2", "1.26"}};
  return *rows;
}

const std::vector<ProfileRow>& ProfileRows() {
  static const auto* const rows = new std::vector<ProfileRow>{
      {"gateway-once-per-cla",
       "each east-west gateway stands once in a ClusterLoadAssignment, not once per locality group", "",
       "https://github.com/istio/istio/issues/56355", &Profile::gateway_once_per_cla},
      {"tls-simple-drops-cross-network",
       "a DestinationRule with TLS mode SIMPLE keeps cross-network endpoints out, as DISABLE does", "1.20",
       "https://github.com/istio/istio/issues/46555", &Profile::tls_simple_drops_cross_network},
      {"graceful-secret-update",
       "a changed remote Secret starts the new registry and syncs it before the old one is removed", "1.30",
       "https://github.com/istio/istio/issues/36365", &Profile::graceful_secret_update},
      {"upstream-envoy", "what a stock Envoy does not know is left out (istio.alpn, metadata exchange, istio.stats)",
       "", "", &Profile::upstream_envoy},
  };
  return *rows;
}

bool HoldsIn(std::string_view release, std::string_view since) {
  if (since.empty()) return false;
  while (!release.empty() || !since.empty()) {
    const int has = NextNumber(&release), needs = NextNumber(&since);
    if (has != needs) return has > needs;
  }
  return true;
}

Profile ProfileOf(const Release& release) {
  Profile out;
  for (const ProfileRow& row : ProfileRows()) out.*row.member = HoldsIn(release.istio, row.since);
  return out;
}

std::string Profile::Name() const {
  const Release& base = Releases().front();
  std::string out(base.name);
  for (const ProfileRow& row : ProfileRows()) {
    if (this->*row.member && !HoldsIn(base.istio, row.since)) out += fmt::format("+{}", row.name);
  }
  return out;
}

absl::StatusOr<Profile> ParseProfile(std::string_view name) {
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("profile '{}': {}; a profile is one of {}, followed by any of {}",
                                                  name, what, Listed("", Releases()), Listed("+", ProfileRows())));
  };
  std::string_view rest = name;
  const auto next = [&rest] {
    const size_t plus = rest.find('+');
    const std::string_view part = rest.substr(0, plus);
    rest = plus == std::string_view::npos ? std::string_view() : rest.substr(plus + 1);
    return part;
  };
  if (name.ends_with('+')) return bad("ends with '+'");
  const std::string_view wanted = next();
  const auto base =
      std::find_if(Releases().begin(), Releases().end(), [&](const Release& row) { return row.name == wanted; });
  if (base == Releases().end()) return bad("unknown base");
  Profile profile = ProfileOf(*base);
  while (!rest.empty()) {
    const std::string_view part = next();
    const auto row = std::find_if(ProfileRows().begin(), ProfileRows().end(),
                                  [&](const ProfileRow& candidate) { return candidate.name == part; });
    if (row == ProfileRows().end()) return bad(fmt::format("unknown switch '{}'", part));
    profile.*row->member = true;
  }
  return profile;
}

}  // namespace wavetank::pilot
