// Reading YAML by the fields a format knows, with one clear error that names file, line and column.
//
// A Field is a YAML node that remembers where it came from. Reading functions never throw: the first mistake is kept in
// the Document, later reads return defaults, and the caller asks Document::status() at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/duration.h"
#include "nlohmann/json.hpp"
#include "yaml-cpp/yaml.h"

namespace wavetank::scenario {

class Document;

class Field {
 public:
  // `around`: where what should hold it stands, which is its place where it is missing.
  Field(Document* document, YAML::Node node, std::string path, YAML::Mark around = YAML::Mark::null_mark());

  bool present() const { return node_.IsDefined() && !node_.IsNull(); }
  const std::string& path() const { return path_; }
  const std::string& file() const;
  int line() const;

  // A mapping: its known keys. Another key is an error that names the nearest known one.
  void ExpectKeys(const std::vector<std::string_view>& known) const;
  Field operator[](const std::string& key) const;
  std::vector<std::pair<std::string, Field>> Entries() const;  // of a mapping, in file order
  std::vector<Field> Items() const;  // of a sequence; a single scalar or map counts as one item

  bool IsMap() const { return node_.IsMap(); }
  bool IsSequence() const { return node_.IsSequence(); }
  bool IsScalar() const { return node_.IsScalar(); }

  std::string Text(std::string_view fallback = {}) const;
  std::string RequiredText() const;
  std::string OneOf(const std::vector<std::string_view>& choices, std::string_view fallback) const;
  int64_t Integer(int64_t fallback, int64_t low, int64_t high) const;
  bool Flag(bool fallback) const;
  // "250us", "10ms", "1.5s", "1m30s", "1h".
  Duration Time(Duration fallback) const;
  // "1h", or "-1h": what has been, or a clock that is behind.
  Duration SignedTime(Duration fallback) const;
  // "50%" or 0.5; parts per million, 0 to 1,000,000.
  int64_t Share(int64_t fallback_ppm) const;
  // "100/s", "5/min": events per 1000 s, so that rates stay integers.
  int64_t RatePerKilosecond(int64_t fallback) const;
  // As Kubernetes' tools read it: numbers and words have the types of YAML 1.1 (core/kube/yaml.h).
  nlohmann::json Json() const;

  // No mistake was recorded so far, anywhere in the document.
  bool ok() const;
  // Records "file:line:column: what (remedy)".
  void Fail(std::string_view what, std::string_view remedy = {}) const;

 private:
  Duration InBounds(Duration value) const;

  Document* document_;
  YAML::Node node_;
  std::string path_;
  YAML::Mark around_;
};

class Document {
 public:
  // `name` appears in messages. Syntax errors are InvalidArgument with the position.
  static absl::StatusOr<std::unique_ptr<Document>> Parse(std::string name, const std::string& text);
  static absl::StatusOr<std::unique_ptr<Document>> Load(const std::string& path);

  Field root();
  const YAML::Node& node() const { return root_; }
  // Another value in its place; Fields of the one before keep that.
  void Replace(YAML::Node node) { root_.reset(node); }
  const absl::Status& status() const { return status_; }
  const std::string& name() const { return name_; }

 private:
  friend class Field;
  std::string name_;
  YAML::Node root_;
  absl::Status status_;
};

// "50%" or "0.5" in parts per million; nullopt: it is no share from 0 to 1.
std::optional<int64_t> ParseShare(std::string_view text);

// The candidate nearest to `word` by edit distance, empty when nothing is near.
std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace wavetank::scenario
