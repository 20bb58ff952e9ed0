#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <tuple>

#include "capacity/metrics/istiod_metrics.h"
#include "cli/mesh_tables.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "import/envoy/held_names.h"
#include "import/judged_replay.h"
#include "import/metrics/known_metrics.h"
#include "import/metrics/samples.h"
#include "nlohmann/json.hpp"
#include "replay/event_log.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "reports/violations.h"
#include "scenarios/survey/mesh_survey.h"
#include "sim/invariants/catalogue.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

struct ReplayArguments {
  std::string log, until, invariants;
  std::vector<std::string> secrets;
  bool json = false, verify = false, inputs = false, events = false, claims = false;
};

int Verify(replay::LogReader& log, const ReplayArguments& a) {
  absl::StatusOr<replay::LogReader::Summary> summary = log.Verify();
  if (!summary.ok()) return Complain(summary.status());
  if (a.json) {
    std::cout << JsonText(nlohmann::ordered_json{{"log", a.log},
                                                 {"inputs", summary->inputs},
                                                 {"events", summary->events},
                                                 {"complete", summary->complete},
                                                 {"digest", summary->trace_digest},
                                                 {"chain", summary->chain}},
                          1)
              << "\n";
  } else {
    std::cout << fmt::format("{}: {} inputs, {} events, {}\ndigest {}\nchain  {}\n", a.log, summary->inputs,
                             summary->events, summary->complete ? "complete" : "interrupted", summary->trace_digest,
                             summary->chain);
  }
  return WithWholeness(kOk, a.log, summary->complete);
}

// The same for a log that was read to its end or not.
int WithWholenessOf(int code, const std::string& path, replay::LogReader& log) {
  const absl::StatusOr<replay::LogReader::Summary> summary = log.Verify();
  return summary.ok() ? WithWholeness(code, path, summary->complete) : Complain(summary.status());
}

int PrintInputs(replay::LogReader& log, const ReplayArguments& a) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  while (true) {
    absl::StatusOr<replay::LogReader::Item> item = log.Next();
    if (!item.ok()) return Complain(item.status());
    if (*item == replay::LogReader::Item::kEnd) break;
    if (*item != replay::LogReader::Item::kInput) continue;
    const replay::LogInput& input = log.input();
    if (a.json) {
      all.push_back({{"seq", input.seq},
                     {"atNs", input.at.time_since_epoch().count()},
                     {"kind", input.kind},
                     {"body", input.body}});
    } else {
      std::cout << replay::Describe(input, log.header().Beginning()) << "\n";
    }
  }
  if (a.json) std::cout << JsonText(all, 1) << "\n";
  return WithWholenessOf(kOk, a.log, log);
}

int PrintEvents(replay::LogReader& log, const ReplayArguments& a) {
  while (true) {
    absl::StatusOr<replay::LogReader::Item> item = log.Next();
    if (!item.ok()) return Complain(item.status());
    if (*item == replay::LogReader::Item::kEnd) return WithWholenessOf(kOk, a.log, log);
    if (*item == replay::LogReader::Item::kEvent)
      std::cout << replay::Describe(log.event(), log.header().Beginning()) << "\n";
    if (*item == replay::LogReader::Item::kInput)
      std::cout << replay::Describe(log.input(), log.header().Beginning()) << "\n";
  }
}

// All proxies at once, as several claims are of one instant.
class HeldRows {
 public:
  std::optional<importing::HeldEndpoints> Of(sim::World& world, const std::string& proxy, const std::string& cluster) {
    if (!at_ || *at_ != world.Now()) {
      at_ = world.Now();
      rows_.clear();
      for (const scenario::ProxyEndpoints& each : scenario::ListEndpoints(world)) {
        importing::HeldEndpoints& held = rows_[{each.proxy.substr(0, each.proxy.find('@')), each.cluster}];
        for (const scenario::EndpointRow& row : *each.rows) held[row.upstream].insert(row.endpoint);
      }
      for (const sim::PodProcess* pod : world.Pods()) {
        if (pod->envoy() == nullptr) continue;
        importing::HeldEndpoints& held = rows_[{pod->name().substr(0, pod->name().find('@')), pod->site().name}];
        held.merge(importing::NamesOf(pod->envoy()->ClusterNames(), pod->envoy()->ListenerNames(),
                                      pod->envoy()->RouteNames()));
      }
    }
    for (auto it = rows_.lower_bound({proxy, ""}); it != rows_.end() && it->first.first == proxy; ++it) {
      if (cluster.empty() || it->first.second == cluster) return it->second;
    }
    return std::nullopt;
  }

 private:
  std::optional<Time> at_;
  std::map<std::pair<std::string, std::string>, importing::HeldEndpoints> rows_;  // by proxy and its cluster
};

