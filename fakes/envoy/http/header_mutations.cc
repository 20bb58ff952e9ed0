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

// `see` has the entry's view follow what the headers are before each mutation, and gives them.
template <typename Headers, typename See>
void HeaderMutations::ApplyEach(const Headers& headers, const See& see, AccessLogEntry* entry) const {
  for (const Mutation& m : all_) {
    const auto& now = see();
    if (m.append) {
      AddOne(*m.append, *entry, headers);
    } else if (m.remove_on_match) {
      for (const std::string& name : NamesOf(now)) {
        if (m.remove_on_match->Matches(name)) headers.Remove(name);
      }
    } else {
      headers.Remove(m.remove);
    }
  }
}

void HeaderMutations::Apply(AccessLogEntry entry, RequestEdit* request) const {
  struct Known : RequestHeaders {
    void Remove(const std::string& name) const {
      if (name != "host") RequestHeaders::Remove(name);  // which Envoy knows as :authority alone
    }
  };
  const auto see = [&]() -> const RequestSpec& {
    entry.request = &request->now();
    return *entry.request;
  };
  ApplyEach(Known{{request}}, see, &entry);
}

void HeaderMutations::ApplyToLines(AccessLogEntry entry, std::string_view AccessLogEntry::*seen,
                                   std::string* lines) const {
  std::string now;
  const auto see = [&]() -> const std::string& {
    now = *lines;
    entry.*seen = now;
    return now;
  };
  ApplyEach(ReplyLines{lines}, see, &entry);
}

void HeaderMutations::Apply(AccessLogEntry entry, std::string* lines) const {
  ApplyToLines(std::move(entry), &AccessLogEntry::response_headers, lines);
}

void HeaderMutations::ApplyToRequestTrailers(AccessLogEntry entry, RequestEdit* request) const {
  std::string lines;
  for (const auto& [name, value] : request->now().trailers) AddHeaderLine(name, value, &lines);
  std::string now;
  const auto see = [&]() -> const std::string& { return now = lines; };
  ApplyEach(ReplyLines{&lines}, see, &entry);
  std::vector<std::pair<std::string, std::string>> trailers;
  ForEachHeader(lines, [&](std::string_view name, std::string_view value) { trailers.emplace_back(name, value); });
  if (trailers != request->now().trailers) request->SetTrailers(std::move(trailers));
}

void HeaderMutations::ApplyToTrailers(AccessLogEntry entry, std::string* lines) const {
  ApplyToLines(std::move(entry), &AccessLogEntry::response_trailers, lines);
}

}  // namespace wavetank::envoysim
