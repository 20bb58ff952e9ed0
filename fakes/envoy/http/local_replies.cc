#include "fakes/envoy/http/local_replies.h"

#include <utility>

#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/core/v3/substitution_format_string.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"

namespace wavetank::envoysim {
namespace {

namespace replies_v3 = envoy::extensions::filters::network::http_connection_manager::v3;

constexpr char kPlain[] = "text/plain";

absl::Status RefusedMapper(std::string_view why) {
  return absl::InvalidArgumentError("Proto constraint validation failed (ResponseMapperValidationError." +
                                    std::string(why) + ")");
}

}  // namespace

template <typename Message>
absl::StatusOr<LocalReplyRules::BodyFormat> LocalReplyRules::MakeFormat(const Message& message,
                                                                        const Extensions& extensions) {
  absl::StatusOr<AccessLogFormat> format = CompileLogFormat(message, extensions);
  if (!format.ok()) return format.status();
  std::string type = message.content_type();
  if (type.empty()) type = message.has_json_format() ? "application/json" : kPlain;
  return BodyFormat{*std::move(format), std::move(type)};
}

absl::StatusOr<LocalReplyRules> LocalReplyRules::Make(const replies_v3::LocalReplyConfig& config,
                                                      const Extensions& extensions) {
  LocalReplyRules out;
  for (const auto& proto : config.mappers()) {
    Mapper& mapper = out.mappers_.emplace_back();
    if (!proto.has_filter()) return RefusedMapper("Filter: value is required");
    absl::StatusOr<AccessLogFilter> filter = AccessLogFilter::Make(proto.filter(), extensions);
    if (!filter.ok()) return filter.status();
    mapper.filter = *std::move(filter);
    if (proto.has_status_code()) {
      const uint32_t code = proto.status_code().value();
      if (code < 200 || code >= 600) return RefusedMapper("StatusCode: value must be inside range [200, 600)");
      mapper.code = static_cast<uint16_t>(code);
    }
    if (proto.has_body()) {
      mapper.body = proto.body().has_inline_bytes() ? proto.body().inline_bytes() : proto.body().inline_string();
    }
    if (proto.has_body_format_override()) {
      absl::StatusOr<BodyFormat> format = MakeFormat(proto.body_format_override(), extensions);
      if (!format.ok()) return format.status();
      mapper.format = *std::move(format);
    }
    absl::Status s = HeaderOperations::MakeAdditions(proto.headers_to_add(), extensions, &mapper.headers);
    if (!s.ok()) return s;
  }
  if (config.has_body_format()) {
    absl::StatusOr<BodyFormat> format = MakeFormat(config.body_format(), extensions);
    if (!format.ok()) return format.status();
    out.format_ = *std::move(format);
  }
  return out;
}

LocalReplyRules::Rewritten LocalReplyRules::Rewrite(AccessLogEntry entry, std::string_view body,
                                                    std::string* lines) const {
  Rewritten out{entry.code, std::string(body), kPlain};
  const BodyFormat* format = format_ ? &*format_ : nullptr;
  {
    const std::string now = *lines;
    entry.response_headers = now;
    for (const Mapper& mapper : mappers_) {
      if (!mapper.filter.Passes(entry)) continue;
      if (mapper.body) out.body = *mapper.body;
      if (!mapper.headers.empty()) mapper.headers.Apply(entry, lines);
      if (mapper.code) out.code = entry.code = *mapper.code;
      if (mapper.format) format = &*mapper.format;
      break;
    }
  }
  if (format == nullptr) return out;
  entry.response_headers = *lines;
  entry.local_reply_body = out.body;
  std::string formatted;
  format->format.Write(entry, &formatted);
  out.body = std::move(formatted);
  out.content_type = format->content_type;
  return out;
}

}  // namespace wavetank::envoysim
