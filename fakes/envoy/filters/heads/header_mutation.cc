#include "fakes/envoy/filters/heads/header_mutation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/http/header_mutations.h"
#include "fakes/envoy/match/query_parameters.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"

namespace wavetank::envoysim {
namespace {

using Json = nlohmann::json;

struct QueryMutation {
  std::string name;
  std::optional<AccessLogFormat> format;  // nothing: the parameter is removed
  HeaderAddition::Action action = HeaderAddition::Action::kAppend;

  void Apply(const AccessLogEntry& entry, QueryParameters* parameters) const {
    using Action = HeaderAddition::Action;
    if (!format) {
      parameters->erase(name);
      return;
    }
    const bool exists = parameters->contains(name);
    if (exists ? action == Action::kAddIfAbsent : action == Action::kOverwriteIfExists) return;
    std::vector<std::string>& values = (*parameters)[name];
    if (action != Action::kAppend) values.clear();
    std::string value;
    format->Write(entry, &value);
    values.push_back(EncodedForQuery(value));
  }
};

absl::StatusOr<std::vector<QueryMutation>> CompileQueryMutations(const Json& list, const Extensions& extensions) {
  std::vector<QueryMutation> out;
  for (const Json& one : list) {
    QueryMutation& made = out.emplace_back();
    const std::string removed = TextAt(one, "remove");
    const Json& append = JsonAt(one, "append");
    if (!append.is_object()) {
      if (removed.empty()) return absl::InvalidArgumentError("One of 'append'/'remove' must be specified.");
      made.name = removed;
      continue;
    }
    if (!removed.empty()) return absl::InvalidArgumentError("Only one of 'append'/'remove can be specified.");
    if (!JsonAt(append, "record").is_object()) {
      return absl::InvalidArgumentError("No record specified for append mutation.");
    }
    if (!JsonAt(append, "record.value").is_string()) {
      return absl::InvalidArgumentError("Only string value is allowed for record value.");
    }
    made.name = TextAt(append, "record.key");
    const std::string action = TextAt(append, "action");  // KeyValueAppend.KeyValueAppendAction
    if (action == "ADD_IF_ABSENT") made.action = HeaderAddition::Action::kAddIfAbsent;
    if (action == "OVERWRITE_IF_EXISTS_OR_ADD") made.action = HeaderAddition::Action::kOverwriteOrAdd;
    if (action == "OVERWRITE_IF_EXISTS") made.action = HeaderAddition::Action::kOverwriteIfExists;
    absl::StatusOr<AccessLogFormat> format =
        AccessLogFormat::MakeText(TextAt(append, "record.value"), /*omit_empty=*/true, extensions);
    if (!format.ok()) return format.status();
    made.format = *std::move(format);
  }
  return out;
}

// What a filter's configuration and each level of routes have.
struct MutationsOfHeads final : RouteFilterConfig {
  HeaderMutations request, request_trailers, reply, reply_trailers;
  std::vector<QueryMutation> query;
};

absl::StatusOr<std::shared_ptr<MutationsOfHeads>> CompileMutations(const Json& config, const Extensions& extensions) {
  auto out = std::make_shared<MutationsOfHeads>();
  for (const auto& [field, into] : {std::pair("request_mutations", &out->request),
                                    {"request_trailers_mutations", &out->request_trailers},
                                    {"response_mutations", &out->reply},
                                    {"response_trailers_mutations", &out->reply_trailers}}) {
    absl::StatusOr<HeaderMutations> made =
        HeaderMutations::Make(JsonAt(config, std::string("mutations.") + field), extensions);
    if (!made.ok()) return made.status();
    *into = *std::move(made);
  }
  auto query = CompileQueryMutations(JsonAt(config, "mutations.query_parameter_mutations"), extensions);
  if (!query.ok()) return query.status();
  out->query = *std::move(query);
  return out;
}

class HeaderMutationFilter final : public HttpFilter {
 public:
  HeaderMutationFilter(std::shared_ptr<const MutationsOfHeads> own, bool most_specific_last)
      : own_(std::move(own)), most_specific_last_(most_specific_last) {}

  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    AccessLogEntry entry;
    stream.Describe(&entry);
    RequestEdit edit(stream.request());
    for (const MutationsOfHeads* const level : LevelsOf(stream)) {
      level->request.Apply(entry, &edit);
      if (level->query.empty() || edit.now().path.empty()) continue;
      AccessLogEntry now = entry;
      now.request = &edit.now();
      QueryParameters parameters = QueryParametersOf(edit.now().path);
      for (const QueryMutation& mutation : level->query) mutation.Apply(now, &parameters);
      edit.SetPath(WithQueryParameters(edit.now().path, parameters));
    }
    if (!edit.now().trailers.empty()) {
      const std::shared_ptr<const RequestSpec> headed = edit.Take();
      const RequestSpec& now = headed != nullptr ? *headed : stream.request();
      entry.request = &now;
      RequestEdit behind(now);
      for (const MutationsOfHeads* const level : LevelsOf(stream)) {
        level->request_trailers.ApplyToRequestTrailers(entry, &behind);
      }
      std::shared_ptr<const RequestSpec> changed = behind.Take();
      if (changed == nullptr) changed = headed;
      if (changed != nullptr) stream.Replace(std::move(changed));
      return FilterStatus::kContinue;
    }
    if (std::shared_ptr<const RequestSpec> changed = edit.Take()) stream.Replace(std::move(changed));
    return FilterStatus::kContinue;
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    AccessLogEntry entry;
    stream.Describe(&entry);
    // Of gRPC's answers formats see what they stand for. Envoy: stream_info's response code, http/utility.cc,
    // prepareLocalReply
    if (entry.code == 0) entry.code = reply.code;
    entry.details = reply.details;
    // Its status is a header that can be removed, too.
    constexpr std::string_view kStatus = ":status";
    std::string lines;
    AddHeaderLine(kStatus, std::to_string(reply.code), &lines);
    lines += reply.headers;
    const std::vector<const MutationsOfHeads*> levels = LevelsOf(stream);
    for (const MutationsOfHeads* const level : levels) level->reply.Apply(entry, &lines);
    if (lines.starts_with(kStatus)) {
      lines.erase(0, lines.find('\n') + 1);
    } else {
      reply.code = 0;
    }
    reply.headers = std::move(lines);
    if (reply.trailers.empty()) return;
    entry.response_headers = reply.headers;
    for (const MutationsOfHeads* const level : levels) level->reply_trailers.ApplyToTrailers(entry, &reply.trailers);
  }

