#include <algorithm>
#include <set>

#include "check/upgrade/upgrade.h"
#include "core/base/time.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

std::string TextAt(const ordered_json& in, const char* key) { return in[key].get<std::string>(); }

std::string InSeconds(int64_t ns) { return fmt::format("{}.{} s", ns / 1'000'000'000, ns / 100'000'000 % 10); }

std::string Joined(const ordered_json& list, std::string_view between) {
  std::vector<std::string> out;
  for (const ordered_json& each : list) out.push_back(each.get<std::string>());
  return fmt::format("{}", fmt::join(out, between));
}

// "1 order", "3 orders".
std::string Several(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "20 cds, 4 lds".
std::string Counted(const ordered_json& by_type) {
  std::vector<std::string> out;
  for (const auto& [type, count] : by_type.items()) out.push_back(fmt::format("{} {}", count.get<int64_t>(), type));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string Shares(const ordered_json& flow) {
  int64_t answered = 0;
  for (const auto& [cluster, count] : flow["byCluster"].items()) answered += count.get<int64_t>();
  std::vector<std::string> out;
  for (const auto& [cluster, count] : flow["byCluster"].items()) {
    out.push_back(
        fmt::format("{} {} %", cluster, answered <= 0 ? 0 : (count.get<int64_t>() * 1000 / answered + 5) / 10));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string FromTo(const ordered_json& pair) {
  const std::string from = Joined(pair[0], " and "), to = Joined(pair[1], " and ");
  return from == to ? from : fmt::format("{} -> {}", from.empty() ? "none" : from, to.empty() ? "none" : to);
}

void AddRefusals(const ordered_json& list, const char* indent, std::string* out) {
  for (const ordered_json& row : list) {
    const ordered_json& groups = row["groups"];
    const size_t more = groups.size() > 2 ? groups.size() - 2 : 0;
    ordered_json named(groups.begin(), groups.begin() + static_cast<int64_t>(groups.size() - more));
    // One line for each listener; the first tells what the others do.
    const std::string words = TextAt(row, "words");
    const std::string first = words.substr(0, words.find('\n'));
    const auto lines = std::count(words.begin(), words.end(), '\n');
    *out += fmt::format("{}{} refused by {}{}\n{}  {}{}\n", indent, TextAt(row, "type"), Joined(named, ", "),
                        more == 0 ? "" : fmt::format(" and {} more", more), indent, first,
                        lines > 1 ? fmt::format(" (and {} more)", lines - 1) : "");
  }
}

// `explained`: whether it was looked which change of the release is behind what differs.
void AddProxies(const ordered_json& proxies, bool explained, std::string* out) {
  for (const ordered_json& group : proxies) {
    *out += fmt::format("   {}  {} prox{}, {}, served by {}\n", TextAt(group, "group"), group["proxies"].get<int>(),
                        group["proxies"] == 1 ? "y" : "ies", FromTo(group["releases"]), FromTo(group["istiods"]));
    if (group["differ"].empty()) {
      *out += "      holds what it held\n";
      continue;
    }
    *out += fmt::format("      another: {}\n", Counted(group["differ"]));
    for (const ordered_json& change : group["changes"]) {
      *out += fmt::format("      {:<38} {}\n", TextAt(change, "change"), Counted(change["resources"]));
    }
    if (group["endpointsAlone"] > 0) {
      *out += fmt::format("      {:<38} {} eds\n", "(pods that came and went)", group["endpointsAlone"].get<int64_t>());
    }
    if (group["brought"] > 0) {
      *out += fmt::format("      {:<38} {}\n", "(Services that came or went with it)", group["brought"].get<int64_t>());
    }
    if (group["others"] > 0) {
      *out +=
          fmt::format("      {:<38} {}{}\n", explained ? "(no change of a release)" : "(for whatever reason)",
                      Joined(group["otherNames"], ", "), group["others"] > group["otherNames"].size() ? ", ..." : "");
    }
  }
}

bool IsQuiet(const ordered_json& flow) { return flow["failed"] == 0 && !flow["moved"].get<bool>(); }

// What became of a flow's requests, and why some failed.
void AddFlow(const ordered_json& flow, const std::string& indent, std::string* out) {
  std::string failed = flow["failed"] == 0 ? "none failed" : fmt::format("{} FAILED", flow["failed"].get<int64_t>());
  if (const auto anyway = flow["failedAsBefore"].get<int64_t>(); anyway > 0) {
    failed =
        fmt::format("{} failed as they did before the first step{}", anyway, flow["failed"] == 0 ? "" : ", " + failed);
  }
  const std::string shares = Shares(flow);
  *out += fmt::format("{}{}: {} sent, {}{}{}{}\n", indent, TextAt(flow, "flow"), flow["sent"].get<int64_t>(), failed,
                      flow["moved"].get<bool>() ? ", answered elsewhere" : "", shares.empty() ? "" : "; ", shares);
  for (const ordered_json& reason : flow["reasons"]) {
    *out += fmt::format("{}   {} ({})\n", indent, TextAt(reason, "why"), reason["requests"].get<int64_t>());
  }
}

void AddFlows(const ordered_json& flows, std::string* out) {
  std::set<std::string> quiet;
  int64_t sent = 0;
  for (const ordered_json& flow : flows) {
    if (IsQuiet(flow) && flow["clientGone"] == 0 && flow["failedAsBefore"] == 0) {
      quiet.insert(TextAt(flow, "flow"));
      sent += flow["sent"].get<int64_t>();
      continue;
    }
    AddFlow(flow, "   ", out);
  }
  if (!quiet.empty()) {
    *out += fmt::format(
        "   {}: {} sent, none failed, answered where they were before\n",
        quiet.size() > 4 ? fmt::format("{} flows", quiet.size()) : fmt::format("{}", fmt::join(quiet, ", ")), sent);
  }
}

void AddOrders(const ordered_json& report, std::string* out) {
  size_t width = 5;
  for (const ordered_json& order : report["orders"]) width = std::max(width, TextAt(order, "order").size());
  *out += fmt::format("\n{:<{}}  {:>7}  {:>7}  {:>7}  {:>8}\n", "ORDER", width, "FAILED", "MOVED", "REFUSED", "TIME");
  for (const ordered_json& order : report["orders"]) {
    *out += fmt::format("{:<{}}  {:>7}  {:>7}  {:>7}  {:>8}{}\n", TextAt(order, "order"), width,
                        order["failed"].get<int64_t>(), order["moved"].get<int64_t>(), order["refused"].get<int64_t>(),
                        InSeconds(order["tookNs"].get<int64_t>()),
                        TextAt(order, "stuck").empty() ? "" : "  stuck: " + TextAt(order, "stuck"));
  }
}

// Where the orders that are not told step by step lose requests, or are refused something, and why.
void AddOtherOrders(const ordered_json& report, std::string* out) {
  std::string told;
  for (size_t i = 0; i < report["orders"].size(); ++i) {
    const ordered_json& order = report["orders"][i];
    if (i == report["best"].get<size_t>()) continue;
    std::string steps;
    int number = 0;
    for (const ordered_json& step : order["steps"]) {
      std::string losses;
      for (const ordered_json& flow : step.value("flows", ordered_json::array())) {
        if (!IsQuiet(flow)) AddFlow(flow, "      ", &losses);
      }
      AddRefusals(step["refused"], "      ", &losses);
      ++number;
      if (!losses.empty()) steps += fmt::format("   {}. {}\n{}", number, TextAt(step, "step"), losses);
    }
    if (!steps.empty()) told += fmt::format("{}\n{}", TextAt(order, "order"), steps);
  }
  if (!told.empty()) *out += "\nWhat other orders lose\n" + told;
}

void AddBehaviours(const ordered_json& behaviours, std::string* out) {
  if (behaviours.is_null()) return;
  *out += fmt::format("\nWhat is another in {} groups of proxies once all are through, by behaviour change\n",
                      behaviours["groups"].get<size_t>());
  for (const ordered_json& change : behaviours["changes"]) {
    *out += fmt::format("   {:<38} {:<24} {}\n", TextAt(change, "change"), Counted(change["resources"]),
                        TextAt(change, "what"));
  }
  if (!behaviours["withoutEffect"].empty()) {
    *out += fmt::format("   without effect here: {}\n", Joined(behaviours["withoutEffect"], ", "));
  }
  if (!behaviours["unexplained"].empty()) {
    *out += fmt::format("   {} resources differ by no single change:", behaviours["unexplained"].size());
    size_t named = 0;
    for (const ordered_json& row : behaviours["unexplained"]) {
      if (++named > 5) break;
      *out += fmt::format(" {} {} of {};", TextAt(row, "type"), TextAt(row, "name"), TextAt(row, "group"));
    }
    out->back() = '\n';
  }
}

}  // namespace

std::string UpgradeText(const ordered_json& report) {
  const ordered_json& best = report["orders"][report["best"].get<size_t>()];
  std::string out = fmt::format("{} to {}: {}, {} of {} requests a second\n", TextAt(report, "from"),
                                TextAt(report, "to"), Several(report["orders"].size(), "order"),
                                Several(report["flows"].size(), "flow"), report["rate"].get<int64_t>());
  for (const ordered_json& note : report["notes"]) out += fmt::format("note: {}\n", note.get<std::string>());
  AddOrders(report, &out);
  out += fmt::format("\n{}: {}\n", LosesNothing(report) ? "Loses nothing" : "Loses least", TextAt(best, "order"));
  int number = 0;
  for (const ordered_json& step : best["steps"]) {
    out += fmt::format("{}. {}  ({})\n", ++number, TextAt(step, "step"), InSeconds(step["tookNs"].get<int64_t>()));
    AddProxies(step["proxies"], !report["behaviours"].is_null(), &out);
    AddRefusals(step["refused"], "   ", &out);
    if (step.contains("flows")) AddFlows(step["flows"], &out);
  }
  if (!TextAt(best, "stuck").empty()) out += fmt::format("It is stuck there: {}\n", TextAt(best, "stuck"));

  AddOtherOrders(report, &out);
  out += "\nSkew\n";
  for (const ordered_json& skew : report["skews"]) {
    out += fmt::format("   proxies of {} on istiods of {}: {}\n", TextAt(skew, "proxy"), TextAt(skew, "istiod"),
                       skew["refused"].empty() ? "nothing is refused" : "BREAKS");
    AddRefusals(skew["refused"], "      ", &out);
  }
  AddBehaviours(report["behaviours"], &out);
  return out;
}

}  // namespace wavetank::check
