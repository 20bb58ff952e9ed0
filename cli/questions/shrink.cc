#include "check/cause/shrink.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "check/cause/trials.h"
#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct ShrinkArguments {
  std::string log, shows, small;
  bool quiet = false;
};

// A line now and then, also where no person looks: it takes its time.
class Lines {
 public:
  void Say(std::string_view what) {
    const int64_t now = RealMillis();
    if (now - last_ < 1000) return;
    last_ = now;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  }

 private:
  int64_t last_ = RealMillis();
};

int ShrinkLog(const ShrinkArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  // What is shown of an invariant is its breach.
  absl::StatusOr<check::Question> question = check::ParseQuestion("--shows", a.shows, *story);
  if (!question.ok()) return Complain(question.status());
  if (question->expectation.kind == "invariant" && !question->negated) question = check::Not(*question);
  if (absl::Status status = replay::CheckWritable(a.small, a.log); !status.ok()) return Complain(status);
  check::ShrinkOptions options;
  options.at_a_time = check::Processors();
  options.progress = a.small + ".shrinking";
  Lines lines;
  if (!a.quiet) options.say = [&](std::string_view what) { lines.Say(what); };
  const int64_t begun = RealMillis();
  const absl::StatusOr<check::Shrunk> found = check::Shrink(*question, *story, options);
  if (!found.ok()) {
    if (!absl::IsFailedPrecondition(found.status())) return Complain(found.status());
    std::cout << Message(found.status()) << "\n";
    return kNo;
  }
  if (absl::Status status = check::WriteStory(found->story, a.small); !status.ok()) return Complain(status);
  std::cout << fmt::format("{}: {} of {} inputs still show '{}': {}\n", a.small, found->story.inputs.size(),
                           story->inputs.size(), a.shows, found->answer.found);
  for (const replay::LogInput& input : found->story.inputs)
    std::cout << "  " << replay::Describe(input, story->header.Beginning()).substr(0, 160) << "\n";
  std::fprintf(stderr, "%zu worlds were tried in %.1f s%s\n", found->trials,
               static_cast<double>(RealMillis() - begun) / 1e3, found->resumed ? ", after those of a run before" : "");
  return WithWholeness(kOk, a.log, story->whole);
}

}  // namespace

void AddShrink(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("shrink", "The least of a log that still shows something");
  auto a = std::make_shared<ShrinkArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option(
          "--shows", a->shows,
          "An invariant that is broken (`wavetank invariants`), or an expectation that holds: 'requests: {failed: "
          "\">= 1\"}', 'not: {requests: {failed: 0}}'")
      ->required();
  verb->add_option(
          "-o,--out", a->small,
          "Event log to write; FILE.shrinking beside it is what was found so far, from which the same call goes on")
      ->required();
  verb->add_flag("-q,--quiet", a->quiet, "No progress on standard error");
  verb->footer(
      "Inputs, then objects and clusters, are left out as long as it shows. Exit code 1: the log does not show it.");
  verb->callback([a, &outcome] { outcome.code = ShrinkLog(*a); });
}

}  // namespace wavetank::cli
