#include "capacity/metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavetank::capacity {
namespace {

std::string Series(std::string_view name, const Labels& labels) {
  return labels.empty() ? std::string(name) : fmt::format("{}{{{}}}", name, labels);
}

}  // namespace

Labels Label(std::string_view name, std::string_view value) {
  std::string out = fmt::format("{}=\"", name);
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

void Exposition::Histogram::Record(double value) {
  const auto at = std::lower_bound(bounds.begin(), bounds.end(), value);
  ++counts[static_cast<size_t>(at - bounds.begin())];
  sum += value;
}

void Exposition::Sample(std::string_view name, std::string_view help, std::string_view type, std::string line,
                        double value) {
  Family& family = families_[std::string(name)];
  family.help = help;
  family.type = type;
  line += fmt::format(" {:.12g}", value);
  if (stamp_ >= 0) line += fmt::format(" {}", stamp_);
  family.samples.push_back(std::move(line));
}

void Exposition::Counter(std::string_view name, std::string_view help, const Labels& labels, double value) {
  Sample(name, help, "counter", Series(name, labels), value);
}

void Exposition::Gauge(std::string_view name, std::string_view help, const Labels& labels, double value) {
  Sample(name, help, "gauge", Series(name, labels), value);
}

void Exposition::Add(std::string_view name, std::string_view help, const Labels& labels, const Histogram& histogram) {
  uint64_t count = 0;
  const std::string comma = labels.empty() ? "" : labels + ",";
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    count += histogram.counts[i];
    const std::string bound = i < histogram.bounds.size() ? fmt::format("{:g}", histogram.bounds[i]) : "+Inf";
    Sample(name, help, "histogram", fmt::format("{}_bucket{{{}{}}}", name, comma, Label("le", bound)),
           static_cast<double>(count));
  }
  Sample(name, help, "histogram", Series(fmt::format("{}_sum", name), labels), histogram.sum);
  Sample(name, help, "histogram", Series(fmt::format("{}_count", name), labels), static_cast<double>(count));
}

void Exposition::Note(std::string_view name, const Labels& of, std::string_view text) {
  families_[std::string(name)].notes[of] = text;
}

std::string Exposition::Text() const {
  std::string out;
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name, family.type);
    for (const auto& [of, note] : family.notes) out += fmt::format("# {}{}{}\n", of, of.empty() ? "" : " ", note);
    for (const std::string& sample : family.samples) out += sample + "\n";
  }
  return out;
}

}  // namespace wavetank::capacity
