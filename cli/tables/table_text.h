// Tables as Go's text/tabwriter prints them for istioctl.
#pragma once

#include <string>
#include <vector>

namespace wavetank::cli::tables {

using Row = std::vector<std::string>;

// Every cell but a row's last is as wide as its column's widest cell and `padding` blanks.
std::string TableText(const std::vector<Row>& rows, size_t padding);

}  // namespace wavetank::cli::tables
