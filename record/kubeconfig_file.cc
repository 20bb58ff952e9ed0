#include "record/kubeconfig_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/base/status.h"
#include "core/kube/text/yaml_nodes.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "yaml-cpp/yaml.h"

namespace wavetank::record {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = 1 << 20;

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return absl::NotFoundError(fmt::format("{}: there is no such file", path.string()));
  if (fs::file_size(path, error) > kMaxFile) {
    return absl::InvalidArgumentError(fmt::format("{}: larger than 1 MiB, which no kubeconfig is", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::PermissionDeniedError(fmt::format("{}: cannot be read", path.string()));
  return text.str();
}

YAML::Node Named(const YAML::Node& list, const std::string& name) {
  if (list.IsSequence()) {
    for (const YAML::Node& item : list) {
      if (item.IsMap() && item["name"] && item["name"].IsScalar() && item["name"].Scalar() == name) return item;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

// `key` names a file whose text is to stand under `data_key` instead, in base64 or as it is.
absl::Status Embed(YAML::Node section, const char* key, const char* data_key, bool base64, const fs::path& folder) {
  if (!section.IsMap() || !section[key] || !section[key].IsScalar()) return absl::OkStatus();
  fs::path file(section[key].Scalar());
  section.remove(key);
  if (file.empty()) return absl::OkStatus();
  if (file.is_relative()) file = folder / file;
  if (section[data_key]) return absl::OkStatus();  // kubectl: data wins over files
  absl::StatusOr<std::string> text = ReadFile(file);
  if (!text.ok()) return text.status();
  if (!base64) absl::StripAsciiWhitespace(&*text);
  section[data_key] = base64 ? absl::Base64Escape(*text) : *text;
  return absl::OkStatus();
}

absl::StatusOr<std::string> OneContext(const YAML::Node& root, const std::string& name, const fs::path& path) {
  const YAML::Node context = Named(root["contexts"], name);
  if (!context.IsDefined() || !context["context"].IsMap()) {
    return absl::InvalidArgumentError(fmt::format("{}: it has no context '{}'", path.string(), name));
  }
  const YAML::Node names = context["context"];
  const auto text = [&](const char* key) {
    return names[key] && names[key].IsScalar() ? names[key].Scalar() : std::string();
  };
  YAML::Node out;
  out["apiVersion"] = "v1";
  out["kind"] = "Config";
  out["current-context"] = name;
  out["contexts"].push_back(YAML::Clone(context));
  if (const YAML::Node cluster = Named(root["clusters"], text("cluster")); cluster.IsDefined()) {
    YAML::Node copy = YAML::Clone(cluster);
    if (absl::Status status =
            Embed(copy["cluster"], "certificate-authority", "certificate-authority-data", true, path.parent_path());
        !status.ok()) {
      return status;
    }
    out["clusters"].push_back(copy);
  }
  if (const YAML::Node user = Named(root["users"], text("user")); user.IsDefined()) {
    YAML::Node copy = YAML::Clone(user);
    YAML::Node section = copy["user"];
    if (section.IsMap() && section["exec"]) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: context '{}' gets its credentials from a program, which `wavetank record` does not start: make a token "
          "(`kubectl --context {} create token SERVICEACCOUNT`) and name it in a kubeconfig of its own",
          path.string(), name, name));
    }
    struct {
      const char *key, *data;
      bool base64;
    } const files[] = {{"client-certificate", "client-certificate-data", true},
                       {"client-key", "client-key-data", true},
                       {"tokenFile", "token", false}};
    for (const auto& file : files) {
      if (absl::Status status = Embed(section, file.key, file.data, file.base64, path.parent_path()); !status.ok()) {
        return status;
      }
    }
    out["users"].push_back(copy);
  }
  YAML::Emitter emitter;
  emitter << out;
  return std::string(emitter.c_str());
}

}  // namespace

absl::StatusOr<std::vector<kube::KubeConfig>> LoadKubeConfigFile(const std::string& path,
                                                                 const std::vector<std::string>& contexts) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  try {
    const std::vector<YAML::Node> documents = kube::LoadYamlDocuments(*text);
    const YAML::Node root = documents.empty() ? YAML::Node() : documents[0];
    std::vector<std::string> wanted = contexts, all;
    if (root.IsMap() && root["contexts"] && root["contexts"].IsSequence()) {
      for (const YAML::Node& item : root["contexts"]) {
        if (item.IsMap() && item["name"] && item["name"].IsScalar()) all.push_back(item["name"].Scalar());
      }
    }
    if (all.empty()) return absl::InvalidArgumentError(fmt::format("{}: no kubeconfig: it has no contexts", path));
    if (wanted.empty()) wanted = all;
    std::vector<kube::KubeConfig> out;
    for (const std::string& name : wanted) {
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        return absl::InvalidArgumentError(
            fmt::format("{}: it has no context '{}'; it has: {}", path, name, fmt::join(all, ", ")));
      }
      absl::StatusOr<std::string> one = OneContext(root, name, fs::path(path));
      if (!one.ok()) return one.status();
      absl::StatusOr<kube::KubeConfig> parsed =
          kube::ParseKubeConfig(*one, fmt::format("{}: context '{}'", path, name));
      if (!parsed.ok()) return parsed.status();
      out.push_back(*std::move(parsed));
    }
    return out;
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(fmt::format("{}: line {}: {}", path, e.mark.line + 1, e.msg));
  }
}

}  // namespace wavetank::record
