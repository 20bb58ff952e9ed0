#include "fakes/envoy/match/dynamic_metadata.h"

#include <algorithm>
#include <utility>

#include "envoy/type/matcher/v3/metadata.pb.h"
#include "envoy/type/matcher/v3/number.pb.h"
#include "envoy/type/matcher/v3/value.pb.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {

using nlohmann::json;

absl::StatusOr<ValueMatch> ValueMatch::Make(const envoy::type::matcher::v3::ValueMatcher& matcher) {
  using Proto = envoy::type::matcher::v3::ValueMatcher;
  ValueMatch out;
  const auto add = [&out](const Proto& one) {
    absl::StatusOr<ValueMatch> child = Make(one);
    if (child.ok()) out.any_of_.push_back(*std::move(child));
    return child.status();
  };
  switch (matcher.match_pattern_case()) {
    case Proto::kNullMatch:
      return out;
    case Proto::kDoubleMatch:
      out.kind_ = Kind::kNumber;
      out.start_ = out.end_ = matcher.double_match().exact();
      if (matcher.double_match().has_range()) {
        out.start_ = matcher.double_match().range().start();
        out.end_ = matcher.double_match().range().end();
      }
      return out;
    case Proto::kStringMatch: {
      out.kind_ = Kind::kText;
      absl::StatusOr<StringMatch> text = StringMatch::Make(matcher.string_match());
      if (!text.ok()) return text.status();
      out.text_ = *std::move(text);
      return out;
    }
    case Proto::kBoolMatch:
      out.kind_ = Kind::kBool;
      out.flag_ = matcher.bool_match();
      return out;
    case Proto::kPresentMatch:
      out.kind_ = Kind::kPresent;
      out.flag_ = matcher.present_match();
      return out;
    case Proto::kListMatch:
      out.kind_ = Kind::kList;
      if (absl::Status status = add(matcher.list_match().one_of()); !status.ok()) return status;
      return out;
    case Proto::kOrMatch:
      out.kind_ = Kind::kOr;
      for (const Proto& one : matcher.or_match().value_matchers()) {
        if (absl::Status status = add(one); !status.ok()) return status;
      }
      return out;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ValueMatcherValidationError.MatchPattern: value is required)");
  }
}

bool ValueMatch::MatchesText(std::string_view text) const {
  switch (kind_) {
    case Kind::kText:
      return text_->Matches(text);
    case Kind::kPresent:
      return flag_;
    case Kind::kOr:
      return std::any_of(any_of_.begin(), any_of_.end(), [&](const ValueMatch& m) { return m.MatchesText(text); });
    default:
      return false;
  }
}

bool ValueMatch::Matches(const json& value) const {
  if (value.is_string()) return MatchesText(value.get_ref<const std::string&>());
  switch (kind_) {
    case Kind::kNull:
      return value.is_null();
    case Kind::kNumber: {
      if (!value.is_number()) return false;
      const double number = value.get<double>();
      return start_ == end_ ? number == start_ : number >= start_ && number < end_;
    }
    case Kind::kText:
      return false;
    case Kind::kBool:
      return value.is_boolean() && value.get<bool>() == flag_;
    case Kind::kPresent:
      return flag_;
    case Kind::kList:
      return value.is_array() &&
             std::any_of(value.begin(), value.end(), [&](const json& one) { return any_of_.front().Matches(one); });
    case Kind::kOr:
      return std::any_of(any_of_.begin(), any_of_.end(), [&](const ValueMatch& m) { return m.Matches(value); });
  }
  return false;
}

absl::StatusOr<MetadataMatch> MetadataMatch::Make(const envoy::type::matcher::v3::MetadataMatcher& matcher) {
  MetadataMatch out;
  out.filter_ = matcher.filter();
  for (const auto& segment : matcher.path()) out.path_.push_back(segment.key());
  absl::StatusOr<ValueMatch> value = ValueMatch::Make(matcher.value());
  if (!value.ok()) return value.status();
  out.value_ = *std::move(value);
  out.invert_ = matcher.invert();
  return out;
}

bool MetadataMatch::Matches(const DynamicMetadata* metadata) const { return Finds(metadata) != invert_; }

bool MetadataMatch::Finds(const DynamicMetadata* metadata) const {
  if (metadata == nullptr || path_.empty()) return false;
  const auto note = std::find_if(metadata->rbegin(), metadata->rend(),
                                 [&](const MetadataNote& n) { return n.filter == filter_ && n.key == path_.front(); });
  if (note == metadata->rend()) return false;
  if (note->tree == nullptr) return path_.size() == 1 && value_.MatchesText(note->text);
  const json* at = note->tree.get();
  for (size_t i = 1; i < path_.size(); ++i) {
    if (!at->is_object()) return false;
    const auto next = at->find(path_[i]);
    if (next == at->end()) return false;
    at = &*next;
  }
  return value_.Matches(*at);
}

}  // namespace wavetank::envoysim
