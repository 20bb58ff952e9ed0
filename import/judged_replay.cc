#include "import/judged_replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/envoy/held_names.h"
#include "import/metrics/known_metrics.h"
#include "import/metrics/samples.h"
#include "import/skeleton/skeleton.h"
#include "import/state_metrics.h"
#include "replay/replayer.h"
#include "replay/world_target.h"

namespace wavetank::importing {
namespace {

using nlohmann::ordered_json;
using wavetank::Text;  // of JSON; a Place has one of its own

// Of a claim: what it says, in a few words.
std::string InWords(const nlohmann::json& claim) {
  const std::string kind = Text(claim, "kind");
  if (kind == "push") {
    const std::string config = Text(claim, "config");
    const int64_t more = Number(claim, "moreConfigs");
    return fmt::format("{} push of {} events for {}{}", Text(claim, "trigger"), Number(claim, "events"),
                       config.empty() ? "everything (" + Text(claim, "reason") + ")" : config,
                       more == 0 ? "" : fmt::format(" and {} more", more));
  }
  if (kind == "held") {
    std::string what = claim.contains("endpoints") ? fmt::format("{} endpoints", Number(claim, "count")) : "";
    for (const char* names : kNameKinds) {
      if (claim.contains(names))
        what += fmt::format("{}{} {}", what.empty() ? "" : ", ", At(claim, names).size(), names);
    }
    return fmt::format("{} held {}", Text(claim, "name"), what);
  }
  if (kind == "traffic") {
    const auto shares = [&](const char* field) {
      std::string out;
      const auto total = static_cast<double>(std::max<int64_t>(Number(claim, "requests", 1), 1));
      for (const auto& [what, count] : At(claim, field).items()) {
        out += fmt::format("{}{} {:.1f} %", out.empty() ? "" : ", ", what,
                           100 * static_cast<double>(NumberOf(count)) / total);
      }
      return out;
    };
    const nlohmann::json& flags = At(claim, "flags");
    return fmt::format("{} requests of {} to {}:{}: {}{}; p50 {} ms, p99 {} ms", Number(claim, "requests"),
                       Text(claim, "name"), Text(claim, "host"), Number(claim, "port"), shares("codes"),
                       flags.contains("-") && flags.size() == 1 ? "" : "; flags " + shares("flags"),
                       Number(claim, "p50Ms", -1), Number(claim, "p99Ms", -1));
  }
  if (kind == "metric" || kind == "requests") {
    const nlohmann::json& labels = At(claim, "labels");
    std::string out = Text(claim, "name");
    if (kind == "requests") {
      return fmt::format("{} requests of {} to {}: codes {}, flags {}", Number(claim, "requests"), out,
                         Text(claim, "service"), JsonText(At(claim, "codes")), JsonText(At(claim, "flags")));
    }
    for (const auto& [name, value] : labels.items()) out += fmt::format(" {}={}", name, TextOf(value));
    return fmt::format("{} {}{}", out, Number(claim, "value"),
                       At(claim, "counter") == true ? " since its first sample" : "");
  }
  if (kind == "event") {
    return fmt::format("{} {}: {}", Text(claim, "name"), Text(claim, "reason"), Text(claim, "detail"));
  }
  if (kind == "clusters") return fmt::format("{} remote clusters", Number(claim, "count"));
  std::string out = kind;
  for (const char* field : {"name", "type", "detail"}) {
    if (const std::string text = Text(claim, field); !text.empty()) out += " " + text;
  }
  return out;
}

std::string PlaceOf(const nlohmann::json& claim) {
  const nlohmann::json& from = At(claim, "from");
  return from.is_null() ? "" : fmt::format("{}:{}", Text(from, "file"), Number(from, "line"));
}

class Printer {
 public:
  Printer(const Judge& judge, int64_t begins) : judge_(judge), begins_(begins) {}

  std::string Wall(Time at) const { return FormatWall(begins_ + at.time_since_epoch().count()); }

  void Put(std::string_view text) { text_ += text; }
  std::string Take() { return std::move(text_); }

  ordered_json Json(const JudgedClaim& claim) const {
    ordered_json out = {{"at", Wall(claim.at)}, {"verdict", NameOf(claim.verdict)}};
    if (!claim.claim.is_null()) out["claim"] = ordered_json::parse(JsonText(claim.claim), nullptr, false);
    if (!claim.why.empty()) out["why"] = claim.why;
    if (!claim.simulated.empty()) out["simulated"] = claim.simulated;
    if (claim.simulated_at != Time{}) out["simulatedAt"] = Wall(claim.simulated_at);
    if (!claim.inputs.empty()) out["inputs"] = claim.inputs;
    return out;
  }

