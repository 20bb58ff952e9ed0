#include "scenarios/survey/timing_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "core/base/duration.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

constexpr std::string_view kSetUpStep = "clients", kUnmeasuredStep = "reset";

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  if (!text.empty() && text.back() == at) out.emplace_back();
  return out;
}

// The rows of a CSV file with their fields by the names of its first line.
using Row = std::map<std::string, std::string>;
absl::StatusOr<std::vector<Row>> ReadCsv(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  const std::vector<std::string> names = Split(line, ',');
  std::vector<Row> rows;
  for (int number = 2; std::getline(in, line); ++number) {
    const std::vector<std::string> fields = Split(line, ',');
    if (fields.size() != names.size()) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: {} fields instead of {}", path, number, fields.size(), names.size()));
    }
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
  }
  return rows;
}

Duration Millis(const std::string& text) { return ParseDuration(text + "ms").value_or(Duration::zero()); }
int Number(const Row& row, const char* name) {
  const auto it = row.find(name);
  return it == row.end() ? 0 : std::atoi(it->second.c_str());
}

// The value at rank `ppm` of the sorted ones, the nearest; zero of none.
Duration Quantile(std::vector<Duration> values, int64_t ppm) {
  if (values.empty()) return Duration::zero();
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>((static_cast<int64_t>(values.size() - 1) * ppm + 500'000) / 1'000'000)];
}

Arrival QuantilesOf(const std::vector<Arrival>& arrivals, int64_t ppm) {
  const auto of = [&](Duration Arrival::*member) {
    std::vector<Duration> values;
    for (const Arrival& a : arrivals) values.push_back(a.*member);
    return Quantile(std::move(values), ppm);
  };
  return {of(&Arrival::first), of(&Arrival::median), of(&Arrival::last)};
}

// The response that holds the change.
std::string_view TypeOf(std::string_view op) {
  return op == "svc-add" || op == "svc-del" ? "CDS" : op == "pa-set" ? "LDS" : "EDS";
}

// What a run's trace says of clients and istiod.
class Listener {
 public:
  void Listen(sim::World& world) {
    sim::Kernel& kernel = world.kernel();
    dials_ = world.commons().on_dial.Add([this, &kernel](const std::string& proxy) {
      if (!first_dialled_ && IsClient(proxy)) first_dialled_ = kernel.Now();
    });
    kernel.AddObserver([this, &kernel](const sim::TraceEvent& event) {
      if (spent_.empty() || spent_.back().second != kernel.spent()) spent_.emplace_back(event.time, kernel.spent());
      const TraceRecord& r = event.record;
      if (r.kind == TraceKind::kDebounced) {
        debounced_.push_back(event.time);
      } else if (r.kind == TraceKind::kXdsReceived) {
        if (!IsClient(kernel.names().Text(r.subject))) return;
        received_.push_back({event.time, r.subject, std::string(kernel.names().Text(r.object))});
      }
    });
  }

  // Per client its first (or last) response of `type` in the interval, sorted.
  std::vector<Duration> Received(std::string_view type, Time after, Time until, Time since, bool last) const {
    std::map<NameId, Duration> at;
    for (const Response& r : received_) {
      if (r.time <= after || r.time > until || r.type != type) continue;
      const auto [it, fresh] = at.try_emplace(r.proxy, r.time - since);
      if (!fresh && last) it->second = r.time - since;
    }
    std::vector<Duration> out;
    for (const auto& [proxy, time] : at) out.push_back(time);
    std::sort(out.begin(), out.end());
    return out;
  }
  std::vector<Duration> Debounced(Time after, Time until) const {
    std::vector<Duration> out;
    for (const Time time : debounced_) {
      if (time > after && time <= until) out.push_back(time - after);
    }
    return out;
  }
  Time FirstDialled() const { return first_dialled_.value_or(Time{}); }
  Duration SpentUntil(Time time) const {
    Duration out{};
    for (const auto& [at, spent] : spent_) {
      if (at > time) break;
      out = spent;
    }
    return out;
  }

 private:
  static bool IsClient(std::string_view proxy) { return proxy.find(".clients@") != std::string_view::npos; }

  struct Response {
    Time time;
    NameId proxy;
    std::string type;
  };
  std::vector<Response> received_;
  std::vector<Time> debounced_;
  std::optional<Time> first_dialled_;
  Subscription dials_;
  std::vector<std::pair<Time, Duration>> spent_;
};

// `services` Services of `pods` pods each, beyond or instead of the ten of ten that the scenario's manifest holds.
Step FillMesh(const std::string& cluster, int services, int pods) {
  Step step;
  step.name = kUnmeasuredStep;
  Action action;
  action.kind = "apply";
  action.arguments = {{"cluster", cluster}, {"objects", nlohmann::json::array()}};
  nlohmann::json& objects = action.arguments["objects"];
  for (int k = 0; k < services; ++k) {
    const std::string name = fmt::format("svc-{}", k);
    const nlohmann::json labels = {{"app", name}};
    const nlohmann::json meta = {{"name", name}, {"namespace", "sample"}, {"labels", labels}};
    objects.push_back(
        {{"apiVersion", "v1"},
         {"kind", "Service"},
         {"metadata", meta},
         {"spec", {{"selector", labels}, {"ports", nlohmann::json::array({{{"name", "http"}, {"port", 5000}}})}}}});
    objects.push_back(
        {{"apiVersion", "apps/v1"},
         {"kind", "Deployment"},
         {"metadata", meta},
         {"spec",
          {{"replicas", pods},
           {"selector", {{"matchLabels", labels}}},
           {"template",
            {{"metadata", {{"labels", {{"app", name}, {"security.istio.io/tlsMode", "istio"}}}}},
             {"spec", {{"containers", nlohmann::json::array({{{"name", "app"}, {"image", "example/app"}}})}}}}}}}});
  }
  step.actions.push_back(std::move(action));
  return step;
}

// The scenario with its clients, its mesh and its repetitions.
absl::StatusOr<Scenario> MakeExperiment(const TimingMeasurement& setup, const TimingComparisonOptions& options,
                                        int repetitions) {
  absl::StatusOr<Scenario> scenario = LoadScenario(options.folder + "/" + setup.scenario);
  if (!scenario.ok()) return scenario.status();
  for (const auto& [name, value] : options.timing) scenario->timing[name] = value;
  const std::vector<Step> once = std::move(scenario->steps);
  scenario->steps.clear();
  if (setup.services != 10 || setup.endpoints_each != 10) {
    scenario->steps.push_back(FillMesh(scenario->clusters.front().name, setup.services, setup.endpoints_each));
  }
  for (const Step& step : once) {
    if (step.name != kSetUpStep) continue;
    scenario->steps.push_back(step);
    for (Action& action : scenario->steps.back().actions) action.arguments["replicas"] = setup.clients;
  }
  for (int i = 0; i < repetitions; ++i) {
    for (const Step& step : once) {
      if (step.name != kSetUpStep) scenario->steps.push_back(step);
    }
  }
  return scenario;
}

absl::StatusOr<std::map<std::string, TimingFigures>> RunSetup(const TimingMeasurement& setup,
                                                              const TimingComparisonOptions& options) {
  const int repetitions = options.repetitions > 0 ? options.repetitions : setup.clients >= 500 ? 3 : 10;
  absl::StatusOr<Scenario> scenario = MakeExperiment(setup, options, repetitions);
  if (!scenario.ok()) return scenario.status();
  Listener listener;
  RunOptions run;
  run.progress = [&](std::string_view) {
    if (options.progress) options.progress(setup.setup);
  };
  run.on_world = [&](sim::World& world) { listener.Listen(world); };
  absl::StatusOr<RunResult> result = Run(*scenario, run);
  if (!result.ok()) return result.status();

  std::map<std::string, TimingFigures> figures;
  std::map<std::string, std::vector<Arrival>> arrivals;
  std::map<std::string, std::vector<Duration>> costs;
  for (size_t i = 0; i < result->steps.size(); ++i) {
    const Step& step = scenario->steps[i];
    const StepResult& done = result->steps[i];
    if (step.name == kUnmeasuredStep) continue;
    const bool connecting = step.name == kSetUpStep;
    const std::string op = connecting ? "connect" : step.name;
    const Time event = done.convergence.event;
    // Of a burst: after the last write, what the client has in the end. Of new clients: their first whole
    // configuration.
    const bool burst = step.repeat > 0;
    const Time since = burst ? event + step.every * (step.repeat - 1) : connecting ? listener.FirstDialled() : event;
    const std::vector<Duration> received =
        listener.Received(connecting ? "RDS" : TypeOf(op), event, done.end, since, burst);
    if (received.size() != static_cast<size_t>(setup.clients)) {
      return absl::InternalError(
          fmt::format("{}: {}: {} of {} clients got the change", setup.setup, op, received.size(), setup.clients));
    }
    arrivals[op].push_back({received.front(), received[received.size() / 2], received.back()});
    costs[op].push_back(listener.SpentUntil(done.end) - listener.SpentUntil(event));
    if (burst) figures[op].pushes = listener.Debounced(event, done.end);
  }
  for (const auto& [op, list] : arrivals) {
    figures[op].p50 = QuantilesOf(list, 500'000);
    figures[op].p90 = QuantilesOf(list, 900'000);
    figures[op].cpu = Quantile(costs[op], 500'000);
  }
  return figures;
}

// What a measurement that looks every `clock` would have said.
Duration AsSeen(Duration at, Duration clock) { return clock.count() == 0 ? at : (at + clock - 1ns) / clock * clock; }

int64_t RatioPpm(Duration predicted, Duration measured) {
  return measured.count() == 0 ? 1'000'000 : predicted.count() * 1000 / (measured.count() / 1000);
}

}  // namespace

int64_t TolerancePpm(int clients) { return clients <= 50 ? 150'000 : 250'000; }

int64_t TimingComparison::WorstRatioPpm() const {
  int64_t worst = 1'000'000;
  const auto look = [&](Duration p, Duration m) {
    const int64_t ratio = RatioPpm(p, m);
    if (std::abs(ratio - 1'000'000) > std::abs(worst - 1'000'000)) worst = ratio;
  };
  look(predicted.p50.first, measured.figures.p50.first);
  look(predicted.p50.median, measured.figures.p50.median);
  look(predicted.p50.last, measured.figures.p50.last);
  for (size_t i = 0; i < std::min(predicted.pushes.size(), measured.figures.pushes.size()); ++i) {
    look(predicted.pushes[i], measured.figures.pushes[i]);
  }
  return worst;
}

bool TimingComparison::Holds() const {
  return std::abs(WorstRatioPpm() - 1'000'000) <= TolerancePpm(measured.clients) &&
         predicted.pushes.size() == measured.figures.pushes.size();
}

absl::StatusOr<std::vector<TimingMeasurement>> LoadMeasurements(const std::string& folder) {
  std::vector<TimingMeasurement> out;
  absl::StatusOr<std::vector<Row>> rows = ReadCsv(folder + "/measured.csv");
  if (!rows.ok()) return rows.status();
  const auto begin = [](Row& row) {
    TimingMeasurement m;
    m.setup = row["setup"];
    m.scenario = row["scenario"];
    m.op = row["op"];
    m.source = row["source"];
    m.clients = Number(row, "clients");
    return m;
  };
  for (Row& row : *rows) {
    TimingMeasurement m = begin(row);
    m.services = Number(row, "services");
    m.endpoints_each = Number(row, "endpoints_each");
    m.repetitions = Number(row, "repetitions");
    m.figures.p50 = {Millis(row["first_p50"]), Millis(row["median_p50"]), Millis(row["last_p50"])};
    m.figures.p90 = {Millis(row["first_p90"]), Millis(row["median_p90"]), Millis(row["last_p90"])};
    m.figures.cpu = Millis(row["cpu_p50"]);
    out.push_back(std::move(m));
  }
  rows = ReadCsv(folder + "/measured-bursts.csv");
  if (!rows.ok()) return rows.status();
  for (Row& row : *rows) {
    TimingMeasurement m = begin(row);
    m.services = m.endpoints_each = 10;
    m.repetitions = Number(row, "runs");
    m.figures.p50 = {Millis(row["first"]), Millis(row["median"]), Millis(row["last"])};
    m.clock = Millis(row["clock"]);
    for (const std::string& at : Split(row["debounced_at"], ' ')) m.figures.pushes.push_back(Millis(at));
    out.push_back(std::move(m));
  }
  return out;
}

absl::StatusOr<std::vector<TimingComparison>> CompareTiming(const TimingComparisonOptions& options) {
  absl::StatusOr<std::vector<TimingMeasurement>> measurements = LoadMeasurements(options.folder);
  if (!measurements.ok()) return measurements.status();
  std::set<std::string> known;
  for (const TimingMeasurement& m : *measurements) known.insert(m.setup);
  for (const std::string& setup : options.setups) {
    if (known.count(setup) == 0) {
      return absl::NotFoundError(fmt::format("no set-up is named '{}'; there are {}", setup, fmt::join(known, ", ")));
    }
  }
  std::vector<TimingComparison> out;
  std::map<std::string, std::map<std::string, TimingFigures>> runs;
  for (TimingMeasurement& m : *measurements) {
    if (!options.setups.empty() && std::count(options.setups.begin(), options.setups.end(), m.setup) == 0) continue;
    if (runs.count(m.setup) == 0) {
      absl::StatusOr<std::map<std::string, TimingFigures>> figures = RunSetup(m, options);
      if (!figures.ok()) return figures.status();
      runs[m.setup] = *std::move(figures);
    }
    TimingComparison comparison;
    comparison.predicted = runs[m.setup][m.op];
    Arrival& seen = comparison.predicted.p50;
    for (Duration* at : {&seen.first, &seen.median, &seen.last}) *at = AsSeen(*at, m.clock);
    comparison.measured = std::move(m);
    out.push_back(std::move(comparison));
  }
  return out;
}

}  // namespace wavetank::scenario
