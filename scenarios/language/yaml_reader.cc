#include "scenarios/language/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "core/base/bounds.h"
#include "core/base/status.h"
#include "core/base/text/letters_apart.h"
#include "core/base/text/read_up_to.h"
#include "core/kube/text/yaml_nodes.h"

namespace wavetank::scenario {
namespace {

using bounds::kScenarioDepth;

// Counts how deep flow and block collections nest, before yaml-cpp sees the text.
bool TooDeep(const std::string& text) {
  int flow = 0;
  for (char c : text) {
    if (c == '[' || c == '{') ++flow;
    if (c == ']' || c == '}') flow = std::max(0, flow - 1);
    if (flow > kScenarioDepth) return true;
  }
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    size_t i = 0;
    int dashes = 0;
    while (i < line.size() && (line[i] == ' ' || line[i] == '-')) dashes += line[i++] == '-' ? 1 : 0;
    if (i > 2 * kScenarioDepth + 64 || dashes > kScenarioDepth) return true;
  }
  return false;
}

// Aliases of aliases grow without end, and nest deeper than the text does. Takes as many of `left` as `node` has
// values.
bool Fits(const YAML::Node& node, int depth, size_t* left) {
  if (depth > kScenarioDepth || *left == 0) return false;
  --*left;
  if (!node.IsMap() && !node.IsSequence()) return true;
  for (const auto& entry : node) {
    if (node.IsMap() && !entry.first.IsScalar()) return true;  // refused where it is read
    if (!Fits(node.IsMap() ? entry.second : YAML::Node(entry), depth + 1, left)) return false;
  }
  return true;
}

// `text` times `scale`, a power of ten; decimals that it does not keep are cut off. Nullopt: it is no number, or too
// large.
std::optional<int64_t> ParseDecimal(std::string_view text, int64_t scale) {
  if (text.empty()) return std::nullopt;
  int64_t value = 0, fraction = 0, weight = scale;
  size_t i = 0;
  bool digits = false;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, digits = true) {
    if (value > INT64_MAX / 20 / scale) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, digits = true) {
      weight /= 10;
      fraction += (text[i] - '0') * weight;
    }
  }
  if (!digits || i != text.size()) return std::nullopt;
  return value * scale + fraction;
}

}  // namespace

std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = LettersApart(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::optional<int64_t> ParseShare(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<int64_t> value = ParseDecimal(text, percent ? 10'000 : 1'000'000);
  return value && *value <= 1'000'000 ? value : std::nullopt;
}

Field::Field(Document* document, YAML::Node node, std::string path, YAML::Mark around)
    : document_(document), node_(std::move(node)), path_(std::move(path)), around_(around) {
  if (node_.IsDefined()) around_ = node_.Mark();
}

const std::string& Field::file() const { return document_->name_; }

int Field::line() const { return node_.IsDefined() ? node_.Mark().line + 1 : 0; }

bool Field::ok() const { return document_->status_.ok(); }

void Field::Fail(std::string_view what, std::string_view remedy) const {
  if (!document_->status_.ok()) return;
  std::string place = document_->name_;
  if (around_.line >= 0) place += fmt::format(":{}:{}", around_.line + 1, around_.column + 1);
  document_->status_ = absl::InvalidArgumentError(fmt::format("{}: {}{}{}", place, path_.empty() ? "" : path_ + ": ",
                                                              what, remedy.empty() ? "" : fmt::format("; {}", remedy)));
}

void Field::ExpectKeys(const std::vector<std::string_view>& known) const {
  if (!present()) return;
  if (!node_.IsMap()) return Fail("expected a mapping", fmt::format("its fields are {}", fmt::join(known, ", ")));
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    Field at(document_, entry.first, path_);
    if (!entry.first.IsScalar()) return at.Fail("a field name must be text");
    const std::string& key = entry.first.Scalar();
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return at.Fail(fmt::format("field '{}' is given twice", key), "keep one");
    }
    seen.push_back(key);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view near = Nearest(key, known);
    return at.Fail(fmt::format("unknown field '{}'", key), near.empty()
                                                               ? fmt::format("known here: {}", fmt::join(known, ", "))
                                                               : fmt::format("did you mean '{}'?", near));
  }
}

Field Field::operator[](const std::string& key) const {
  std::string path = path_.empty() ? key : path_ + "." + key;
  if (!node_.IsDefined() || !node_.IsMap())
    return Field(document_, YAML::Node(YAML::NodeType::Undefined), std::move(path), around_);
  const YAML::Node& constant = node_;
  return Field(document_, constant[key], std::move(path), around_);
}

std::vector<std::pair<std::string, Field>> Field::Entries() const {
  std::vector<std::pair<std::string, Field>> out;
  if (!present()) return out;
  if (!node_.IsMap()) {
    Fail("expected a mapping");
    return out;
  }
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    out.emplace_back(key, Field(document_, entry.second, path_.empty() ? key : path_ + "." + key));
  }
  return out;
}

