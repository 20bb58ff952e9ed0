#include "fakes/envoy/http/header_operations.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

using Option = envoy::config::core::v3::HeaderValueOption;

bool Changeable(const std::string& name) { return !name.starts_with(':') && absl::AsciiStrToLower(name) != "host"; }

}  // namespace

bool RequestHeaders::Has(const std::string& name) const { return FindHeader(edit->now(), name).has_value(); }
void RequestHeaders::Set(const std::string& name, const std::string& value) const { edit->Set(name, value); }
void RequestHeaders::Add(const std::string& name, const std::string& value) const {
  name.starts_with(':') || name == "host" ? edit->Set(name, value) : edit->Add(name, value);
}
void RequestHeaders::Remove(const std::string& name) const { edit->Remove(name); }

bool ReplyLines::Has(const std::string& name) const { return FindHeaderLine(*lines, name).has_value(); }
void ReplyLines::Set(const std::string& name, const std::string& value) const {
  Remove(name);
  Add(name, value);
}
void ReplyLines::Add(const std::string& name, const std::string& value) const { AddHeaderLine(name, value, lines); }
void ReplyLines::Remove(const std::string& name) const {
  std::string kept;
  ForEachHeader(*lines, [&](std::string_view key, std::string_view value) {
    if (key != name) AddHeaderLine(key, value, &kept);
  });
  *lines = std::move(kept);
}

absl::StatusOr<HeaderAddition> HeaderAddition::Make(const Option& option, const Extensions& extensions) {
  const auto& header = option.header();
  if (header.key().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (HeaderValueValidationError.Key: value length must be at least 1 "
        "characters)");
  }
  if (!Changeable(header.key())) return absl::InvalidArgumentError(":-prefixed or host headers may not be modified");
  HeaderAddition a;
  a.name = absl::AsciiStrToLower(header.key());
  a.keep_empty = option.keep_empty_value();
  a.action = static_cast<Action>(option.append_action());
  if (option.has_append()) a.action = option.append().value() ? Action::kAppend : Action::kOverwriteOrAdd;
  const std::string& value = header.value();
  if (value.find('%') == std::string::npos) {
    a.text = value;
  } else {
    absl::StatusOr<AccessLogFormat> made = AccessLogFormat::MakeText(value, /*omit_empty=*/true, extensions);
    if (!made.ok()) return made.status();
    a.format = std::make_shared<AccessLogFormat>(*std::move(made));
  }
  return a;
}

std::optional<std::string> HeaderAddition::ValueFor(const AccessLogEntry& entry) const {
  std::string value = text;
  if (format != nullptr) format->Write(entry, &value);
  if (value.empty() && !keep_empty) return std::nullopt;
  return value;
}

absl::Status HeaderOperations::Add(const Option& option, const Extensions& extensions) {
  absl::StatusOr<HeaderAddition> made = HeaderAddition::Make(option, extensions);
  if (!made.ok()) return made.status();
  added_.push_back(*std::move(made));
  return absl::OkStatus();
}

absl::Status HeaderOperations::Remove(const std::string& name) {
  if (!Changeable(name)) return absl::InvalidArgumentError(":-prefixed or host headers may not be removed");
  removed_.push_back(absl::AsciiStrToLower(name));
  return absl::OkStatus();
}

template <typename Headers>
void HeaderOperations::AddTo(const AccessLogEntry& entry, Headers* headers) const {
  std::vector<std::pair<const std::string*, std::string>> overwrites, additions;
  using Action = HeaderAddition::Action;
  for (const HeaderAddition& a : added_) {
    std::optional<std::string> value = a.ValueFor(entry);
    if (!value) continue;
    const bool exists = a.action != Action::kAppend && headers->Has(a.name);
    if (a.action == Action::kAppend || (a.action == Action::kAddIfAbsent && !exists)) {
      additions.emplace_back(&a.name, *std::move(value));
    } else if (a.action == Action::kOverwriteOrAdd || (a.action == Action::kOverwriteIfExists && exists)) {
      overwrites.emplace_back(&a.name, *std::move(value));
    }
  }
  // All that overwrites comes first.
  for (const auto& [name, value] : overwrites) headers->Set(*name, value);
  for (const auto& [name, value] : additions) headers->Add(*name, value);
}

void HeaderOperations::Apply(const AccessLogEntry& entry, RequestEdit* request) const {
  RequestHeaders headers{request};
  for (const std::string& name : removed_) headers.Remove(name);
  // Formats see what is left. Envoy: router/header_parser.cc, evaluateHeaders
  AccessLogEntry left = entry;
  left.request = &request->now();
  AddTo(left, &headers);
}

void HeaderOperations::Apply(const AccessLogEntry& entry, std::string* lines) const {
  ReplyLines headers{lines};
  for (const std::string& name : removed_) headers.Remove(name);
  AccessLogEntry left = entry;
  const std::string now = *lines;
  left.response_headers = now;
  AddTo(left, &headers);
}

}  // namespace wavetank::envoysim
