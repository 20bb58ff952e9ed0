#include "core/gen/view/done_for.h"

#include "core/gen/view/proxy_view.h"
#include "core/profile/releases.h"

namespace wavetank::pilot {

bool DoneFor(const Proxy& proxy, const Profile& profile, Change change) {
  if (!profile.Has(change)) return false;
  const std::string_view since = ProxiesWith(profile, change);
  return since.empty() || IsVersionAtLeast(proxy, 1, MinorOf(since));
}

}  // namespace wavetank::pilot
