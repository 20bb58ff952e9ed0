#include "core/debug/log_scopes.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "fmt/format.h"

namespace wavetank::debug {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error", "fatal", "none"};
constexpr std::string_view kDefaultScope = "default", kAllScopes = "all";

// Of every package that pilot-discovery 1.18.2 is linked of, and of istio.io/pkg/log.
constexpr std::pair<std::string_view, std::string_view> kScopes[] = {
    {"ads", "ads debugging"},
    {"adsc", "adsc debugging"},
    {"analysis", "Scope for configuration analysis runtime"},
    {"authn", "authn debugging"},
    {"authorization", "Istio Authorization Policy"},
    {"ca", "ca client"},
    {"controllers", "common controller logic"},
    {"default", "Unscoped logging messages."},
    {"delta", "delta xds debugging"},
    {"file", "File client messages"},
    {"gateway", "gateway-api controller"},
    {"grpcgen", "xDS Generator for Proxyless gRPC"},
    {"ingress status", ""},
    {"installer", "installer"},
    {"klog", ""},
    {"kube", "Kubernetes client messages"},
    {"model", "model"},
    {"monitor", "file configuration monitor"},
    {"pkica", "Citadel CA log"},
    {"pkira", "Istiod RA log"},
    {"processing", "Scope for configuration processing runtime"},
    {"retry", "logs for retries"},
    {"rootcertrotator", "Self-signed CA root cert rotator log"},
    {"secretcontroller", "Citadel kubernetes controller log"},
    {"security", "security debugging"},
    {"serverca", "Citadel server log"},
    {"serviceentry", "ServiceEntry registry"},
    {"spiffe", "SPIFFE library logging"},
    {"status", "CRD distribution status debugging"},
    {"tpath", "tree traverser"},
    {"trustBundle", "Workload mTLS trust bundle logs"},
    {"util", "util"},
    {"validation", "CRD validation debugging"},
    {"validationController", "validation webhook controller"},
    {"validationServer", "validation webhook server"},
    {"wasm", ""},
    {"wle", "wle controller debugging"},
};

std::vector<std::string> SplitList(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
}

}  // namespace

std::string_view LogLevelName(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> ParseLogLevel(std::string_view text) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogScopes::LogScopes() {
  for (const auto& [name, description] : kScopes) scopes_.push_back({name, description});
}

absl::Status LogScopes::Configure(std::string_view output_levels, std::string_view stack_trace_levels,
                                  std::string_view callers) {
  for (const auto& [text, of] :
       {std::pair(output_levels, &LogScope::output), std::pair(stack_trace_levels, &LogScope::stack_trace)}) {
    if (text.empty()) continue;
    for (const std::string& item : SplitList(text)) {
      const std::vector<std::string> parts = absl::StrSplit(item, ':');
      if (parts.size() > 2) return absl::InvalidArgumentError(fmt::format("invalid output level format '{}'", item));
      const std::optional<LogLevel> level = ParseLogLevel(parts.back());
      if (!level) return absl::InvalidArgumentError(fmt::format("invalid output level '{}'", item));
      const std::string_view name = parts.size() == 1 ? kDefaultScope : std::string_view(parts[0]);
      if (LogScope* const scope = Mutable(name)) {
        scope->*of = *level;
      } else if (name == kAllScopes) {
        for (LogScope& each : scopes_) each.*of = *level;
        break;  // what follows is not looked at
      }
    }
  }
  if (callers.empty()) return absl::OkStatus();
  for (const std::string& name : SplitList(callers)) {
    for (LogScope& scope : scopes_) scope.callers = scope.callers || name == kAllScopes || scope.name == name;
  }
  return absl::OkStatus();
}

const LogScope* LogScopes::Find(std::string_view name) const {
  if (name.empty()) name = kDefaultScope;
  const auto it = std::find_if(scopes_.begin(), scopes_.end(), [&](const LogScope& s) { return s.name == name; });
  return it == scopes_.end() ? nullptr : &*it;
}

LogScope* LogScopes::Mutable(std::string_view name) {
  const LogScope* const found = name.empty() ? nullptr : Find(name);
  return found == nullptr ? nullptr : &scopes_[static_cast<size_t>(found - scopes_.data())];
}

bool LogScopes::Set(Time at, std::string_view name, std::optional<LogLevel> output, std::optional<LogLevel> stack_trace,
                    bool callers) {
  LogScope* const scope = Mutable(name);
  if (scope == nullptr) return false;
  if (output) {
    std::vector<std::pair<Time, LogLevel>>& changes = changes_[std::string(name)];
    if (changes.empty()) changes.emplace_back(Time::min(), scope->output);
    changes.emplace_back(at, *output);
    scope->output = *output;
  }
  if (stack_trace) scope->stack_trace = *stack_trace;
  scope->callers = callers;
  return true;
}

bool LogScopes::Printed(Time at, std::string_view level, std::string_view scope) const {
  const LogScope* const found = Find(scope);
  const std::optional<LogLevel> of_line = ParseLogLevel(level);
  if (found == nullptr || !of_line) return true;
  LogLevel least = found->output;
  if (const auto changes = changes_.find(found->name); changes != changes_.end()) {
    for (const auto& [since, was] : changes->second) {
      if (since <= at) least = was;
    }
  }
  return *of_line >= least;
}

bool LogScopes::Printed(Time at, std::string_view line) const {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(line.data(), line.size()), absl::MaxSplits('\t', 3));
  if (parts.size() < 3) return true;
  // Without a scope what follows is the text, whose own tabs are its own.
  const bool scoped = parts.size() == 4 && Find(parts[2]) != nullptr && !parts[2].empty();
  return Printed(at, parts[1], scoped ? std::string_view(parts[2]) : std::string_view());
}

}  // namespace wavetank::debug
