#include "scenarios/language/setting.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>

#include "absl/strings/str_join.h"
#include "core/base/bounds.h"
#include "core/base/status.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::scenario {
namespace {

using Segments = std::span<const std::string>;

std::optional<size_t> PositionIn(const std::string& segment) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(segment.data(), segment.data() + segment.size(), number);
  if (error != std::errc() || end != segment.data() + segment.size()) return std::nullopt;
  return number;
}

// Without the places of the text that it was read from, which is not the document's.
YAML::Node Placeless(const YAML::Node& node) {
  YAML::Node out;
  if (node.IsScalar()) {
    out = node.Scalar();
    out.SetTag(node.Tag());  // tells "5" from 5
  } else if (node.IsSequence()) {
    out = YAML::Node(YAML::NodeType::Sequence);
    for (const YAML::Node& item : node) out.push_back(Placeless(item));
  } else if (node.IsMap()) {
    out = YAML::Node(YAML::NodeType::Map);
    for (const auto& entry : node) out.force_insert(Placeless(entry.first), Placeless(entry.second));
  }
  return out;
}

std::string NameOf(const YAML::Node& item) {
  if (!item.IsMap()) return "";
  for (const char* key : kItemNames) {
    const YAML::Node& constant = item;
    if (const YAML::Node name = constant[key]; name.IsDefined() && name.IsScalar()) return name.Scalar();
  }
  return "";
}

// How many of `rest` together name a field of `map`, as names may have dots; 0: none does.
size_t NamedBy(const YAML::Node& map, Segments rest) {
  for (size_t many = rest.size(); many > 0; --many) {
    const std::string name = absl::StrJoin(rest.first(many), ".");
    for (const auto& entry : map) {
      if (entry.first.IsScalar() && entry.first.Scalar() == name) return many;
    }
  }
  return 0;
}

class Putter {
 public:
  explicit Putter(YAML::Node value) : value_(std::move(value)) {}

  // `at` with the value below it. Nodes on the way are made anew, since an alias of one of them stays as it was.
  absl::StatusOr<YAML::Node> In(const YAML::Node& at, Segments rest) {
    if (rest.empty()) return value_;
    if (!at.IsDefined() || at.IsNull()) return Made(rest);
    if (at.IsSequence()) return InList(at, rest);
    if (at.IsMap()) return InMapping(at, rest);
    return absl::InvalidArgumentError(fmt::format("{} is a value, which has nothing below it", So()));
  }

 private:
  absl::StatusOr<YAML::Node> Below(const YAML::Node& at, Segments rest, size_t many) {
    where_.push_back(absl::StrJoin(rest.first(many), "."));
    absl::StatusOr<YAML::Node> out = In(at, rest.subspan(many));
    where_.pop_back();
    return out;
  }

  absl::StatusOr<YAML::Node> Made(Segments rest) {
    if (PositionIn(rest.front())) {
      return absl::InvalidArgumentError(
          fmt::format("{} is no list, so nothing in it has a number; write the list", So()));
    }
    absl::StatusOr<YAML::Node> below = Below(YAML::Node(), rest, 1);
    if (!below.ok()) return below;
    YAML::Node out(YAML::NodeType::Map);
    out.force_insert(rest.front(), *below);
    return out;
  }

  absl::StatusOr<YAML::Node> InMapping(const YAML::Node& at, Segments rest) {
    size_t many = NamedBy(at, rest);
    // One action of `do`, say, may stand there without a list around it.
    if (many == 0 && PositionIn(rest.front()) == 0) return Below(at, rest, 1);
    const bool fresh = many == 0;
    if (fresh) many = 1;
    const std::string name = absl::StrJoin(rest.first(many), ".");
    YAML::Node out(YAML::NodeType::Map);
    for (const auto& entry : at) {
      if (fresh || !entry.first.IsScalar() || entry.first.Scalar() != name) {
        out.force_insert(entry.first, entry.second);
        continue;
      }
      absl::StatusOr<YAML::Node> below = Below(entry.second, rest, many);
      if (!below.ok()) return below;
      out.force_insert(entry.first, *below);
    }
    if (!fresh) return out;
    absl::StatusOr<YAML::Node> below = Below(YAML::Node(), rest, many);
    if (!below.ok()) return below;
    out.force_insert(name, *below);
    return out;
  }