  void Line(const JudgedClaim& claim) {
    const char* const mark = claim.verdict == Verdict::kAgrees      ? "  "
                             : claim.verdict == Verdict::kDisagrees ? "! "
                                                                    : "? ";
    text_ += fmt::format("{}{}  real       {}\n", mark, Wall(claim.at),
                         claim.claim.is_null() ? "-" : InWords(claim.claim) + "  (" + PlaceOf(claim.claim) + ")");
    if (claim.simulated.empty() && claim.verdict == Verdict::kAgrees) return;
    text_ +=
        fmt::format("  {}  simulated  {}{}\n", claim.simulated_at == Time{} ? Wall(claim.at) : Wall(claim.simulated_at),
                    claim.simulated.empty() ? "-" : claim.simulated, claim.why.empty() ? "" : "; " + claim.why);
  }

  // What led to it, from the inputs on.
  void Causes(const JudgedClaim& claim) {
    for (const uint64_t seq : claim.inputs) {
      if (const std::string words = judge_.InputInWords(seq); !words.empty()) {
        text_ += fmt::format("    because of input {}: {}\n", seq, words);
      }
    }
  }

 private:
  const Judge& judge_;
  const int64_t begins_;
  std::string text_;
};

}  // namespace

namespace {

// A metric's file says whose it is by its name alone. Where it names nobody, and there is one istiod, it is that one's.
std::string ClusterOfClaim(const sim::World& world, const std::string& cluster) {
  if (world.FindSite(cluster) != nullptr) return cluster;
  std::string primary;
  for (const sim::WorldCluster& one : world.options().clusters) {
    if (!one.primary()) continue;
    if (!primary.empty()) return {};
    primary = one.name;
  }
  return primary;
}

}  // namespace

bool WasImported(const replay::LogHeader& header) { return At(header.world, kImportedKey) == true; }

absl::StatusOr<JudgedReplay> ReplayAndJudge(replay::LogReader& log, bool all, const WorldAnswers& answers) {
  Judge judge;
  replay::WorldTarget world;
  world.ComesFrom(log.path());
  if (answers.held) {
    judge.AskWorld([&](const std::string& proxy, const std::string& cluster) {
      return answers.held(*world.world(), proxy, cluster);
    });
  }
  judge.AskMetrics([&](const std::string& cluster, const std::string& metric, const MetricLabels& labels) {
    const std::string known = ClusterOfClaim(*world.world(), cluster);
    if (known.empty()) return std::optional<double>();
    if (OfKubeStateMetrics(metric)) return StateMetric(*world.world(), known, metric, labels);
    return answers.istiods ? answers.istiods(known, metric, labels) : std::nullopt;
  });
  JudgedTarget target(world, judge);
  target.started = [&] {
    if (answers.begins) answers.begins(*world.world());
  };
  absl::StatusOr<replay::ReplayResult> result = replay::Replay(log, target, {});
  if (!result.ok()) return result.status();
  JudgedReplay out;
  out.judgement = judge.Finish();
  const Judgement& judgement = out.judgement;
  Printer printer(judge, Number(log.header().world, kBeginsKey));
  ordered_json json = {
      {"log", log.path()},         {"inputs", result->inputs},        {"digest", result->trace_digest},
      {"agrees", judgement.agree}, {"disagrees", judgement.disagree}, {"cannotBeJudged", judgement.cannot}};
  if (judgement.Reproduced() >= 0) json["reproduced"] = judgement.Reproduced();
  json["claims"] = ordered_json::array();
  std::map<std::string, uint64_t> why;
  for (const JudgedClaim& claim : judgement.claims) {
    json["claims"].push_back(printer.Json(claim));
    if (all || claim.verdict == Verdict::kDisagrees) printer.Line(claim);
    if (claim.verdict == Verdict::kCannotBeJudged) ++why[claim.why];
  }
  out.json = JsonText(json, 1) + "\n";
  if (const JudgedClaim* const first = judgement.FirstDisagreement()) {
    printer.Put("\nfirst disagreement:\n");
    printer.Line(*first);
    printer.Causes(*first);
  }
  for (const auto& [reason, count] : why) printer.Put(fmt::format("cannot be judged: {} x {}\n", count, reason));
  printer.Put(fmt::format("{}: {} claims agree, {} disagree, {} cannot be judged\n", log.path(), judgement.agree,
                          judgement.disagree, judgement.cannot));
  if (judgement.Reproduced() >= 0) printer.Put(fmt::format("reproduced: {:.1f} %\n", 100 * judgement.Reproduced()));
  printer.Put(fmt::format("digest {}\n", result->trace_digest));
  out.text = printer.Take();
  out.result = *std::move(result);
  return out;
}

}  // namespace wavetank::importing
