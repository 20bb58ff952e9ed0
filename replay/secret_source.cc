#include "replay/secret_source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "replay/secrets.h"

namespace wavetank::replay {
namespace {

namespace fs = std::filesystem;

bool LooksLikeManifest(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

// "Secret istio-system/cacerts", or nothing if `value` is no object of Kubernetes.
std::string ObjectName(const nlohmann::json& value) {
  if (!value.is_object() || !value.contains("kind") || !value.contains("metadata")) return {};
  const nlohmann::json &kind = value["kind"], &meta = value["metadata"];
  if (!kind.is_string() || !meta.is_object()) return {};
  const auto text = [&](const char* key) {
    const auto it = meta.find(key);
    return it != meta.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  const std::string ns = text("namespace");
  return fmt::format("{} {}{}{}", kind.get<std::string>(), ns, ns.empty() ? "" : "/", text("name"));
}

}  // namespace

absl::StatusOr<SecretSource> SecretSource::Load(const std::vector<std::string>& paths) {
  SecretSource out;
  for (const std::string& path : paths) {
    std::error_code error;
    const bool folder = fs::is_directory(path, error);
    std::vector<std::string> files;
    if (folder) {
      for (auto it = fs::recursive_directory_iterator(path, error); !error && it != fs::recursive_directory_iterator();
           it.increment(error)) {
        if (it->is_regular_file(error) && LooksLikeManifest(it->path())) files.push_back(it->path().string());
      }
      if (error) return absl::InvalidArgumentError(fmt::format("{}: {}", path, error.message()));
    } else {
      files.push_back(path);
    }
    for (const std::string& file : files) {
      absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(file);
      if (!manifests.ok() && !folder) return manifests.status();
      if (!manifests.ok()) continue;
      for (const fakekube::Manifest& manifest : *manifests) out.Add(manifest.object);
    }
  }
  return out;
}

const absl::StatusOr<SecretSource>& SecretSource::OfEnvironment() {
  static const auto* const source = [] {
    const char* const said = std::getenv("WAVETANK_SECRETS");
    const std::vector<std::string> paths = absl::StrSplit(said == nullptr ? "" : said, ':', absl::SkipEmpty());
    return new absl::StatusOr<SecretSource>(Load(paths));
  }();
  return *source;
}

absl::Status RestoreSecrets(const LogHeader& header, const SecretSource& secrets, LogInput* input) {
  const bool of_client = input->kind.starts_with("xds") || input->kind == "certificateRequest";
  if (of_client || header.IsRecording()) {
    secrets.Restore(&input->body).IgnoreError();
    return absl::OkStatus();
  }
  const absl::StatusOr<SecretSource>& own = SecretSource::OfEnvironment();
  if (secrets.empty() && !own.ok()) return own.status();
  const absl::Status restored = (secrets.empty() ? *own : secrets).Restore(&input->body);
  if (restored.ok()) return restored;
  return absl::FailedPreconditionError(fmt::format(
      "logs hold no private keys, so the replay of this one needs the manifests with the keys of {}, just as they "
      "were: --secrets FILE or FOLDER of `wavetank replay`, WAVETANK_SECRETS=FILE or FOLDER of every verb (or a run "
      "with --keep-secrets)",
      Message(restored)));
}

void SecretSource::Add(const nlohmann::json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (HoldsSecret(text)) by_digest_.insert_or_assign(Redacted(value).get<std::string>(), text);
  } else if (value.is_structured()) {
    for (const nlohmann::json& child : value) Add(child);
  }
}

absl::Status SecretSource::Restore(nlohmann::json* value) const {
  std::vector<std::string> missing;
  Restore(value, "a field", &missing);
  if (missing.empty()) return absl::OkStatus();
  const std::set<std::string> names(missing.begin(), missing.end());
  return absl::NotFoundError(fmt::format("{}", fmt::join(names, ", ")));
}

void SecretSource::Restore(nlohmann::json* value, std::string_view where, std::vector<std::string>* missing) const {
  if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    if (!IsRedacted(text)) return;
    if (const auto it = by_digest_.find(text); it != by_digest_.end()) {
      *value = it->second;
    } else {
      missing->emplace_back(where);
    }
  } else if (value->is_structured()) {
    const std::string name = ObjectName(*value);
    for (nlohmann::json& child : *value) Restore(&child, name.empty() ? where : std::string_view(name), missing);
  }
}

}  // namespace wavetank::replay
