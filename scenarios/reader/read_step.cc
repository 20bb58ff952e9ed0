#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/bounds.h"
#include "core/base/status.h"
#include "scenarios/actions/action.h"
#include "scenarios/answers/moment.h"
#include "scenarios/expectations/expectation.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"

namespace wavetank::scenario {
namespace {

Action ReadAction(const Field& f, const Scenario& scenario) {
  const MappingRow& all = MappingNamed("action");
  Action action;
  action.line = f.line();
  f.ExpectKeys(all.Names());
  const auto entries = f.Entries();
  if (entries.size() != 1) {
    f.Fail("an action is one mapping", fmt::format("its name is one of {}", fmt::join(all.Names(), ", ")));
    return action;
  }
  action.kind = entries[0].first;
  const ActionKind* kind = FindAction(action.kind);
  if (kind == nullptr) return action;  // a mistake that was told
  const Field& fields = entries[0].second;
  CheckMapping(fields, kind->row, &scenario);
  for (const FieldRow& field : kind->row.fields) {
    for (const MappingRow& inner : kind->inner) {
      if (field.row != inner.name) continue;
      for (const Field& item : fields[std::string(field.name)].Items()) CheckMapping(item, inner, &scenario);
    }
  }
  if (fields.ok() && kind->check != nullptr) kind->check(fields);
  action.arguments = ReadMapping(fields, kind->row);
  return action;
}

// An expectation's mode, and the mapping that holds what must be true in it.
Field ReadMode(const Field& f, Expectation* e) {
  f.ExpectKeys(MappingNamed("expectation").Names());
  for (const auto& [key, value] : f.Entries()) {
    if (key != "always" && key != "eventually") continue;
    e->mode = key;
    value.ExpectKeys(MappingNamed("expectation." + key).Names());
    if (key == "eventually") e->within = value["within"].Time(10s);
    return value;
  }
  return f;
}

}  // namespace

Expectation ReadExpectation(const Field& f, const Scenario& scenario) {
  Expectation e;
  e.line = f.line();
  const Field body = ReadMode(f, &e);
  const ExpectationKind* kind = nullptr;
  int kinds = 0;
  for (const auto& [key, value] : body.Entries()) {
    const ExpectationKind* named = FindExpectation(key);
    if (named == nullptr) continue;
    kind = named;
    ++kinds;
  }
  if (kinds != 1) {
    std::vector<std::string_view> names;
    for (const ExpectationKind& each : Expectations()) names.push_back(each.row.name);
    f.Fail("an expectation names one quantity", fmt::format("one of {}", fmt::join(names, ", ")));
    return e;
  }
  e.kind = kind->row.name;
  const Field k = body[e.kind];
  if (kind->scalar) {
    if (!k.IsScalar()) k.Fail("is a name", fmt::format("write {}: {}", kind->row.name, kind->example));
    if (k.ok()) kind->read(k, &e);
    if (e.names.empty()) e.names.emplace_back();  // the mistake is told
    return e;
  }
  CheckMapping(k, kind->row, &scenario);
  e.flow = k["flow"].Text();
  e.call = k["call"].Text();
  if (!e.call.empty() && (!e.flow.empty() || !e.mode.empty()))
    k["call"].Fail("is of no flow, and of no instant", "leave out flow, always and eventually");
  // What holds always or eventually is about the whole step, unless it says otherwise.
  using Phase = Expectation::Phase;
  const bool meanwhile = k["of"].Text() == "meanwhile";
  e.phase = meanwhile ? Phase::kMeanwhile : e.mode.empty() || k["of"].present() ? Phase::kThen : Phase::kAll;
  for (const FieldRow& field : kind->row.fields) {
    const Field value = FieldOf(k, kind->row, field.name);
    if (field.type != FieldType::kRange || !value.present()) continue;
    if (absl::StatusOr<Range> range = ParseRange(value.Text()); range.ok())
      e.ranges[std::string(field.name)] = *std::move(range);
  }
  if (k.ok() && kind->read != nullptr) kind->read(k, &e);
  return e;
}

namespace {

// When a step begins, whatever becomes of the one before it.
void ReadInstant(const Field& f, const Scenario& scenario, Step* step) {
  const absl::StatusOr<Moment> moment = ParseMoment("at", f["at"].Text(), scenario.StepNames());
  if (!moment.ok()) return f["at"].Fail(Message(moment.status()));
  step->at = moment->offset;
  step->at_step = moment->step;
  if (f["after"].present()) f["after"].Fail("stands beside at", "say one of both");
}

}  // namespace

Step ReadStep(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("step"), &scenario);
  Step step;
  step.line = f.line();
  step.name = f["name"].Text(fmt::format("step {}", scenario.steps.size() + 1));
  if (step.name == kThroughout && scenario.throughout)
    f["name"].Fail("is what results call the traffic throughout", "call the step otherwise");
  if (f["at"].present()) ReadInstant(f, scenario, &step);
  if (f["after"].present() && f["after"].Text() != "converged") step.after = f["after"].Time(0ns);
  for (const Field& action : f["do"].Items()) step.actions.push_back(ReadAction(action, scenario));
  if (const Field repeat = f["repeat"]; repeat.present()) {
    CheckMapping(repeat, MappingNamed("repeat"), nullptr);
    step.repeat = repeat["times"].Integer(0, 1, 100'000);
    step.every = repeat["every"].Time(0ns);
    if (step.actions.empty()) repeat.Fail("there is nothing to repeat", "say what under do:");
  }
  for (const Field& traffic : f["meanwhile"].Items()) step.meanwhile.push_back(ReadTraffic(traffic, scenario));
  for (const Field& traffic : f["then"].Items()) {
    step.then.push_back(ReadTraffic(traffic, scenario));
    if (step.then.back().requests == 0) traffic.Fail("how many requests?", "write requests: 1000");
    const FlowSpec* const flow = scenario.FindFlow(step.then.back().flow);
    if (flow != nullptr && SendingTime(*flow, step.then.back()) >= bounds::kInputDuration)
      traffic["requests"].Fail("so many take ten years at this rate", "send fewer, or faster");
  }
  step.linger = f["linger"].Time(step.linger);
  if (f["settle"].present()) step.settle = f["settle"].Time(0ns);
  for (const Field& e : f["expect"].Items()) step.expectations.push_back(ReadExpectation(e, scenario));
  for (const Field& e : f["symptom"].Items()) {
    step.expectations.push_back(ReadExpectation(e, scenario));
    step.expectations.back().symptom = true;
  }
  if (f["symptom"].present() && !scenario.incident) {
    f["symptom"].Fail("is of no incident", "write `incident:` at the scenario's head, or move it to expect:");
  }
  return step;
}

Step ReadThroughout(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("throughout"), &scenario);
  Step step;
  step.line = f.line();
  step.name = kThroughout;
  for (const Field& traffic : f["traffic"].Items()) step.meanwhile.push_back(ReadTraffic(traffic, scenario));
  if (step.meanwhile.empty()) f["traffic"].Fail("nothing is sent", "name a flow: [{flow: NAME}]");
  for (const Field& each : f["expect"].Items()) {
    Expectation e = ReadExpectation(each, scenario);
    const ExpectationKind* kind = FindExpectation(e.kind);
    if (kind != nullptr && kind->judge_traffic == nullptr)
      each.Fail(fmt::format("'{}' is no matter of traffic", e.kind), "expect it of a step");
    if (e.phase == Expectation::Phase::kThen) e.phase = Expectation::Phase::kMeanwhile;
    step.expectations.push_back(std::move(e));
  }
  return step;
}

}  // namespace wavetank::scenario
