// The table of profiles: the releases that can be simulated, and the rules that differ between releases. A room that
// knows a release asks here; `wavetank profiles` prints it.
#pragma once

#include <string_view>
#include <vector>

#include "core/profile/changes.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// A release that can be simulated: the base of a profile's name.
struct Release {
  std::string_view name;   // "istio-1.18"
  std::string_view istio;  // "1.18.2": tags of images, and what a proxy calls itself whose tag is no version
  std::string_view envoy;  // of the Envoy that it ships
  // Of the Kubernetes that clusters are then of: one that the release is tested on.
  std::string_view kubernetes;
};
const std::vector<Release>& Releases();
const Release& ReleaseOf(const Profile& profile);

// A rule that differs between releases: one change, which a profile has or has not.
struct ProfileRow {
  Change change;
  std::string_view name;   // after a '+' or '-'; none is the beginning of another
  std::string_view what;   // what is so with it, and not so in Istio 1.18.2
  std::string_view since;  // the first release of Istio in which it is so: "1.20"; empty: in none yet
  std::string_view until;  // the first release in which it is so no more; empty: it still is
  std::string_view issue;  // where it is told in public; empty: nowhere
  // Releases of istiod before `guarded_until` do it only for proxies since `proxies`. Empty: for all.
  std::string_view proxies = {}, guarded_until = {};
};
// In the order of `Change`.
const std::vector<ProfileRow>& ProfileRows();

// 18 of "1.18.2" or "1.18-alpha.3".
int MinorOf(std::string_view release);

// Whether a rule that is so since `since` is so in `release`: both "1.20" or "1.20.3". Nothing is since an empty one.
bool HoldsIn(std::string_view release, std::string_view since);

// Of the Envoy in a release's proxies: 26 of "1.18.2". Each minor release of Istio took the next one of Envoy
// (istio/proxy: ENVOY_SHA of the tags 1.18.2 to 1.30.3). 0: the text is no version.
int EnvoyMinorOf(std::string_view istio);

// Whether a proxy of a release of Istio does it in a world of `profile`: as its own release has it, but that switches
// of the profile are about proxies of its release. `istio`: "1.30.3".
bool ProxyHas(const Profile& profile, std::string_view istio, Change change);

// The release of Istio for whose proxies alone an istiod of `profile` does it: "1.19". Empty: for all, or for none.
std::string_view ProxiesWith(const Profile& profile, Change change);

// The profile of a release, every rule as it is there.
Profile ProfileOf(const Release& release);

}  // namespace wavetank::pilot
