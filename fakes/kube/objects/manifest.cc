#include "fakes/kube/objects/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/json_brackets.h"
#include "core/base/text/read_up_to.h"
#include "core/kube/object.h"
#include "core/kube/text/list_text.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/dumped.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/objects/manifest_folders.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// What to do about a file that other programs make objects of.
std::string RemedyFor(const json& object) {
  if (GroupOf(Text(object, "apiVersion")) == "kustomize.config.k8s.io")
    return "it is kustomize's: take what `kubectl kustomize` prints of its folder";
  // helm: pkg/chart/metadata.go.
  if (!object.contains("kind") && At(object, "version").is_string() && At(object, "name").is_string())
    return "it is a Helm chart's: take what `helm template` prints";
  return "if the file is another program's (Helm's values, an operator's), leave it out";
}

absl::Status Collect(json object, const std::string& file, int line, std::vector<Manifest>* out) {
  if (Text(object, "kind").ends_with("List") && At(object, "items").is_array()) {
    for (json& item : object["items"]) {
      if (absl::Status status = Collect(std::move(item), file, line, out); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<kube::ObjectRef> parsed = kube::Object::FromJson(object);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: no Kubernetes object: {}; {}", file, line, Message(parsed.status()), RemedyFor(object)));
  }
  out->push_back({std::move(object), file, line, false, nullptr});
  return absl::OkStatus();
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == text.npos; }

std::optional<json> ParseWithin(std::string_view text) {
  if (DeeperThan(text, bounds::kDepth)) return std::nullopt;
  json value = ParseJson(text);
  return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

// JSON, as API servers print it, in a tenth of the time that it takes as YAML, and lists item by item. False: the text
// is none, or nests too deep; the reader of YAML says why.
bool ReadJson(const std::string& file, std::string_view text, OtherDocuments* others, absl::Status* status,
              std::vector<Manifest>* out) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  bool is_json = first != text.npos && text[first] == '{';
  if (!is_json) return false;
  size_t end = 0;  // of the value before
  kube::EachJson(text, [&](std::string_view value, bool ends, size_t line) {
    const auto begin = static_cast<size_t>(value.data() - text.data());
    is_json = is_json && ends && value[0] == '{' && IsBlank(text.substr(end, begin - end));
    end = begin + value.size();
    if (!is_json || !status->ok()) return;
    const std::optional<kube::ListText> list = kube::JsonList(value, ends, line);
    if (!list) {
      std::optional<json> object = ParseWithin(value);
      is_json = object.has_value();
      if (is_json && others != nullptr && others->is(*object)) {
        others->found.push_back({*std::move(object), file, static_cast<int>(line), false, nullptr});
      } else if (is_json) {
        *status = Collect(*std::move(object), file, static_cast<int>(line), out);
      }
      return;
    }
    is_json = list->separated;
    for (const kube::ListItem& item : list->items) {
      std::optional<json> object = is_json ? ParseWithin(item.text) : std::nullopt;
      is_json = is_json && object.has_value();
      if (!is_json || !status->ok()) return;
      *status = Collect(kube::WithKindOf(list->head, *std::move(object)), file, static_cast<int>(item.line), out);
    }
  });
  return is_json && IsBlank(text.substr(end));
}

// One list in YAML, item by item, as the tree of a whole one takes forty times its text. False: it is none, or not all
// of it can be read so; the reader of documents says why.
bool ReadYamlList(const std::string& file, std::string_view text, absl::Status* status, std::vector<Manifest>* out) {
  if (text.find("\n---") != text.npos || text.find("\n...") != text.npos) return false;
  const std::optional<kube::ListText> list = kube::YamlList(text, 1);
  if (!list) return false;
  for (const kube::ListItem& item : list->items) {
    absl::StatusOr<json> object = kube::ParseYamlItem(item, file);
    if (!object.ok()) return false;
    *status = Collect(kube::WithKindOf(list->head, *std::move(object)), file, static_cast<int>(item.line), out);
    if (!status->ok()) return true;
  }
  return true;
}

bool IsTemplate(const std::string& text) { return text.find("{{") != std::string::npos; }
constexpr const char* kRenderIt = "it looks like a template: render it first, as by `helm template`";

}  // namespace

absl::StatusOr<std::vector<Manifest>> ParseManifests(const std::string& file, const std::string& text,
                                                     OtherDocuments* others) {
  std::vector<Manifest> out;
  if (text.size() > bounds::kManifestBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: larger than {} MiB; split it", file, bounds::kManifestBytes >> 20));
  }
  absl::Status refused;
  bool read = ReadJson(file, text, others, &refused, &out);
  if (!read) {
    out.clear();
    read = ReadYamlList(file, text, &refused, &out);
  }
  if (!refused.ok()) return refused;
  if (read) return out;
  out.clear();
  absl::StatusOr<std::vector<kube::YamlDocument>> documents = kube::ParseYamlDocuments(text, file);
  if (!documents.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}; {}", Message(documents.status()),
                                                  IsTemplate(text) ? kRenderIt : "check indentation and quotes"));
  }
  for (kube::YamlDocument& document : *documents) {
    if (others != nullptr && others->is(document.value)) {
      others->found.push_back({std::move(document.value), file, document.line, false, nullptr});
      continue;
    }
    const size_t first = out.size();
    if (absl::Status status = Collect(std::move(document.value), file, document.line, &out); !status.ok())
      return status;
    if (document.item_lines.size() != out.size() - first) continue;
    for (size_t i = first; i < out.size(); ++i) out[i].line = document.item_lines[i - first];
  }
  return out;
}

namespace {

// NotFound: a folder without any. Whether they can be read is not looked at.
absl::StatusOr<std::vector<std::filesystem::path>> FilesOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    const std::string below = NameFoldersLeftOut(path);
    return absl::NotFoundError(
        fmt::format("{}: holds no .yaml or .json file; {}", path,
                    below.empty() ? "name another folder"
                                  : fmt::format("its folders do, and are not read with it, as by `kubectl apply -f` "
                                                "without -R: name {}",
                                                below)));
  }
  return files;
}

absl::StatusOr<std::string> TextOfFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", file.string()));
  }
  return ReadUpTo(in, bounds::kManifestBytes + 1);  // its parser says that it is too large
}

}  // namespace

bool AnyMentions(const std::string& path, const std::vector<std::string_view>& words) {
  const absl::StatusOr<std::vector<std::filesystem::path>> files = FilesOf(path);
  if (!files.ok()) return false;
  return std::any_of(files->begin(), files->end(), [&](const std::filesystem::path& file) {
    const absl::StatusOr<std::string> text = TextOfFile(file);
    return text.ok() && std::any_of(words.begin(), words.end(),
                                    [&](std::string_view word) { return text->find(word) != std::string::npos; });
  });
}

absl::StatusOr<std::vector<Manifest>> LoadManifests(const std::string& path, OtherDocuments* others) {
  const absl::StatusOr<std::vector<std::filesystem::path>> files = FilesOf(path);
  if (!files.ok()) return files.status();
  std::vector<Manifest> out;
  for (const std::filesystem::path& file : *files) {
    const absl::StatusOr<std::string> text = TextOfFile(file);
    if (!text.ok()) return text.status();
    absl::StatusOr<std::vector<Manifest>> parsed = ParseManifests(file.string(), *text, others);
    if (!parsed.ok()) return parsed.status();
    out.insert(out.end(), std::make_move_iterator(parsed->begin()), std::make_move_iterator(parsed->end()));
  }
  CleanDumped(&out);
  return out;
}

}  // namespace wavetank::fakekube
