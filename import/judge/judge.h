// Claims, judged by what a simulated mesh did: agrees, disagrees, cannot be judged. Follows a replay as it goes.
//
// A claimed push agrees with a simulated one of the same reach (all, or endpoints alone) at about the same time that
// was for the same thing, of an istiod of the same cluster; each is used once by each replica, of which the simulated
// mesh may have fewer. Simulated pushes that no line tells disagree as well, if there is a log of that cluster's
// istiod.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "import/evidence/traffic.h"
#include "nlohmann/json.hpp"
#include "replay/event_log.h"
#include "replay/replayer.h"

namespace wavetank::importing {

enum class Verdict : uint8_t { kAgrees, kDisagrees, kCannotBeJudged };
std::string_view NameOf(Verdict verdict);

struct JudgedClaim {
  Time at{};
  nlohmann::json claim;  // null: a simulated push that no claim tells of
  Verdict verdict = Verdict::kCannotBeJudged;
  std::string why;        // in words, where it does not agree
  std::string simulated;  // what the mesh did, if anything
  Time simulated_at{};
  std::vector<uint64_t> inputs;  // that caused it, as the log numbers them
};

struct Judgement {
  std::vector<JudgedClaim> claims;  // in order of time
  uint64_t agree = 0, disagree = 0, cannot = 0;
  // Of those that can be judged, how many agree: "reproduced". -1: none can.
  double Reproduced() const;
  const JudgedClaim* FirstDisagreement() const;
};

// What a proxy of the world holds at this moment: endpoints by upstream cluster. nullopt: no such proxy runs.
// Endpoints by upstream; beside them, by import/envoy/held_names.h's kinds, names of what else it holds.
using HeldEndpoints = std::map<std::string, std::set<std::string>>;
using HeldBy = std::function<std::optional<HeldEndpoints>(const std::string& proxy, const std::string& cluster)>;

// What a metric of that cluster is now, summed over the istiods of it; nullopt: there is none.
using MetricInWorld = std::function<std::optional<double>(const std::string& cluster, const std::string& metric,
                                                          const std::map<std::string, std::string>& labels)>;
class MetricJudge;

class Judge {
 public:
  Judge();
  ~Judge();
  // Without it claims of what proxies held cannot be judged.
  void AskWorld(HeldBy held_by) { held_by_ = std::move(held_by); }
  // Without it claims of metrics cannot be judged.
  void AskMetrics(MetricInWorld metric);
  void OnInput(const replay::LogInput& input);
  void OnEvent(const replay::LoggedEvent& event);
  // Once, when all is over.
  Judgement Finish();
  // What an input was, for people; empty if there is none of that number.
  std::string InputInWords(uint64_t seq) const;

 private:
  struct Push {
    Time at{};
    std::string istiod;
    bool full = false, everything = false;
    int64_t events = 0;
    std::set<std::string> keys;
    std::set<uint64_t> inputs;
    std::set<std::string> used_by;  // replicas whose lines told of it
  };
  // What was claimed of a client's requests within a window, and what became of those that it sent here.
  struct Window {
    Time from{}, until{};
    uint64_t requests = 0;
    std::map<std::string, uint64_t> codes, flags, upstreams;
    Durations durations;
  };
  void OnRequest(const replay::LoggedEvent& event);
  // At its own instant.
  JudgedClaim JudgeHeld(const replay::LogInput& input) const;
  JudgedClaim JudgeTraffic(const replay::LogInput& input) const;
  JudgedClaim JudgePush(const replay::LogInput& input);
  JudgedClaim JudgeClusters(const replay::LogInput& input) const;
  JudgedClaim JudgeSync(const replay::LogInput& input);
  JudgedClaim JudgeReload(const replay::LogInput& input) const;
  JudgedClaim JudgeEvent(const replay::LogInput& input) const;
  JudgedClaim JudgeNack(const replay::LogInput& input) const;
  bool IsOf(const std::string& istiod, const Push& push) const;
  Push* Find(const replay::LogInput& input);

  HeldBy held_by_;
  std::unique_ptr<MetricJudge> metrics_;
  std::vector<replay::LogInput> claims_;
  std::map<uint64_t, JudgedClaim> judged_;  // by the claim's number: those that were judged at once
  std::map<uint64_t, std::string> inputs_;
  std::map<std::string, Push> open_;  // by istiod: what has gathered since its last push
  std::vector<Push> pushes_;
  // By istiod's cluster: how many remote ones, from when on.
  std::map<std::string, std::vector<std::pair<Time, int64_t>>> clusters_;
  std::vector<std::pair<Time, std::string>> synced_;
  // Pods by cluster and "namespace/name": when they were first written, and when they went.
  struct PodLife {
    std::optional<Time> written, deleted;
  };
  std::map<std::pair<std::string, std::string>, PodLife> pods_;
  std::vector<Time> gateways_;  // when they changed
  std::vector<std::tuple<Time, std::string, std::string>> nacks_;
  // By client and what it asked for, in order of time.
  using Asked = std::pair<std::string, std::string>;
  static Asked AskedBy(const nlohmann::json& claim);
  std::map<Asked, std::vector<Window>> requests_;
  Time first_change_{};
  bool changed_ = false;
};

// Drives a world as its target does, and shows all to a judge. Both must outlive it.
class JudgedTarget final : public replay::ReplayTarget {
 public:
  JudgedTarget(replay::ReplayTarget& under, Judge& judge) : under_(under), judge_(judge) {}
  absl::Status Start(const replay::LogHeader& header, Sink sink) override;
  void AdvanceTo(Time time) override { under_.AdvanceTo(time); }
  absl::Status Do(const replay::LogInput& input) override;
  std::string TraceDigest() const override { return under_.TraceDigest(); }

  // Called once the world is made and nothing has happened in it.
  std::function<void()> started;

 private:
  replay::ReplayTarget& under_;
  Judge& judge_;
};

}  // namespace wavetank::importing
