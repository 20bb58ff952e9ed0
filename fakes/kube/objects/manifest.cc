#include "fakes/kube/objects/manifest.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/object.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/dumped.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

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
        fmt::format("{}:{}: no Kubernetes object: {}; if the file is another program's (Helm's values, an operator's), "
                    "leave it out",
                    file, line, Message(parsed.status())));
  }
  out->push_back({std::move(object), file, line, false, nullptr});
  return absl::OkStatus();
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
  if (absl::Status status = kube::CheckYamlNesting(text, file); !status.ok()) return status;
  std::vector<YAML::Node> documents;
  try {
    documents = kube::LoadYamlDocuments(text);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}; {}", file, e.mark.line + 1,
                                                  e.mark.column + 1, e.msg,
                                                  IsTemplate(text) ? kRenderIt : "check indentation and quotes"));
  }
  for (const YAML::Node& document : documents) {
    if (!document.IsDefined() || document.IsNull()) continue;
    absl::StatusOr<json> object = kube::YamlToJson(document, file);
    if (!object.ok()) {
      if (!IsTemplate(text)) return object.status();
      return absl::InvalidArgumentError(fmt::format("{}; {}", Message(object.status()), kRenderIt));
    }
    if (others != nullptr && others->is(*object)) {
      others->found.push_back({*std::move(object), file, document.Mark().line + 1, false, nullptr});
      continue;
    }
    const size_t first = out.size();
    if (absl::Status status = Collect(*std::move(object), file, document.Mark().line + 1, &out); !status.ok())
      return status;
    if (!document.IsMap()) continue;
    const YAML::Node items = document["items"];
    if (!items.IsDefined() || !items.IsSequence() || items.size() != out.size() - first) continue;
    for (size_t i = 0; i < items.size(); ++i) out[first + i].line = items[i].Mark().line + 1;
  }
  return out;
}

absl::StatusOr<std::vector<Manifest>> LoadManifests(const std::string& path, OtherDocuments* others) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty())
      return absl::NotFoundError(fmt::format("{}: holds no .yaml or .json file; name another folder", path));
  } else {
    files.emplace_back(path);
  }
  std::vector<Manifest> out;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", file.string()));
    }
    std::ostringstream text;
    text << in.rdbuf();
    absl::StatusOr<std::vector<Manifest>> parsed = ParseManifests(file.string(), text.str(), others);
    if (!parsed.ok()) return parsed.status();
    out.insert(out.end(), std::make_move_iterator(parsed->begin()), std::make_move_iterator(parsed->end()));
  }
  CleanDumped(&out);
  return out;
}

}  // namespace wavetank::fakekube
