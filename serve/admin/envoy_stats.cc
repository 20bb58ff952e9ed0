#include "serve/admin/envoy_stats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/agent/stats_tags.h"
#include "core/base/assert.h"
#include "core/base/json_text.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"

namespace wavetank::serve {
namespace {

struct Tag {
  std::string label, value;
};

// A name without what its tags say.
struct TaggedName {
  std::string name;
  std::vector<Tag> tags;
};

struct TagRule {
  std::string label;
  std::unique_ptr<const re2::RE2> regex;
};

const std::vector<TagRule>& TagRules() {
  static const std::vector<TagRule>* const rules = [] {
    auto* out = new std::vector<TagRule>();
    const auto add = [&](const agent::StatsTag& tag) {
      // RE2 looks nowhere ahead; a dot does follow where the word ends.
      out->push_back({tag.name, std::make_unique<re2::RE2>(absl::StrReplaceAll(tag.regex, {{R"((?=\.))", R"(\b)"}}))});
      WAVETANK_ASSERT(out->back().regex->ok(), std::string_view(tag.name));
    };
    for (const agent::StatsTag& tag : agent::kStatsTags) add(tag);
    for (const agent::StatsTag& tag : agent::kStatsTagsAfterExtra) add(tag);
    return out;
  }();
  return *rules;
}

// Every rule reads the whole name. Envoy: source/common/stats/tag_producer_impl.cc, tag_extractor_impl.cc
TaggedName TagsOf(const std::string& name) {
  TaggedName out;
  std::vector<bool> cut(name.size(), false);
  for (const TagRule& rule : TagRules()) {
    re2::StringPiece groups[3];
    const int count = std::min(rule.regex->NumberOfCapturingGroups(), 2);
    if (!rule.regex->Match(name, 0, name.size(), re2::RE2::UNANCHORED, groups, count + 1)) continue;
    const re2::StringPiece& value = count > 1 ? groups[2] : groups[1];
    out.tags.push_back({rule.label, std::string(value.data(), value.size())});
    const size_t begin = static_cast<size_t>(groups[1].data() - name.data());
    std::fill_n(cut.begin() + static_cast<std::ptrdiff_t>(begin), groups[1].size(), true);
  }
  for (size_t i = 0; i < name.size(); ++i) {
    if (!cut[i]) out.name += name[i];
  }
  return out;
}

std::string LabelValue(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

// Istio's own metrics, whose labels stand in their names (fakes/envoy/access_log/istio_stats.h).
bool IsOfIstio(std::string_view name) { return name.starts_with(envoysim::kIstioNamespace); }
bool IsIstioGauge(std::string_view name) { return name.ends_with(envoysim::kIsGauge); }
bool IsPart(std::string_view name) { return name.find(envoysim::kPartBegins) != name.npos; }

// As Envoy's pages of text have it: each tag's name and value behind the name. Envoy:
// source/common/stats/thread_local_store.cc, TagStatNameJoiner; an empty value is no part of it.
std::string PlainName(const std::string& name) {
  std::string out = absl::StrReplaceAll(name, {{std::string(1, envoysim::kTagBegins), "."},
                                               {std::string(1, envoysim::kTagValue), "."},
                                               {std::string(1, envoysim::kIsGauge), ""}});
  for (size_t at; (at = out.find("..")) != out.npos;) out.erase(at, 1);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

// "istiocustom." is a namespace that Prometheus is not told of. Envoy: source/common/stats/custom_stat_namespaces.h
struct IstioName {
  std::string metric, labels, part;
};
IstioName IstioNameOf(const std::string& name) {
  const std::string_view said = std::string_view(name).substr(envoysim::kIstioNamespace.size());
  const size_t part = said.find(envoysim::kPartBegins), gauge = said.find(envoysim::kIsGauge);
  const std::string series(said.substr(0, std::min(part, gauge)));
  const size_t tags = series.find(envoysim::kTagBegins);
  IstioName out;
  out.metric = series.substr(0, tags);
  if (part != said.npos) out.part = said.substr(part + 1);
  if (tags == series.npos) return out;
  const std::vector<std::string> all = absl::StrSplit(series.substr(tags + 1), envoysim::kTagBegins);
  for (const std::string& tag : all) {
    const size_t value = tag.find(envoysim::kTagValue);
    out.labels += fmt::format("{}{}=\"{}\"", out.labels.empty() ? "" : ",", tag.substr(0, value),
                              LabelValue(tag.substr(value + 1)));
  }
  return out;
}

bool IsGauge(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kEnds = {"_active", "_open",    ".active_clusters", ".live",
                                                            ".state",  ".version", "_buffered",        "_warming"};
  return name.find(".membership_") != name.npos
             ? !name.ends_with("_change")
             : std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

// Envoy: prometheus_stats.cc, sanitizeName
std::string MetricName(const std::string& name) {
  std::string out = "envoy_" + name;
  for (char& c : out) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!kept) c = '_';
  }
  return out;
}

std::string HistogramLines(const std::string& metric, const std::string& labels,
                           const std::map<std::string, uint64_t>& parts) {
  const std::string before = labels.empty() ? "" : labels + ",";
  const auto value = [&](const std::string& part) {
    const auto it = parts.find(part);
    return it == parts.end() ? uint64_t{0} : it->second;
  };
  std::string out;
  const auto bound = [&](const std::string& le) {
    out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", metric, before, le, value("le" + le));
  };
  for (const double le : envoysim::IstioCounters::kBounds) bound(fmt::format("{:g}", le));
  bound("+Inf");
  return out + fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", metric, labels, value("sum"), value("count"));
}

std::string PrometheusPage(const std::vector<std::pair<std::string, uint64_t>>& stats) {
  struct Metric {
    const char* type = "counter";
    std::string lines;
  };
  std::map<std::string, Metric> metrics;
  std::map<std::string, std::map<std::string, std::map<std::string, uint64_t>>> histograms;  // by labels, by part
  for (const auto& [name, value] : stats) {
    if (IsOfIstio(name)) {
      const IstioName istio = IstioNameOf(name);
      Metric& m = metrics[istio.metric];
      if (istio.part.empty()) {
        m.type = istio.metric == "istio_build" || IsIstioGauge(name) ? "gauge" : "counter";
        m.lines += fmt::format("{}{{{}}} {}\n", istio.metric, istio.labels, value);
        continue;
      }
      m.type = "histogram";
      histograms[istio.metric][istio.labels][istio.part] = value;
      continue;
    }
    const TaggedName tagged = TagsOf(name);
    const std::string metric = MetricName(tagged.name);
    std::string labels;
    for (const Tag& tag : tagged.tags) {
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", tag.label, LabelValue(tag.value));
    }
    Metric& m = metrics[metric];
    m.type = IsGauge(name) ? "gauge" : "counter";
    m.lines += fmt::format("{}{{{}}} {}\n", metric, labels, value);
  }
  for (const auto& [metric, series] : histograms) {
    for (const auto& [labels, parts] : series) metrics[metric].lines += HistogramLines(metric, labels, parts);
  }
  std::string out;
  for (const auto& [name, metric] : metrics) {
    out += fmt::format("# TYPE {} {}\n{}\n", name, metric.type, metric.lines);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> StatsPage(const std::map<std::string, uint64_t>& stats, const StatsQuery& query) {
  re2::RE2::Options quiet;
  quiet.set_log_errors(false);
  const re2::RE2 filter(query.filter, quiet);
  if (!filter.ok()) {
    return absl::InvalidArgumentError(fmt::format("filter '{}': {}", query.filter, filter.error()));
  }
  std::vector<std::pair<std::string, uint64_t>> kept;
  const bool prometheus = query.format == StatsQuery::Format::kPrometheus;
  for (const auto& [name, value] : stats) {
    // Pages of text tell quantiles of histograms, which are not kept here.
    if (IsPart(name) && !prometheus) continue;
    // What Istio's filter adds to is in use, if it adds nothing. Envoy: source/common/stats/allocator_impl.cc, add
    if (query.used_only && value == 0 && !IsOfIstio(name)) continue;
    const std::string plain = IsOfIstio(name) ? PlainName(name.substr(0, name.find(envoysim::kPartBegins))) : name;
    if (!query.filter.empty() && !re2::RE2::PartialMatch(plain, filter)) continue;
    kept.emplace_back(prometheus ? name : plain, value);
  }
  if (prometheus) return PrometheusPage(kept);
  if (query.format == StatsQuery::Format::kJson) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& [name, value] : kept) list.push_back({{"name", name}, {"value", value}});
    return JsonText(nlohmann::ordered_json{{"stats", std::move(list)}}, 1) + "\n";
  }
  std::string out;
  for (const auto& [name, value] : kept) out += fmt::format("{}: {}\n", name, value);
  return out;
}

}  // namespace wavetank::serve
