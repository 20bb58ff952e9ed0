#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/apps.h"

namespace wavetank::scenario {
namespace {

using sim::AppAnswer;
using sim::AppBehaviour;

constexpr std::pair<std::string_view, int64_t> kPoints[] = {
    {"p50", 500'000}, {"p90", 900'000}, {"p99", 990'000}, {"max", 1'000'000}};

void CheckBehaviour(const Field& f) {
  if (!f["namespace"].present() && !f["app"].present() && !f["cluster"].present())
    return f.Fail("is of every pod of the mesh, istiods and gateways included", "say app: NAME at least");
  Duration below{};
  for (const auto& [name, share] : kPoints) {
    const Field point = f["latency"][std::string(name)];
    if (!point.present()) continue;
    if (point.Time(0ns) < below) point.Fail("is less than what stands before it", "let the times grow from p50 to max");
    below = point.Time(0ns);
  }
  for (const Field& answer : f["answers"].Items()) {
    if (answer["code"].present() == answer["reset"].Flag(false))
      answer.Fail("says not what is answered, or twice", "write code: 503, or reset: true");
    if (answer["value"].present() && !answer["header"].present())
      answer.Fail("has a value without its header", "add header: NAME");
  }
  if (f["readyFor"].present() != f["unreadyFor"].present())
    f.Fail("turns in one direction only", "give readyFor and unreadyFor, or neither of them");
  if (f["slowStart"].present() && !f["latency"].present())
    f["slowStart"].Fail("there is no time of service to begin with", "add latency: {p50: 5ms}");
}

AppBehaviour BehaviourOf(const Arguments& a) {
  AppBehaviour out;
  const Arguments latency(a.Json("latency"), a.line());
  for (const auto& [name, share] : kPoints) {
    if (const std::optional<Duration> time = latency.Time(name)) out.latency.push_back({share, *time});
  }
  for (const nlohmann::json& item : Items(a.Json("answers"))) {
    const Arguments given(item, a.line());
    AppAnswer answer;
    answer.code = static_cast<uint16_t>(given.Integer("code", 503));
    answer.reset = given.Flag("reset");
    answer.share_ppm = given.Share("share").value_or(answer.share_ppm);
    answer.header = absl::AsciiStrToLower(given.Text("header"));
    answer.value = given.Text("value");
    out.answers.push_back(std::move(answer));
  }
  out.ready = !a.Has("ready") || a.Flag("ready");
  out.ready_for = a.Time("readyFor").value_or(0ns);
  out.unready_for = a.Time("unreadyFor").value_or(0ns);
  out.slow_start = a.Time("slowStart").value_or(0ns);
  out.slow_factor = a.Integer("slowFactor", out.slow_start > 0ns ? 10 : 1);
  return out;
}

std::string DescribeBehaviour(const Arguments& a) {
  std::string pods = a.Text("app", "pods");
  if (a.Has("version")) pods += " " + a.Text("version");
  if (a.Has("namespace")) pods += " in " + a.Text("namespace");
  std::string how;
  for (const auto& [name, share] : kPoints) {
    const Arguments latency(a.Json("latency"), a.line());
    if (latency.Has(name)) how += fmt::format(" {} {}", name, latency.Text(name));
  }
  for (const nlohmann::json& item : Items(a.Json("answers"))) {
    const Arguments answer(item, a.line());
    how += fmt::format(" {}{}", answer.Flag("reset") ? "reset" : answer.Text("code"),
                       answer.Has("share") ? " (" + answer.Text("share") + ")" : "");
  }
  if (a.Has("ready")) how += a.Flag("ready") ? " ready" : " not ready";
  if (a.Has("readyFor")) how += fmt::format(" ready {}, unready {}", a.Text("readyFor"), a.Text("unreadyFor"));
  if (a.Has("slowStart")) how += " slow for " + a.Text("slowStart");
  return fmt::format("{}{} behave:{}", pods, a.Has("cluster") ? " of " + a.Text("cluster") : "",
                     how.empty() ? " as at first" : how);
}

Inputs InputsOfBehaviour(const Arguments& a, const ActionContext&) {
  return std::vector<sim::Input>{sim::inputs::SetBehaviour{
      {a.Text("cluster"), a.Text("namespace"), a.Text("app"), a.Text("version"), BehaviourOf(a)}}};
}

std::vector<MappingRow> InnerRows() {
  MappingRow latency{
      "behaviour.latency", "Time of service: evenly spread from nothing to p50, and from point to point", {}};
  for (const auto& [name, share] : kPoints) latency.fields.push_back(row::Other(name, FieldType::kDuration, ""));
  MappingRow answer{"behaviour.answer",
                    "An answer other than 200",
                    {row::Integer("code", 200, 599, "Status"),
                     row::Other("reset", FieldType::kFlag, "The connection is reset instead"),
                     row::Other("share", FieldType::kShare, "Of the requests; all if left out"),
                     row::Text("header", "Only to requests with this header"), row::Text("value", "and this value")}};
  return {std::move(latency), std::move(answer)};
}

}  // namespace

void RegisterBehaviour(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"behaviour",
               "How applications behave from now on",
               {row::Cluster("cluster", "Cluster; every one if left out"),
                row::Text("namespace", "Namespace; every one if left out"), row::Text("app", "The pods' label app"),
                row::Text("version", "Their label version; every one if left out"),
                row::Mapping("latency", "behaviour.latency", "Time of service"),
                row::Mappings("answers", "behaviour.answer", "The first that fits is given; 200 if none does"),
                row::Other("ready", FieldType::kFlag, "Whether the readiness probe succeeds; true if left out"),
                row::Other("readyFor", FieldType::kDuration, "It succeeds for so long, then fails, in turn"),
                row::Other("unreadyFor", FieldType::kDuration, "And fails for so long"),
                row::Other("slowStart", FieldType::kDuration, "How long after its start a pod is slow"),
                row::Integer("slowFactor", 1, 1'000, "How much slower it is at first; 10 if left out")}},
       .inner = InnerRows(),
       .example = "{app: helloworld, version: v2, latency: {p50: 5ms, p99: 80ms}, answers: [{code: 503, share: 10%}]}",
       .what =
           "applications of those pods take so long and answer so (200 if nothing fits; `reset: true` resets the "
           "connection; `header` and `value`: only to such requests); also `ready: false`, `readyFor`, `unreadyFor`, "
           "`slowStart`. The latest rule for a pod is in force; one without any of these ends it",
       .check = CheckBehaviour,
       .describe = DescribeBehaviour,
       .inputs = InputsOfBehaviour});
}

}  // namespace wavetank::scenario
