#include "fakes/envoy/filters/heads/header_to_metadata.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "envoy/extensions/filters/http/header_to_metadata/v3/header_to_metadata.pb.h"
#include "fakes/envoy/http/cookies.h"
#include "fakes/envoy/http/rewrites.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using MetadataProto = envoy::extensions::filters::http::header_to_metadata::v3::Config;

constexpr char kHeaderToMetadata[] = "envoy.filters.http.header_to_metadata";
constexpr size_t kLongestMetadata = 8 * 1024;

struct MetadataPair {
  std::string filter, key, value;
  MetadataProto::ValueType type = MetadataProto::STRING;
  MetadataProto::ValueEncode encode = MetadataProto::NONE;
  std::optional<RegexRewrite> rewrite;
};

struct MetadataRule {
  std::string header, cookie;  // one of them
  bool remove = false;
  std::optional<MetadataPair> present, missing;
};

struct MetadataRules final : RouteFilterConfig {
  std::vector<MetadataRule> request, reply;
};

absl::StatusOr<MetadataPair> CompileMetadataPair(const MetadataProto::KeyValuePair& proto) {
  MetadataPair out{proto.metadata_namespace().empty() ? kHeaderToMetadata : proto.metadata_namespace(),
                   proto.key(),
                   proto.value(),
                   proto.type(),
                   proto.encode(),
                   std::nullopt};
  if (out.key.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (KeyValuePairValidationError.Key: value length must be at least 1 "
        "characters)");
  }
  if (proto.has_regex_value_rewrite()) {
    absl::StatusOr<RegexRewrite> rewrite = RegexRewrite::Make(proto.regex_value_rewrite());
    if (!rewrite.ok()) return rewrite.status();
    out.rewrite = *std::move(rewrite);
  }
  return out;
}

absl::StatusOr<MetadataRule> CompileMetadataRule(const MetadataProto::Rule& proto) {
  const auto bad = [](std::string_view why) {
    return absl::InvalidArgumentError(absl::string_view(why.data(), why.size()));
  };
  MetadataRule out{absl::AsciiStrToLower(proto.header()), proto.cookie(), proto.remove(), std::nullopt, std::nullopt};
  if (!out.header.empty() && !out.cookie.empty()) return bad("Cannot specify both header and cookie");
  if (out.header.empty() && out.cookie.empty()) return bad("One of Cookie or Header option needs to be specified");
  if (!proto.has_on_header_present() && !proto.has_on_header_missing()) {
    return bad(
        fmt::format("header to metadata filter: rule for {} '{}' has neither `on_header_present` nor "
                    "`on_header_missing` set",
                    out.header.empty() ? "cookie" : "header", out.header.empty() ? out.cookie : out.header));
  }
  if (!proto.on_header_present().value().empty() && proto.on_header_present().has_regex_value_rewrite()) {
    return bad("Cannot specify both value and regex_value_rewrite");
  }
  if (!out.cookie.empty() && out.remove) return bad("Cannot specify remove for cookie");
  if (proto.has_on_header_missing() && proto.on_header_missing().value().empty()) {
    return bad("Cannot specify on_header_missing rule with an empty value");
  }
  for (const auto& [given, from, to] :
       {std::tuple(proto.has_on_header_present(), &proto.on_header_present(), &out.present),
        {proto.has_on_header_missing(), &proto.on_header_missing(), &out.missing}}) {
    if (!given) continue;
    absl::StatusOr<MetadataPair> made = CompileMetadataPair(*from);
    if (!made.ok()) return made.status();
    *to = *std::move(made);
  }
  return out;
}

absl::StatusOr<std::shared_ptr<MetadataRules>> CompileMetadataRules(const google::protobuf::Any& config,
                                                                    bool of_route) {
  MetadataProto proto;
  if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
  auto out = std::make_shared<MetadataRules>();
  for (const auto& [rules, into] :
       {std::pair(&proto.request_rules(), &out->request), {&proto.response_rules(), &out->reply}}) {
    for (const auto& rule : *rules) {
      absl::StatusOr<MetadataRule> made = CompileMetadataRule(rule);
      if (!made.ok()) return made.status();
      into->push_back(*std::move(made));
    }
  }
  if (of_route && out->request.empty() && out->reply.empty()) {
    return absl::InvalidArgumentError(
        "header_to_metadata_filter: Per filter configs must at least specify either request or response rules");
  }
  return out;
}

