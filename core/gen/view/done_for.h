// Releases of istiod that ask of which release a proxy is, before they send it what older ones do not have.
#pragma once

#include "core/model/proxy.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// Whether an istiod of that profile does it for this proxy (core/profile/releases.h, ProxiesWith).
bool DoneFor(const Proxy& proxy, const Profile& profile, Change change);

}  // namespace wavetank::pilot
