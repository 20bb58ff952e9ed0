#include "cli/verb.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "core/base/status.h"
#include "replay/event_log.h"
#include "replay/kept_secrets.h"

namespace wavetank::cli {

int64_t RealMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int Complain(const absl::Status& status) {
  std::fflush(stdout);
  const std::string_view message = Message(status);
  std::fprintf(stderr, "wavetank: %.*s\n", static_cast<int>(message.size()), message.data());
  return kBadInput;
}

void OnlyWith(CLI::App* verb, std::initializer_list<const char*> options, const char* other) {
  for (const char* option : options) verb->get_option(option)->needs(verb->get_option(other));
}

void NotWith(CLI::App* verb, std::initializer_list<const char*> options, const char* other) {
  for (const char* option : options) verb->get_option(option)->excludes(verb->get_option(other));
}

namespace {

void TellKeptSecrets(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
  if (!log.ok() || !replay::KeepsSecrets((*log)->header())) return;
  std::fflush(stdout);
  std::fprintf(stderr, "wavetank: %s\n", replay::KeptSecretsNote(path).c_str());
}

}  // namespace

int WithWholeness(int code, const std::string& path, bool whole) {
  TellKeptSecrets(path);
  if (whole || code == kBadInput) return code;
  std::fflush(stdout);
  std::fprintf(stderr,
               "wavetank: %s: not whole: its run was interrupted, and what came after its last record is missing\n",
               path.c_str());
  return code == kOk ? kNotWhole : code;
}

int WithWholeness(int code, const std::string& path) {
  if (code == kBadInput) return code;
  const absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
  if (!log.ok()) return Complain(log.status());
  const absl::StatusOr<replay::LogReader::Summary> summary = (*log)->Verify();
  return summary.ok() ? WithWholeness(code, path, summary->complete) : Complain(summary.status());
}

void PrintTable(const Rows& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 3, ' ');
    }
    std::cout << line << "\n";
  }
}

bool ColourWanted() { return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

Progress::Progress() : on_(isatty(STDERR_FILENO) == 1), start_ms_(RealMillis()) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Say(std::string_view what) {
  const int64_t now = RealMillis();
  if (!on_) {
    // In a file or a pipe a line now and then tells a long run from one that hangs.
    constexpr int64_t kBetweenLinesMs = 30'000;
    if (now - std::max(start_ms_, last_ms_) < kBetweenLinesMs) return;
    last_ms_ = now;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
    return;
  }
  if (now - start_ms_ < 1000 || now - last_ms_ < 100) return;
  last_ms_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
}

}  // namespace wavetank::cli
