#include "check/cause/question.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/expectations/expectation.h"
#include "scenarios/language/yaml_reader.h"
#include "scenarios/reader/parts.h"
#include "scenarios/results/traffic_account.h"
#include "scenarios/runner/world_endpoints.h"
#include "sim/invariants/catalogue.h"
#include "sim/invariants/watch.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using scenario::Expectation;

// How long a mesh may take to come to rest after the last input, and a request to its end.
constexpr Duration kSettle = 2min, kPatience = 90s, kDrain = 40s, kLook = 10ms;

// "nothing answered within the connect timeout" of "... (nothing that network1 reaches has 172.30.2.1)".
std::string WithoutNames(std::string_view words) {
  std::string out;
  int depth = 0;
  for (const char c : words) {
    if (c == '(') ++depth;
    const bool keep = depth == 0 && (c < '0' || c > '9');
    if (c == ')' && depth > 0) --depth;
    if (keep) out += c;
  }
  return out;
}

// What most of the failures met; tries that others followed count where no request failed.
std::string SignatureOf(const std::vector<scenario::TrafficResult>& traffic, const std::string& flow) {
  for (const bool retried : {false, true}) {
    std::map<std::string, int64_t> counts;
    for (const scenario::TrafficResult& t : traffic) {
      if (!flow.empty() && t.flow != flow) continue;
      for (const scenario::TrafficResult::Failure& f : t.failures) {
        if (f.retried == retried) counts[fmt::format("{} {} {}", f.code, f.flags, WithoutNames(f.cause))] += f.count;
      }
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != counts.end()) return most->first;
  }
  return {};
}

class Trial final : public scenario::WorldView {
 public:
  Trial(const Question& question, const Story& story, const std::vector<size_t>& keep)
      : e_(question.expectation), question_(question), story_(story), keep_(keep) {}

  absl::StatusOr<Answer> Run() {
    absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story_);
    if (!world.ok()) return world.status();
    world_ = *std::move(world);
    addresses_.emplace(*world_);
    requests_ = world_->commons().on_request.Add([this](const sim::TrafficRecord& record) {
      const auto account = accounts_.find(record.spec.id);
      if (account != accounts_.end()) account->second.Add(record);
    });
    if (e_.kind == "invariant") {
      auto watch = sim::InvariantWatch::Attach(*world_, e_.names, {.in_trace = false});
      if (!watch.ok()) return watch.status();
      watch_ = *std::move(watch);
    }
    std::optional<Time> first;
    for (const size_t index : keep_) {
      const replay::LogInput& input = story_.inputs[index];
      if (!first) origin_ = *(first = input.at);
      Advance(input.at);
      if (over_) break;
      Learn(input);
      numbers_.push_back(input.seq);
      if (absl::Status status = DoAgain(*world_, input); !status.ok()) return status;
    }
    if (!over_) Rest();
    return Judge();
  }

  // WorldView
  std::vector<ProxyEndpoints> EndpointsOf(const std::string& cluster, const std::string& ns, const std::string& app,
                                          const std::string& host, int port) const override {
    return scenario::EndpointsIn(*world_, cluster, ns, app, host, port);
  }

 private:
  // The accounts of traffic are there before its first request.
  void Learn(const replay::LogInput& input) {
    if (input.kind != "traffic" || !input.body.is_object()) return;
    const std::string id = Text(input.body, "id"), flow = Text(input.body, "flow");
    addresses_->Learn();
    accounts_.try_emplace(id, world_->kernel().names(), *addresses_, flow, false, world_->Now(),
                          e_.mode.empty() ? std::nullopt : std::optional(origin_));
  }

  void Advance(Time until) {
    const bool often = e_.kind == "endpoints" && !e_.mode.empty();
    const Duration slice = often ? kLook : Duration(200ms);
    while (!over_ && world_->Now() < until) {
      world_->RunUntil(std::min(until, world_->Now() + slice));
      Look(often);
    }
    if (world_->Now() < until) return;
    Look(often);
  }

  // What can be said for certain before the end.
  void Look(bool endpoints) {
    if (watch_ != nullptr && e_.mode == "always" && !watch_->violations().empty()) over_ = true;
    if (!endpoints) return;
    scenario::ExpectationResult now = scenario::Judge(e_, {}, *this);
    // Before the proxies are there nothing is always so.
    if (e_.mode == "always" && !seen_ && !now.held) return;
    seen_ = now;
    over_ = now.held != (e_.mode == "always");
  }

  void Rest() {
    const Time limit = world_->Now() + kSettle;
    while (!over_ && world_->Now() < limit &&
           !(world_->Settled() && world_->Now() - world_->last_control_plane_event() >= 2s)) {
      Advance(world_->Now() + 100ms);
    }
    // What needs patience to be a breach gets it.
    const Time patience = world_->Now() + kPatience;
    while (!over_ && watch_ != nullptr && watch_->InDoubt() && world_->Now() < patience) Advance(world_->Now() + 1s);
    if (watch_ != nullptr && !over_) watch_->LookNow();
    const auto done = [&] {
      return std::all_of(accounts_.begin(), accounts_.end(), [&](const auto& account) {
        return world_->TrafficDone(account.first) || world_->TrafficPending(account.first) == 0;
      });
    };
    const Time drained = world_->Now() + kDrain;
    while (!over_ && !accounts_.empty() && !done() && world_->Now() < drained) Advance(world_->Now() + 100ms);
  }

  std::string KindOfLast(const std::vector<uint64_t>& numbers) const {
    if (numbers.empty()) return {};
    const uint64_t last = *std::max_element(numbers.begin(), numbers.end());
    const auto it = std::find_if(story_.inputs.begin(), story_.inputs.end(),
                                 [&](const replay::LogInput& input) { return input.seq == last; });
    return it == story_.inputs.end() ? std::string() : it->kind;
  }

  Answer Judge() {
    Answer answer;
    answer.done = numbers_.size();
    answer.virtual_time = world_->Now() - world_->options().start;
    const scenario::ExpectationKind& kind = *scenario::FindExpectation(e_.kind);
    scenario::StepResult step;
    step.start = world_->options().start;
    step.end = world_->Now();
    for (auto& [id, account] : accounts_) {
      step.traffic.push_back(account.Finish(world_->Now(), world_->TrafficDone(id) ? world_->TrafficPending(id) : 0));
    }
    if (watch_ != nullptr) {
      step.watched = e_.names;
      step.violations = watch_->violations();
    }
    if (kind.judge_traffic != nullptr) {
      answer.judged = std::any_of(step.traffic.begin(), step.traffic.end(), [&](const scenario::TrafficResult& t) {
        return (e_.flow.empty() || t.flow == e_.flow) && t.sent > 0;
      });
    }
    scenario::ExpectationResult result = seen_ ? *seen_ : scenario::Judge(e_, step, *this);
    answer.holds = result.held != question_.negated;
    answer.found = std::move(result.explanation);
    if (kind.judge_traffic != nullptr) answer.signature = SignatureOf(step.traffic, e_.flow);
    if (!step.violations.empty()) {
      const sim::Violation& v = *std::min_element(step.violations.begin(), step.violations.end(),
                                                  [](const auto& a, const auto& b) { return a.at < b.at; });
      answer.at = v.at;
      for (const uint64_t number : v.inputs) {
        if (number < numbers_.size()) answer.inputs.push_back(numbers_[number]);
      }
      answer.signature = fmt::format("{} {} {}", v.invariant, v.known, KindOfLast(answer.inputs));
    }
    watch_.reset();
    return answer;
  }

  const Expectation& e_;
  const Question& question_;
  const Story& story_;
  const std::vector<size_t>& keep_;
  std::unique_ptr<sim::World> world_;
  Subscription requests_;
  std::optional<scenario::AddressNames> addresses_;
  std::unique_ptr<sim::InvariantWatch> watch_;
  std::map<std::string, scenario::TrafficAccount> accounts_;
  std::vector<uint64_t> numbers_;  // of the inputs done, in the story
  std::optional<scenario::ExpectationResult> seen_;
  Time origin_{};
  bool over_ = false;
};

