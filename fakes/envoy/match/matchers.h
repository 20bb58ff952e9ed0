// String, header and query matchers of Envoy's route and TLS configuration, compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace re2 {
class RE2;
}
namespace envoy::type::matcher::v3 {
class StringMatcher;
class RegexMatcher;
}  // namespace envoy::type::matcher::v3
namespace envoy::config::route::v3 {
class HeaderMatcher;
class QueryParameterMatcher;
}  // namespace envoy::config::route::v3

namespace wavetank::envoysim {

// envoy.type.matcher.v3.StringMatcher. Regular expressions match the whole string (RE2, as in Envoy).
class StringMatch {
 public:
  enum class Kind : uint8_t { kAny, kExact, kPrefix, kSuffix, kContains, kRegex };

  // InvalidArgument: a regular expression that RE2 does not take, or no pattern at all.
  static absl::StatusOr<StringMatch> Make(const envoy::type::matcher::v3::StringMatcher& matcher);
  static absl::StatusOr<StringMatch> MakeRegex(std::string_view pattern);
  static StringMatch Make(Kind kind, std::string_view text, bool ignore_case = false);

  bool Matches(std::string_view value) const;
  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }

 private:
  Kind kind_ = Kind::kAny;
  bool ignore_case_ = false;
  std::string text_;
  std::shared_ptr<const re2::RE2> regex_;
};

struct RequestSpec;

// envoy.config.route.v3.HeaderMatcher
class HeaderMatch {
 public:
  // InvalidArgument as of StringMatch.
  static absl::StatusOr<HeaderMatch> Make(const envoy::config::route::v3::HeaderMatcher& matcher);
  // `value`: of the header, if it is there.
  bool Matches(std::optional<std::string_view> value) const;
  // The header is there.
  static HeaderMatch Present(std::string_view name);
  // Of a header's values, of which any may match.
  bool Matches(const std::vector<std::string_view>& values) const;
  // Of a request; of several values of one name any may match.
  // Envoy: source/common/http/header_utility.cc, matchHeaders
  bool Matches(const RequestSpec& request) const;
  const std::string& name() const { return name_; }

 private:
  enum class Kind : uint8_t { kString, kRange, kPresent };
  std::string name_;
  Kind kind_ = Kind::kPresent;
  bool invert_ = false;
  bool present_ = true;
  bool missing_as_empty_ = false;
  int64_t start_ = 0, end_ = 0;
  StringMatch string_;
};

// envoy.config.route.v3.QueryParameterMatcher
class QueryMatch {
 public:
  // InvalidArgument as of StringMatch.
  static absl::StatusOr<QueryMatch> Make(const envoy::config::route::v3::QueryParameterMatcher& matcher);
  bool Matches(std::string_view query) const;  // what follows '?'

 private:
  std::string name_;
  std::optional<StringMatch> string_;
};

}  // namespace wavetank::envoysim