  absl::StatusOr<YAML::Node> InList(const YAML::Node& at, Segments rest) {
    size_t many = 1, index = at.size(), found = 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < at.size(); ++i) names.push_back(NameOf(at[i]));
    for (size_t length = rest.size(); length > 0 && found == 0; --length) {
      const std::string name = absl::StrJoin(rest.first(length), ".");
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] != name) continue;
        ++found;
        index = i;
        many = length;
      }
    }
    if (found > 1) {
      return absl::InvalidArgumentError(
          fmt::format("{} has {} items named '{}'; name the one by its number from 0", So(), found, names[index]));
    }
    if (found == 0) index = PositionIn(rest.front()).value_or(at.size());
    if (index >= at.size()) {
      std::erase(names, "");
      return absl::InvalidArgumentError(fmt::format(
          "{} has no item '{}'; it has {}", So(), rest.front(),
          names.empty() ? fmt::format("{} without names, counted from 0", at.size()) : absl::StrJoin(names, ", ")));
    }
    absl::StatusOr<YAML::Node> below = Below(at[index], rest, many);
    if (!below.ok()) return below;
    YAML::Node out(YAML::NodeType::Sequence);
    for (size_t i = 0; i < at.size(); ++i) out.push_back(i == index ? *below : at[i]);
    return out;
  }

  std::string So() const { return where_.empty() ? "the document" : absl::StrJoin(where_, "."); }

  YAML::Node value_;
  std::vector<std::string> where_;
};

}  // namespace

std::string With(const std::vector<Setting>& settings) {
  if (settings.empty()) return {};
  const auto text = [](std::string* out, const Setting& setting) { *out += setting.Text(); };
  return fmt::format("with {}: ", absl::StrJoin(settings, ", ", text));
}

absl::StatusOr<Setting> ParseSetting(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not PATH=VALUE, as timing.istiod.debounce_after=50ms", text));
  }
  return Setting{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

absl::StatusOr<std::vector<std::string>> PathSegments(std::string_view path) {
  // Rows of timing have dots in their names, and none of them stands in a document before it is set.
  constexpr std::string_view kTiming = "timing.";
  if (path.starts_with(kTiming) && path.size() > kTiming.size() && path[kTiming.size()] != '"') {
    return std::vector<std::string>{"timing", std::string(path.substr(kTiming.size()))};
  }
  std::vector<std::string> out(1);
  bool quoted = false, was_quoted = false;
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("path '{}': {}; write names with dots between them, as flows.from-cluster1.rate", path, why));
  };
  for (const char c : path) {
    if (c == '"') {
      quoted = !quoted;
      was_quoted = true;
    } else if (c == '.' && !quoted) {
      if (out.back().empty() && !was_quoted) return wrong("a name is empty");
      out.emplace_back();
      was_quoted = false;
    } else {
      out.back() += c;
    }
  }
  if (quoted) return wrong("a quote is not closed");
  if (out.back().empty() && !was_quoted) return wrong("a name is empty");
  if (out.size() > static_cast<size_t>(bounds::kScenarioDepth)) return wrong("it is too deep");
  return out;
}

absl::Status Put(const Setting& setting, Document& document) {
  const absl::StatusOr<std::vector<std::string>> segments = PathSegments(setting.path);
  if (!segments.ok()) return segments.status();
  const absl::StatusOr<std::unique_ptr<Document>> value = Document::Parse(setting.path, setting.value);
  if (!value.ok()) return value.status();
  absl::StatusOr<YAML::Node> root = Putter(Placeless((*value)->node())).In(document.node(), *segments);
  if (!root.ok()) return absl::InvalidArgumentError(fmt::format("{}: {}", document.name(), Message(root.status())));
  document.Replace(*std::move(root));
  return absl::OkStatus();
}

}  // namespace wavetank::scenario
