#include "fakes/kube/manifest.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/status.h"
#include "core/kube/object.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 100;
constexpr size_t kMaxNodes = 2'000'000;  // after aliases are expanded
constexpr size_t kMaxBytes = 64u << 20;

class Converter {
 public:
  explicit Converter(std::string file) : file_(std::move(file)) {}

  json Convert(const YAML::Node& node, int depth) {
    if (!status_.ok()) return nullptr;
    if (depth > kMaxDepth) {
      Fail(node, fmt::format("nested deeper than {} levels", kMaxDepth), "flatten it");
      return nullptr;
    }
    // Aliases of aliases grow without end.
    if (++nodes_ > kMaxNodes) {
      Fail(node, fmt::format("more than {} values after aliases are expanded", kMaxNodes), "split the file");
      return nullptr;
    }
    switch (node.Type()) {
      case YAML::NodeType::Map: {
        json out = json::object();
        for (const auto& entry : node) {
          if (!entry.first.IsScalar()) {
            Fail(entry.first, "a field name must be text");
            return nullptr;
          }
          if (entry.first.Tag() == "?" && entry.first.Scalar() == "<<") {
            const json merged = Convert(entry.second, depth + 1);
            if (merged.is_object()) {
              for (const auto& [key, value] : merged.items()) {
                if (!out.contains(key)) out[key] = value;
              }
            }
            continue;
          }
          out[entry.first.Scalar()] = Convert(entry.second, depth + 1);
        }
        return out;
      }
      case YAML::NodeType::Sequence: {
        json out = json::array();
        for (const auto& item : node) out.push_back(Convert(item, depth + 1));
        return out;
      }
      case YAML::NodeType::Scalar:
        return Scalar(node);
      default:
        return nullptr;
    }
  }

  void Fail(const YAML::Node& node, std::string_view what, std::string_view remedy = {}) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(fmt::format("{}:{}:{}: {}{}{}", file_, node.Mark().line + 1,
                                                     node.Mark().column + 1, what, remedy.empty() ? "" : "; ", remedy));
  }
  const absl::Status& status() const { return status_; }

 private:
  static json Scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return text;  // quoted, or a block
    static constexpr std::string_view kTrue[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
    static constexpr std::string_view kFalse[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
    if (std::find(std::begin(kTrue), std::end(kTrue), text) != std::end(kTrue)) return true;
    if (std::find(std::begin(kFalse), std::end(kFalse), text) != std::end(kFalse)) return false;
    const char* begin = text.data();
    const char* const end = text.data() + text.size();
    if (*begin == '+') ++begin;
    int64_t integer = 0;
    if (const auto [at, error] = std::from_chars(begin, end, integer); error == std::errc() && at == end) {
      // 0644 is octal in YAML 1.1, as file modes in volumes are written.
      if (text.size() > 1 && text[0] == '0') {
        int64_t octal = 0;
        const auto [at8, error8] = std::from_chars(begin, end, octal, 8);
        if (error8 == std::errc() && at8 == end) return octal;
        return text;
      }
      return integer;
    }
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
      const auto [at, error] = std::from_chars(begin + 2, end, integer, text[1] == 'x' ? 16 : 8);
      if (error == std::errc() && at == end) return integer;
    }
    double real = 0;
    if (const auto [at, error] = std::from_chars(begin, end, real);
        error == std::errc() && at == end && std::isfinite(real)) {
      return real;
    }
    return text;
  }

  std::string file_;
  absl::Status status_;
  size_t nodes_ = 0;
};

absl::Status Collect(json object, const std::string& file, int line, std::vector<Manifest>* out) {
  if (object.is_object() && object.value("kind", json()).is_string()) {
    const std::string kind = object["kind"].get<std::string>();
    if (kind.size() >= 4 && kind.substr(kind.size() - 4) == "List" && object.contains("items") &&
        object["items"].is_array()) {
      for (json& item : object["items"]) {
        if (absl::Status status = Collect(std::move(item), file, line, out); !status.ok()) return status;
      }
      return absl::OkStatus();
    }
  }
  absl::StatusOr<kube::ObjectRef> parsed = kube::Object::FromJson(object);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: no Kubernetes object: {}", file, line, Message(parsed.status())));
  }
  out->push_back({std::move(object), file, line});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Manifest>> ParseManifests(const std::string& file, const std::string& text) {
  std::vector<Manifest> out;
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(fmt::format("{}: larger than {} MiB; split it", file, kMaxBytes >> 20));
  }
  // yaml-cpp's own recursion comes before ours.
  int depth = 0;
  for (char c : text) {
    depth += (c == '[' || c == '{') ? 1 : (c == ']' || c == '}') ? -1 : 0;
    if (depth > 10 * kMaxDepth)
      return absl::InvalidArgumentError(fmt::format("{}: nested too deeply; flatten it", file));
  }
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}; check indentation and quotes", file,
                                                  e.mark.line + 1, e.mark.column + 1, e.msg));
  }
  for (const YAML::Node& document : documents) {
    if (!document.IsDefined() || document.IsNull()) continue;
    Converter converter(file);
    json object = converter.Convert(document, 0);
    if (!converter.status().ok()) return converter.status();
    if (absl::Status status = Collect(std::move(object), file, document.Mark().line + 1, &out); !status.ok())
      return status;
  }
  return out;
}

absl::StatusOr<std::vector<Manifest>> LoadManifests(const std::string& path) {
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
    absl::StatusOr<std::vector<Manifest>> parsed = ParseManifests(file.string(), text.str());
    if (!parsed.ok()) return parsed.status();
    out.insert(out.end(), std::make_move_iterator(parsed->begin()), std::make_move_iterator(parsed->end()));
  }
  return out;
}

}  // namespace wavetank::fakekube