 private:
  // The filter's own word comes first.
  std::vector<const MutationsOfHeads*> LevelsOf(const HttpStream& stream) const {
    std::vector<const MutationsOfHeads*> out;
    for (const RouteFilterConfig* const level : stream.RouteConfigs()) {
      if (const auto* const own = dynamic_cast<const MutationsOfHeads*>(level)) out.push_back(own);
    }
    if (most_specific_last_) std::reverse(out.begin(), out.end());
    out.insert(out.begin(), own_.get());
    return out;
  }

  const std::shared_ptr<const MutationsOfHeads> own_;
  const bool most_specific_last_;
};

}  // namespace

HttpFilterType HeaderMutationFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation";
  type.route_message = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute";
  type.name = "envoy.filters.http.header_mutation";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    const absl::StatusOr<Json> json = ConfigJson(config);
    if (!json.ok()) return json.status();
    auto made = CompileMutations(*json, context.extensions);
    if (!made.ok()) return made.status();
    return std::make_shared<HeaderMutationFilter>(*std::move(made),
                                                  BoolAt(*json, "most_specific_header_mutations_wins"));
  };
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions& extensions) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    const absl::StatusOr<Json> json = ConfigJson(config);
    if (!json.ok()) return json.status();
    return CompileMutations(*json, extensions);
  };
  return type;
}

}  // namespace wavetank::envoysim
