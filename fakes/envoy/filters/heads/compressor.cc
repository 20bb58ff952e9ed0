#include "fakes/envoy/filters/heads/compressor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/filters/heads/accept_encoding.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

using Json = nlohmann::json;

// Envoy: compressor_filter.cc, defaultContentEncoding
const std::set<std::string, std::less<>>& DefaultContentTypes() {
  static const auto* const kTypes = new std::set<std::string, std::less<>>{"text/html",
                                                                           "text/plain",
                                                                           "text/css",
                                                                           "application/javascript",
                                                                           "application/x-javascript",
                                                                           "text/javascript",
                                                                           "text/x-javascript",
                                                                           "text/ecmascript",
                                                                           "text/js",
                                                                           "text/jscript",
                                                                           "text/x-js",
                                                                           "application/ecmascript",
                                                                           "application/x-json",
                                                                           "application/xml",
                                                                           "application/json",
                                                                           "image/svg+xml",
                                                                           "text/xml",
                                                                           "application/xhtml+xml"};
  return *kTypes;
}

// What is compressed of one direction.
struct Direction {
  bool enabled = true;
  uint32_t min_content_length = 30;
  std::set<std::string, std::less<>> content_types;
  std::string counters;  // "http.l.compressor.NAME.gzip.response."

  bool TakesType(std::string_view type) const {
    return type.empty() || content_types.empty() || content_types.contains(type);
  }
};

struct CompressorOfRoute final : RouteFilterConfig {
  std::optional<bool> enabled, removes_accept_encoding;
};

// What one compressor keeps of a request.
struct AskedEncoding final : FilterState {
  std::optional<std::string> accepted;
};

std::string TypeOf(std::optional<std::string_view> header) {
  if (!header) return {};
  const absl::string_view text(header->data(), header->size());
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find(';'))));
}

void SetLine(std::string_view name, std::string_view value, ReplyHead* reply) {
  reply->Remove(name);
  AddHeaderLine(name, value, &reply->headers);
}

bool HasToken(std::string_view list, absl::string_view token, bool any_case = true) {
  const std::vector<std::string> all = absl::StrSplit(std::string(list), ',');
  return std::any_of(all.begin(), all.end(), [&](const std::string& one) {
    const absl::string_view bare = absl::StripAsciiWhitespace(one);
    return any_case ? absl::EqualsIgnoreCase(bare, token) : bare == token;
  });
}