// What the world's istiods count, summed over those of a cluster.
class IstiodNumbers {
 public:
  void Begin(sim::World& world) {
    world_ = &world;
    metrics_.Observe(world.kernel());
  }

  std::optional<double> Of(const std::string& cluster, const std::string& metric,
                           const importing::MetricLabels& labels) {
    if (!at_ || *at_ != world_->Now()) Read();
    const auto it = sums_.find({cluster, metric, labels});
    if (it != sums_.end()) return it->second;
    // A counter that has counted nothing yet has no series.
    const importing::KnownMetric* const known = importing::FindKnownMetric(metric);
    return known != nullptr && known->counter ? std::optional<double>(0) : std::nullopt;
  }

 private:
  void Read() {
    at_ = world_->Now();
    sums_.clear();
    importing::Refusals refusals;
    const auto add = [&](importing::Sample&& sample) {
      const importing::KnownMetric* const known = importing::FindKnownMetric(sample.metric);
      if (known == nullptr) return;
      // Its pods are called POD.CLUSTER.
      const std::string& pod = sample.labels["pod"];
      importing::MetricLabels labels;
      for (const std::string_view label : known->labels) {
        const auto it = sample.labels.find(std::string(label));
        if (it != sample.labels.end()) labels[it->first] = it->second;
      }
      sums_[{pod.substr(pod.rfind('.') + 1), sample.metric, std::move(labels)}] += sample.value;
    };
    importing::ReadSamples(importing::MetricsFile::kText, metrics_.Text(), "", refusals, add);
  }

  sim::World* world_ = nullptr;
  capacity::IstiodMetrics metrics_;
  std::optional<Time> at_;
  std::map<std::tuple<std::string, std::string, importing::MetricLabels>, double> sums_;  // by cluster and metric
};

// Of a log that was imported there is no trace to compare with, but claims.
int ReplayImported(replay::LogReader& log, const ReplayArguments& a) {
  HeldRows rows;
  IstiodNumbers numbers;
  importing::WorldAnswers answers;
  answers.held = [&](sim::World& world, const std::string& proxy, const std::string& cluster) {
    return rows.Of(world, proxy, cluster);
  };
  answers.begins = [&](sim::World& world) { numbers.Begin(world); };
  answers.istiods = [&](const std::string& cluster, const std::string& metric, const importing::MetricLabels& labels) {
    return numbers.Of(cluster, metric, labels);
  };
  const absl::StatusOr<importing::JudgedReplay> judged = importing::ReplayAndJudge(log, a.claims, answers);
  if (!judged.ok()) return Complain(judged.status());
  std::cout << (a.json ? judged->json : judged->text);
  return WithWholeness(judged->judgement.disagree == 0 ? kOk : kNo, log.path(), judged->result.complete);
}

