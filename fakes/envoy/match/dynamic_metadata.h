// Dynamic metadata: what one filter notes about a request for the filters and routes behind it, and conditions on it.
// Envoy: source/common/config/metadata.cc, source/common/common/matchers.cc
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/match/matchers.h"
#include "nlohmann/json_fwd.hpp"

namespace envoy::type::matcher::v3 {
class MetadataMatcher;
class ValueMatcher;
}  // namespace envoy::type::matcher::v3

namespace wavetank::envoysim {

// One value. Filter, key and text are of configuration or static.
struct MetadataNote {
  std::string_view filter, key;
  std::string_view text;                       // a string, or
  std::shared_ptr<const nlohmann::json> tree;  // anything
};
// Of equal keys the last counts.
using DynamicMetadata = std::vector<MetadataNote>;

// envoy.type.matcher.v3.ValueMatcher. What is not there matches none, not even one that asks for its absence.
class ValueMatch {
 public:
  // InvalidArgument: a pattern within cannot be compiled.
  static absl::StatusOr<ValueMatch> Make(const envoy::type::matcher::v3::ValueMatcher& matcher);
  bool MatchesText(std::string_view text) const;
  bool Matches(const nlohmann::json& value) const;

 private:
  enum class Kind : uint8_t { kNull, kNumber, kText, kBool, kPresent, kList, kOr };
  Kind kind_ = Kind::kNull;
  bool flag_ = false;                // kBool, kPresent
  double start_ = 0, end_ = 0;       // kNumber: in [start, end), or equal if those are
  std::optional<StringMatch> text_;  // kText
  std::vector<ValueMatch> any_of_;   // kList: of an element; kOr
};

// envoy.type.matcher.v3.MetadataMatcher
class MetadataMatch {
 public:
  // InvalidArgument as of ValueMatch.
  static absl::StatusOr<MetadataMatch> Make(const envoy::type::matcher::v3::MetadataMatcher& matcher);
  // `metadata` may be null: there is none.
  bool Matches(const DynamicMetadata* metadata) const;

 private:
  bool Finds(const DynamicMetadata* metadata) const;

  std::string filter_;
  std::vector<std::string> path_;
  ValueMatch value_;
  bool invert_ = false;
};

}  // namespace wavetank::envoysim