Expectation AlwaysHolds(const sim::Invariant& invariant) {
  Expectation out;
  out.kind = "invariant";
  out.mode = "always";
  out.names = {std::string(invariant.name)};
  return out;
}

}  // namespace

absl::StatusOr<Question> ParseQuestion(std::string_view option, const std::string& text, const Story& story) {
  Question out;
  out.text = text;
  if (const sim::Invariant* const named = sim::FindInvariant(text)) {
    out.expectation = AlwaysHolds(*named);
    return out;
  }
  absl::StatusOr<std::unique_ptr<scenario::Document>> document = scenario::Document::Parse(std::string(option), text);
  if (!document.ok()) return document.status();
  scenario::Field root = (*document)->root();
  if (!root.IsMap()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: '{}' is no expectation and no invariant's name; write one as under `expect:`, such as "
                    "'requests: {{failed: 0}}', or a name that `wavetank invariants` lists",
                    option, text));
  }
  if (root["not"].present()) {
    root.ExpectKeys({"not"});
    out.negated = true;
    root = root["not"];
    const sim::Invariant* const named = root.IsScalar() ? sim::FindInvariant(root.Text()) : nullptr;
    if (named != nullptr) {
      out.expectation = AlwaysHolds(*named);
      return out;
    }
  }
  const scenario::Scenario names = story.AsScenario();
  out.expectation = scenario::ReadExpectation(root, names);
  if (!(*document)->status().ok()) return (*document)->status();
  if (out.expectation.kind == "converged") {
    return absl::InvalidArgumentError(
        fmt::format("{}: converged is about one step, and a log has none; ask for endpoints or requests", option));
  }
  out.expectation.phase = Expectation::Phase::kAll;
  return out;
}

Question Not(Question question) {
  question.negated = !question.negated;
  return question;
}

absl::StatusOr<Answer> Ask(const Question& question, const Story& story, const std::vector<size_t>& keep) {
  return Trial(question, story, keep).Run();
}

}  // namespace wavetank::check
