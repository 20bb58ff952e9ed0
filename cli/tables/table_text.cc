#include "cli/tables/table_text.h"

#include <algorithm>

namespace wavetank::cli::tables {

std::string TableText(const std::vector<Row>& rows, size_t padding) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + padding);
  }
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - row[i].size(), ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace wavetank::cli::tables
