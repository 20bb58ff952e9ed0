// Samples into claims: of one thing over time, whoever was scraped for it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "import/metrics/samples.h"

namespace wavetank::importing {

class MetricClaims {
 public:
  // `cluster`: of the file; a label `cluster` of an istiod's own is another thing.
  void Add(const Sample& sample, const std::string& cluster, const std::string& file);
  // Appends a claim for each value that differs from the one before, and for the last one: kMetric, whose counters
  // count from their first sample; kRequests, for what a client's proxy counted between two scrapes. O(samples * log).
  void Claim(Evidence& evidence) const;

  bool empty() const { return series_.empty() && clients_.empty() && unknown_.empty(); }

 private:
  struct Points {
    std::map<WallNs, double> values;
    double undated = 0;
    bool has_undated = false;
    Place place;
  };
  struct Key {
    std::string cluster, metric;
    MetricLabels labels;
    auto operator<=>(const Key&) const = default;
  };
  // A client's proxy, and whom it asked.
  struct Client {
    std::string cluster, ns, name, scraped;
    auto operator<=>(const Client&) const = default;
  };
  struct Answer {
    std::string service, code, flags;
    auto operator<=>(const Answer&) const = default;
  };
  struct Counted {
    std::set<WallNs> scrapes;
    std::map<Answer, std::map<WallNs, double>> answers;
    Place place;
  };

  void AddRequests(const Sample& sample, const std::string& cluster, const std::string& file);
  static void ClaimSeries(const Key& key, const std::map<std::string, Points>& members, Evidence& evidence);
  static void ClaimRequests(const Client& client, const Counted& counted, Evidence& evidence);

  std::map<Key, std::map<std::string, Points>> series_;  // by who was scraped
  std::map<Client, Counted> clients_;
  std::map<std::string, uint64_t> unknown_;  // samples by metric
  uint64_t of_servers_ = 0, undated_requests_ = 0;
};

}  // namespace wavetank::importing
