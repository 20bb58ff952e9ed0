// Adds up what became of the requests of one run of a flow.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/containers/name_table.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/answers/failure_words.h"
#include "scenarios/results/result.h"
#include "sim/traffic.h"

namespace wavetank::scenario {

class TrafficAccount {
 public:
  // `names`: of the kernel whose requests these are; must outlive it. `seconds_since`: keep TrafficResult::seconds,
  // counted from there.
  // `addresses`: names upstreams in TrafficResult::failures; must outlive it.
  TrafficAccount(const NameTable& names, AddressNames& addresses, std::string flow, bool meanwhile, Time start,
                 std::optional<Time> seconds_since = std::nullopt);

  void Add(const sim::TrafficRecord& record);
  // `unanswered`: requests that are still under way; nobody waits for them any longer.
  TrafficResult Finish(Time end, int64_t unanswered);

 private:
  static constexpr Duration kBucket = 250ms;

  using FailureKey = std::tuple<bool, int, std::string, std::string, std::string>;

  TrafficResult::Second* SecondOf(Time at);  // null if none are kept
  void AddFailure(bool retried, int code, std::string flags, const envoysim::SocketAddress& upstream, std::string cause,
                  Time at);
  std::string CauseOf(const FailureFacts& facts, const sim::TrafficRecord& t,
                      const envoysim::SocketAddress& upstream) const;
  void AddTry(const envoysim::SocketAddress& address, bool failed);
  void AddTries(const sim::TrafficRecord& record, bool failed);

  const NameTable& names_;
  AddressNames& addresses_;
  TrafficResult result_;
  const std::optional<Time> seconds_since_;
  std::vector<int64_t> latencies_;
  std::vector<std::vector<int64_t>> bucket_latencies_;  // as TrafficResult::series
  std::map<FailureKey, TrafficResult::Failure> failures_;
};

}  // namespace wavetank::scenario
