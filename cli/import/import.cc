#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/importer.h"
#include "import/report/report.h"
#include "import/skeleton/mesh_of_objects.h"
#include "import/skeleton/skeleton.h"
#include "replay/kept_secrets.h"

namespace wavetank::cli {
namespace {

struct ImportArguments {
  std::vector<std::string> sources, skews, clusters, formats;
  std::string log;
  bool json = false, strict = false, timeline = false, keep_secrets = false;
};

absl::StatusOr<std::pair<std::string, importing::WallNs>> ReadSkew(const std::string& text) {
  const size_t equals = text.rfind('=');
  std::string by = equals == text.npos ? "" : text.substr(equals + 1);
  const bool back = by.starts_with('-');
  if (back) by.erase(0, 1);
  const std::optional<Duration> skew = ParseDuration(by);
  if (equals == 0 || !skew) {
    return absl::InvalidArgumentError("--skew '" + text +
                                      "': write SOURCE=2s, or SOURCE=-200ms for a clock that is ahead");
  }
  return std::pair(text.substr(0, equals), back ? -skew->count() : skew->count());
}

int RunImport(const ImportArguments& a) {
  importing::ImportOptions options;
  options.sources = a.sources;
  options.access_formats = a.formats;
  if (a.keep_secrets && a.log.empty()) {
    return Complain(absl::InvalidArgumentError("--keep-secrets is about the event log: give -o FILE"));
  }
  options.keep_secrets = a.keep_secrets;
  for (const std::string& text : a.skews) {
    auto skew = ReadSkew(text);
    if (!skew.ok()) return Complain(skew.status());
    options.skews.push_back(*std::move(skew));
  }
  for (const std::string& text : a.clusters) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      return Complain(absl::InvalidArgumentError("--cluster '" + text + "': write NAME=PATH"));
    }
    options.clusters.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  // What names whose it is names what to read, too, unless it lies in what is read.
  for (const auto& named : options.clusters) {
    const std::string& path = named.second;
    const bool within = std::any_of(options.sources.begin(), options.sources.end(), [&](const std::string& source) {
      return path == source || path.starts_with(source + (source.ends_with('/') ? "" : "/")) ||
             source.starts_with(path + (path.ends_with('/') ? "" : "/"));
    });
    std::error_code error;
    if (a.sources.empty() || (!within && std::filesystem::exists(path, error))) options.sources.push_back(path);
  }
  if (options.sources.empty()) {
    return Complain(absl::InvalidArgumentError(
        "nothing to read: name files, folders or archives (`wavetank import incident.tgz`), or --cluster NAME=PATH"));
  }
  options.waits = [](std::string_view what) { std::cerr << what << std::endl; };
  const absl::StatusOr<importing::Imported> imported = importing::Import(options);
  if (!imported.ok()) return Complain(imported.status());
  const importing::Evidence& evidence = imported->evidence;
  if (imported->empty()) {
    std::cerr << importing::Summary(evidence);
    return Complain(
        absl::InvalidArgumentError("no evidence in what was named; name logs of istiod or of proxies, dumps of "
                                   "Kubernetes' objects, audit logs, or archives or folders with them"));
  }
  std::vector<std::string> notes, inferred;
  if (!a.log.empty()) {
    const absl::StatusOr<importing::Skeleton> skeleton = imported->kube.empty()
                                                             ? importing::MakeSkeleton(evidence)
                                                             : importing::MakeMeshOfObjects(evidence, imported->kube);
    if (!skeleton.ok()) return Complain(skeleton.status());
    if (absl::Status status = importing::WriteLog(*skeleton, a.log, WAVETANK_VERSION, a.keep_secrets); !status.ok()) {
      return Complain(status);
    }
    notes = skeleton->notes;
    inferred = skeleton->inferred;
    notes.push_back(fmt::format("{}: {} inputs and claims; `wavetank replay {}` judges the claims", a.log,
                                skeleton->inputs.size(), a.log));
    if (a.keep_secrets) notes.push_back(replay::KeptSecretsNote(a.log));
  }
  if (a.json) {
    nlohmann::ordered_json json = importing::ToJson(evidence);
    json["missing"] = importing::WhatIsMissing(*imported);
    if (a.keep_secrets) json["keepsSecrets"] = true;
    std::cout << JsonText(json, 1) << "\n";
  } else {
    if (a.timeline) std::cout << importing::Timeline(evidence) << "\n";
    if (a.timeline && !inferred.empty()) {
      std::cout << "inferred to have happened before the dump:\n";
      for (const std::string& line : inferred) std::cout << "  " << importing::Harmless(line) << "\n";
      std::cout << "\n";
    }
    std::cout << importing::Summary(evidence);
    std::cout << importing::TrafficSummary(imported->traffic);
    if (!imported->kube.empty()) {
      std::cout << fmt::format("objects: {} of dumps, {} writes with their times\n", imported->kube.state.size(),
                               imported->kube.history.size());
    }
    for (const std::string& missing : importing::WhatIsMissing(*imported)) {
      std::cout << "would tell more: " << missing << "\n";
    }
    for (const std::string& note : notes) std::cout << "note: " << note << "\n";
  }
  if (a.strict && !evidence.refusals.empty()) {
    return Complain(absl::InvalidArgumentError("--strict: something was left out; see above"));
  }
  return kOk;
}

}  // namespace

void AddImport(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "import",
      "Reads evidence of a real mesh (logs, dumps): what must have happened, and what is claimed to have followed");
  auto a = std::make_shared<ImportArguments>();
  verb->add_option("source", a->sources,
                   "Files, folders, .tar, .tar.gz, .zip; - is standard input; PATHs of --cluster are read, too");
  verb->add_option("-o,--log", a->log, "Event log to write: a mesh of what the evidence names, and its claims");
  verb->add_option("--cluster", a->clusters,
                   "NAME=PATH: which cluster the objects of a source, a folder or a file are of; several times")
      ->allow_extra_args(false);
  verb->add_option("--skew", a->skews, "SOURCE=2s: what to add to the times of a source whose clock is behind")
      ->allow_extra_args(false);
  verb->add_option("--access-log-format", a->formats,
                   "Format of access logs, text or JSON, if it is not Istio's or Envoy's own; several times")
      ->allow_extra_args(false);
  verb->add_flag("--keep-secrets", a->keep_secrets,
                 "Store remote Secrets and cacerts of dumps with their keys and tokens: the log is then as secret as "
                 "they are");
  verb->add_flag("--json", a->json, "The inferred timeline, the claims and what was left out, as JSON");
  verb->add_flag("--timeline", a->timeline, "Print each inferred input with its line");
  verb->add_flag("--strict", a->strict, "Exit code 2 if anything was left out");
  verb->footer("docs/import.md says what is read of which lines, and what follows from it.");
  verb->callback([a, &outcome] { outcome.code = RunImport(*a); });
}

}  // namespace wavetank::cli
