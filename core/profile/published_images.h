// Which images of Istio's own were ever published: its releases by their tags. Public knowledge of a day, so what might
// have come out since is taken as there.
#pragma once

#include <string>
#include <string_view>

namespace wavetank::pilot {

// What makes it sure that nobody can pull the image ("Istio has no release 1.18.9: ..."), with the nearest ones that
// are there. Empty: it may be there, as any image of a hub that is not Istio's, by digest, or with a tag of another
// form than a release's.
std::string NeverPublished(std::string_view image);

// Its hub is Istio's own, and its tag of the form X.Y, which no release has.
bool HasHalfARelease(std::string_view image);

// "docker.io/istio" of "docker.io/isto/pilot:1.18.2", whose hub is none of Istio's and differs from that one by a
// letter or two; empty: it differs by more.
std::string_view HubMeant(std::string_view image);

}  // namespace wavetank::pilot