std::optional<nlohmann::json> MetadataValueOf(const MetadataPair& pair, std::string value) {
  if (value.empty() || value.size() >= kLongestMetadata) return std::nullopt;
  if (pair.encode == MetadataProto::BASE64) {
    std::string decoded;
    if (!absl::Base64Unescape(value, &decoded) || decoded.empty()) return std::nullopt;
    value = std::move(decoded);
  }
  if (pair.type == MetadataProto::NUMBER) {
    double number = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(value), &number)) return std::nullopt;
    return nlohmann::json(number);
  }
  // A protobuf Value among a request's headers is nothing that anybody here writes.
  if (pair.type != MetadataProto::STRING) return std::nullopt;
  return nlohmann::json(std::move(value));
}

// `all`: the values of one header after commas, or nothing. `remove`: takes a header away.
template <typename All, typename Remove>
void ApplyMetadataRules(const std::vector<MetadataRule>& rules, HttpStream& stream, All all, Remove remove) {
  for (const MetadataRule& rule : rules) {
    std::optional<std::string> value;
    if (!rule.cookie.empty()) {
      const std::optional<std::string> cookies = all("cookie");
      const std::optional<std::string_view> cookie = cookies ? NamedCookie(*cookies, rule.cookie) : std::nullopt;
      if (cookie) value = std::string(*cookie);
    } else {
      value = all(rule.header);
      if (value && rule.remove) remove(rule.header);
    }
    const std::optional<MetadataPair>& pair = value ? rule.present : rule.missing;
    if (!pair) continue;
    std::string text = value.value_or("");
    if (!pair->value.empty()) {
      text = pair->value;
    } else if (pair->rewrite) {
      text = pair->rewrite->Of(text);
    }
    std::optional<nlohmann::json> found = MetadataValueOf(*pair, std::move(text));
    if (!found) continue;
    stream.Note({pair->filter, pair->key, {}, std::make_shared<const nlohmann::json>(*std::move(found))});
  }
}

class HeaderToMetadataFilter final : public HttpFilter {
 public:
  explicit HeaderToMetadataFilter(std::shared_ptr<const MetadataRules> rules) : rules_(std::move(rules)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    RequestEdit edit(stream.request());
    ApplyMetadataRules(
        In(stream).request, stream,
        [&](std::string_view name) -> std::optional<std::string> {
          if (name.starts_with(':') || name == "host") {
            const auto value = FindHeader(edit.now(), name);
            return value ? std::optional<std::string>(*value) : std::nullopt;
          }
          std::optional<std::string> out;
          for (const auto& [key, value] : edit.now().headers) {
            if (key == name) out = out ? *out + "," + value : value;
          }
          return out;
        },
        [&](std::string_view name) { edit.Remove(name); });
    if (auto changed = edit.Take()) stream.Replace(std::move(changed));
    return FilterStatus::kContinue;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    ApplyMetadataRules(
        In(stream).reply, stream,
        [&](std::string_view name) {
          std::optional<std::string> out;
          ForEachHeader(reply.headers, [&](std::string_view key, std::string_view value) {
            if (key == name) out = (out ? *out + "," : "") + std::string(value);
          });
          return out;
        },
        [&](std::string_view name) { reply.Remove(name); });
  }

 private:
  const MetadataRules& In(const HttpStream& stream) const {
    const auto* const of_route = dynamic_cast<const MetadataRules*>(stream.RouteConfig());
    return of_route != nullptr ? *of_route : *rules_;
  }

  const std::shared_ptr<const MetadataRules> rules_;
};

}  // namespace

HttpFilterType HeaderToMetadataFilterType() {
  HttpFilterType type;
  type.message = type.route_message = "envoy.extensions.filters.http.header_to_metadata.v3.Config";
  type.name = kHeaderToMetadata;
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    auto made = CompileMetadataRules(config, /*of_route=*/false);
    if (!made.ok()) return made.status();
    return std::make_shared<HeaderToMetadataFilter>(*std::move(made));
  };
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    return CompileMetadataRules(config, /*of_route=*/true);
  };
  return type;
}

}  // namespace wavetank::envoysim
