#include "core/kube/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/bounds.h"
#include "core/base/json_text.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

// strconv.ParseInt and ParseUint with base 0: 0x, 0o, 0b and a leading zero name the base.
std::optional<json> GoInteger(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    text.remove_prefix(letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
  }
  uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kLargest = uint64_t{1} << 63;
  if (negative) {
    if (value > kLargest) return std::nullopt;
    return json(static_cast<int64_t>(0 - value));
  }
  if (value >= kLargest) return json(value);
  return json(static_cast<int64_t>(value));
}

// yamlStyleFloat of resolve.go: a sign, digits with one dot, an exponent.
bool IsFloat(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i > begin;
  };
  const auto sign = [&] { i += i < text.size() && (text[i] == '-' || text[i] == '+') ? 1 : 0; };
  sign();
  const bool whole = digits();
  bool fraction = false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    fraction = digits();
  }
  if (!whole && !fraction) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    sign();
    if (!digits()) return false;
  }
  return i == text.size();
}

// As JSON prints a float64 and Kubernetes reads it again: what is whole is an integer.
json WholeOrReal(double value) {
  constexpr double kLargest = 9.2e18;
  if (value == std::floor(value) && std::abs(value) < kLargest) return static_cast<int64_t>(value);
  return value;
}

class EventReader {
 public:
  EventReader(std::string_view text, const std::string& file) : text_(WithoutMark(text)), file_(file) {
    yaml_parser_initialize(&parser_);
    // It would guess at UTF-16.
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()), text_.size());
  }
  ~EventReader() { yaml_parser_delete(&parser_); }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Reads at most `documents`, and sees that what follows the last begins another one.
  absl::Status Read(size_t documents, std::vector<YamlDocument>* out) {
    for (bool more = true; more && status_.ok();) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) return Malformed();
      more = event.type != YAML_STREAM_END_EVENT && (event.type != YAML_DOCUMENT_START_EVENT || documents-- > 0);
      if (more) Take(event, out);
      yaml_event_delete(&event);
    }
    return status_;
  }

 private:
  // A mapping or sequence that is not at its end.
  struct Open {
    json* value;
    bool mapping;
    bool has_key = false;
    bool merges = false;  // what comes next is merged into it
    std::string key{};
    std::string anchor{};
    size_t values = 0;  // that were read before it
  };
  struct Anchored {
    json value;
    size_t values = 0;
  };

  void Take(const yaml_event_t& event, std::vector<YamlDocument>* out) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        document_ = {};
        values_ = 0;
        anchors_.clear();
        break;
      case YAML_DOCUMENT_END_EVENT:
        if (!document_.value.is_null()) out->push_back(std::move(document_));
        break;
      case YAML_ALIAS_EVENT:
        Alias(event);
        break;
      case YAML_SCALAR_EVENT:
        Scalar(event);
        break;
      case YAML_SEQUENCE_START_EVENT:
        Begin(event, json::array(), event.data.sequence_start.anchor);
        break;
      case YAML_MAPPING_START_EVENT:
        Begin(event, json::object(), event.data.mapping_start.anchor);
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        End(event);
        break;
      default:
        break;
    }
  }

  // libyaml passes the byte order mark over where it guesses at the encoding alone.
  static std::string_view WithoutMark(std::string_view text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
  }

  bool AwaitsKey() const { return !open_.empty() && open_.back().mapping && !open_.back().has_key; }

  // Where the next value stands. Null: it failed, and says why.
  json* Place(const yaml_event_t& event, json value) {
    if (++values_ > bounds::kValues) {
      FailOfValues(event);
      return nullptr;
    }
    if (open_.empty()) {
      document_.line = static_cast<int>(event.start_mark.line) + 1;
      document_.value = std::move(value);
      return &document_.value;
    }
    Open& open = open_.back();
    if (!open.mapping) {
      if (open_.size() == 2 && open_[0].mapping && open_[0].key == "items")
        document_.item_lines.push_back(static_cast<int>(event.start_mark.line) + 1);
      return &open.value->emplace_back(std::move(value));
    }
    open.has_key = false;
    if (open.merges) {
      merged_.push_back(std::move(value));
      return &merged_.back();
    }
    json& at = (*open.value)[open.key];
    at = std::move(value);
    return &at;
  }

  void Begin(const yaml_event_t& event, json value, const unsigned char* anchor) {
    if (AwaitsKey()) return Fail(event, "a field name must be text");
    if (open_.size() >= static_cast<size_t>(bounds::kDepth)) return FailOfDepth(event);
    const bool mapping = value.is_object();
    const size_t before = values_;
    json* const at = Place(event, std::move(value));
    if (at == nullptr) return;
    Open& open = open_.emplace_back(Open{at, mapping});
    open.values = before;
    if (anchor != nullptr) open.anchor = reinterpret_cast<const char*>(anchor);
  }

  void End(const yaml_event_t& event) {
    Open open = std::move(open_.back());
    open_.pop_back();
    if (!open.anchor.empty()) anchors_[open.anchor] = {*open.value, values_ - open.values};
    if (!open_.empty()) Whole(event);
  }

  // The value before this event is whole: if it is what a mapping merges, it is merged.
  void Whole(const yaml_event_t& event) {
    Open& open = open_.back();
    if (!open.merges || open.has_key) return;
    open.merges = false;
    const json merged = std::move(merged_.back());
    merged_.pop_back();
    // yaml.v2's merge: a sequence's earlier mappings come before its later ones, and all before what stands already.
    const auto take = [&](const json& each) {
      for (const auto& [key, value] : each.items()) (*open.value)[key] = value;
    };
    const auto is_map = [](const json& each) { return each.is_object(); };
    if (merged.is_object()) {
      take(merged);
    } else if (merged.is_array() && std::all_of(merged.begin(), merged.end(), is_map)) {
      std::for_each(merged.rbegin(), merged.rend(), take);
    } else {
      Fail(event, "map merge requires map or sequence of maps as the value");
    }
  }

  void Alias(const yaml_event_t& event) {
    if (AwaitsKey()) return Fail(event, "a field name must be text");
    const std::string name = reinterpret_cast<const char*>(event.data.alias.anchor);
    const auto named = [&](const Open& open) { return open.anchor == name; };
    if (std::any_of(open_.begin(), open_.end(), named))
      return Fail(event, fmt::format("anchor '{}' value contains itself", name));
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) return Fail(event, fmt::format("unknown anchor '{}' referenced", name));
    // Looked at before it is copied: aliases of aliases grow without end.
    if (values_ + found->second.values > bounds::kValues) return FailOfValues(event);
    if (open_.size() + Depth(found->second.value) > static_cast<size_t>(bounds::kDepth)) return FailOfDepth(event);
    values_ += found->second.values - 1;
    if (Place(event, found->second.value) != nullptr && !open_.empty()) Whole(event);
  }

  static size_t Depth(const json& value) {
    size_t out = 0;
    if (value.is_structured()) {
      for (const json& each : value) out = std::max(out, Depth(each));
      ++out;
    }
    return out;
  }

  void Scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const std::string_view tag = scalar.tag == nullptr ? "" : reinterpret_cast<const char*>(scalar.tag);
    // yaml.v2's isMerge.
    const bool plain = scalar.plain_implicit != 0;
    if (AwaitsKey() && text == "<<" && (plain || tag == "tag:yaml.org,2002:merge")) {
      open_.back().has_key = open_.back().merges = true;
      return;
    }
    json value = Tagged(event, text, tag, plain);
    if (!status_.ok()) return;
    if (AwaitsKey()) {
      Open& open = open_.back();
      if (!KeyText(std::move(value), &open.key)) return Fail(event, "a field name must be text");
      if (scalar.anchor != nullptr) anchors_[reinterpret_cast<const char*>(scalar.anchor)] = {open.key, 1};
      open.has_key = true;
      return;
    }
    json* const at = Place(event, std::move(value));
    if (at == nullptr) return;
    if (scalar.anchor != nullptr) anchors_[reinterpret_cast<const char*>(scalar.anchor)] = {*at, 1};
    if (!open_.empty()) Whole(event);
  }

  // convertToJSONableObject of sigs.k8s.io/yaml: keys that are no text are written as text.
  static bool KeyText(json value, std::string* out) {
    if (value.is_null()) return false;
    *out = value.is_string() ? std::move(value.get_ref<std::string&>()) : JsonText(value);
    return true;
  }

  // Of values that are plain JSON has no word for some: kubectl's encoder refuses them.
  json Plain(const yaml_event_t& event, std::string_view text) {
    if (AwaitsKey()) return ResolveYamlScalar(text);  // a key is text
    std::string_view name = text;
    if (!name.empty() && (name[0] == '-' || name[0] == '+')) name.remove_prefix(1);
    const bool infinite = name == ".inf" || name == ".Inf" || name == ".INF";
    if (infinite || text == ".nan" || text == ".NaN" || text == ".NAN") {
      Fail(event, fmt::format("json: unsupported value: {}", infinite ? text[0] == '-' ? "-Inf" : "+Inf" : "NaN"),
           "quote it if it is meant as text");
    }
    return ResolveYamlScalar(text);
  }

  // decode.go's scalar and resolve.go's resolve.
  json Tagged(const yaml_event_t& event, std::string_view text, std::string_view tag, bool plain) {
    if (tag.empty()) return plain ? Plain(event, text) : json(text);
    constexpr std::string_view kCore = "tag:yaml.org,2002:";
    if (!tag.starts_with(kCore)) return text;
    const std::string_view type = tag.substr(kCore.size());
    if (type == "binary") {
      std::string bytes;
      if (!absl::Base64Unescape({text.data(), text.size()}, &bytes))
        Fail(event, "!!binary value contains invalid base64 data");
      return bytes;
    }
    json value = ResolveYamlScalar(text);
    const auto wrong = [&](bool fits) {
      if (!fits) Fail(event, fmt::format("cannot decode {} `{}` as a !!{}", TypeOf(value), text.substr(0, 80), type));
      return value;
    };
    if (type == "int") return wrong(value.is_number_integer());
    if (type == "float") return wrong(value.is_number());
    if (type == "bool") return wrong(value.is_boolean());
    if (type == "null") return wrong(value.is_null());
    return text;
  }

  static std::string_view TypeOf(const json& value) {
    return value.is_null()             ? "!!null"
           : value.is_boolean()        ? "!!bool"
           : value.is_number_integer() ? "!!int"
           : value.is_number()         ? "!!float"
                                       : "!!str";
  }

  void Fail(const yaml_event_t& event, std::string_view what, std::string_view remedy = {}) {
    if (!status_.ok()) return;
    status_ =
        absl::InvalidArgumentError(fmt::format("{}:{}:{}: {}{}{}", file_, event.start_mark.line + 1,
                                               event.start_mark.column + 1, what, remedy.empty() ? "" : "; ", remedy));
  }

  void FailOfValues(const yaml_event_t& event) {
    Fail(event, fmt::format("more than {} values after aliases are expanded", bounds::kValues), "split the file");
  }
  void FailOfDepth(const yaml_event_t& event) {
    Fail(event, fmt::format("nested deeper than {} levels", bounds::kDepth), "flatten it");
  }

  // In libyaml's words, which are kubectl's.
  absl::Status Malformed() const {
    if (parser_.error == YAML_MEMORY_ERROR) return absl::ResourceExhaustedError(fmt::format("{}: no memory", file_));
    const char* const what = parser_.problem == nullptr ? "unknown problem parsing YAML content" : parser_.problem;
    yaml_mark_t at = parser_.problem_mark;
    // Its reader tells a place in bytes, its scanner the line behind the last for the end.
    const bool at_end = at.line > static_cast<size_t>(std::count(text_.begin(), text_.end(), '\n'));
    if (parser_.error == YAML_READER_ERROR || at_end) {
      const std::string_view before = at_end ? text_ : text_.substr(0, parser_.problem_offset);
      at.line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
      at.column = before.size() - (before.rfind('\n') + 1);
    }
    const yaml_mark_t& from = parser_.context_mark;
    const bool begins_before = parser_.context != nullptr && from.index < parser_.problem_mark.index;
    return absl::InvalidArgumentError(fmt::format(
        "{}:{}:{}: not valid YAML: {}{}", file_, at.line + 1, at.column + 1, what,
        begins_before ? fmt::format(", {} (from {}:{})", parser_.context, from.line + 1, from.column + 1) : ""));
  }

  yaml_parser_t parser_;
  const std::string_view text_;
  const std::string& file_;
  absl::Status status_;
  YamlDocument document_;
  std::vector<Open> open_;
  // What is being read to be merged, one for each mapping that merges; each stays where it is.
  std::list<json> merged_;
  std::map<std::string, Anchored> anchors_;
  size_t values_ = 0;
};

