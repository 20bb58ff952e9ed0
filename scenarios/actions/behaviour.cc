#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/time.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/retries.h"
#include "sim/apps/host_port.h"
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
  for (const Field& call : f["calls"].Items()) {
    if (!sim::ParseHostPort(call["to"].Text())) call["to"].Fail("is no host:port", "write it as backend.sample:5000");
    CheckRetries(call["retries"]);
  }
  for (const Field& port : f["tls"]["ports"].Items()) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(port.Text(), &number) || number < 1 || number > 65535)
      port.Fail(fmt::format("'{}' is no port", port.Text()), "write ports: [443]");
  }
  if (!f["calls"].present() && (f["parallel"].present() || f["callFailed"].present()))
    f.Fail("calls nobody", "say whom under calls:, or leave out parallel and callFailed");
  if (f["slowStart"].present() && !f["latency"].present())
    f["slowStart"].Fail("there is no time of service to begin with", "add latency: {p50: 5ms}");
}

sim::AppCall CallOf(const Arguments& a) {
  sim::AppCall out;
  const sim::HostPort to = sim::ParseHostPort(a.Text("to")).value_or(sim::HostPort{});
  out.host = to.host;
  out.port = to.port;
  out.path = a.Text("path", out.path);
  out.method = a.Text("method", out.method);
  for (const auto& [name, value] : a.Json("headers").items())
    out.headers.emplace_back(absl::AsciiStrToLower(name), TextOf(value, JsonText(value)));
  out.on_path = a.Text("onPath");
  out.share_ppm = a.Share("share").value_or(out.share_ppm);
  out.timeout = a.Time("timeout").value_or(0ns);
  if (a.Has("retries")) out.retry = RetriesOf(a.Json("retries"));
  out.optional = a.Flag("optional");
  return out;
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
  const Arguments body(a.Json("body"), a.line());
  out.body_over = body.Time("over").value_or(0ns);
  out.body_pieces = body.Integer("pieces", 1);
  for (const auto& [name, value] : a.Json("trailers").items())
    out.trailers.emplace_back(absl::AsciiStrToLower(name), TextOf(value, JsonText(value)));
  out.ready = !a.Has("ready") || a.Flag("ready");
  out.ready_for = a.Time("readyFor").value_or(0ns);
  out.unready_for = a.Time("unreadyFor").value_or(0ns);
  out.slow_start = a.Time("slowStart").value_or(0ns);
  for (const nlohmann::json& item : Items(a.Json("calls"))) out.calls.push_back(CallOf(Arguments(item, a.line())));
  if (a.Has("tls")) {
    const Arguments given(a.Json("tls"), a.line());
    sim::AppTls& tls = out.tls.emplace();
    for (const nlohmann::json& port : Items(given.Json("ports"))) {
      int64_t number = 0;
      if (absl::SimpleAtoi(TextOf(port, JsonText(port)), &number))
        tls.ports.push_back(number);  // CheckBehaviour() has looked
    }
    tls.certificate = given.Text("certificate");
    tls.clients = given.Text("clients");
  }
  out.parallel = a.Flag("parallel");
  out.call_failed = static_cast<uint16_t>(a.Integer("callFailed", out.call_failed));
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
  if (const Arguments body(a.Json("body"), a.line()); body.Has("over")) how += " bodies over " + body.Text("over");
  if (a.Has("trailers")) how += " trailers";
  if (a.Has("tls")) how += " in TLS";
  if (a.Has("ready")) how += a.Flag("ready") ? " ready" : " not ready";
  if (a.Has("readyFor")) how += fmt::format(" ready {}, unready {}", a.Text("readyFor"), a.Text("unreadyFor"));
  std::vector<std::string> called;
  for (const nlohmann::json& item : Items(a.Json("calls"))) called.push_back(Arguments(item, a.line()).Text("to"));
  if (!called.empty()) how += fmt::format(" call {}{}", fmt::join(called, ", "), a.Flag("parallel") ? " at once" : "");
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
  MappingRow body{"behaviour.body",
                  "How its answers' bodies come: half with the head, the rest in pieces, evenly over a time",
                  {row::Other("over", FieldType::kDuration, "From the head to the last byte").Required(),
                   row::Integer("pieces", 1, 1'000, "How many come over that time; one if left out")}};
  MappingRow call{"behaviour.call",
                  "A request to another service before it answers",
                  {row::Text("to", "host:port as the application writes it").Required(),
                   row::Text("path", "Request path; / if left out"), row::Text("method", "GET if left out"),
                   row::Other("headers", FieldType::kTextMap, "Of the request"),
                   row::Text("onPath", "Only for requests whose path begins so"),
                   row::Other("share", FieldType::kShare, "Of those requests; all if left out"),
                   row::Other("timeout", FieldType::kDuration, "Of an attempt; none if left out"),
                   row::Mapping("retries", "retries", "Its own retries; none if left out"),
                   row::Other("optional", FieldType::kFlag, "Its failure is not the application's")}};
  MappingRow tls{"behaviour.tls",
                 "Ports that speak TLS; Secrets are those of the pods' namespace",
                 {row::Other("ports", FieldType::kTexts, "The containers' ports; all if left out"),
                  row::Text("certificate",
                            "Secret with what they show (tls.crt); if left out, a certificate of the public authority "
                            "for the name that a client asks for"),
                  row::Text("clients",
                            "Secret with the authorities (ca.crt, cacert, or its only entry) of the certificates that "
                            "clients must show; none if left out")}};
  return {std::move(latency), std::move(answer), std::move(body), std::move(call), std::move(tls)};
}

}  // namespace

void RegisterBehaviour(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"behaviour",
               "How applications behave from now on",
               {row::Cluster("cluster", "Cluster; every one if left out"),
                row::Text("namespace", "Namespace; every one if left out"),
                row::Text("app", "The pods' label app, or app.kubernetes.io/name"),
                row::Text("version", "Their label version; every one if left out"),
                row::Mapping("latency", "behaviour.latency", "Time of service"),
                row::Mappings("answers", "behaviour.answer", "The first that fits is given; 200 if none does"),
                row::Mapping("body", "behaviour.body", "Of its answers; at once if left out"),
                row::Other("trailers", FieldType::kTextMap, "Behind the bodies of its answers"),
                row::Mappings("calls", "behaviour.call", "Whom it calls before it answers 200, in order"),
                row::Mapping("tls", "behaviour.tls", "Its ports speak TLS; plain text if left out"),
                row::Other("parallel", FieldType::kFlag, "All calls at once instead of one after the other"),
                row::Integer("callFailed", 400, 599, "The answer when a call failed; 502 if left out"),
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
           "`slowStart`; `body: {over: 2s, pieces: 4}`, answers that come over time after their head; `trailers: "
           "{x-sum: abc}`, what stands behind them. `calls: [{to: "
           "backend.sample:5000, timeout: 1s, retries: {attempts: 3}}]` come before the "
           "answer; the sixteenth of a circle is answered with 508. `tls: {ports: [443], certificate: SECRET, clients: "
           "SECRET}`: those ports speak TLS. The latest rule for a pod is in force; one without "
           "any of these ends it",
       .check = CheckBehaviour,
       .describe = DescribeBehaviour,
       .inputs = InputsOfBehaviour});
}

}  // namespace wavetank::scenario
