// Metrics as Prometheus' text has them (exposition format 0.0.4). Families in order of name, series in order of labels,
// so that equal values are equal bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::capacity {

// `{type="eds"}` without the braces; empty: no label. Label() quotes what a value must not hold.
using Labels = std::string;
Labels Label(std::string_view name, std::string_view value);

class Exposition {
 public:
  // Behind each sample that is added from now on; so backfills are read. Negative: none.
  void At(int64_t timestamp_ms) { stamp_ = timestamp_ms; }

  void Counter(std::string_view name, std::string_view help, const Labels& labels, double value);
  void Gauge(std::string_view name, std::string_view help, const Labels& labels, double value);

  // Cumulative buckets as Prometheus counts them; +Inf is added.
  struct Histogram {
    std::vector<double> bounds;
    std::vector<uint64_t> counts;  // not cumulative, one more than bounds
    double sum = 0;

    explicit Histogram(std::vector<double> upper) : bounds(std::move(upper)), counts(bounds.size() + 1) {}
    void Record(double value);
  };
  void Add(std::string_view name, std::string_view help, const Labels& labels, const Histogram& histogram);

  // A comment above the samples of a family, for people: Prometheus passes over it. The last one of each `of` stands.
  void Note(std::string_view name, const Labels& of, std::string_view text);

  // Families one after the other, as the format wants them, their samples as they were added.
  std::string Text() const;

 private:
  struct Family {
    std::string help, type;
    std::vector<std::string> samples;
    std::map<Labels, std::string> notes;
  };
  void Sample(std::string_view name, std::string_view help, std::string_view type, std::string line, double value);

  int64_t stamp_ = -1;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace wavetank::capacity
