#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "check/cause/instant.h"
#include "check/diff/diff.h"
#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "replay/world_target.h"

namespace wavetank::cli {
namespace {

struct DiffArguments {
  std::string before, after;
  std::vector<std::string> with;
  bool json = false, fail = false;
};

// A folder of manifests holds a folder (or file) for each cluster.
absl::StatusOr<check::MeshSource> SourceOf(const std::string& path) {
  // "run.wtlog@30s": the mesh that the log's inputs had led to then.
  std::error_code ignored;
  if (const size_t at = path.rfind('@');
      at != std::string::npos && !std::filesystem::exists(path, ignored) && replay::LooksLikeLog(path.substr(0, at))) {
    const absl::StatusOr<check::Story> story = check::LoadStory(path.substr(0, at));
    if (!story.ok()) return story.status();
    const absl::StatusOr<Time> time = check::FindInstant(path.substr(0, at) + "@", path.substr(at + 1), *story);
    if (!time.ok()) return time.status();
    check::MeshSource out;
    out.log = story->path;
    out.log_until = *time - story->header.Beginning();
    return out;
  }
  MeshSourceArguments out;
  out.manifests.folders = {path};
  if (check::KindOfSource(path) == check::SourceKind::kManifests) {
    absl::StatusOr<std::vector<std::string>> clusters = ClusterFolders(path);
    if (!clusters.ok()) return clusters.status();
    out.manifests.folders = *std::move(clusters);
  }
  return out.Source();
}

int PrintDiff(const DiffArguments& a) {
  absl::StatusOr<check::MeshSource> before = SourceOf(a.before);
  if (!before.ok()) return Complain(before.status());
  absl::StatusOr<check::MeshSource> after = SourceOf(a.after.empty() ? a.before : a.after);
  if (!after.ok()) return Complain(after.status());
  for (const std::string& text : a.with) {
    if (absl::Status status = AddOverlay(text, &after->with); !status.ok()) return Complain(status);
  }
  if (a.after.empty() && a.with.empty())
    return Complain(
        absl::InvalidArgumentError("one mesh alone has no difference; name another, or --with what changes"));
  const absl::StatusOr<check::MeshDiff> diff = [&] {
    Progress progress;
    before->progress = after->progress = [&](std::string_view what) { progress.Say(what); };
    return check::Diff(*before, *after, {});
  }();
  if (!diff.ok()) return Complain(diff.status());
  if (a.json) {
    std::cout << JsonText(check::DiffJson(*diff), 1) << "\n";
  } else {
    std::cout << check::DiffMarkdown(*diff);
  }
  return a.fail && !diff->Empty() ? kNo : kOk;
}

}  // namespace

void AddDiff(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("diff", "What a change of manifests does to flows and endpoints, as Markdown");
  auto a = std::make_shared<DiffArguments>();
  verb->add_option("before", a->before,
                   "A scenario, a log, a log at an instant (LOG@30s, \"LOG@input 41\"), or a folder with a folder of "
                   "manifests per cluster")
      ->required();
  verb->add_option("after", a->after, "Another; left out: the same, with what --with applies");
  verb->add_option("--with", a->with,
                   "CLUSTER=PATH, or a folder with a file per cluster: manifests applied over the second");
  verb->add_flag("--json", a->json, "As JSON");
  verb->add_flag("--fail-on-change", a->fail, "Exit code 1 if anything changes");
  verb->callback([a, &outcome] { outcome.code = PrintDiff(*a); });
}

}  // namespace wavetank::cli
