#include "import/envoy/held_names.h"

namespace wavetank::importing {

// istiod: pilot/pkg/model/push_context.go, BuildSubsetKey, BuildDNSSrvSubsetKey.
void AddClusterName(std::string_view name, HeldNames& to) {
  std::set<std::string>& names = to[kClusterNames];
  if (name.find('|') != name.npos || name.starts_with("outbound_.")) names.emplace(name);
}

// istio: tools/packaging/common/envoy_bootstrap.json: the ports of health and metrics.
void AddListener(std::string_view address, std::string_view port, HeldNames& to) {
  std::set<std::string>& names = to[kListenerNames];
  if (port != "15021" && port != "15090") names.insert(std::string(address) + ":" + std::string(port));
}

// istiod: pilot/pkg/networking/core/v1alpha3/listener.go, getListenerName; VirtualOutboundListenerName.
void AddListenerName(std::string_view name, HeldNames& to) {
  if (name == "virtualOutbound") return AddListener("0.0.0.0", "15001", to);
  if (name == "virtualInbound") return AddListener("0.0.0.0", "15006", to);
  const size_t at = name.rfind('_');
  if (at == name.npos) {
    to[kListenerNames];
    return;
  }
  AddListener(name.substr(0, at), name.substr(at + 1), to);
}

// Those of a listener's own are part of it.
void AddRouteName(std::string_view name, HeldNames& to) {
  std::set<std::string>& names = to[kRouteNames];
  if (!name.empty() && !name.starts_with("inbound|") && !name.starts_with("InboundPassthrough")) names.emplace(name);
}

HeldNames NamesOf(const std::vector<std::string>& clusters, const std::vector<std::string>& listeners,
                  const std::vector<std::string>& routes) {
  HeldNames out;
  for (const std::string& name : clusters) AddClusterName(name, out);
  for (const std::string& name : listeners) AddListenerName(name, out);
  for (const std::string& name : routes) AddRouteName(name, out);
  for (const char* kind : kNameKinds) out[kind];
  return out;
}

}  // namespace wavetank::importing
