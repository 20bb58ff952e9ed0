#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "cli/install/manifest_diff.h"
#include "cli/verb.h"
#include "core/base/json_access.h"
#include "core/kube/credentials/sealing.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "replay/secrets.h"

namespace wavetank::cli {
namespace {

struct DiffArguments {
  std::string a, b;
  ManifestDiffOptions options;
  bool directory = false;
};

absl::StatusOr<ManifestObjects> Load(const std::string& path, bool directory) {
  if (std::filesystem::is_directory(path) != directory) {
    return absl::InvalidArgumentError(directory ? fmt::format("{}: --directory compares folders; this is none", path)
                                                : fmt::format("{}: it is a folder; add --directory", path));
  }
  absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(path);
  if (!manifests.ok()) return manifests.status();
  ManifestObjects out;
  for (fakekube::Manifest& manifest : *manifests) {
    const nlohmann::json& meta = At(manifest.object, "metadata");
    const std::string key =
        fmt::format("{}:{}:{}", Text(manifest.object, "kind"), Text(meta, "namespace"), Text(meta, "name"));
    // Credentials are shown to nobody; a change of one is shown as one.
    out[key] = kube::Sealed(replay::RedactedWithin(std::move(manifest.object)));
  }
  return out;
}

int Diff(const DiffArguments& a) {
  absl::StatusOr<ManifestObjects> first = Load(a.a, a.directory);
  if (!first.ok()) return Complain(first.status());
  absl::StatusOr<ManifestObjects> second = Load(a.b, a.directory);
  if (!second.ok()) return Complain(second.status());
  const absl::StatusOr<std::string> text = DiffManifests(*first, *second, a.options);
  if (!text.ok()) return Complain(text.status());
  if (text->empty()) {
    std::cout << "Manifests are identical\n";
    return kOk;
  }
  std::cout << "Differences in manifests are:\n" << *text << "\n";
  return kNo;
}

}  // namespace

void AddManifest(CLI::App& app, Outcome& outcome) {
  CLI::App* group = app.add_subcommand("manifest", "Manifests of installations, as `istioctl manifest` has them");
  group->require_subcommand(1);
  CLI::App* verb = group->add_subcommand("diff", "Says what differs between two installations' manifests");
  auto a = std::make_shared<DiffArguments>();
  verb->add_option("A", a->a, "A file, or a folder with --directory")->required()->check(CLI::ExistingPath);
  verb->add_option("B", a->b, "Another one")->required()->check(CLI::ExistingPath);
  verb->add_flag("-r,--directory", a->directory, "Compares folders");
  verb->add_option("--select", a->options.select, "Only these: KIND:NAMESPACE:NAME, comma separated")
      ->capture_default_str();
  verb->add_option("--ignore", a->options.ignore, "Not these, in the same form");
  verb->add_option("--rename", a->options.rename, "FROM->TO, in the same form: A's objects get the names of B's");
  verb->footer(
      "Ends with 1 where they differ. Changed paths are shown as OLD -> NEW, moved items of lists as "
      "[OLD-INDEX->NEW-INDEX], with ? for one that is not there.");
  verb->callback([a, &outcome] { outcome.code = Diff(*a); });
}

}  // namespace wavetank::cli
