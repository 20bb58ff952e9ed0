// The pages of istiod's debug interface by their addresses, as ports 8080 and 15014 of istiod 1.18.2 serve them
// (istiod: pilot/pkg/xds/debug.go, InitDebug; pilot/pkg/bootstrap/server.go, initIstiodAdminServer).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::pilot {
class Istiod;
struct Profile;
}  // namespace wavetank::pilot

namespace wavetank::debug {

struct Reply {
  int status = 200;
  std::string content_type;
  std::string body;
  std::string location;  // of a redirect
};

// `target`: a path with its query, "/debug/syncz?pretty". Besides /debug/...: /debug (an index), /ready, /version. 404
// for what istiod does not know; what would change its state (push=true, clear=true, force_disconnect) is refused with
// 501, since looking is no input of a world; 301 to the clean form of a path that is not (as `//version`).
Reply Page(const pilot::Istiod& istiod, std::string_view target);

struct PageName {
  std::string_view path, help;
};
// Those of a release, in the order of their names.
std::vector<PageName> Pages(const pilot::Profile& profile);

}  // namespace wavetank::debug
