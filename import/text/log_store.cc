#include "import/text/log_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/evidence/evidence.h"

namespace wavetank::importing {

bool LooksLikeLogStore(std::string_view head) {
  if (!head.starts_with('{')) return false;
  const size_t type = head.find("\"resultType\"");
  if (type == head.npos) return false;
  const size_t value = head.find_first_not_of(" \t\r\n:", type + 12);
  return value != head.npos && head.substr(value).starts_with("\"streams\"");
}

std::vector<StoredLines> ReadLogStore(std::string_view text) {
  const nlohmann::json answer = ParseJson(text);
  // Streams of one container differ in labels alone.
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<int64_t, std::string>>> found;
  for (const nlohmann::json& stream : Items(At(answer, {"data", "result"}))) {
    const nlohmann::json& labels = At(stream, "stream");
    auto& lines = found[{wavetank::Text(labels, "pod"), wavetank::Text(labels, "container")}];
    for (const nlohmann::json& value : Items(At(stream, "values"))) {
      int64_t at = 0;
      if (!value.is_array() || value.size() < 2 || !ReadInteger(TextOf(value[0]), at)) continue;
      lines.emplace_back(at, TextOf(value[1]));
    }
  }
  std::vector<StoredLines> out;
  for (auto& [whose, lines] : found) {
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    StoredLines stored{whose.first, {}};
    const std::string container = whose.second.empty() ? "discovery" : whose.second;
    const std::string prefix = whose.first.empty() ? "" : "[pod/" + whose.first + "/" + container + "] ";
    for (auto& [at, line] : lines) {
      while (!line.empty() && line.back() == '\n') line.pop_back();
      stored.text += prefix + line + "\n";
    }
    if (!stored.text.empty()) out.push_back(std::move(stored));
  }
  return out;
}

}  // namespace wavetank::importing
