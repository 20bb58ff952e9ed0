// What one istiod's log says: claims of what it did, and the inputs that it must have done it for.
//
// How inputs are inferred. istiod tells little of what came in, but every change that matters ends in its debouncer,
// whose line says how many events it merged, when the first and the last of them came ("since last push", "since last
// change", both back from the line's own time), whether services changed or endpoints alone (`full`), and one of the
// things that changed. Other lines inside this burst name more of it. So a burst of one event is known exactly; of a
// larger one what its lines name is known, and the rest is a number in its claim. What follows from another input
// (services of a cluster that is being synced, endpoints that move to another network) is no input of its own.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "import/evidence/evidence.h"
#include "import/istiod/messages.h"
#include "import/istiod/record_reader.h"

namespace wavetank::importing {

class IstiodLog {
 public:
  // `evidence` must outlive it.
  IstiodLog(std::string replica, Evidence& evidence);

  // Records in the order of the file; `file` as people name it.
  void Add(const LogRecord& record, const std::string& file);
  void Finish();

 private:
  // A line that names something inside a burst.
  struct Fact {
    WallNs at = 0;
    MessageKind kind{};
    std::string host, ns, cluster;
    Place place;
  };
  struct Burst {
    WallNs start = 0, end = 0, line_at = 0;
    int64_t events = 0, more = 0;
    bool full = false, initial = false;
    bool resync = false;         // all endpoints are made anew: networks changed, or a cluster is being synced
    bool reload = false;         // a gateway was the cause
    std::string kind, ns, name;  // the config that its line names
    std::string reason;          // or the first reason
    std::string second_reason;   // if exactly two
    std::vector<Fact> facts;
    Place place;
  };
  struct Syncing {
    WallNs since = 0;
    WallNs synced = kNoTime;
    bool late = false;  // istiod said that its time is over
  };
  struct Retry {
    WallNs expected = 0;
    WallNs tolerance = 0;
  };

  InferredInput& Emit(InputKind kind, WallNs at, const Place& place);
  Claim& Say(ClaimKind kind, WallNs at, const Place& place);
  void NewRun(WallNs at, const Place& place);
  void Started(WallNs ready, std::string_view rest);

  static void ReadReasons(std::string_view text, Burst& burst);
  void Debounced(WallNs at, std::string_view rest, const Place& place);
  void Explain(Burst& burst);
  void ExplainGateways(const Burst& burst);
  bool IsGateway(const Burst& burst);
  static WallNs Relabelled(const Burst& burst);
  void ExplainService(const Burst& burst);
  void ExplainConfig(const Burst& burst);
  void EmitFact(const Fact& fact);
  void EmitHost(InputKind kind, const Burst& burst, WallNs at);
  void EmitServiceOf(size_t slice_of, WallNs from, std::string_view change);
  void ServicesOfUnknownHosts(const Burst& burst);
  void ServicesOfEmptyEndpoints(const Claim& push);
  void ServicesOfFirstEndpoints(const Claim& push);
  void EndpointsOfHeadless(const Claim& push);
  // Of which object a host's service or endpoints are, most likely.
  static std::string ObjectKindOf(InputKind kind, const std::string& host);
  bool LooksLikeNetworkLabel(const Burst& burst) const;
  std::vector<Fact> TakeFacts(WallNs until);

  void Pushing(WallNs at, std::string_view rest, bool partly);
  void Response(const LogRecord& record, std::string_view rest);
  void FlushSent();
  void Secret(WallNs at, std::string_view key, const Place& place);
  void ClusterEffect(const LogRecord& record, MessageKind kind, std::string_view rest);
  void Retrying(WallNs at, std::string_view rest);
  void Mesh(WallNs at, MessageKind kind, std::string_view text, const Place& place);
  void Proxy(WallNs at, MessageKind kind, std::string_view rest, const Place& place);
  void Identity(MessageKind kind, std::string_view rest);
  void Remember(WallNs at, MessageKind kind, std::string_view rest, const Place& place);
  std::string NamespaceOf(const std::string& host) const;

  const std::string replica_;
  Evidence& evidence_;
  size_t run_ = 0;  // of evidence_.runs
  bool any_ = false;
  bool ready_ = true;   // a log that begins in the middle is of an istiod that runs
  bool began_ = false;  // a line told of the process's start
  WallNs ready_at_ = kNoTime, last_ = kNoTime;

  std::vector<Fact> facts_;
  std::map<std::string, Syncing> syncing_;
  std::map<std::string, std::string> namespaces_;  // by host
  std::set<std::string> had_endpoints_;            // hosts whose first endpoints of all a line has told
  std::string networks_, mesh_;
  WallNs networks_at_ = kNoTime;

  std::map<std::string, Retry> retries_;                       // by secret
  std::map<std::string, std::vector<WallNs>> remote_secrets_;  // when each was processed, the last times
  std::optional<size_t> secret_;                               // of evidence_.inputs: the one whose lines these are
  std::string secret_key_;

  std::optional<size_t> push_;  // of evidence_.claims
  static constexpr std::array<std::string_view, 6> kTypes = {"CDS", "EDS", "LDS", "RDS", "NDS", "ECDS"};
  std::array<int64_t, 6> sent_{};
  std::vector<size_t> firsts_of_burst_;    // of evidence_.inputs: endpoints that may have come with their Service
  int64_t untold_of_burst_ = 0;            // events that no line of their own tells of
  bool twice_ = false;                     // a burst of two full events at once, of one host
  bool full_by_first_ = false;             // a burst of one host whose first endpoints a line tells
  std::vector<size_t> services_of_burst_;  // of evidence_.inputs
  std::vector<size_t> empty_of_burst_;     // of evidence_.inputs: endpoints that are none
  std::set<std::string> known_hosts_;      // that a burst before this one named
  std::set<std::string> gateway_hosts_, headless_;
  bool dns_names_ = false;  // headless Services have keys of two kinds
  int64_t services_ = -1;
  absl::flat_hash_set<std::string> nodes_;  // that something was sent to
  // Hashes of records, the last ones and those before: collectors deliver at least once.
  bool ToldBefore(const LogRecord& record);
  absl::flat_hash_set<uint64_t> told_, told_before_;
};

}  // namespace wavetank::importing
