// Names by which what an Envoy holds is compared with what another one holds: of clusters, listeners and routes, of
// which Envoy and istioctl print lists in several forms. What stands in every bootstrap has none.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::importing {

inline constexpr const char* kClusterNames = "clusters";
inline constexpr const char* kListenerNames = "listeners";
inline constexpr const char* kRouteNames = "routes";
inline constexpr const char* kNameKinds[] = {kClusterNames, kListenerNames, kRouteNames};

// Names by one of these kinds; a kind that is not there is not told.
using HeldNames = std::map<std::string, std::set<std::string>>;

// Takes one, if istiod sent it. A listener is called as its address is, "0.0.0.0:5000".
void AddClusterName(std::string_view name, HeldNames& to);
void AddListener(std::string_view address, std::string_view port, HeldNames& to);
void AddListenerName(std::string_view name, HeldNames& to);
void AddRouteName(std::string_view name, HeldNames& to);

// Of an Envoy's own lists.
HeldNames NamesOf(const std::vector<std::string>& clusters, const std::vector<std::string>& listeners,
                  const std::vector<std::string>& routes);

}  // namespace wavetank::importing
