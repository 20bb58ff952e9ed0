#include "check/cause/export.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct ExportArguments {
  std::string log, folder;
};

int ExportLog(const ExportArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<check::Exported> out = check::ExportStory(*story, a.folder);
  if (!out.ok()) return Complain(out.status());
  std::cout << fmt::format("{}: {} steps, {} objects; run it with `wavetank run {}`\ndigest {}\n", a.folder, out->steps,
                           out->objects, a.folder, out->digest);
  return WithWholeness(kOk, a.log, story->whole);
}

}  // namespace

void AddExport(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("export", "A log as a scenario's folder: manifests, steps, expectations");
  auto a = std::make_shared<ExportArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("folder", a->folder, "Folder to write")->required();
  verb->footer("The scenario is run twice: to learn when its mesh is up, and what its steps shall expect.");
  verb->callback([a, &outcome] { outcome.code = ExportLog(*a); });
}

}  // namespace wavetank::cli