std::vector<Field> Field::Items() const {
  std::vector<Field> out;
  if (!present()) return out;
  if (!node_.IsSequence()) {
    out.push_back(*this);
    return out;
  }
  for (size_t i = 0; i < node_.size(); ++i) out.emplace_back(document_, node_[i], fmt::format("{}[{}]", path_, i));
  return out;
}

std::string Field::Text(std::string_view fallback) const {
  if (!present()) return std::string(fallback);
  if (!node_.IsScalar()) {
    Fail("expected text");
    return std::string(fallback);
  }
  return node_.Scalar();
}

std::string Field::RequiredText() const {
  if (!present()) Fail("is required but missing", "add it");
  return Text();
}

std::string Field::OneOf(const std::vector<std::string_view>& choices, std::string_view fallback) const {
  std::string text = Text(fallback);
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    Fail(fmt::format("'{}' is not one of {}", text, fmt::join(choices, ", ")));
  }
  return text;
}

int64_t Field::Integer(int64_t fallback, int64_t low, int64_t high) const {
  if (!present()) return fallback;
  const std::string text = Text();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    Fail(fmt::format("'{}' is no whole number from {} to {}", text, low, high));
    return fallback;
  }
  return value;
}

bool Field::Flag(bool fallback) const {
  if (!present()) return fallback;
  const std::string text = Text();
  if (text != "true" && text != "false") Fail(fmt::format("'{}' is neither true nor false", text));
  return text == "true";
}

// Longer ones leave the range in which sums of times are times.
Duration Field::InBounds(Duration value) const {
  if (value >= -bounds::kInputDuration && value <= bounds::kInputDuration) return value;
  Fail(fmt::format("'{}' is longer than ten years", Text()), "write a shorter one");
  return Duration::zero();
}

Duration Field::Time(Duration fallback) const {
  if (!present()) return fallback;
  if (std::optional<Duration> value = ParseDuration(Text())) return InBounds(*value);
  Fail(fmt::format("'{}' is no duration", Text()), "write a number and a unit: 250us, 10ms, 1.5s, 2m, 1m30s");
  return fallback;
}

Duration Field::SignedTime(Duration fallback) const {
  if (!present()) return fallback;
  if (std::optional<Duration> value = ParseSignedDuration(Text())) return InBounds(*value);
  Fail(fmt::format("'{}' is no duration", Text()), "write 1h, or -1h for what has been or a clock that is behind");
  return fallback;
}

int64_t Field::Share(int64_t fallback_ppm) const {
  if (!present()) return fallback_ppm;
  if (const std::optional<int64_t> value = ParseShare(Text())) return *value;
  Fail(fmt::format("'{}' is no share", Text()), "write a percentage, 50%, or a fraction, 0.5");
  return fallback_ppm;
}

int64_t Field::RatePerKilosecond(int64_t fallback) const {
  if (!present()) return fallback;
  const std::string text = Text();
  const size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const std::string unit = text.substr(slash + 1);
    const std::optional<int64_t> value = ParseDecimal(std::string_view(text).substr(0, slash), 1000);
    if (value && *value > 0 && unit == "s") return *value;
    if (value && *value > 0 && (unit == "m" || unit == "min")) return std::max<int64_t>(1, *value / 60);
  }
  Fail(fmt::format("'{}' is no rate", text), "write events per second or minute: 100/s, 5/min");
  return fallback;
}

nlohmann::json Field::Json() const {
  absl::StatusOr<nlohmann::json> value = kube::YamlToJson(node_, document_->name_);
  if (value.ok()) return *std::move(value);
  if (document_->status_.ok()) document_->status_ = value.status();
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Document>> Document::Parse(std::string name, const std::string& text) {
  if (text.size() > bounds::kScenarioBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: larger than {} MiB; split it", name, bounds::kScenarioBytes >> 20));
  }
  if (TooDeep(text)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nested deeper than {} levels; flatten it", name, kScenarioDepth));
  }
  auto document = std::make_unique<Document>();
  document->name_ = std::move(name);
  try {
    std::vector<YAML::Node> documents = kube::LoadYamlDocuments(text);
    if (documents.size() > 1) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: a second document; leave `---` out, a scenario is one",
                                                    document->name_, documents[1].Mark().line + 1));
    }
    document->root_ = documents.empty() ? YAML::Node() : std::move(documents[0]);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}; check indentation and quotes",
                                                  document->name_, e.mark.line + 1, e.mark.column + 1, e.msg));
  }
  size_t left = bounds::kValues;
  if (!Fits(document->root_, 0, &left)) {
    return absl::InvalidArgumentError(
        left == 0 ? fmt::format("{}: more than {} values after aliases are expanded; split it", document->name_,
                                bounds::kValues)
                  : fmt::format("{}: nested deeper than {} levels; flatten it", document->name_, kScenarioDepth));
  }
  return document;
}

absl::StatusOr<std::unique_ptr<Document>> Document::Load(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(fmt::format("{}: is a folder; name a file", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", path));
  return Parse(path, ReadUpTo(in, bounds::kScenarioBytes + 1));
}

Field Document::root() { return Field(this, root_, ""); }

}  // namespace wavetank::scenario
