#include "check/cause/anonymise.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct AnonymiseArguments {
  std::string log, out;
};

std::string Words(const check::Outcome& o) {
  return fmt::format("{} requests, {} failed; {} proxies with {} endpoints; {} inputs refused", o.sent, o.failed,
                     o.proxies, o.endpoints, o.refused);
}

int AnonymiseLog(const AnonymiseArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  if (absl::Status status = replay::CheckWritable(a.out); !status.ok()) return Complain(status);
  const absl::StatusOr<check::Anonymised> made = check::Anonymise(*story);
  if (!made.ok()) return Complain(made.status());
  if (absl::Status status = check::WriteStory(made->story, a.out); !status.ok()) return Complain(status);
  std::cout << fmt::format("{}: {} names and {} public addresses are others\n", a.out, made->names, made->addresses);
  if (made->before == made->after) {
    std::cout << "both behave alike: " << Words(made->after) << "\n";
    return WithWholeness(kOk, a.log, story->whole);
  }
  std::cout << fmt::format("they differ: {}, with the names {}\n", Words(made->after), Words(made->before));
  return kNo;
}

}  // namespace

void AddAnonymise(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("anonymise", "A log that may be shown: names, hosts and public addresses replaced");
  auto a = std::make_shared<AnonymiseArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("-o,--out", a->out, "Event log to write")->required();
  verb->footer(
      "Read it before you show it (`wavetank replay --inputs`): texts in free form may tell more. Both logs are run. "
      "Exit "
      "code 1: they do not behave alike.");
  verb->callback([a, &outcome] { outcome.code = AnonymiseLog(*a); });
}

}  // namespace wavetank::cli
