// What an Envoy held, as its admin interface and istioctl print it: the endpoints of each upstream cluster, and the
// names of clusters, listeners and routes.
//
// Reads `/config_dump?include_eds` (and what `istioctl proxy-config all -o json` prints), `/clusters?format=json` (and
// `istioctl proxy-config endpoints -o json`), `/clusters` as text, and what `istioctl proxy-config` prints of
// endpoints, clusters, listeners and routes, as a table and with -o json.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "import/envoy/held_names.h"
#include "import/evidence/evidence.h"

namespace wavetank::importing {

struct ProxyState {
  std::string proxy;    // "sleep-1.sample"; empty: not told
  std::string cluster;  // its mesh's cluster; empty: not told
  std::string form;     // which of the forms it was; empty: none that is known
  // "10.1.0.7:5000", by upstream cluster. An upstream without endpoints is there, empty.
  std::map<std::string, std::set<std::string>> endpoints;
  // Of those whose weight was told, by upstream cluster and address: a gateway's is that of all behind it.
  std::map<std::string, std::map<std::string, int64_t>> weights;
  HeldNames names;

  bool empty() const { return endpoints.empty() && names.empty(); }
};

// What cannot be read is counted; the rest is read. O(text).
ProxyState ReadProxyState(std::string_view text, const std::string& file, Refusals& refusals);

}  // namespace wavetank::importing
