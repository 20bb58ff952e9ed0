#include "fakes/envoy/access_log/access_log.h"

#include <algorithm>
#include <utility>

#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/core/v3/substitution_format_string.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/access_loggers/filters/cel/v3/cel.pb.h"
#include "fakes/envoy/access_log/access_log_expression.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/http.h"
#include "fmt/format.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace accesslog_v3 = envoy::config::accesslog::v3;

absl::StatusOr<AccessLogFormat> CompileFileFormat(
    const envoy::extensions::access_loggers::file::v3::FileAccessLog& proto, const Extensions& extensions) {
  using Proto = envoy::extensions::access_loggers::file::v3::FileAccessLog;
  switch (proto.access_log_format_case()) {
    case Proto::kLogFormat:
      return CompileLogFormat(proto.log_format(), extensions);
    case Proto::kFormat:
      if (proto.format().empty()) return AccessLogFormat();
      return AccessLogFormat::MakeText(proto.format(), false, extensions);
    case Proto::kJsonFormat:
      return AccessLogFormat::MakeJson(proto.json_format(), false, extensions);
    case Proto::kTypedJsonFormat:
      return AccessLogFormat::MakeJson(proto.typed_json_format(), false, extensions);
    default:
      return AccessLogFormat();
  }
}

}  // namespace

absl::StatusOr<AccessLogFormat> CompileLogFormat(const envoy::config::core::v3::SubstitutionFormatString& proto,
                                                 const Extensions& extensions) {
  using Proto = envoy::config::core::v3::SubstitutionFormatString;
  switch (proto.format_case()) {
    case Proto::kTextFormat:
      return AccessLogFormat::MakeText(proto.text_format(), proto.omit_empty_values(), extensions);
    case Proto::kTextFormatSource:
      return AccessLogFormat::MakeText(proto.text_format_source().inline_string(), proto.omit_empty_values(),
                                       extensions);
    case Proto::kJsonFormat:
      return AccessLogFormat::MakeJson(proto.json_format(), proto.omit_empty_values(), extensions);
    default:
      return absl::InvalidArgumentError("Proto constraint validation failed (field: \"format\", reason: is required)");
  }
}

absl::StatusOr<AccessLogFilter> AccessLogFilter::Make(const accesslog_v3::AccessLogFilter& filter,
                                                      const Extensions& extensions) {
  using Proto = accesslog_v3::AccessLogFilter;
  AccessLogFilter out;
  const auto compare = [&](const accesslog_v3::ComparisonFilter& proto) {
    out.bound_ = proto.value().default_value();
    out.comparison_ = proto.op() == accesslog_v3::ComparisonFilter::GE   ? Comparison::kAtLeast
                      : proto.op() == accesslog_v3::ComparisonFilter::LE ? Comparison::kAtMost
                                                                         : Comparison::kEqual;
  };
  const auto add = [&](const auto& filters) -> absl::Status {
    for (const Proto& part : filters) {
      absl::StatusOr<AccessLogFilter> made = Make(part, extensions);
      if (!made.ok()) return made.status();
      out.parts_.push_back(*std::move(made));
    }
    return absl::OkStatus();
  };
  switch (filter.filter_specifier_case()) {
    case Proto::kStatusCodeFilter:
      out.kind_ = Kind::kCode;
      compare(filter.status_code_filter().comparison());
      break;
    case Proto::kDurationFilter:
      out.kind_ = Kind::kDuration;
      compare(filter.duration_filter().comparison());
      break;
    case Proto::kAndFilter:
      out.kind_ = Kind::kAnd;
      if (absl::Status s = add(filter.and_filter().filters()); !s.ok()) return s;
      break;
    case Proto::kOrFilter:
      out.kind_ = Kind::kOr;
      if (absl::Status s = add(filter.or_filter().filters()); !s.ok()) return s;
      break;
    case Proto::kHeaderFilter: {
      absl::StatusOr<HeaderMatch> header = HeaderMatch::Make(filter.header_filter().header());
      if (!header.ok()) return header.status();
      out.kind_ = Kind::kHeader;
      out.header_ = *std::move(header);
      break;
    }
    case Proto::kResponseFlagFilter:
      out.kind_ = Kind::kFlags;
      for (const std::string& name : filter.response_flag_filter().flags()) {
        out.flags_ |= ResponseFlagOf(name).value_or(kUnmodelledFlag);
      }
      break;
    case Proto::kTraceableFilter:
      out.kind_ = Kind::kNever;
      break;
    case Proto::kExtensionFilter: {
      envoy::extensions::access_loggers::filters::cel::v3::ExpressionFilter cel;
      if (!filter.extension_filter().typed_config().UnpackTo(&cel)) break;
      out.kind_ = Kind::kExpression;
      absl::StatusOr<std::shared_ptr<const LogExpression>> made = LogExpression::Make(cel.expression(), extensions);
      if (!made.ok()) return made.status();
      out.expression_ = *std::move(made);
      break;
    }
    default:
      break;
  }
  return out;
}

bool AccessLogFilter::Compare(uint64_t value) const {
  switch (comparison_) {
    case Comparison::kAtLeast:
      return value >= bound_;
    case Comparison::kAtMost:
      return value <= bound_;
    case Comparison::kEqual:
      break;
  }
  return value == bound_;
}

bool AccessLogFilter::Passes(const AccessLogEntry& entry) const {
  const auto passes = [&](const AccessLogFilter& part) { return part.Passes(entry); };
  switch (kind_) {
    case Kind::kAlways:
      return true;
    case Kind::kNever:
      return false;
    case Kind::kCode:
      return Compare(entry.code);
    case Kind::kDuration:
      return Compare(static_cast<uint64_t>(std::max<int64_t>((entry.end - entry.start).count() / 1'000'000, 0)));
    case Kind::kAnd:
      return std::all_of(parts_.begin(), parts_.end(), passes);
    case Kind::kOr:
      return std::any_of(parts_.begin(), parts_.end(), passes);
    case Kind::kHeader: {
      std::string kept;
      return header_->Matches(LoggedRequestHeader(entry, header_->name(), &kept));
    }
    case Kind::kFlags:
      return flags_ == kNoFlags ? entry.flags != kNoFlags : (entry.flags & flags_) != 0;
    case Kind::kExpression:
      return expression_->Holds(entry);
  }
  return true;
}

absl::Status AddAccessLog(const accesslog_v3::AccessLog& log, const Extensions& extensions,
                          std::shared_ptr<AccessLogs>* logs) {
  envoy::extensions::access_loggers::file::v3::FileAccessLog file;
  if (TypeName(log.typed_config()) != file.GetDescriptor()->full_name() || !log.typed_config().UnpackTo(&file)) {
    return absl::OkStatus();
  }
  if (file.path().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (FileAccessLogValidationError.Path: value length must be at least 1 "
        "characters)");
  }
  absl::StatusOr<AccessLogFormat> format = CompileFileFormat(file, extensions);
  if (!format.ok()) return format.status();
  AccessLog out;
  out.path = file.path();
  out.format = *std::move(format);
  if (log.has_filter()) {
    absl::StatusOr<AccessLogFilter> filter = AccessLogFilter::Make(log.filter(), extensions);
    if (!filter.ok()) return filter.status();
    out.filter = *std::move(filter);
  }
  if (*logs == nullptr) *logs = std::make_shared<AccessLogs>();
  (*logs)->push_back(std::move(out));
  return absl::OkStatus();
}

}  // namespace wavetank::envoysim
