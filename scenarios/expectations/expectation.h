// What must be true of a step: one row per expectation, one file per row. The parser, the schema for editors, the
// tables of README.md and the judgement are made of it.
//
// To add one: a file NAME.cc here that defines RegisterName(), and its test in tests/scenarios/expectations/. The list
// of all files is made by CMake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/rows.h"
#include "scenarios/language/scenario.h"
#include "scenarios/results/result.h"

namespace wavetank::scenario {

// What expectations ask of a running world.
class WorldView {
 public:
  virtual ~WorldView() = default;
  // "address:port" of the endpoints that the proxies of an app hold for a service port, sorted; one list per proxy.
  struct ProxyEndpoints {
    std::string proxy;
    std::vector<std::string> addresses;
  };
  virtual std::vector<ProxyEndpoints> EndpointsOf(const std::string& cluster, const std::string& ns,
                                                  const std::string& app, const std::string& host, int port) const = 0;
};

struct ExpectationKind {
  MappingRow row;                           // its name is the expectation's, its meaning stands in the schema
  std::string_view example, what;           // in README.md: a value of the mapping, and when it holds
  bool always = false, eventually = false;  // may stand within these
  bool scalar = false;                      // one text stands for the mapping: the row's only field
  // What it is about; the fields of the row are checked, `flow`, `of` and ranges are read. Mistakes are recorded with
  // the field. May be null.
  void (*read)(const Field& f, Expectation* e) = nullptr;
  // Without the mode.
  std::string (*describe)(const Expectation& e) = nullptr;

  // Exactly one of these. Of requests: the flows that it concerns, added up, of which some were sent.
  ExpectationResult (*judge_traffic)(const Expectation& e, const TrafficResult& sum) = nullptr;
  ExpectationResult (*judge_step)(const Expectation& e, const StepResult& step) = nullptr;
  ExpectationResult (*judge_world)(const Expectation& e, const WorldView& world) = nullptr;
};

// All rows, in the order of their names.
const std::vector<ExpectationKind>& Expectations();
// Null: there is none of that name.
const ExpectationKind* FindExpectation(std::string_view name);

// Fields that expectations of traffic share: flow, of.
std::vector<FieldRow> OfTraffic(std::vector<FieldRow> more);

// The text of an expectation, for reports: "split of from-cluster1 by version is v1 50 %, v2 50 % (99.9 % confidence)".
std::string Describe(const Expectation& expectation);

// An expectation about traffic that was not sent does not hold, and says so.
ExpectationResult Judge(const Expectation& expectation, const StepResult& step, const WorldView& world);

// What no scenario has to say: responses that Envoys refused and that no expectation of the step is about. Nothing:
// there were none.
std::optional<ExpectationResult> UnexpectedNacks(const std::vector<Expectation>& expectations, const StepResult& step);

// What judges share.
std::string Percent(int64_t ppm);
int64_t Ppm(int64_t part, int64_t whole);
std::string FlowsOf(const Expectation& e);  // "from-cluster1, meanwhile"
std::string DescribeRanges(const Expectation& e);
// Judges one ranged quantity and appends what was found.
void JudgeRange(const Expectation& e, const std::string& name, int64_t value, const std::string& shown,
                ExpectationResult* r);

}  // namespace wavetank::scenario