class Compressor final : public HttpFilter {
 public:
  Direction request, response;
  std::string encoding, counters;  // `counters`: of what concerns answers alone, "http.l.compressor.NAME.gzip."
  bool choose_first = false, disable_on_etag = false, weaken_etag = false, removes_accept_encoding = false;
  std::set<uint64_t> left_alone;  // uncompressible_response_codes

  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    auto asked = std::make_shared<AskedEncoding>();
    if (const auto accepted = FindHeader(stream.request(), "accept-encoding")) asked->accepted = *accepted;
    stream.Memory() = asked;
    const auto* const of_route = static_cast<const CompressorOfRoute*>(stream.RouteConfig());
    const bool compresses = of_route != nullptr && of_route->enabled ? *of_route->enabled : response.enabled;
    const bool removes = of_route != nullptr && of_route->removes_accept_encoding ? *of_route->removes_accept_encoding
                                                                                  : removes_accept_encoding;
    RequestEdit edit(stream.request());
    if (compresses && removes && asked->accepted) edit.Remove("accept-encoding");
    CompressRequest(stream, &edit);
    if (std::shared_ptr<const RequestSpec> changed = edit.Take()) stream.Replace(std::move(changed));
    return FilterStatus::kContinue;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    const auto* const of_route = static_cast<const CompressorOfRoute*>(stream.RouteConfig());
    const bool enabled = of_route != nullptr && of_route->enabled ? *of_route->enabled : response.enabled;
    const bool big = enabled && LongEnough(response, stream, FindHeaderLine(reply.headers, "content-length"));
    const bool compressible = big && MayCompress(stream, reply);
    if (reply.has_body && big && Accepted(stream, reply) && compressible &&
        !HasToken(FindHeaderLine(reply.headers, "transfer-encoding").value_or(""), encoding)) {
      SanitiseEtag(&reply);
      reply.Remove("content-length");
      SetLine("content-encoding", encoding, &reply);
      ++stream.Counter(response.counters + "compressed");
    } else {
      ++stream.Counter(response.counters + "not_compressed");
    }
    if (compressible) InsertVary(&reply);
  }

 private:
  void CompressRequest(HttpStream& stream, RequestEdit* edit) const {
    const RequestSpec& spec = edit->now();
    const std::optional<std::string_view> length = FindHeader(spec, "content-length");
    if (!request.enabled || !length || *length == "0" || FindHeader(spec, "upgrade") ||
        !LongEnough(request, stream, *length) || !request.TakesType(TypeOf(FindHeader(spec, "content-type"))) ||
        FindHeader(spec, "content-encoding")) {
      ++stream.Counter(request.counters + "not_compressed");
      return;
    }
    ++stream.Counter(request.counters + "compressed");
    edit->Remove("content-length");
    edit->Set("content-encoding", encoding);
  }

  static bool LongEnough(const Direction& direction, HttpStream& stream, std::optional<std::string_view> length) {
    if (!length) return true;
    uint64_t bytes = 0;
    if (absl::SimpleAtoi(std::string(*length), &bytes) && bytes >= direction.min_content_length) return true;
    ++stream.Counter(direction.counters + "content_length_too_small");
    return false;
  }

  bool MayCompress(HttpStream& stream, const ReplyHead& reply) const {
    if (reply.code == 101 || left_alone.contains(reply.code)) return false;
    if (!response.TakesType(TypeOf(FindHeaderLine(reply.headers, "content-type")))) return false;
    if (HasToken(FindHeaderLine(reply.headers, "cache-control").value_or(""), "no-transform")) return false;
    if (disable_on_etag && FindHeaderLine(reply.headers, "etag")) {
      ++stream.Counter(counters + "not_compressed_etag");
      return false;
    }
    return !FindHeaderLine(reply.headers, "content-encoding");
  }

  bool Accepted(HttpStream& stream, const ReplyHead& reply) const {
    const auto* const asked = static_cast<const AskedEncoding*>(stream.Memory().get());
    if (asked == nullptr || !asked->accepted) {
      ++stream.Counter(counters + "no_accept_header");
      return false;
    }
    const std::string type = TypeOf(FindHeaderLine(reply.headers, "content-type"));
    std::vector<OfferedEncoding> offered;
    for (const HttpFilter* const filter : stream.chain()) {
      const auto* const one = dynamic_cast<const Compressor*>(filter);
      if (one == nullptr || !one->response.TakesType(type)) continue;
      const bool known = std::any_of(offered.begin(), offered.end(),
                                     [&](const OfferedEncoding& o) { return o.encoding == one->encoding; });
      if (!known) offered.push_back({one->encoding, one->choose_first});
    }
    const EncodingChoice choice = ChooseEncoding(*asked->accepted, std::move(offered));
    const bool mine = choice.encoding == encoding;
    ++stream.Counter(counters + std::string(CounterOf(choice.why, mine)));
    return mine;
  }

  static std::string_view CounterOf(EncodingChoice::Why why, bool mine) {
    switch (why) {
      case EncodingChoice::Why::kCompressor:
        return mine ? "header_compressor_used" : "header_compressor_overshadowed";
      case EncodingChoice::Why::kIdentity:
        return "header_identity";
      case EncodingChoice::Why::kWildcard:
        return "header_wildcard";
      case EncodingChoice::Why::kNotValid:
        break;
    }
    return "header_not_valid";
  }

  // A strong validator is of the bytes as they were.
  void SanitiseEtag(ReplyHead* reply) const {
    const std::string etag(FindHeaderLine(reply->headers, "etag").value_or(""));
    if (etag.empty() || (etag.size() > 2 && absl::StartsWithIgnoreCase(etag, "w/"))) return;
    weaken_etag ? SetLine("etag", "W/" + etag, reply) : reply->Remove("etag");
  }

  static void InsertVary(ReplyHead* reply) {
    const auto vary = FindHeaderLine(reply->headers, "vary");
    if (vary && HasToken(*vary, "Accept-Encoding", /*any_case=*/false)) return;
    SetLine("vary", vary ? std::string(*vary) + ", Accept-Encoding" : "Accept-Encoding", reply);
  }
};

