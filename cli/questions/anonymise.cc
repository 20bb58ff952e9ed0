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
  size_t tries = 64;
};

std::string Words(const check::Outcome& o) {
  return fmt::format("{} requests, {} failed; {} proxies with {} endpoints; {} inputs refused", o.sent, o.failed,
                     o.proxies, o.endpoints, o.refused);
}

int AnonymiseLog(const AnonymiseArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  if (absl::Status status = replay::CheckWritable(a.out, a.log); !status.ok()) return Complain(status);
  const absl::StatusOr<check::Anonymised> made = check::Anonymise(*story, a.tries);
  if (!made.ok()) return Complain(made.status());
  if (absl::Status status = check::WriteStory(made->story, a.out); !status.ok()) return Complain(status);
  std::cout << fmt::format("{}: {} names and {} public addresses are others\n", a.out, made->names, made->addresses);
  if (check::Alike(made->before, made->after)) {
    std::cout << "both behave alike: " << Words(made->after) << "\n";
    if (made->before.failed != made->after.failed) {
      std::cout << fmt::format("with the names {} failed: other requests, by chance, which is drawn by names\n",
                               made->before.failed);
    }
    return WithWholeness(kOk, a.log, story->whole);
  }
  std::cout << fmt::format("they differ: {}, with the names {}\n", Words(made->after), Words(made->before));
  if (made->before.places != made->after.places) {
    std::cout << fmt::format("pods are on other nodes, with any of {} sets of names; --tries tries more\n",
                             made->tries);
  }
  return kNo;
}

}  // namespace

void AddAnonymise(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("anonymise", "A log that may be shown: names, hosts and public addresses replaced");
  auto a = std::make_shared<AnonymiseArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("-o,--out", a->out, "Event log to write")->required();
  verb->add_option("--tries", a->tries, "Sets of names until one has pods on the nodes where they were (64)")
      ->check(CLI::Range(size_t{1}, size_t{100'000}));
  verb->footer(
      "Read it before you show it (`wavetank replay --inputs`): texts in free form may tell more. Both logs are run. "
      "Exit "
      "code 1: they do not behave alike.");
  verb->callback([a, &outcome] { outcome.code = AnonymiseLog(*a); });
}

}  // namespace wavetank::cli
