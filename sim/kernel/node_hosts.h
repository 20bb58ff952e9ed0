// The machines of one cluster, as what runs on them sees them: each has a clock of its own, which may be wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/host.h"

namespace wavetank::sim {

class Kernel;

class NodeHosts {
 public:
  // `kernel` outlives it.
  NodeHosts(Kernel& kernel, std::string cluster) : kernel_(kernel), cluster_(std::move(cluster)) {}

  // Runs what has no processor of its own on that node; made when first asked for, and there as long as the kernel.
  Host& Of(const std::string& node);
  // A host with processors of its own, which runs on that node and has its clock.
  void Add(const std::string& node, Host& host);

  // How far the clock of that node is ahead from now on; behind, if negative.
  void SetClock(const std::string& node, Duration ahead);

 private:
  struct Machine {
    Duration ahead{};
    Host* own = nullptr;       // null: nobody has asked
    std::vector<Host*> other;  // of Add()
  };

  Kernel& kernel_;
  const std::string cluster_;
  std::map<std::string, Machine> machines_;  // by node
};

}  // namespace wavetank::sim
