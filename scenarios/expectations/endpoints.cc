#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

ExpectationResult JudgeEndpoints(const Expectation& e, const WorldView& world) {
  ExpectationResult r;
  const auto lists = world.EndpointsOf(e.cluster, e.ns, e.app, e.host, e.port);
  if (lists.empty()) {
    r.explanation = fmt::format("no proxy of {} in {} is connected", e.app, e.cluster);
    return r;
  }
  r.held = true;
  for (const auto& list : lists) {
    const auto range = e.ranges.find("count");
    const bool count_held = range == e.ranges.end() || range->second.Holds(static_cast<int64_t>(list.addresses.size()));
    std::vector<std::string> wanted = e.names;
    std::sort(wanted.begin(), wanted.end());
    const bool names_held = e.names.empty() || wanted == list.addresses;
    r.held = r.held && count_held && names_held;
    r.explanation += fmt::format("{}{} has {} [{}]", r.explanation.empty() ? "" : "; ", list.proxy,
                                 list.addresses.size(), fmt::join(list.addresses, " "));
  }
  return r;
}

void ReadEndpoints(const Field& f, Expectation* e) {
  const Field proxy = f["of_proxy"];
  CheckMapping(proxy, ClientRow(), nullptr);
  e->cluster = proxy["cluster"].Text();
  e->ns = proxy["namespace"].Text("default");
  e->app = proxy["app"].Text();
  e->host = f["host"].Text();
  e->port = static_cast<int>(f["port"].Integer(80, 1, 65535));
  for (const Field& address : f["are"].Items()) e->names.push_back(address.Text());
  if (e->ranges.empty() && !f["are"].present()) f.Fail("names no quantity", "write count: 2 or are: [10.1.0.5:5000]");
}

std::string DescribeEndpoints(const Expectation& e) {
  return fmt::format("endpoints of {}:{} at {} in {}: {}{}", e.host, e.port, e.app, e.cluster, DescribeRanges(e),
                     fmt::join(e.names, " "));
}

}  // namespace

void RegisterEndpoints(std::vector<ExpectationKind>& table) {
  table.push_back(
      {.row = {"endpoints",
               "What proxies hold for a service",
               {row::Mapping("of_proxy", "client", "").Required(), row::Text("host", "FQDN").Required(),
                row::Integer("port", 1, 65535, "Service port"), row::Range("count", {Range::Unit::kCount}, "Number"),
                row::Other("are", FieldType::kTexts, "address:port, all of them")}},
       .example = "{of_proxy: {cluster: c1, namespace: sample, app: sleep}, host: "
                  "helloworld.sample.svc.cluster.local, port: 5000, count: 2}",
       .what = "each such proxy holds them; `are: [10.1.0.5:5000]` lists them all",
       .always = true,
       .eventually = true,
       .read = ReadEndpoints,
       .describe = DescribeEndpoints,
       .judge_world = JudgeEndpoints});
}

}  // namespace wavetank::scenario
