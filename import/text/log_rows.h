// Answers of log stores as rows with named fields: CloudWatch's Insights (`aws logs get-query-results`: lists of field
// and value; or what its console downloads), Splunk's search results (`_raw`), Datadog's (`attributes`), what Grafana's
// Explore downloads as JSON (`line`, `timestamp`, `fields`; grafana: public/app/features/logs/utils.ts) and text
// (public/app/features/inspector/utils/download.ts), and tables (RFC 4180) that consoles of such stores export.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "import/evidence/evidence.h"
#include "nlohmann/json.hpp"

namespace wavetank::importing {

struct LogRow {
  WallNs at = kNoTime;         // kNoTime: its time is missing, or written in a way that is not known
  std::string pod, container;  // empty: no field tells
  std::string line;
};

// The fields of a record as these stores have it, by name, without depth; null: it is none.
nlohmann::json FieldsOf(const nlohmann::json& record);
// Nothing: none of the fields holds a line.
std::optional<LogRow> RowOf(const nlohmann::json& fields);

// A table by its beginning: a line of names, one of which is a time's and one a line's.
bool LooksLikeTable(std::string_view head);
// Each of its rows as fields, with its number (the names' is 1); null: it has more fields than there are names.
void VisitTable(std::string_view text, absl::FunctionRef<void(size_t, const nlohmann::json&)> visit);

// Grafana's text: milliseconds, the same as a date, the line, with tabs between them.
bool LooksLikeGrafanaText(std::string_view head);
void VisitGrafanaText(std::string_view text, absl::FunctionRef<void(LogRow)> visit);

// As consoles write times, too; of those that name no zone UTC is believed. kNoTime: not known.
WallNs ParseRowTime(std::string_view text);

}  // namespace wavetank::importing
