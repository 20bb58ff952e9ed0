#include "scenarios/library/page.h"

#include "fmt/format.h"

namespace wavetank::scenario {
namespace {

// "[istio#56355](https://github.com/istio/istio/issues/56355)" of an address.
std::string Link(const std::string& address) {
  const size_t number = address.rfind('/') + 1;
  const std::string_view github = "https://github.com/";
  if (!address.starts_with(github)) return fmt::format("<{}>", address);
  const std::string rest = address.substr(github.size());
  const size_t first = rest.find('/'), second = rest.find('/', first + 1);
  return fmt::format("[{}#{}]({})", rest.substr(first + 1, second - first - 1), address.substr(number), address);
}

std::string Links(const Incident& incident) {
  std::string out;
  for (const std::string& issue : incident.issues) out += (out.empty() ? "" : ", ") + Link(issue);
  return out.empty() ? "read in the source" : out;
}

std::string Verdicts(const Incident& incident) {
  std::string out;
  for (const auto& [profile, shown] : incident.shown)
    out += fmt::format("{}{}: {}", out.empty() ? "" : "<br>", profile, shown ? "shown" : "not shown");
  return out;
}

}  // namespace

std::string IncidentPage(const std::vector<IncidentStory>& stories) {
  std::string out = fmt::format(
      "# Incidents: symptom, cause, how to see it\n\n"
      "{} incidents of multi-cluster meshes, each a story that runs (`scenarios/incidents/`). `wavetank incidents` "
      "runs "
      "them all and\nsays for each profile whether the incident is shown, and in one line why; `wavetank incidents "
      "A01` one of them, and\n`wavetank run scenarios/incidents/A01-...` tells it step by step. This page is made by "
      "`wavetank incidents --page`.\n\n"
      "| incident | symptom | cause | how to see it | verdicts |\n| --- | --- | --- | --- | --- |\n",
      stories.size());
  for (const IncidentStory& story : stories) {
    const Incident& i = *story.scenario.incident;
    out += fmt::format("| [{}](../scenarios/incidents/{}-{}/scenario.yaml) {} | {} | {} | {} | {} |\n", story.id,
                       story.id, story.name, Links(i), i.symptom, i.cause, i.see, Verdicts(i));
  }
  std::string remarks;
  for (const IncidentStory& story : stories) {
    const Incident& i = *story.scenario.incident;
    if (!i.remark.empty()) remarks += fmt::format("- **{}**: {}\n", story.id, i.remark);
  }
  if (!remarks.empty()) out += "\n## Where 1.18.2 does otherwise than was believed\n" + remarks;
  return out;
}

}  // namespace wavetank::scenario
