#include "oracles/envoy/generate/shrink.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wavetank::envoydiff {
namespace {

using Json = nlohmann::json;

// All that can be left out of `json`, outermost first.
void Candidates(const Json& json, const Json::json_pointer& at, std::vector<std::pair<int, Json::json_pointer>>* out,
                int depth) {
  if (json.is_array()) {
    for (size_t i = json.size(); i-- > 0;) {
      out->emplace_back(depth, at / i);
      Candidates(json[i], at / i, out, depth + 1);
    }
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (key != "@type" && key != "name") out->emplace_back(depth, at / key);
      Candidates(value, at / key, out, depth + 1);
    }
  }
}

Json Without(const Json& json, const Json::json_pointer& at) {
  Json out = json;
  Json& parent = out.at(at.parent_pointer());
  if (parent.is_array()) {
    parent.erase(static_cast<size_t>(std::stoul(at.back())));
  } else {
    parent.erase(at.back());
  }
  return out;
}

// Halves, quarters, ... of the steps go first: most of them have nothing to do with the matter.
void ShrinkSteps(Json* best, int* tries, const std::function<bool(const Json&)>& still) {
  for (size_t part = std::max<size_t>((*best)["steps"].size() / 2, 1); part >= 1; part /= 2) {
    for (size_t end = (*best)["steps"].size(); end > 0 && *tries > 0;) {
      const size_t begin = end > part ? end - part : 0;
      Json less = *best;
      less["steps"].erase(less["steps"].begin() + static_cast<std::ptrdiff_t>(begin),
                          less["steps"].begin() + static_cast<std::ptrdiff_t>(end));
      --*tries;
      if (still(less)) *best = std::move(less);
      end = std::min(begin, (*best)["steps"].size());
    }
    if (part == 1) break;
  }
}

}  // namespace

Json ShrinkCase(Json start, int tries, const std::function<bool(const Json&)>& still) {
  Json best = std::move(start);
  if (best.contains("steps")) ShrinkSteps(&best, &tries, still);
  bool smaller = true;
  while (smaller && tries > 0) {
    smaller = false;
    std::vector<std::pair<int, Json::json_pointer>> candidates;
    for (const char* part : {"resources", "steps"}) {
      if (best.contains(part)) Candidates(best[part], Json::json_pointer("") / part, &candidates, 0);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [depth, at] : candidates) {
      if (tries <= 0) break;
      if (!best.contains(at)) continue;  // gone with another
      Json less = Without(best, at);
      --tries;
      if (!still(less)) continue;
      best = std::move(less);
      smaller = true;
    }
  }
  return best;
}

}  // namespace wavetank::envoydiff
