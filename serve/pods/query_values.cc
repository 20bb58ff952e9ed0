#include "serve/pods/query_values.h"

#include "absl/strings/str_split.h"
#include "fakes/kube/http/message/message.h"

namespace wavetank::serve {

std::vector<std::string> QueryValues(const std::string& query, std::string_view name) {
  std::vector<std::string> out;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(query, '&', absl::SkipEmpty()))) {
    const size_t equals = part.find('=');
    if (std::string_view(part).substr(0, equals) != name || equals == std::string::npos) continue;
    const absl::StatusOr<std::string> value = fakekube::http::PercentDecode(part.substr(equals + 1), true);
    if (value.ok()) out.push_back(*value);
  }
  return out;
}

bool QueryFlag(const std::string& query, std::string_view name) {
  const std::vector<std::string> values = QueryValues(query, name);
  return !values.empty() && (values[0] == "true" || values[0] == "1");
}

}  // namespace wavetank::serve
