#include <utility>

#include "fmt/format.h"
#include "oracles/control_plane/control_plane_diff.h"

namespace wavetank::serve {

std::string DifferencesText(const DiffResult& result) {
  const auto side = [](const std::string& text) {
    constexpr size_t kWidth = 400;
    if (text.empty()) return std::string("nothing");
    return text.size() > kWidth ? text.substr(0, kWidth) + "..." : text;
  };
  std::string out;
  for (const StepDifferences& step : result.steps) {
    if (!step.not_judged.empty()) out += fmt::format("{}: not judged: {}\n", step.name, step.not_judged);
    for (const ProxyDifferences& proxy : step.differences) {
      out += fmt::format("{}: {}{}{}\n", step.name, proxy.proxy, proxy.type.empty() ? "" : " ", proxy.type);
      for (const golden::Difference& d : proxy.differences)
        out += fmt::format("  {}\n    real: {}\n    ours: {}\n", d.path, side(d.expected), side(d.actual));
      out += proxy.unified_diff;
    }
  }
  return out;
}

nlohmann::ordered_json ToJson(const DiffResult& result) {
  nlohmann::ordered_json out = {{"scenario", result.scenario},
                                {"equal", result.Equal()},
                                {"judged", result.Judged()},
                                {"steps", nlohmann::ordered_json::array()}};
  for (const StepDifferences& step : result.steps) {
    nlohmann::ordered_json differences = nlohmann::ordered_json::array();
    for (const ProxyDifferences& proxy : step.differences) {
      for (const golden::Difference& d : proxy.differences) {
        nlohmann::ordered_json row = {{"proxy", proxy.proxy}, {"type", proxy.type}, {"path", d.path}};
        // As values, missing where that side has none.
        const auto put = [&](const char* key, const std::string& text) {
          if (!text.empty()) row[key] = nlohmann::ordered_json::parse(text, nullptr, false);
          if (!text.empty() && row[key].is_discarded()) row[key] = text;
        };
        put("real", d.expected);
        put("ours", d.actual);
        differences.push_back(std::move(row));
      }
    }
    out["steps"].push_back({{"name", step.name},
                            {"proxies", step.proxies},
                            {"resources", step.resources},
                            {"equal", step.differences.empty()},
                            {"differences", std::move(differences)}});
    if (!step.not_judged.empty()) out["steps"].back()["notJudged"] = step.not_judged;
  }
  return out;
}

}  // namespace wavetank::serve
