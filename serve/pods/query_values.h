// Queries whose names may occur several times: commands of exec, ports of a port-forward.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::serve {

// Every value of a query's name, in order.
std::vector<std::string> QueryValues(const std::string& query, std::string_view name);
bool QueryFlag(const std::string& query, std::string_view name);

}  // namespace wavetank::serve
