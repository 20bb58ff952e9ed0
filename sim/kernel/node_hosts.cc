#include "sim/kernel/node_hosts.h"

#include "core/base/assert.h"
#include "fmt/format.h"
#include "sim/kernel/kernel.h"

namespace wavetank::sim {

Host& NodeHosts::Of(const std::string& node) {
  Machine& machine = machines_[node];
  if (machine.own == nullptr) {
    machine.own = &kernel_.NewHost(fmt::format("{}/{}", cluster_, node), 0, nullptr);
    kernel_.SetClock(*machine.own, machine.ahead);
  }
  return *machine.own;
}

void NodeHosts::Add(const std::string& node, Host& host) {
  Machine& machine = machines_[node];
  WAVETANK_ASSERT(&host != machine.own, node);
  machine.other.push_back(&host);
  kernel_.SetClock(host, machine.ahead);
}

void NodeHosts::SetClock(const std::string& node, Duration ahead) {
  Machine& machine = machines_[node];
  machine.ahead = ahead;
  if (machine.own != nullptr) kernel_.SetClock(*machine.own, ahead);
  for (Host* host : machine.other) kernel_.SetClock(*host, ahead);
}

}  // namespace wavetank::sim
