#include "fakes/envoy/http/header_mutations.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/type/matcher/v3/string.pb.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"

namespace wavetank::envoysim {
namespace {

using Json = nlohmann::json;

template <typename Headers>
void AddOne(const HeaderAddition& addition, const AccessLogEntry& entry, const Headers& headers) {
  const std::optional<std::string> value = addition.ValueFor(entry);
  if (!value) return;
  switch (addition.action) {
    case HeaderAddition::Action::kAppend:
      return headers.Add(addition.name, *value);
    case HeaderAddition::Action::kAddIfAbsent:
      if (!headers.Has(addition.name)) headers.Add(addition.name, *value);
      return;
    case HeaderAddition::Action::kOverwriteIfExists:
      if (headers.Has(addition.name)) headers.Set(addition.name, *value);
      return;
    case HeaderAddition::Action::kOverwriteOrAdd:
      return headers.Set(addition.name, *value);
  }
}

std::vector<std::string> NamesOf(const RequestSpec& request) {
  std::vector<std::string> out = {":authority", ":method", ":path"};
  for (const auto& [name, value] : request.headers) out.push_back(name);
  return out;
}

std::vector<std::string> NamesOf(const std::string& lines) {
  std::vector<std::string> out;
  ForEachHeader(lines, [&](std::string_view name, std::string_view) { out.emplace_back(name); });
  return out;
}

}  // namespace

absl::StatusOr<HeaderMutations> HeaderMutations::Make(const Json& list, const Extensions& extensions) {
  HeaderMutations out;
  for (const Json& one : list) {
    Mutation& made = out.all_.emplace_back();
    if (one.contains("append")) {
      envoy::config::core::v3::HeaderValueOption option;
      if (absl::Status s = ReadPart(one["append"], &option); !s.ok()) return s;
      absl::StatusOr<HeaderAddition> addition = HeaderAddition::Make(option, extensions);
      if (!addition.ok()) return addition.status();
      made.append = *std::move(addition);
    } else if (one.contains("remove_on_match")) {
      envoy::type::matcher::v3::StringMatcher matcher;
      const Json& key = JsonAt(one, "remove_on_match.key_matcher");
      if (!key.is_object()) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed (RemoveOnMatchValidationError.KeyMatcher: value is required)");
      }
      if (absl::Status s = ReadPart(key, &matcher); !s.ok()) return s;
      absl::StatusOr<StringMatch> match = StringMatch::Make(matcher);
      if (!match.ok()) return match.status();
      made.remove_on_match = *std::move(match);
    } else if (one.contains("remove")) {
      made.remove = absl::AsciiStrToLower(TextAt(one, "remove"));
    } else {
      return absl::InvalidArgumentError("Proto constraint validation failed (field: \"action\", reason: is required)");
    }
  }
  return out;
}

void HeaderMutations::Apply(AccessLogEntry entry, RequestEdit* request) const {
  const RequestHeaders headers{request};
  for (const Mutation& m : all_) {
    entry.request = &request->now();
    if (m.append) {
      AddOne(*m.append, entry, headers);
    } else if (m.remove_on_match) {
      for (const std::string& name : NamesOf(request->now())) {
        if (m.remove_on_match->Matches(name)) headers.Remove(name);
      }
    } else if (m.remove != "host") {  // which Envoy knows as :authority alone
      headers.Remove(m.remove);
    }
  }
}

void HeaderMutations::Apply(AccessLogEntry entry, std::string* lines) const {
  const ReplyLines headers{lines};
  for (const Mutation& m : all_) {
    const std::string now = *lines;
    entry.response_headers = now;
    if (m.append) {
      AddOne(*m.append, entry, headers);
    } else if (m.remove_on_match) {
      for (const std::string& name : NamesOf(now)) {
        if (m.remove_on_match->Matches(name)) headers.Remove(name);
      }
    } else {
      headers.Remove(m.remove);
    }
  }
}

void HeaderMutations::ApplyToTrailers(AccessLogEntry entry, std::string* lines) const {
  const ReplyLines trailers{lines};
  for (const Mutation& m : all_) {
    const std::string now = *lines;
    entry.response_trailers = now;
    if (m.append) {
      AddOne(*m.append, entry, trailers);
    } else if (m.remove_on_match) {
      for (const std::string& name : NamesOf(now)) {
        if (m.remove_on_match->Matches(name)) trailers.Remove(name);
      }
    } else {
      trailers.Remove(m.remove);
    }
  }
}

}  // namespace wavetank::envoysim
