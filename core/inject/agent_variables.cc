#include "core/inject/agent_variables.h"

#include "absl/strings/numbers.h"
#include "core/base/duration.h"
#include "core/base/text/env_text.h"
#include "core/base/text/go_duration.h"
#include "core/base/text/parse_bool.h"
#include "fmt/format.h"

namespace wavetank::pilot {

const std::string* AgentVariables::Find(std::string_view name) const {
  const auto it = all_.find(name);
  return it == all_.end() ? nullptr : &it->second;
}

void AgentVariables::Warn(std::string_view value, std::string_view expected, std::string otherwise) const {
  if (log_ == nullptr) return;
  log_->push_back(env::Warning(value, expected, otherwise));
}

std::string AgentVariables::Text(std::string_view name, std::string_view otherwise) const {
  const std::string* const text = Find(name);
  return text == nullptr ? std::string(otherwise) : *text;
}

bool AgentVariables::Flag(std::string_view name, bool otherwise) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return otherwise;
  const std::optional<bool> said = ParseBool(*text);
  if (!said) Warn(*text, env::kFlag, otherwise ? "true" : "false");
  return said.value_or(otherwise);
}

int64_t AgentVariables::Integer(std::string_view name, int64_t otherwise) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return otherwise;
  int64_t said = otherwise;
  if (!absl::SimpleAtoi(*text, &said)) {
    Warn(*text, env::kInteger, std::to_string(otherwise));
    return otherwise;
  }
  return said;
}

double AgentVariables::Number(std::string_view name, double otherwise) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return otherwise;
  double said = otherwise;
  if (!absl::SimpleAtod(*text, &said) || said != said) {
    Warn(*text, env::kNumber, fmt::format("{}", otherwise));
    return otherwise;
  }
  return said;
}

Duration AgentVariables::Length(std::string_view name, Duration otherwise) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return otherwise;
  const std::optional<Duration> said = ParseGoDuration(*text);
  if (!said) Warn(*text, env::kDuration, GoDurationText(otherwise.count()));
  return said.value_or(otherwise);
}

}  // namespace wavetank::pilot
