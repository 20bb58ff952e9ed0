// NDS: what the agent's DNS server answers (istiod: pilot/pkg/xds/nds.go, pkg/dns/server/name_table.go).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class PushContext;

// istio.networking.nds.v1.NameTable. Kubernetes services have their short name and namespace, from which the agent
// makes the other forms.
struct NameTable {
  struct Entry {
    std::vector<std::string> ips;
    std::string registry, short_name, ns;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::map<std::string, Entry, std::less<>> hosts;
};

// Services of the proxy's scope by their address there; headless ones by their instances of the proxy's network, each
// pod with a host name of its own too (the proxy's cluster first).
NameTable BuildNameTable(const Proxy& proxy, const PushContext& push);

std::string EncodeNameTable(const NameTable& table);
// InvalidArgument: the bytes are no name table.
absl::StatusOr<NameTable> DecodeNameTable(std::string_view bytes);

// One resource without name; sidecars only. Beside full pushes, also when endpoints of headless services change.
std::unique_ptr<Generator> MakeNdsGenerator();

}  // namespace wavetank::pilot
