#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "cli/install/manifest_diff.h"
#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/credentials/sealing.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "replay/secrets.h"
#include "scenarios/mesh/istioctl.h"

namespace wavetank::cli {
namespace {

struct DiffArguments {
  std::string a, b;
  ManifestDiffOptions options;
  bool directory = false;
};

absl::StatusOr<ManifestObjects> Load(const std::string& path, bool directory) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) != directory) {
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

struct GenerateArguments {
  std::vector<std::string> files, set, components;
  std::string revision;
  bool force = false;
};

int Generate(const GenerateArguments& a) {
  const absl::StatusOr<std::string> istioctl = scenario::FindIstioctl();
  if (!istioctl.ok()) {
    return Complain(absl::Status(istioctl.status().code(),
                                 fmt::format("installations are rendered by istioctl, and {}; install istioctl 1.18.2",
                                             Message(istioctl.status()))));
  }
  std::vector<std::string> options;
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) options.insert(options.end(), {option, value});
  };
  add("-f", a.files);
  add("--set", a.set);
  add("--component", a.components);
  if (!a.revision.empty()) add("-r", {a.revision});
  if (a.force) options.push_back("--force");
  std::string input;
  if (std::find(a.files.begin(), a.files.end(), "-") != a.files.end())
    input.assign(std::istreambuf_iterator<char>(std::cin), {});
  const absl::StatusOr<scenario::Rendered> rendered = scenario::GenerateManifestsBy(*istioctl, options, input);
  if (!rendered.ok()) return Complain(rendered.status());
  for (const std::string& warning : rendered->warnings) std::cerr << warning << "\n";
  std::cout << rendered->manifests;
  return kOk;
}

}  // namespace

void AddManifest(CLI::App& app, Outcome& outcome) {
  CLI::App* group = app.add_subcommand("manifest", "Manifests of installations, as `istioctl manifest` has them");
  group->require_subcommand(1);
  CLI::App* generate = group->add_subcommand(
      "generate", "Prints what `istioctl install` would install, as the user's own istioctl renders it");
  auto g = std::make_shared<GenerateArguments>();
  generate->add_option("-f,--filename", g->files,
                       "IstioOperators, laid over each other in this order; -: standard input");
  generate->add_option("-s,--set", g->set, "PATH=VALUE over them: profile=minimal, values.global.network=network1")
      ->allow_extra_args(false);
  generate->add_option("--component", g->components, "Only these components");
  generate->add_option("-r,--revision", g->revision, "Of the control plane");
  generate->add_flag("--force", g->force, "In spite of what is not valid");
  AddCharts(generate);
  generate->callback([g, &outcome] { outcome.code = Generate(*g); });
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
