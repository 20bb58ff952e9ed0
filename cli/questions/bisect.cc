#include "check/cause/bisect.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "check/cause/trials.h"
#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct BisectArguments {
  std::string log, holds;
  bool json = false;
};

int PrintBisection(const BisectArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<check::Question> question = check::ParseQuestion("--holds", a.holds, *story);
  if (!question.ok()) return Complain(question.status());
  const absl::StatusOr<check::Bisection> found = [&] {
    Progress progress;
    return check::Bisect(*question, *story, check::Processors(), [&](std::string_view what) { progress.Say(what); });
  }();
  if (!found.ok()) {
    if (!absl::IsFailedPrecondition(found.status())) return Complain(found.status());
    std::cout << Message(found.status()) << "\n";
    return kNo;
  }
  const Time beginning = story->header.Beginning();
  const replay::LogInput* const input = found->input ? &story->inputs[*found->input] : nullptr;
  if (a.json) {
    nlohmann::ordered_json out = {
        {"log", a.log}, {"holds", a.holds}, {"trials", found->trials}, {"found", found->found}};
    if (input != nullptr) {
      out["before"] = found->before;
      out["input"] = {
          {"seq", input->seq}, {"atNs", (input->at - beginning).count()}, {"kind", input->kind}, {"body", input->body}};
    }
    std::cout << JsonText(out, 1) << "\n";
  } else if (input == nullptr) {
    std::cout << fmt::format("'{}' holds to the end of {}: {}\n", a.holds, a.log, found->found);
  } else {
    std::cout << fmt::format("first broken by {}\n  before it: {}\n  after it:  {}\n",
                             replay::Describe(*input, beginning), found->before, found->found);
    if (found->at != Time{}) std::cout << fmt::format("  since:     {}\n", FormatDuration(found->at - beginning));
    std::cout << fmt::format("{} worlds were tried\n", found->trials);
  }
  return input == nullptr ? kNo : WithWholeness(kOk, a.log, story->whole);
}

}  // namespace

void AddBisect(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("bisect", "The first input of a log after which something does not hold any more");
  auto a = std::make_shared<BisectArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option(
          "--holds", a->holds,
          "An invariant (`wavetank invariants`), or an expectation as scenarios have it: 'requests: {failed: 0}', "
          "'always: {endpoints: {...}}', 'not: {...}'")
      ->required();
  verb->add_flag("--json", a->json, "As JSON");
  verb->footer(
      "Worlds of the log's first inputs alone are brought to rest and asked. Exit code 1: it holds to the end, or "
      "never.");
  verb->callback([a, &outcome] { outcome.code = PrintBisection(*a); });
}

}  // namespace wavetank::cli
