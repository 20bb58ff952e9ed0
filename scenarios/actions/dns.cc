#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/web.h"

namespace wavetank::scenario {
namespace {

void CheckDns(const Field& f) {
  const std::string name = f["name"].Text();
  if (f["name"].present() && (name.empty() || name.find_first_of(" \t/:") != std::string::npos))
    f["name"].Fail("is no host name", "write one such as lb.example");
  if (f["alias"].present() && f["alias"].Text() == name)
    f["alias"].Fail("is the name itself", "write another name, or addresses");
  if (f["alias"].present() && f["addresses"].present())
    f["alias"].Fail("stands beside addresses", "a name is an alias, or has addresses");
  for (const Field& type : f["failing"].Items()) {
    if (type.Text() != "A" && type.Text() != "AAAA") type.Fail("is no type of query", "write A or AAAA");
  }
}

std::string DescribeDns(const Arguments& a) {
  const std::vector<std::string> addresses = a.Texts("addresses"), failing = a.Texts("failing");
  std::string out;
  if (a.Has("alias")) {
    out = fmt::format("DNS says {} for {}", a.Text("alias"), a.Text("name"));
  } else if (addresses.empty()) {
    out = fmt::format("DNS knows {} no more", a.Text("name"));
  } else {
    out = fmt::format("DNS says {} for {}", fmt::join(addresses, ", "), a.Text("name"));
  }
  if (!failing.empty()) out += fmt::format(", queries for {} fail", fmt::join(failing, " and "));
  if (a.Has("ttl")) out += fmt::format(", for {}", a.Text("ttl"));
  return out;
}

Inputs InputsOfDns(const Arguments& a, const ActionContext&) {
  return std::vector<sim::Input>{
      sim::inputs::SetDns{a.Text("name"), a.Texts("addresses"), a.Text("alias"), a.Texts("failing"), a.Time("ttl")}};
}

}  // namespace

void RegisterDns(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"dns",
               "Change what DNS answers",
               {row::Text("name", "Host name").Required(),
                row::Other("addresses", FieldType::kAddresses, "Answers, A and AAAA by their kind; none: NXDOMAIN"),
                row::Text("alias", "Another name instead (CNAME)"),
                row::Other("failing", FieldType::kTexts, "Types of queries that get no answer: A, AAAA"),
                row::Other("ttl", FieldType::kDuration,
                           "How long clusters' DNS keeps it, NXDOMAIN too; left out: it is asked for anew each time")}},
       .example = "{name: lb.example, addresses: [172.30.1.9]}",
       .what = "what DNS answers; no addresses: the name is unknown; `alias` (CNAME); `failing: [A]`, queries of that "
               "type fail; `ttl: 30s`, each cluster keeps the answer for so long, that there is none too",
       .check = CheckDns,
       .describe = DescribeDns,
       .inputs = InputsOfDns});
}

}  // namespace wavetank::scenario