absl::StatusOr<std::vector<YamlDocument>> ReadDocuments(std::string_view text, const std::string& file,
                                                        size_t documents) {
  std::vector<YamlDocument> out;
  if (absl::Status status = EventReader(text, file).Read(documents, &out); !status.ok()) return status;
  return out;
}

}  // namespace

json ResolveYamlScalar(std::string_view text) {
  static constexpr std::string_view kTrue[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"};
  static constexpr std::string_view kFalse[] = {"false", "False", "FALSE", "no", "No", "NO",
                                                "off",   "Off",   "OFF",   "n",  "N"};
  static constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
  const auto among = [&](const auto& words) {
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
  };
  constexpr size_t kLongestWord = 5;
  if (text.size() <= kLongestWord) {
    if (among(kNull)) return nullptr;
    if (among(kTrue)) return true;
    if (among(kFalse)) return false;
  }
  const char first = text[0];
  if (first == '.') {
    double value = 0;
    if (const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        error == std::errc() && at == text.data() + text.size() && std::isfinite(value))
      return WholeOrReal(value);
    return text;
  }
  if (first != '-' && first != '+' && (first < '0' || first > '9')) return text;
  std::string without;
  std::string_view digits = text;
  if (text.find('_') != text.npos) {
    std::remove_copy(text.begin(), text.end(), std::back_inserter(without), '_');
    digits = without;
  }
  if (std::optional<json> integer = GoInteger(digits)) return *std::move(integer);
  if (!IsFloat(digits)) return text;
  if (digits[0] == '+') digits.remove_prefix(1);
  double value = 0;
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || at != digits.data() + digits.size() || !std::isfinite(value)) return text;
  return WholeOrReal(value);
}

absl::StatusOr<std::vector<YamlDocument>> ParseYamlDocuments(std::string_view text, const std::string& file) {
  return ReadDocuments(text, file, SIZE_MAX);
}

absl::StatusOr<json> ParseYaml(std::string_view text, const std::string& file) {
  absl::StatusOr<std::vector<YamlDocument>> documents = ReadDocuments(text, file, 1);
  if (!documents.ok()) return documents.status();
  if (documents->empty()) return json();
  return std::move(documents->front().value);
}

}  // namespace wavetank::kube