void ReadDirection(const Json& common, bool enabled, Direction* out) {
  out->enabled = BoolAt(common, "enabled.default_value", enabled);
  out->min_content_length = static_cast<uint32_t>(NumberAt(common, "min_content_length", 30));
  const Json& types = JsonAt(common, "content_type");
  for (const Json& type : types) {
    if (type.is_string()) out->content_types.insert(type.get<std::string>());
  }
  if (out->content_types.empty()) out->content_types = DefaultContentTypes();
}

// "gzip" of envoy.extensions.compression.gzip.compressor.v3.Gzip.
absl::StatusOr<std::string> LibraryOf(const Json& library) {
  const std::string type = TextAt(library, "typed_config.@type");
  for (const char* known : {"gzip", "brotli", "zstd"}) {
    if (absl::StrContains(type, fmt::format("compression.{}.compressor", known))) return std::string(known);
  }
  return absl::InvalidArgumentError(fmt::format("Didn't find a registered implementation for '{}' with type URL: '{}'",
                                                TextAt(library, "name"), type));
}

absl::StatusOr<std::shared_ptr<const HttpFilter>> MakeCompressor(const google::protobuf::Any& config,
                                                                 const FilterContext& context) {
  absl::StatusOr<Json> said = ConfigJson(config);
  if (!said.ok()) return said.status();
  if (!said->contains("compressor_library")) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (CompressorValidationError.CompressorLibrary: value is required)");
  }
  absl::StatusOr<std::string> library = LibraryOf((*said)["compressor_library"]);
  if (!library.ok()) return library.status();
  auto out = std::make_shared<Compressor>();
  out->encoding = *library == "brotli" ? "br" : *library;
  out->choose_first = BoolAt(*said, "choose_first");
  const std::string counters = fmt::format("{}compressor.{}.{}.", std::string(context.stat_prefix),
                                           TextAt(*said, "compressor_library.name"), *library);
  ReadDirection(JsonAt(*said, "request_direction_config.common_config"), /*enabled=*/false, &out->request);
  out->counters = counters;
  out->request.counters = counters + "request.";
  // What stands at the top is what the answers' direction was before it had a message of its own.
  const bool own = said->contains("response_direction_config");
  const Json& response = own ? JsonAt(*said, "response_direction_config") : *said;
  Json common = own ? JsonAt(response, "common_config") : response;
  if (!own && said->contains("content_length")) common["min_content_length"] = (*said)["content_length"];
  if (!own && said->contains("runtime_enabled")) common["enabled"] = (*said)["runtime_enabled"];
  ReadDirection(common, /*enabled=*/true, &out->response);
  out->response.counters = counters + (own ? "response." : "");
  out->disable_on_etag = BoolAt(response, "disable_on_etag_header");
  out->weaken_etag = BoolAt(response, "weaken_etag_on_compress");
  out->removes_accept_encoding = BoolAt(response, "remove_accept_encoding_header");
  for (const Json& code : JsonAt(response, "uncompressible_response_codes")) {
    if (code.is_number_unsigned()) out->left_alone.insert(code.get<uint64_t>());
  }
  return out;
}

absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> MakeForRoute(const google::protobuf::Any& config,
                                                                      const Extensions&) {
  absl::StatusOr<Json> said = ConfigJson(config);
  if (!said.ok()) return said.status();
  auto out = std::make_shared<CompressorOfRoute>();
  if (BoolAt(*said, "disabled")) {
    out->enabled = false;
  } else if (!said->contains("overrides")) {
    return absl::InvalidArgumentError("Proto constraint validation failed (field: \"override\", reason: is required)");
  }
  const Json& response = JsonAt(*said, "overrides.response_direction_config");
  if (response.is_object()) {
    out->enabled = true;
    if (response.contains("remove_accept_encoding_header")) {
      out->removes_accept_encoding = BoolAt(response, "remove_accept_encoding_header");
    }
  }
  return out;
}

}  // namespace

HttpFilterType CompressorFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.compressor.v3.Compressor";
  type.name = "envoy.filters.http.compressor";
  type.make = MakeCompressor;
  type.route_message = "envoy.extensions.filters.http.compressor.v3.CompressorPerRoute";
  type.make_for_route = MakeForRoute;
  return type;
}

}  // namespace wavetank::envoysim