int ReplayLog(const ReplayArguments& a) {
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(a.log);
  if (!log.ok()) return Complain(log.status());
  if (a.verify) return Verify(**log, a);
  if (a.inputs) return PrintInputs(**log, a);
  if (a.events) return PrintEvents(**log, a);
  const bool imported = importing::WasImported((*log)->header());
  if (a.claims && !imported)
    return Complain(absl::InvalidArgumentError(
        fmt::format("--claims: {} holds none, only logs of `wavetank import` do; leave it out", a.log)));
  if (imported && a.until.empty()) {
    if (!a.invariants.empty() || !a.secrets.empty())
      return Complain(absl::InvalidArgumentError(
          "--invariants, --secrets: an imported log is judged by its claims; to watch its mesh, add --until TIME"));
    return ReplayImported(**log, a);
  }
  replay::ReplayOptions options;
  if (!a.until.empty()) {
    const std::optional<Duration> until = ParseDuration(a.until);
    if (!until) {
      return Complain(absl::InvalidArgumentError("--until '" + a.until + "' is no duration; write 10s or 250ms"));
    }
    // From the beginning of the world, wherever its clock began.
    options.until = (*log)->header().Beginning() + *until;
  }
  absl::StatusOr<replay::SecretSource> secrets = replay::SecretSource::Load(a.secrets);
  if (!secrets.ok()) return Complain(secrets.status());
  replay::WorldTarget target(*std::move(secrets));
  target.ComesFrom(a.log);
  if (!a.invariants.empty()) {
    absl::StatusOr<std::vector<std::string>> names = sim::ParseInvariants(a.invariants);
    if (!names.ok()) return Complain(names.status());
    target.Watch(*std::move(names));
  }
  absl::StatusOr<replay::ReplayResult> result = replay::Replay(**log, target, options);
  if (!result.ok()) return Complain(result.status());
  bool settled = true;
  if (!result->compared && !options.until) {
    settled = target.world()->RunUntilSettled(target.world()->Now() + replay::kRecordingSettles);
    result->trace_digest = target.TraceDigest();
  }
  const std::vector<sim::Violation> violations = target.Violations();
  const bool shows_state = (options.until || !result->compared) && target.world() != nullptr;
  if (a.json) {
    nlohmann::ordered_json out = {{"log", a.log},
                                  {"inputs", result->inputs},
                                  {"events", result->events},
                                  {"complete", result->complete},
                                  {"digest", result->trace_digest}};
    if (result->compared) {
      out["identical"] = !result->divergence.has_value();
    } else {
      out[(*log)->header().OfRealIstiod() ? "realIstiod" : "recording"] = true;
      out["settled"] = settled;
    }
    if (shows_state) {
      scenario::Survey now;
      now.services = scenario::ListServices(*target.world());
      now.endpoints = scenario::ListEndpoints(*target.world());
      now.notes = target.world()->Complaints();
      now.digest = result->trace_digest;
      out["state"] = scenario::SurveyJson(now);
    }
    if (result->divergence) {
      const replay::Divergence& d = *result->divergence;
      out["divergence"] = {{"event", d.event},
                           {"atNs", d.at.time_since_epoch().count()},
                           {"expected", d.expected},
                           {"got", d.got},
                           {"before", d.before}};
    }
    if (!violations.empty() || !a.invariants.empty())
      out["violations"] = report::ViolationsJson(violations, (*log)->header().Beginning());
    std::cout << JsonText(out, 1) << "\n";
  } else if (result->divergence) {
    std::cout << replay::Describe(*result->divergence) << "\n";
  } else if (!result->compared) {
    std::cout << fmt::format(
        "{}: {} inputs{}; {}, so there is nothing to compare what followed with\ndigest {}\n", a.log, result->inputs,
        result->complete ? "" : " as far as it went",
        (*log)->header().OfRealIstiod() ? "a real istiod served this run, and here ours did" : "a recording",
        result->trace_digest);
    if (!settled) std::cout << "note: the mesh has not come to rest after its end\n";
  } else {
    std::cout << fmt::format("{}: {} inputs, {} events, identical{}\ndigest {}\n", a.log, result->inputs,
                             result->events, result->complete ? "" : " as far as it went", result->trace_digest);
  }
  // Stopped on the way, or a recording's end: what the world looks like there.
  if (shows_state && !a.json) {
    std::cout << fmt::format("\nat {}\n", FormatDuration(target.world()->Now() - target.world()->options().start));
    PrintServices(scenario::ListServices(*target.world()));
    PrintEndpoints(scenario::ListEndpoints(*target.world()), false);
    for (const std::string& complaint : target.world()->Complaints()) std::cout << "note: " << complaint << "\n";
  }
  if (!a.json && (!violations.empty() || !a.invariants.empty()))
    std::cout << report::ViolationsText(violations, (*log)->header().Beginning());
  if (result->divergence || report::AnySurprise(violations)) return kNo;
  // Where a replay stops on the way, the log may go on as it likes.
  return options.until ? WithWholenessOf(kOk, a.log, **log) : WithWholeness(kOk, a.log, result->complete);
}

}  // namespace

void AddReplay(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("replay", "Runs an event log again and compares event by event");
  auto a = std::make_shared<ReplayArguments>();
  verb->add_option("log", a->log, "Event log, as written by `wavetank run -o` or `wavetank record`")->required();
  verb->add_option("--until", a->until,
                   "Stop at this virtual time, e.g. 30s, and show Services and endpoints as they are there");
  verb->add_option("--secrets", a->secrets,
                   "Manifests, or folders of them, with the private keys that the run was given; logs hold none");
  verb->add_flag("--verify", a->verify, "Only check that the log is whole");
  verb->add_flag("--inputs", a->inputs, "Only print what was done to the world");
  verb->add_flag("--events", a->events, "Only print what was done and what followed, one line each");
  verb->add_option("--invariants", a->invariants,
                   "Watch these besides those that the run watched: `all` or names between commas (`wavetank "
                   "invariants`)");
  verb->add_flag("--claims", a->claims, "Of a log of `wavetank import`: also print the claims that agree");
  verb->add_flag("--json", a->json, "Results as JSON on standard output");
  NotWith(verb, {"--inputs", "--events", "--until", "--secrets", "--invariants", "--claims"}, "--verify");
  NotWith(verb, {"--events", "--until", "--secrets", "--invariants", "--claims"}, "--inputs");
  NotWith(verb, {"--until", "--secrets", "--invariants", "--claims"}, "--events");
  NotWith(verb, {"--until"}, "--claims");
  verb->footer(
      "Exit code 0: identical; 1: something differs; 2: the log cannot be read; 3: identical as far as the log "
      "goes, which ends before its run did.");
  verb->callback([a, &outcome] { outcome.code = ReplayLog(*a); });
}

}  // namespace wavetank::cli
