#include "core/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "core/base/assert.h"
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

bool IsSo(const ProfileRow& row, std::string_view release) {
  return HoldsIn(release, row.since) && !HoldsIn(release, row.until);
}

std::string Listed(const auto& rows) {
  std::string out;
  for (const auto& row : rows) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return out;
}

// The row with whose name `*rest` begins, up to its end or the next sign; that name is taken off. Null: there is none.
template <class Row>
const Row* TakeName(const std::vector<Row>& rows, std::string_view* rest) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& candidate) {
    const std::string_view after = rest->starts_with(candidate.name) ? rest->substr(candidate.name.size()) : "?";
    return after.empty() || after.front() == '+' || after.front() == '-';
  });
  if (row == rows.end()) return nullptr;
  rest->remove_prefix(row->name.size());
  return &*row;
}

}  // namespace

int MinorOf(std::string_view release) {
  NextNumber(&release);
  return NextNumber(&release);
}

int EnvoyMinorOf(std::string_view istio) {
  std::string_view rest = istio;
  const int major = NextNumber(&rest), minor = NextNumber(&rest);
  constexpr int kAhead = 8;
  return major == 1 && minor > 0 ? minor + kAhead : 0;
}

std::string_view ProxiesWith(const Profile& profile, Change change) {
  const ProfileRow& row = ProfileRows()[static_cast<size_t>(change)];
  return row.proxies.empty() || HoldsIn(profile.istio, row.guarded_until) ? std::string_view() : row.proxies;
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
  out.base = release.name;
  out.istio = release.istio;
  out.envoy = release.envoy;
  for (const ProfileRow& row : ProfileRows()) out.Set(row.change, IsSo(row, release.istio));
  return out;
}

bool ProxyHas(const Profile& profile, std::string_view istio, Change change) {
  if (istio == profile.istio) return profile.Has(change);
  const std::vector<ProfileRow>& rows = ProfileRows();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ProfileRow& r) { return r.change == change; });
  WAVETANK_ASSERT(row != rows.end(), static_cast<int>(change));  // each change has its row
  return IsSo(*row, istio);
}

std::string Profile::Name() const {
  std::string out(base);
  for (const ProfileRow& row : ProfileRows()) {
    if (Has(row.change) != IsSo(row, istio)) out += fmt::format("{}{}", Has(row.change) ? '+' : '-', row.name);
  }
  return out;
}

absl::StatusOr<Profile> ParseProfile(std::string_view name) {
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format(
        "profile '{}': {}; a profile is one of {}, which may go on with changes, +NAME (it is so) and -NAME "
        "(it is not so): `wavetank profiles` lists them",
        name, what, Listed(Releases())));
  };
  std::string_view rest = name;
  const Release* base = TakeName(Releases(), &rest);
  if (base == nullptr) return bad("unknown base");
  Profile profile = ProfileOf(*base);
  while (!rest.empty()) {
    const char sign = rest.front();
    rest.remove_prefix(1);
    if (rest.empty()) return bad(fmt::format("ends with '{}'", sign));
    const ProfileRow* row = TakeName(ProfileRows(), &rest);
    if (row == nullptr) return bad(fmt::format("unknown change '{}'", rest.substr(0, rest.find('+'))));
    profile.Set(row->change, sign == '+');
  }
  return profile;
}

}  // namespace wavetank::pilot
