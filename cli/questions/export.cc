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
  const std::string from = out->mesh_log.empty() ? std::string() : fmt::format(" --from {}", out->mesh_log);
  std::cout << fmt::format("{}: {} steps, {} objects; run it with `wavetank run {}{}`\ndigest {}\n", a.folder,
                           out->steps, out->objects, a.folder, from, out->digest);
  if (out->claims > 0) {
    std::cout << fmt::format(
        "{} claims stand among the steps word for word, as no expectation of a scenario can say "
        "them; `wavetank replay {}` judges them\n",
        out->claims, a.log);
  }
  return WithWholeness(kOk, a.log, story->whole);
}

}  // namespace

void AddExport(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("export", "A log as a scenario's folder: manifests, steps, expectations");
  auto a = std::make_shared<ExportArguments>();
  verb->add_option("log", a->log, "Event log")->required();
  verb->add_option("folder", a->folder, "Folder to write")->required();
  verb->footer(
      "The scenario is run twice: to learn when its mesh is up, and what its steps shall expect. Of a recording, "
      "imported "
      "or not, the mesh stays a log beside it, which `wavetank run --from` takes: its clusters hold what was seen "
      "there, "
      "and none of the controllers of a scenario's clusters.");
  verb->callback([a, &outcome] { outcome.code = ExportLog(*a); });
}

}  // namespace wavetank::cli
