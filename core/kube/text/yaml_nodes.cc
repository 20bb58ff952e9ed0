#include "core/kube/text/yaml_nodes.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <sstream>

#include "core/base/bounds.h"
#include "core/kube/yaml.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

class Converter {
 public:
  explicit Converter(std::string file) : file_(std::move(file)) {}

  json Convert(const YAML::Node& node, int depth) {
    if (!status_.ok()) return nullptr;
    if (depth > bounds::kDepth) {
      Fail(node, fmt::format("nested deeper than {} levels", bounds::kDepth), "flatten it");
      return nullptr;
    }
    // Aliases of aliases grow without end.
    if (++nodes_ > bounds::kValues) {
      Fail(node, fmt::format("more than {} values after aliases are expanded", bounds::kValues), "split the file");
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
    if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return node.Scalar();  // quoted, or a block
    return ResolveYamlScalar(node.Scalar());
  }

  std::string file_;
  absl::Status status_;
  size_t nodes_ = 0;
};

// Whether a document may have ended with text behind it. That of a block ends where its indentation does, and what
// follows is an error; what else a root can be begins a line with one of these, or stands behind "---".
bool MayEndBeforeItsText(std::string_view text) {
  bool at_start = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') {
      at_start = true;
    } else if (at_start && c != ' ' && c != '\t') {
      at_start = false;
      if (std::string_view("{[\"',&!*|>%@`").find(c) != std::string_view::npos) return true;
      if ((c == '-' || c == '.') && text.substr(i, 3) == std::string(3, c)) return true;
    }
  }
  return false;
}

// Sees that each document begins behind the one before it: yaml-cpp reads a token that begins nothing as an empty
// document, over and over.
class DocumentStarts final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "text behind the end of the document");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

}  // namespace

absl::StatusOr<json> YamlToJson(const YAML::Node& node, const std::string& file) {
  Converter converter(file);
  json out = converter.Convert(node, 0);
  if (!converter.status().ok()) return converter.status();
  return out;
}

std::vector<YAML::Node> LoadYamlDocuments(const std::string& text) {
  // yaml-cpp would guess at UTF-16 and take a zero for the end, before which it finds empty documents without end, too;
  // and it recurses on its own.
  if (const std::optional<YamlTextFault> fault = FaultOfYamlText(text)) {
    YAML::Mark place;
    place.line = fault->line;
    throw YAML::ParserException(place, std::string(fault->what));
  }
  if (MayEndBeforeItsText(text)) {
    std::istringstream in(text);
    YAML::Parser parser(in);
    for (DocumentStarts starts; parser.HandleNextDocument(starts);) {
    }
  }
  return YAML::LoadAll(text);
}

}  // namespace wavetank::kube
