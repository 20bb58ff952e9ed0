#include "fakes/envoy/match/matchers.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/type/matcher/v3/string.pb.h"
#include "fakes/envoy/tcp/http.h"
#include "fmt/format.h"
#include "re2/re2.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {

StringMatch StringMatch::Make(Kind kind, std::string_view text, bool ignore_case) {
  StringMatch m;
  m.kind_ = kind;
  m.ignore_case_ = ignore_case;
  m.text_ = ignore_case ? absl::AsciiStrToLower(std::string(text)) : std::string(text);
  return m;
}

absl::StatusOr<StringMatch> StringMatch::MakeRegex(std::string_view pattern) {
  if (pattern.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (RegexMatcherValidationError.Regex: value length must be at least 1 "
        "characters)");
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!regex->ok()) return absl::InvalidArgumentError(regex->error());
  StringMatch m;
  m.kind_ = Kind::kRegex;
  m.text_ = std::string(pattern);
  m.regex_ = std::move(regex);
  return m;
}

absl::StatusOr<StringMatch> StringMatch::Make(const envoy::type::matcher::v3::StringMatcher& matcher) {
  using Proto = envoy::type::matcher::v3::StringMatcher;
  const bool fold = matcher.ignore_case();
  switch (matcher.match_pattern_case()) {
    case Proto::kExact:
      return Make(Kind::kExact, matcher.exact(), fold);
    case Proto::kPrefix:
      return Make(Kind::kPrefix, matcher.prefix(), fold);
    case Proto::kSuffix:
      return Make(Kind::kSuffix, matcher.suffix(), fold);
    case Proto::kContains:
      return Make(Kind::kContains, matcher.contains(), fold);
    case Proto::kSafeRegex:
      return MakeRegex(matcher.safe_regex().regex());
    default:
      return absl::InvalidArgumentError("StringMatcherValidationError.MatchPattern: value is required");
  }
}

bool StringMatch::Matches(std::string_view value) const {
  std::string folded;
  if (ignore_case_) value = folded = absl::AsciiStrToLower(std::string(value));
  switch (kind_) {
    case Kind::kAny:
      return true;
    case Kind::kExact:
      return value == text_;
    case Kind::kPrefix:
      return value.starts_with(text_);
    case Kind::kSuffix:
      return value.ends_with(text_);
    case Kind::kContains:
      return value.find(text_) != std::string_view::npos;
    case Kind::kRegex:
      return re2::RE2::FullMatch(re2::StringPiece(value.data(), value.size()), *regex_);
  }
  return false;
}

absl::StatusOr<HeaderMatch> HeaderMatch::Make(const envoy::config::route::v3::HeaderMatcher& matcher) {
  using Proto = envoy::config::route::v3::HeaderMatcher;
  HeaderMatch m;
  m.name_ = absl::AsciiStrToLower(matcher.name());
  m.invert_ = matcher.invert_match();
  m.missing_as_empty_ = matcher.treat_missing_header_as_empty();
  if (m.name_.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (HeaderMatcherValidationError.Name: value length must be at least 1 "
        "characters)");
  }
  m.kind_ = Kind::kString;
  switch (matcher.header_match_specifier_case()) {
    case Proto::kExactMatch:
      m.string_ = StringMatch::Make(StringMatch::Kind::kExact, matcher.exact_match());
      break;
    case Proto::kPrefixMatch:
      m.string_ = StringMatch::Make(StringMatch::Kind::kPrefix, matcher.prefix_match());
      break;
    case Proto::kSuffixMatch:
      m.string_ = StringMatch::Make(StringMatch::Kind::kSuffix, matcher.suffix_match());
      break;
    case Proto::kContainsMatch:
      m.string_ = StringMatch::Make(StringMatch::Kind::kContains, matcher.contains_match());
      break;
    case Proto::kSafeRegexMatch: {
      absl::StatusOr<StringMatch> regex = StringMatch::MakeRegex(matcher.safe_regex_match().regex());
      if (!regex.ok()) return regex.status();
      m.string_ = *std::move(regex);
      break;
    }
    case Proto::kStringMatch: {
      absl::StatusOr<StringMatch> match = StringMatch::Make(matcher.string_match());
      if (!match.ok()) return match.status();
      m.string_ = *std::move(match);
      break;
    }
    case Proto::kRangeMatch:
      m.kind_ = Kind::kRange;
      m.start_ = matcher.range_match().start();
      m.end_ = matcher.range_match().end();
      break;
    case Proto::kPresentMatch:
      m.kind_ = Kind::kPresent;
      m.present_ = matcher.present_match();
      break;
    default:
      m.kind_ = Kind::kPresent;
  }
  return m;
}

bool HeaderMatch::Matches(std::optional<std::string_view> value) const {
  if (kind_ == Kind::kPresent) return ((value.has_value() || missing_as_empty_) == present_) != invert_;
  if (!value.has_value()) {
    // A missing header never matches, not even inverted, except as the empty string where asked for.
    // Envoy: api/envoy/config/route/v3/route_components.proto, HeaderMatcher.treat_missing_header_as_empty
    if (!missing_as_empty_) return false;
    value = std::string_view();
  }
  bool matches = false;
  if (kind_ == Kind::kRange) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    matches = error == std::errc() && end == value->data() + value->size() && number >= start_ && number < end_;
  } else {
    matches = string_.Matches(*value);
  }
  return matches != invert_;
}

HeaderMatch HeaderMatch::Present(std::string_view name) {
  HeaderMatch out;
  out.name_ = name;
  return out;
}

bool HeaderMatch::Matches(const std::vector<std::string_view>& values) const {
  if (values.empty()) return Matches(std::optional<std::string_view>());
  if (values.size() == 1) return Matches(std::optional<std::string_view>(values.front()));
  const bool any = std::any_of(values.begin(), values.end(), [&](std::string_view value) {
    return Matches(std::optional<std::string_view>(value)) != invert_;
  });
  return any != invert_;
}

absl::StatusOr<QueryMatch> QueryMatch::Make(const envoy::config::route::v3::QueryParameterMatcher& matcher) {
  QueryMatch m;
  m.name_ = matcher.name();
  if (matcher.has_string_match()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(matcher.string_match());
    if (!match.ok()) return match.status();
    m.string_ = *std::move(match);
  }
  return m;
}

bool QueryMatch::Matches(std::string_view query) const {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name_) continue;
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    return !string_.has_value() || string_->Matches(value);  // the first occurrence counts
  }
  return false;
}

bool HeaderMatch::Matches(const RequestSpec& request) const {
  std::vector<std::string_view> values;
  for (const auto& [name, value] : request.headers) {
    if (name == name_) values.push_back(value);
  }
  return values.size() < 2 ? Matches(FindHeader(request, name_)) : Matches(values);
}

}  // namespace wavetank::envoysim
