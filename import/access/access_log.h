// Lines of one proxy's access log into flows (evidence/traffic.h).
//
// Which side of the proxy a line tells of: the upstream cluster says it ("outbound|5000||HOST", "inbound|5000||",
// "outbound_.5000_._.HOST" at an east-west gateway); where none was chosen, the addresses do.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "import/access/access_format.h"
#include "import/evidence/traffic.h"

namespace wavetank::importing {

class AccessLog {
 public:
  // `evidence` must outlive it.
  AccessLog(PodName proxy, Traffic& traffic, Refusals& refusals);

  void Add(const AccessLine& line, const Place& place);

 private:
  enum class Side { kClient, kServer, kGateway, kOutside };
  Side SideOf(const AccessLine& line) const;
  void AddRequest(const AccessLine& line, const Place& place, bool from_server);
  void AddServed(const AccessLine& line, const Place& place, const PodName& server);

  const PodName proxy_;
  Traffic& traffic_;
  Refusals& refusals_;
  std::string own_ip_;
  // Paths of each host that have a flow of their own; those beyond share one.
  std::map<std::string, uint64_t> paths_;
};

}  // namespace wavetank::importing
