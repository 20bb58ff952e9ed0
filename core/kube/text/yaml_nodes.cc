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

// What yaml-cpp is not given.
struct TextFault {
  int line = 0;  // from 0
  std::string_view what;
};

// What is no text at all, as kubectl's reader says it (gopkg.in/yaml.v2: readerc.go). yaml-cpp would guess at UTF-16
// and take a zero for the end, before which it finds empty documents without end, too.
std::optional<TextFault> FindBadBytes(std::string_view text) {
  int line = 0;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n') ++line;
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
      return TextFault{line, "control characters are not allowed"};
    const size_t width = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : (c & 0xf8) == 0xf0 ? 4 : 0;
    if (width == 0) return TextFault{line, "invalid leading UTF-8 octet"};
    if (i + width > text.size()) return TextFault{line, "incomplete UTF-8 octet sequence"};
    uint32_t value = width == 1 ? c : c & (0x7fU >> width);
    for (size_t k = 1; k < width; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return TextFault{line, "invalid trailing UTF-8 octet"};
      value = (value << 6) | (next & 0x3fU);
    }
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < kLeast[width]) return TextFault{line, "invalid length of a UTF-8 sequence"};
    if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return TextFault{line, "invalid Unicode character"};
    i += width;
  }
  return std::nullopt;
}

// It recurses on its own.
std::optional<TextFault> DeepBrackets(std::string_view text) {
  int depth = 0, line = 0;
  for (const char c : text) {
    line += c == '\n' ? 1 : 0;
    depth += (c == '[' || c == '{') ? 1 : (c == ']' || c == '}') ? -1 : 0;
    if (depth > bounds::kTextDepth) return TextFault{line, "nested too deeply; flatten it"};
  }
  return std::nullopt;
}

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
  std::optional<TextFault> fault = FindBadBytes(text);
  if (!fault) fault = DeepBrackets(text);
  if (fault) {
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
